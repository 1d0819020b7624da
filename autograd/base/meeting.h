#pragma once
/// Where the threads of a step meet to add up numbers: the shards of a batch, for statistics of the whole
/// batch.
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

namespace heed {

/// All members must call sum() equally often, each on a thread of its own, because each waits for all
/// others.
class Meeting {
 public:
  explicit Meeting(std::int64_t members) : values_(static_cast<std::size_t>(members)) {}

  /// Replaces the values by the sum over all members, added in their order: the same bits for any timing.
  /// Throws Error(failed) if a member has abandoned the meeting.
  void sum(std::int64_t member, std::span<double> values);
  /// Ends the meeting, because a member cannot come: the others' sum() throws.
  void abandon();

 private:
  std::mutex mutex_;
  std::condition_variable all_there_;
  std::vector<std::span<double>> values_;  // of each member, while it waits
  std::size_t arrived_ = 0;
  std::uint64_t rounds_ = 0;
  bool abandoned_ = false;
};

/// One member of a meeting; without a meeting, there is nobody to add up with.
struct Member {
  Meeting* meeting = nullptr;
  std::int64_t number = 0;

  void sum(std::span<double> values) const {
    if (meeting != nullptr) meeting->sum(number, values);
  }
};

}  // namespace heed
