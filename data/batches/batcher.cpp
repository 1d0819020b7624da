#include "data/batches/batcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "autograd/base/error.h"
#include "autograd/base/random.h"

namespace heed {
namespace {

using Group = std::vector<std::int64_t>;

/// Samples are sorted by length within stretches of this many batches: more, and batches grow alike
/// in length; fewer, and batches are the same from epoch to epoch less often.
constexpr std::int64_t batches_a_stretch = 100;

enum Part : std::uint32_t { samples_part = 0, batches_part = 1, shift_part = 2 };

Random shuffler(std::uint64_t seed, std::int64_t epoch, Part part) {
  return Random({.seed = seed,
                 .stream = Stream::shuffle,
                 .index = static_cast<std::uint64_t>(epoch),
                 .part = part});
}

/// Fisher and Yates.
template <class T>
void shuffle(std::vector<T>& items, Random random) {
  for (std::size_t i = items.size(); i > 1; --i) {
    std::swap(items[i - 1], items[random.below(static_cast<std::uint32_t>(i))]);
  }
}

/// Tokens of a sample on each side of a batch; specials counted.
std::int64_t source_tokens(const Dataset& data, std::int64_t i) { return data.source.length(i); }
std::int64_t target_tokens(const Dataset& data, std::int64_t i) {
  return data.target.length(i) + 1;
}

/// Cuts samples, in the order given, into batches within the limits of the options.
void cut_into(std::vector<Group>& groups, const Dataset& data,
              const std::vector<std::int64_t>& order, const BatchOptions& options) {
  Group group;
  std::int64_t source = 0, target = 0;
  for (const std::int64_t i : order) {
    const std::int64_t s = source_tokens(data, i), t = target_tokens(data, i);
    const bool full = options.batch_sequences > 0
                          ? static_cast<std::int64_t>(group.size()) == options.batch_sequences
                          : std::max(source + s, target + t) > options.batch_tokens;
    if (full && !group.empty()) {
      groups.push_back(std::move(group));
      group.clear();
      source = target = 0;
    }
    group.push_back(i);
    source += s;
    target += t;
  }
  if (!group.empty()) groups.push_back(std::move(group));
}

/// By target length, then source length; a stable sort, so that ties keep the shuffled order.
void sort_by_length(std::vector<std::int64_t>& order, const Dataset& data) {
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    const auto ta = data.target.length(a), tb = data.target.length(b);
    return ta != tb ? ta < tb : data.source.length(a) < data.source.length(b);
  });
}

std::vector<Group> plan_pairs(const Dataset& data, const BatchOptions& options,
                              std::int64_t epoch) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(data.size()));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  shuffle(order, shuffler(options.seed, epoch, samples_part));

  std::vector<Group> groups;
  std::vector<std::int64_t> stretch;
  std::int64_t filled = 0;
  const bool count = options.batch_sequences > 0;
  const std::int64_t room =
      batches_a_stretch * (count ? options.batch_sequences : options.batch_tokens);
  const auto flush = [&] {
    sort_by_length(stretch, data);
    cut_into(groups, data, stretch, options);
    stretch.clear();
    filled = 0;
  };
  for (const std::int64_t i : order) {
    stretch.push_back(i);
    filled += count ? 1 : std::max(source_tokens(data, i), target_tokens(data, i));
    if (filled >= room) flush();
  }
  flush();
  return groups;
}

std::int64_t windows_a_batch(const BatchOptions& options) {
  if (options.batch_sequences > 0) return options.batch_sequences;
  return std::max<std::int64_t>(1, options.batch_tokens / options.context);
}

/// Starts of the windows that predict tokens 1 … n − 1 once each: [0, shift), then every `context`.
std::vector<std::int64_t> window_starts(std::int64_t tokens, std::int64_t context,
                                        std::int64_t shift) {
  std::vector<std::int64_t> starts;
  if (shift > 0) starts.push_back(0);
  for (std::int64_t at = shift; at < tokens - 1; at += context) starts.push_back(at);
  return starts;
}

std::vector<Group> plan_windows(const Dataset& data, const BatchOptions& options,
                                std::int64_t shift, std::int64_t epoch) {
  auto starts =
      window_starts(static_cast<std::int64_t>(data.stream.size()), options.context, shift);
  shuffle(starts, shuffler(options.seed, epoch, samples_part));
  std::vector<Group> groups;
  const auto size = static_cast<std::size_t>(windows_a_batch(options));
  for (std::size_t at = 0; at < starts.size(); at += size) {
    groups.emplace_back(
        starts.begin() + static_cast<std::ptrdiff_t>(at),
        starts.begin() + static_cast<std::ptrdiff_t>(std::min(starts.size(), at + size)));
  }
  return groups;
}

