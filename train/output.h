#pragma once
/// Where the lines of a command go.
#include <functional>
#include <string>
#include <string_view>

namespace heed {

using Sink = std::function<void(std::string_view)>;

/// Lets `produce` write to a file, or to standard output for "-". A file appears whole, or not at
/// all when `produce` throws (a device or pipe is written to as it is). Throws Error(io) where
/// writing fails.
void write_output(const std::string& path, const std::function<void(const Sink&)>& produce);

}  // namespace heed
