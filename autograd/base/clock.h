#pragma once
#include <chrono>

namespace heed {

/// Seconds since some moment in the past: for durations, unmoved when somebody sets the clock.
inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace heed
