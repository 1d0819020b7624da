#pragma once
#include <cerrno>

namespace heed {

/// Repeats a system call interrupted by a signal. `call` returns the system's result: negative on
/// failure, with the reason in errno.
template <class Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

}  // namespace heed
