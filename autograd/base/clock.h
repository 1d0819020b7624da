#pragma once
#include <chrono>

namespace heed {

/// Seconds since an arbitrary point in time, for measuring durations; unaffected by changes to the
/// system clock.
inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace heed
