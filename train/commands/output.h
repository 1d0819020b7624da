#pragma once
/// Where the lines of a command go.
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

using Sink = std::function<void(std::string_view)>;

/// Lets `produce` write to a file, or to standard output for "-". A file appears whole, or not at
/// all when `produce` throws; links are followed. A device, a pipe and what is standard output
/// already (/dev/stdout) are written to as they are. Throws Error(io) where writing fails, or another
/// process is writing the same file.
void write_output(const std::string& path, const std::function<void(const Sink&)>& produce);

/// Throws Error(usage) where the output is a regular file that is read as well, by whatever name:
/// through links, as standard input or standard output ("-"). `inputs` are the names of files.
void refuse_output_over_input(const std::string& output, const std::vector<std::string>& inputs);

/// Whether that is where standard output goes: "-", /dev/stdout, or a file's own name.
bool is_standard_output(const std::string& path);

}  // namespace heed
