#pragma once
/// Sums over several threads, for statistics of a whole batch whose shards are computed separately.
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace heed {

/// An all-reduce between threads. Every rank must call sum() the same number of times and with the
/// same number of values. Each rank needs a separate thread, because a call waits for the other
/// ranks.
class AllReduce {
 public:
  /// Sums over `ranks` ranks, which are numbered from `first`.
  explicit AllReduce(std::int64_t ranks, std::int64_t first = 0)
      : first_(first), values_(static_cast<std::size_t>(ranks)) {}

  /// Includes the ranks of other processes: `gather` receives the concatenated values of the local
  /// ranks and returns those of all ranks.
  using Gather = std::function<std::vector<double>(std::span<const double> local)>;
  void across(Gather gather) { gather_ = std::move(gather); }
  /// Replaces each value by its sum over all ranks, added in the order of the ranks, so that the
  /// result is bitwise independent of timing. After abort(), throws Error(failed) instead of
  /// waiting.
  void sum(std::int64_t rank, std::span<double> values);
  /// To be called when a rank fails: makes sum() throw in the other ranks, which would otherwise
  /// wait forever.
  void abort();

 private:
  std::mutex mutex_;
  std::condition_variable complete_;
  std::int64_t first_ = 0;
  Gather gather_;
  std::vector<std::span<double>> values_;  // the values of each waiting rank
  std::size_t arrived_ = 0;
  std::uint64_t rounds_ = 0;
  bool aborted_ = false;
};

/// One rank of an all-reduce. A default-constructed Rank is the only rank: sum() leaves the values
/// unchanged.
struct Rank {
  AllReduce* all_reduce = nullptr;
  std::int64_t number = 0;

  void sum(std::span<double> values) const {
    if (all_reduce != nullptr) all_reduce->sum(number, values);
  }
};

}  // namespace heed