/// The shift of an epoch's windows: in [0, context), and leaving at least one prediction after it.
std::int64_t window_shift(const Dataset& data, const BatchOptions& options, std::int64_t epoch) {
  const auto limit =
      std::min<std::int64_t>(options.context, static_cast<std::int64_t>(data.stream.size()) - 1);
  return shuffler(options.seed, epoch, shift_part).below(static_cast<std::uint32_t>(limit));
}

void add_window(Batch& batch, const Dataset& data, std::int64_t start, std::int64_t length) {
  const auto first = data.stream.begin() + start;
  batch.target_in.insert(batch.target_in.end(), first, first + length);
  batch.target_out.insert(batch.target_out.end(), first + 1, first + 1 + length);
  batch.target_offsets.push_back(static_cast<std::int32_t>(batch.target_in.size()));
  batch.samples.push_back(start);
}

/// `shift`: where the window at 0 ends when the grid does not begin there; 0 if it does.
Batch window_batch(const Dataset& data, const Group& starts, std::int64_t context,
                   std::int64_t shift) {
  Batch batch;
  batch.target_offsets.push_back(0);
  const std::int64_t last = static_cast<std::int64_t>(data.stream.size()) - 1;
  for (const std::int64_t start : starts) {
    const std::int64_t whole = start == 0 && shift > 0 ? shift : context;
    add_window(batch, data, start, std::min(whole, last - start));
  }
  return batch;
}

Batch pair_batch(const Dataset& data, const Group& samples) {
  Batch batch;
  batch.source_offsets.push_back(0);
  batch.target_offsets.push_back(0);
  for (const std::int64_t i : samples) {
    const auto source = data.source[i], target = data.target[i];
    batch.source.insert(batch.source.end(), source.begin(), source.end());
    batch.target_in.push_back(Tokenizer::bos);
    batch.target_in.insert(batch.target_in.end(), target.begin(), target.end());
    batch.target_out.insert(batch.target_out.end(), target.begin(), target.end());
    batch.target_out.push_back(Tokenizer::eos);
    batch.source_offsets.push_back(static_cast<std::int32_t>(batch.source.size()));
    batch.target_offsets.push_back(static_cast<std::int32_t>(batch.target_in.size()));
  }
  batch.samples = samples;
  return batch;
}

void check_options(const Dataset& data, const BatchOptions& options) {
  if (options.batch_sequences <= 0 && options.batch_tokens <= 0) {
    throw Error(Exit::usage, "train.batch_tokens: must be positive");
  }
  if (data.language_model() && options.context <= 0) {
    throw Error(Exit::usage, "model.context: must be positive");
  }
}

}  // namespace

Batch make_batch(const Dataset& data, const std::vector<std::int64_t>& samples,
                 std::int64_t context) {
  return data.language_model() ? window_batch(data, samples, context, 0)
                               : pair_batch(data, samples);
}

std::vector<Batch> evaluation_batches(const Dataset& data, const BatchOptions& options) {
  check_options(data, options);
  std::vector<Batch> batches;
  if (data.language_model()) {
    const auto starts =
        window_starts(static_cast<std::int64_t>(data.stream.size()), options.context, 0);
    const auto size = static_cast<std::size_t>(windows_a_batch(options));
    for (std::size_t at = 0; at < starts.size(); at += size) {
      const Group group(
          starts.begin() + static_cast<std::ptrdiff_t>(at),
          starts.begin() + static_cast<std::ptrdiff_t>(std::min(starts.size(), at + size)));
      batches.push_back(window_batch(data, group, options.context, 0));
    }
    return batches;
  }
  // By source length first: when decoding, that is the only length known.
  std::vector<std::int64_t> order(static_cast<std::size_t>(data.size()));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    const auto sa = data.source.length(a), sb = data.source.length(b);
    return sa != sb ? sa < sb : data.target.length(a) < data.target.length(b);
  });
  std::vector<Group> groups;
  cut_into(groups, data, order, options);
  for (const auto& group : groups) batches.push_back(pair_batch(data, group));
  return batches;
}

