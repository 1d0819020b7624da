#include "data/batches/masking.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "data/batches/dataset.h"

namespace heed {
namespace {

class MaskBatching final : public SequenceBatching {
 protected:
  Rows rows(const Dataset& data, std::int64_t sample) const override {
    std::int64_t rows = data.source.length(sample) + 2;
    if (data.masking->options.next_sentence)
      rows += data.source.length((sample + 1) % data.size()) + 1;
    return {rows, 0};
  }

  void add(const Dataset& data, const Draw& draw, Batch& batch) const override {
    const Masking& masking = *data.masking;
    Random random = draw.random(Stream::masking);
    const SpecialIds& special = data.source_ids;
    std::vector<std::int32_t> ids{special.bos};
    const auto append = [&](std::int64_t sample) {
      const auto line = data.source[sample];
      ids.insert(ids.end(), line.begin(), line.end());
      ids.push_back(special.eos);
    };
    append(draw.sample);
    std::int32_t first_label = no_label;
    if (masking.options.next_sentence) {
      const bool follows = masking.followed[draw.sample] && random.below(2) == 0;
      append(follows ? draw.sample + 1 : another(data, draw.sample, random));
      first_label = follows ? special.bos : special.eos;
    }
    std::vector<std::int32_t> labels(ids.size(), no_label);
    hide(masking, special, random, ids, labels);
    labels.front() = first_label;
    batch.source.push(ids);
    batch.labels.insert(batch.labels.end(), labels.begin(), labels.end());
  }

 private:
  struct Unit {
    std::size_t begin, end;
  };

  /// A random sample other than the next one (the first follows the last); `sample` itself if it is
  /// the only one.
  static std::int64_t another(const Dataset& data, std::int64_t sample, Random& random) {
    const auto n = static_cast<std::uint32_t>(data.size());
    if (n < 2) return sample;
    const std::int64_t next = (sample + 1) % n;
    return (next + 1 + random.below(n - 1)) % n;
  }

  /// The units that are hidden as a whole: tokens or words.
  static std::vector<Unit> units(const Masking& masking, const SpecialIds& special,
                                 std::span<const std::int32_t> ids) {
    std::vector<Unit> all;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] == special.bos || ids[i] == special.eos) continue;
      const bool continues = masking.options.whole_words && !masking.continues.empty() &&
                             masking.continues[static_cast<std::size_t>(ids[i])];
      if (continues && !all.empty() && all.back().end == i)
        all.back().end = i + 1;
      else
        all.push_back({i, i + 1});
    }
    return all;
  }

  static void hide(const Masking& masking, const SpecialIds& special, Random& random,
                   std::span<std::int32_t> ids, std::span<std::int32_t> labels) {
    std::vector<Unit> left = units(masking, special, ids);
    std::size_t tokens = 0, hidden = 0;
    for (const Unit& s : left) tokens += s.end - s.begin;
    const auto wanted = std::max<std::size_t>(
        1,
        static_cast<std::size_t>(std::lround(masking.options.rate * static_cast<double>(tokens))));
    while (!left.empty() && hidden < wanted) {
      std::swap(left[random.below(static_cast<std::uint32_t>(left.size()))], left.back());
      const auto [begin, end] = left.back();
      left.pop_back();
      if (hidden > 0 && hidden + end - begin > wanted) continue;  // would hide too many tokens
      hidden += end - begin;
      for (std::size_t i = begin; i < end; ++i) {
        labels[i] = ids[i];
        ids[i] = replacement(masking, random, ids[i]);
      }
    }
  }

  static std::int32_t replacement(const Masking& masking, Random& random, std::int32_t id) {
    const double u = random.uniform();
    if (u < 0.8) return masking.mask;
    if (u >= 0.9) return id;
    return masking.first + static_cast<std::int32_t>(random.below(
                               static_cast<std::uint32_t>(masking.vocabulary - masking.first)));
  }
};

}  // namespace

const Batching& masked_lines() {
  static const MaskBatching rule;
  return rule;
}

}  // namespace heed
