#pragma once
/// Runs code that may end the program, such as an op that divides by an extent of 0, in a child
/// process first.
#include <cstddef>
#include <functional>
#include <optional>

#include "autograd/base/real.h"

HEED_BEGIN

/// The step that a signal ended, such as SIGFPE.
struct Crash {
  std::size_t step = 0;
  int signal = 0;
};

/// Calls step(0), …, step(count − 1) in a copy of this process and returns the first step that a
/// fault ends. Exceptions end only their step; changes of memory and output are lost. Returns
/// nothing if all steps end or if the copy cannot tell: the system refuses a process, a sanitizer
/// ends it, or a step waits for a thread, which a copy does not have.
std::optional<Crash> find_crash(std::size_t count, const std::function<void(std::size_t)>& step);

HEED_END