BatchStream::BatchStream(const Dataset& data, const BatchOptions& options)
    : data_(&data), options_(options) {
  check_options(data, options);
  if (data.language_model()) {
    if (data.stream.size() < 2)
      throw Error(Exit::bad_input, "data.train: a text of one token teaches nothing");
  } else if (data.size() == 0) {
    throw Error(Exit::bad_input,
                fmt::format("data.train: no pair is left to train on ({} empty, {} longer than "
                            "data.max_length)",
                            data.left_out_empty, data.left_out_long));
  }
}

const std::vector<Group>& BatchStream::plan(std::int64_t epoch) {
  if (plan_epoch_ != epoch) {
    plan_ = std::make_shared<const std::vector<Group>>(
        data_->language_model()
            ? plan_windows(*data_, options_, window_shift(*data_, options_, epoch), epoch)
            : [&] {
                auto groups = plan_pairs(*data_, options_, epoch);
                shuffle(groups, shuffler(options_.seed, epoch, batches_part));
                return groups;
              }());
    plan_epoch_ = epoch;
    if (plan_->empty()) throw Error(Exit::failed, "no batch: the dataset was emptied while in use");
  }
  return *plan_;
}

Batch BatchStream::next() {
  const auto& groups = plan(position_.epoch);
  const Group& group = groups[static_cast<std::size_t>(position_.batch)];
  Batch batch = data_->language_model()
                    ? window_batch(*data_, group, options_.context,
                                   window_shift(*data_, options_, position_.epoch))
                    : pair_batch(*data_, group);
  if (++position_.batch == static_cast<std::int64_t>(groups.size())) {
    position_ = {position_.epoch + 1, 0};
  }
  return batch;
}

std::int64_t BatchStream::batches_in(std::int64_t epoch) {
  if (epoch == plan_epoch_) return static_cast<std::int64_t>(plan_->size());
  BatchStream other = *this;  // keeps the plan that is in use
  return static_cast<std::int64_t>(other.plan(epoch).size());
}

void BatchStream::seek(Position position) {
  if (position.epoch < 0 || position.batch < 0 ||
      position.batch >= static_cast<std::int64_t>(plan(position.epoch).size())) {
    throw Error(Exit::bad_input,
                fmt::format("there is no batch {} in epoch {} of this data; has it changed?",
                            position.batch, position.epoch));
  }
  position_ = position;
}

double BatchStream::epochs_done() {
  if (position_.batch == 0) return static_cast<double>(position_.epoch);  // no need of a plan
  return static_cast<double>(position_.epoch) +
         static_cast<double>(position_.batch) / static_cast<double>(plan(position_.epoch).size());
}

std::vector<Batch> shard(const Batch& batch, std::int64_t count, TokenCost cost) {
  if (count < 1) throw Error(Exit::failed, "shard: count must be positive");
  const std::int64_t n = batch.sequences();
  const bool pairs = !batch.source_offsets.empty();
  const auto cost_before = [&](std::int64_t i) {
    return cost.target * batch.target_offsets[i] +
           (pairs ? cost.source * batch.source_offsets[i] : 0);
  };
  std::vector<Batch> shards;
  if (n == 0) return shards;
  const double total = cost_before(n), parts = static_cast<double>(count);

  std::int64_t from = 0;
  for (std::int64_t k = 1; k <= count && from < n; ++k) {
    // Group k ends at the sequence boundary nearest to k/count of the cost.
    const double end = static_cast<double>(k) * total;
    std::int64_t to = from;
    while (to < n && (cost_before(to) + cost_before(to + 1)) * parts <= 2 * end) ++to;
    if (k == count) to = n;
    if (to == from) continue;
    Batch part;
    const auto copy = [&](const auto& all, const auto& offsets, auto& into) {
      into.assign(all.begin() + offsets[from], all.begin() + offsets[to]);
    };
    const auto rebase = [&](const auto& offsets, auto& into) {
      for (std::int64_t i = from; i <= to; ++i) into.push_back(offsets[i] - offsets[from]);
    };
    if (pairs) {
      copy(batch.source, batch.source_offsets, part.source);
      rebase(batch.source_offsets, part.source_offsets);
    }
    copy(batch.target_in, batch.target_offsets, part.target_in);
    copy(batch.target_out, batch.target_offsets, part.target_out);
    rebase(batch.target_offsets, part.target_offsets);
    part.samples.assign(batch.samples.begin() + from, batch.samples.begin() + to);
    shards.push_back(std::move(part));
    from = to;
  }
  return shards;
}

}  // namespace heed
