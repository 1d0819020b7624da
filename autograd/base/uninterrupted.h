#pragma once
#include <cerrno>

namespace heed {

/// Repeats a system call that a signal has interrupted. `call` returns what the system does: below 0
/// where it failed, with the reason in errno.
template <class Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

}  // namespace heed
