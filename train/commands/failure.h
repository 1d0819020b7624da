#pragma once
/// What the program reports for an exception.
#include <exception>

#include "autograd/base/error.h"

namespace heed {

/// The message and the exit status for an exception of any type.
Error error_of(const std::exception& thrown);

}  // namespace heed
