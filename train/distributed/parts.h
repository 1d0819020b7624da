#pragma once
/// The assignment of shards to ranks. Each rank computes it from the numbers of shards and ranks,
/// without messages.
#include <algorithm>
#include <cstdint>
#include <vector>

namespace heed {

/// The indices begin, begin + 1, …, end − 1.
struct Part {
  std::int64_t begin = 0, end = 0;

  std::int64_t size() const { return end - begin; }
  bool has(std::int64_t i) const { return begin <= i && i < end; }
};

/// Part `rank` of the indices 0 … count − 1, which are divided into `ranks` contiguous parts, whose
/// sizes differ by at most 1. If count < ranks, some parts are empty; part 0 is empty only if count
/// is 0.
inline Part part_of(std::int64_t count, std::int64_t rank, std::int64_t ranks) {
  const auto bound = [&](std::int64_t r) { return (count * r + ranks - 1) / ranks; };
  return {bound(rank), bound(rank + 1)};
}

/// The first shard of each subtree that a rank can sum alone. The shards of a step are added in a
/// binary tree, ((0+1)+(2+3))+…. The subtrees are the largest below the root whose leaves are all
/// in `local`.
inline std::vector<std::int64_t> subtrees(Part local, std::int64_t shards) {
  std::vector<std::int64_t> first;
  for (std::int64_t at = local.begin; at < local.end;) {
    std::int64_t width = 1;
    while (2 * width < shards && at % (2 * width) == 0 &&
           std::min(at + 2 * width, shards) <= local.end)
      width *= 2;
    first.push_back(at);
    at += width;
  }
  return first;
}

}  // namespace heed
