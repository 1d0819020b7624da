#pragma once
#include <string>

namespace heed {

/// Checks the gradients of a small model of the experiment's kind, with real = double. Prints the
/// result of each parameter and returns the exit status.
int check_gradients(const std::string& file);

}  // namespace heed
