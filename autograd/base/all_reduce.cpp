#include "autograd/base/all_reduce.h"

#include <algorithm>

#include "autograd/base/error.h"

namespace heed {

void AllReduce::sum(std::int64_t rank, std::span<double> values) {
  std::unique_lock lock(mutex_);
  values_[static_cast<std::size_t>(rank - first_)] = values;
  const std::uint64_t round = rounds_;
  if (++arrived_ == values_.size()) {
    std::vector<double> all;
    for (const std::span<double> of_rank : values_)
      all.insert(all.end(), of_rank.begin(), of_rank.end());
    if (gather_) all = gather_(all);
    const std::size_t n = values.size();
    std::vector<double> total(all.begin(), all.begin() + std::ssize(values));
    for (std::size_t i = n; i < all.size(); ++i) total[i % n] += all[i];
    for (const std::span<double> of_rank : values_) std::ranges::copy(total, of_rank.begin());
    arrived_ = 0;
    ++rounds_;
    complete_.notify_all();
    return;
  }
  complete_.wait(lock, [&] { return rounds_ != round || aborted_; });
  if (rounds_ == round) throw Error(Exit::failed, "another shard of this step has failed");
}

void AllReduce::abort() {
  const std::lock_guard lock(mutex_);
  aborted_ = true;
  complete_.notify_all();
}

}  // namespace heed
