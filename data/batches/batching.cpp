#include "data/batches/batching.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

#include "autograd/base/error.h"
#include "autograd/base/random.h"
#include "data/batches/dataset.h"

namespace heed {
namespace {

/// The number of batches in a chunk of samples, which is sorted by length. A larger number makes
/// the lengths in a batch more uniform. A smaller number makes batches differ more between epochs.
constexpr std::int64_t batches_per_chunk = 100;

enum Part : std::uint32_t { samples_part = 0, batches_part = 1, shift_part = 2, parts_part = 3 };

Random shuffler(std::uint64_t seed, std::int64_t epoch, Part part) {
  return Random({.seed = seed,
                 .stream = Stream::shuffle,
                 .index = static_cast<std::uint64_t>(epoch),
                 .part = part});
}

/// Shuffles items (Fisher-Yates).
template <class T>
void shuffle(std::vector<T>& items, Random random) {
  for (std::size_t i = items.size(); i > 1; --i) {
    std::swap(items[i - 1], items[random.below(static_cast<std::uint32_t>(i))]);
  }
}

SampleGroup all_samples(const Dataset& data) {
  SampleGroup order(data.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  return order;
}

/// The number of samples that an epoch draws from each part, proportional to min(size, limit)^(1 /
/// temperature). The numbers add up to the size of the dataset.
std::vector<std::int64_t> drawn_of_parts(const Dataset& data) {
  std::vector<double> rates;
  double sum = 0;
  for (const Split::Part& part : data.parts) {
    auto size = static_cast<double>(part.size);
    if (data.mixture.limit > 0) size = std::min(size, static_cast<double>(data.mixture.limit));
    rates.push_back(size > 0 ? std::pow(size, 1 / data.mixture.temperature) : 0);
    sum += rates.back();
  }
  std::vector<std::int64_t> counts;
  const auto n = static_cast<double>(data.size());
  double total = 0;
  std::int64_t counted = 0;
  for (const double rate : rates) {
    total += rate;
    counts.push_back(std::llround(n * total / sum) - counted);
    counted += counts.back();
  }
  return counts;
}

/// The samples of an epoch, in random order: each sample once or, if the mixture has a limit or a
/// temperature, the number of samples of each part that drawn_of_parts() returns. If a part has
/// fewer samples, they are repeated in turn.
SampleGroup samples_of_epoch(const Dataset& data, const BatchOptions& options, std::int64_t epoch) {
  SampleGroup order = all_samples(data);
  shuffle(order, shuffler(options.seed, epoch, samples_part));
  if (data.parts.empty() || (data.mixture.limit == 0 && data.mixture.temperature == 1))
    return order;
  const std::vector<std::int64_t> wanted = drawn_of_parts(data);
  SampleGroup drawn;
  std::int64_t begin = 0;
  for (std::size_t part = 0; part < wanted.size(); ++part) {
    const std::int64_t end = begin + static_cast<std::int64_t>(data.parts[part].size);
    SampleGroup candidates;
    std::ranges::copy_if(order, std::back_inserter(candidates),
                         [&](std::int64_t i) { return begin <= i && i < end; });
    for (std::int64_t k = 0; k < wanted[part]; ++k)
      drawn.push_back(candidates[k % std::ssize(candidates)]);
    begin = end;
  }
  shuffle(drawn, shuffler(options.seed, epoch, parts_part));
  return drawn;
}

/// Cuts samples, in order, into groups of `size` samples. The last group may be smaller.
std::vector<SampleGroup> cut_by_number(const SampleGroup& samples, std::size_t size) {
  std::vector<SampleGroup> groups;
  for (std::size_t at = 0; at < samples.size(); at += size) {
    const auto begin = samples.begin() + at;
    groups.emplace_back(begin, begin + std::min(size, samples.size() - at));
  }
  return groups;
}

class PairBatching final : public SequenceBatching {
 protected:
  Rows rows(const Dataset& data, std::int64_t sample) const override {
    return {data.source_rows(sample), data.target.length(sample) + 1};
  }
  void add(const Dataset& data, const Draw& draw, Batch& batch) const override {
    const std::int64_t i = draw.sample;
    if (!data.segmentation || !draw.epoch) {
      data.push_source(draw, batch.source);
      return push_target(data.target[i], data.target_ids, batch);
    }
    const Segmentation& segmentation = *data.segmentation;
    std::vector<std::int32_t> source =
        drawn(segmentation, *segmentation.source, data.source_lines[i], draw, 0);
    source.push_back(data.source_ids.eos);
    batch.source.push(source);
    push_target(drawn(segmentation, *segmentation.target, data.target_lines[i], draw, 1),
                data.target_ids, batch);
  }

 private:
  static std::vector<std::int32_t> drawn(const Segmentation& segmentation,
                                         const Tokenizer& tokenizer, const std::string& line,
                                         const Draw& draw, std::uint32_t part) {
    Random random = draw.random(Stream::segmentation, part);
    std::vector<std::int32_t> ids = tokenizer.sample(line, segmentation.options, random);
    if (std::ssize(ids) > segmentation.max_length) ids = tokenizer.encode(line);
    return ids;
  }
};

class WindowBatching final : public Batching {
 public:
  void check_trainable(const Dataset& data) const override { check_text(data, "data.train"); }

  std::vector<SampleGroup> epoch(const Dataset& data, const BatchOptions& options,
                                 std::int64_t epoch) const override {
    const std::int64_t first = shift(data, options, epoch);
    SampleGroup starts = window_starts(data, options.context, first);
    if (options.lanes) return whole_lanes(data, std::move(starts), options, first);
    shuffle(starts, shuffler(options.seed, epoch, samples_part));
    return cut_by_number(starts, windows_a_batch(options));
  }

  std::vector<SampleGroup> evaluation(const Dataset& data,
                                      const BatchOptions& options) const override {
    const SampleGroup starts = window_starts(data, options.context, 0);
    const std::size_t windows = windows_a_batch(options);
    if (options.lanes) return in_lanes(starts, (starts.size() + windows - 1) / windows);
    return cut_by_number(starts, windows);
  }

  Batch batch(const Dataset& data, const SampleGroup& starts, const BatchOptions& options,
              std::optional<std::int64_t> epoch) const override {
    // With a shift, the first window has only `first` tokens.
    const std::int64_t first = epoch ? shift(data, options, *epoch) : 0;
    const std::int64_t last = static_cast<std::int64_t>(data.stream.size()) - 1;
    const std::span<const std::int32_t> text(data.stream);
    Batch batch;
    for (const std::int64_t start : starts) {
      const std::int64_t whole = start == 0 && first > 0 ? first : options.context;
      const auto at = start, length = std::min(whole, last - start);
      batch.target.push(text.subspan(at, length));
      const auto next = text.subspan(at + 1, length);
      batch.labels.insert(batch.labels.end(), next.begin(), next.end());
    }
    batch.samples = starts;
    batch.continues = options.lanes && starts.front() > first;
    return batch;
  }

 private:
  /// Lane i consists of windows i · length to (i + 1) · length − 1. Group t consists of window t of
  /// each lane; the last lane may be shorter.
  static std::vector<SampleGroup> in_lanes(const SampleGroup& starts, std::size_t length) {
    std::vector<SampleGroup> groups(std::min(length, starts.size()));
    for (std::size_t i = 0; i < starts.size(); ++i) groups[i % length].push_back(starts[i]);
    return groups;
  }
  /// Groups of lanes of equal length. Omits the shorter windows at the start and the end of the
  /// text, and windows that would make lanes unequal.
  static std::vector<SampleGroup> whole_lanes(const Dataset& data, SampleGroup starts,
                                              const BatchOptions& options, std::int64_t first) {
    const auto last = static_cast<std::int64_t>(data.stream.size()) - 1;
    std::erase_if(starts,
                  [&](std::int64_t at) { return at < first || at + options.context > last; });
    if (starts.empty()) return {{0}};  // no whole window fits: only the shorter one at the start
    const std::size_t lanes = std::min(windows_a_batch(options), starts.size()),
                      length = starts.size() / lanes;
    starts.resize(lanes * length);
    return in_lanes(starts, length);
  }
  static std::size_t windows_a_batch(const BatchOptions& options) {
    if (options.batch_sequences > 0) return options.batch_sequences;
    return static_cast<std::size_t>(
        std::max<std::int64_t>(1, options.batch_tokens / options.context));
  }

  /// The starts of windows that predict tokens 1 … n − 1 once each: the window [0, shift), if it is
  /// not empty, then one window every `context` tokens.
  static SampleGroup window_starts(const Dataset& data, std::int64_t context, std::int64_t shift) {
    const auto tokens = static_cast<std::int64_t>(data.stream.size());
    SampleGroup starts;
    if (shift > 0) starts.push_back(0);
    for (std::int64_t at = shift; at < tokens - 1; at += context) starts.push_back(at);
    return starts;
  }

  /// The random shift of an epoch's windows, less than both `context` and the number of tokens to
  /// predict.
  static std::int64_t shift(const Dataset& data, const BatchOptions& options, std::int64_t epoch) {
    const auto limit =
        std::min<std::int64_t>(options.context, static_cast<std::int64_t>(data.stream.size()) - 1);
    return shuffler(options.seed, epoch, shift_part).below(static_cast<std::uint32_t>(limit));
  }
};

}  // namespace

void push_target(std::span<const std::int32_t> target, const SpecialIds& special, Batch& batch) {
  const std::int32_t begin[] = {special.bos};
  batch.target.push(begin, target);
  batch.labels.insert(batch.labels.end(), target.begin(), target.end());
  batch.labels.push_back(special.eos);
}

Random Draw::random(Stream stream, std::uint32_t part) const {
  const auto number = static_cast<std::uint64_t>(sample);
  if (!epoch)
    return Random({.seed = 0, .stream = stream, .index = number, .part = part | 1U << 27});
  return Random({.seed = seed,
                 .stream = stream,
                 .index = static_cast<std::uint64_t>(*epoch) << 32 | number,
                 .part = part});
}

void SequenceBatching::check_trainable(const Dataset& data) const {
  if (data.size() > 0) return;
  throw Error(Exit::bad_input,
              "data.train: no sample is left to train on ({} too short, {} longer than "
              "data.max_length)",
              data.skipped_empty, data.skipped_long);
}

/// Cuts samples, in the given order, into batches within the limits of the options.
std::vector<SampleGroup> SequenceBatching::cut(const Dataset& data, const SampleGroup& order,
                                               const BatchOptions& options) const {
  if (options.batch_sequences > 0) return cut_by_number(order, options.batch_sequences);
  std::vector<SampleGroup> groups;
  SampleGroup group;
  Rows filled;
  for (const std::int64_t i : order) {
    const Rows more = rows(data, i);
    if (!group.empty() &&
        std::max(filled.source + more.source, filled.target + more.target) > options.batch_tokens) {
      groups.push_back(std::exchange(group, {}));
      filled = {};
    }
    group.push_back(i);
    filled.source += more.source;
    filled.target += more.target;
  }
  if (!group.empty()) groups.push_back(std::move(group));
  return groups;
}

std::vector<SampleGroup> SequenceBatching::epoch(const Dataset& data, const BatchOptions& options,
                                                 std::int64_t epoch) const {
  const SampleGroup order = samples_of_epoch(data, options, epoch);
  struct Sample {
    std::int64_t target, source, index;
  };
  std::vector<Sample> chunk;
  std::vector<SampleGroup> groups;
  std::int64_t filled = 0;
  const bool count = options.batch_sequences > 0;
  const std::int64_t room =
      batches_per_chunk * (count ? options.batch_sequences : options.batch_tokens);
  const auto flush = [&] {
    // Sorts by target length, then by source length. The sort is stable, so ties keep the shuffled
    // order.
    std::ranges::stable_sort(
        chunk, {}, [](const Sample& sample) { return std::pair(sample.target, sample.source); });
    SampleGroup sorted;
    for (const Sample& sample : chunk) sorted.push_back(sample.index);
    for (SampleGroup& group : cut(data, sorted, options)) groups.push_back(std::move(group));
    chunk.clear();
    filled = 0;
  };
  for (const std::int64_t i : order) {
    const Rows of = rows(data, i);
    chunk.push_back({of.target, of.source, i});
    filled += count ? 1 : std::max(of.source, of.target);
    if (filled >= room) flush();
  }
  flush();
  shuffle(groups, shuffler(options.seed, epoch, batches_part));
  return groups;
}

std::vector<SampleGroup> SequenceBatching::evaluation(const Dataset& data,
                                                      const BatchOptions& options) const {
  SampleGroup order = all_samples(data);
  // Sorts by source length first, because decoding does not depend on the target length.
  std::ranges::stable_sort(order, {}, [&](std::int64_t i) {
    const Rows of = rows(data, i);
    return std::pair(of.source, of.target);
  });
  return cut(data, order, options);
}

Batch SequenceBatching::batch(const Dataset& data, const SampleGroup& samples,
                              const BatchOptions& options,
                              std::optional<std::int64_t> epoch) const {
  Batch batch;
  for (const std::int64_t i : samples) add(data, {options.seed, epoch, i}, batch);
  batch.samples = samples;
  return batch;
}

const Batching& pairs() {
  static const PairBatching rule;
  return rule;
}

const Batching& windows() {
  static const WindowBatching rule;
  return rule;
}

}  // namespace heed
