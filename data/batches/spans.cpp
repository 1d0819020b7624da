#include "data/batches/spans.h"

#include <algorithm>
#include <cmath>

#include "data/batches/dataset.h"
#include "data/tokenizers/tokenizer.h"

namespace heed {
namespace {

struct Sizes {
  std::int64_t hidden, spans;
};

Sizes sizes_of(std::int64_t tokens, const SpanOptions& options) {
  const auto rounded = [](double x) { return std::max<std::int64_t>(1, std::llround(x)); };
  const std::int64_t hidden =
      std::min(rounded(static_cast<double>(tokens) * options.rate), tokens - 1);
  return {hidden, std::min(rounded(static_cast<double>(hidden) / options.length), tokens - hidden)};
}

/// Cuts `items` items into `parts` non-empty parts, with all ways to cut equally likely, and
/// returns the lengths of the parts.
std::vector<std::int64_t> cut(std::int64_t items, std::int64_t parts, Random& random) {
  std::vector<std::int64_t> lengths(1, 1);
  std::int64_t cuts = parts - 1;  // number of cuts to place in the remaining gaps
  for (std::int64_t gap = items - 1; gap > 0; --gap) {
    if (random.below(static_cast<std::uint32_t>(gap)) < static_cast<std::uint32_t>(cuts)) {
      lengths.push_back(0);
      --cuts;
    }
    ++lengths.back();
  }
  return lengths;
}

class SpanBatching final : public SequenceBatching {
 protected:
  Rows rows(const Dataset& data, std::int64_t sample) const override {
    const std::int64_t n = data.source.length(sample);
    const auto [hidden, spans] = sizes_of(n, data.spans->options);
    return {n - hidden + spans + 1, hidden + spans + 1};
  }

  void add(const Dataset& data, const Draw& draw, Batch& batch) const override {
    Random random = draw.random(Stream::masking);
    const auto line = data.source[draw.sample];
    const std::vector<bool> hidden = hidden_tokens(std::ssize(line), data.spans->options, random);
    std::vector<std::int32_t> read, written;
    std::int32_t mark = data.spans->first_mark;
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (hidden[i] && (i == 0 || !hidden[i - 1])) {
        read.push_back(mark);
        written.push_back(mark++);
      }
      (hidden[i] ? written : read).push_back(line[i]);
    }
    read.push_back(data.source_ids.eos);
    batch.source.push(read);
    push_target(written, data.target_ids, batch);
  }
};

}  // namespace

std::vector<bool> hidden_tokens(std::int64_t tokens, const SpanOptions& options, Random& random) {
  const auto [hidden, spans] = sizes_of(tokens, options);
  const std::vector<std::int64_t> dark = cut(hidden, spans, random),
                                  light = cut(tokens - hidden, spans, random);
  std::vector<bool> all;
  for (std::size_t k = 0; k < dark.size(); ++k) {
    all.insert(all.end(), static_cast<std::size_t>(light[k]), false);
    all.insert(all.end(), static_cast<std::size_t>(dark[k]), true);
  }
  return all;
}

const Batching& hidden_spans() {
  static const SpanBatching rule;
  return rule;
}

}  // namespace heed
