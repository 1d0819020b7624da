#include "autograd/base/meeting.h"

#include <algorithm>

#include "autograd/base/error.h"

namespace heed {

void Meeting::sum(std::int64_t member, std::span<double> values) {
  std::unique_lock lock(mutex_);
  values_[static_cast<std::size_t>(member)] = values;
  const std::uint64_t round = rounds_;
  if (++arrived_ == values_.size()) {
    std::vector<double> total(values_[0].begin(), values_[0].end());
    for (std::size_t m = 1; m < values_.size(); ++m)
      for (std::size_t i = 0; i < total.size(); ++i) total[i] += values_[m][i];
    for (const std::span<double> of_member : values_) std::ranges::copy(total, of_member.begin());
    arrived_ = 0;
    ++rounds_;
    all_there_.notify_all();
    return;
  }
  all_there_.wait(lock, [&] { return rounds_ != round || abandoned_; });
  if (rounds_ == round) throw Error(Exit::failed, "another shard of this step has failed");
}

void Meeting::abandon() {
  const std::lock_guard lock(mutex_);
  abandoned_ = true;
  all_there_.notify_all();
}

}  // namespace heed
