#pragma once
#include <chrono>

namespace heed {

/// Seconds since an arbitrary past moment, for durations; unaffected by system clock changes.
inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace heed
