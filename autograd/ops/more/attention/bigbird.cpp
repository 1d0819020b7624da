#include "autograd/ops/more/attention/bigbird.h"

#include <algorithm>
#include <numeric>

HEED_BEGIN

namespace {

using Blocks = std::vector<std::int64_t, BlockAllocator<std::int64_t>>;

/// The indices, in ascending order, of the blocks of keys that are read by the block of queries
/// with the index `queries`; there are `count` blocks of keys.
Blocks read_by(const BigBirdOptions& options, std::int64_t queries, std::int64_t count) {
  const std::int64_t last = options.causal ? std::min(queries, count - 1) : count - 1;
  Blocks all;
  if (queries < options.global_blocks) {
    all.resize(last + 1);
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  const auto add = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = std::max<std::int64_t>(begin, 0); b <= std::min(end, last); ++b)
      all.push_back(b);
  };
  add(0, std::min(options.global_blocks, count) - 1);
  const std::int64_t side = std::min(options.side_blocks, count);  // prevents overflow in sums
  add(queries - side, queries + side);
  Random random(
      {.seed = 0, .stream = Stream::pattern, .index = static_cast<std::uint64_t>(queries)});
  for (std::int64_t i = 0; i < std::min(options.random_blocks, count); ++i) {
    const auto b = static_cast<std::int64_t>(random.below(static_cast<std::uint32_t>(last + 1)));
    add(b, b);
  }
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

void add_stretches(const BigBirdOptions& options, const QueryBlock& block, Stretches& into) {
  const std::int64_t size = options.block, count = (block.keys + size - 1) / size;
  const std::int64_t first = block.first / size, last = (block.first + block.rows - 1) / size;
  std::vector<Blocks> read;  // the blocks of keys that each block of queries reads
  Blocks all;                // the blocks of keys that at least one block of queries reads
  for (std::int64_t q = first; q <= last; ++q) {
    read.push_back(read_by(options, q, count));
    all.insert(all.end(), read.back().begin(), read.back().end());
  }
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  // If causal, a block of later keys counts as read: it may be part of the same stretch, because
  // the key range of each query ends at its own position.
  const auto reads = [&](std::int64_t queries, std::int64_t keys) {
    return (options.causal && keys > queries) ||
           std::ranges::binary_search(read[queries - first], keys);
  };
  // Whether each block of queries reads both a and b, or neither.
  const auto equally_read = [&](std::int64_t a, std::int64_t b) {
    for (std::int64_t q = first; q <= last; ++q) {
      if (reads(q, a) != reads(q, b)) return false;
    }
    return true;
  };
  for (std::size_t i = 0; i < all.size();) {  // one stretch per run of equally read blocks
    std::size_t end = i + 1;
    while (end < all.size() && all[end] == all[end - 1] + 1 && equally_read(all[end], all[i]))
      ++end;
    const std::int64_t begin_key = all[i] * size, end_key = (all[end - 1] + 1) * size;
    into.add(block, [&](std::int64_t query) {
      if (!reads(query / size, begin_key / size)) return KeyRange{};
      return KeyRange{begin_key, options.causal ? std::min(end_key, query + 1) : end_key};
    });
    i = end;
  }
}

}  // namespace

PatternPtr bigbird_pattern(const BigBirdOptions& options) {
  const auto& [block, global, side, random, causal] = options;
  if (block < 1 || global < 0 || side < 0 || random < 0)
    fail(
        "[bigbird_pattern] expected blocks of at least 1 position and counts of at least 0, got "
        "block {}, global_blocks {}, side_blocks {} and random_blocks {}",
        block, global, side, random);
  return std::make_shared<Pattern>([options](const QueryBlock& queries, Stretches& into) {
    add_stretches(options, queries, into);
  });
}

HEED_END
