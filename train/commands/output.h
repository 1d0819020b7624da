#pragma once
/// Where the commands write their lines.
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

using Sink = std::function<void(std::string_view)>;

/// Lets `produce` write to a file, or to standard output for "-". A file is written atomically, and
/// not at all if `produce` throws; links are followed. A device, a pipe and standard output itself
/// (/dev/stdout) are written directly. Throws Error(io) if writing fails or another process is
/// writing the same file.
void write_output(const std::string& path, const std::function<void(const Sink&)>& produce);

/// Throws Error(usage) if the output is a regular file that is also an input, under any name:
/// through links, as standard input or standard output ("-"). `inputs` are the names of files.
void refuse_output_over_input(const std::string& output, const std::vector<std::string>& inputs);

/// Throws Error(usage) if the name ends as pictures and documents do that heed cannot write, such as
/// .png; `command` is "heed plot", and `writes` says what it writes.
void refuse_other_formats(const std::string& output, const std::string& command,
                          const std::string& writes);

/// Whether `path` is standard output: "-", /dev/stdout, or the name of the file it goes to.
bool is_standard_output(const std::string& path);

}  // namespace heed
