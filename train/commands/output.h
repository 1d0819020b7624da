#pragma once
/// The output of the commands: files, pipes and standard output.
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

using Sink = std::function<void(std::string_view)>;

/// Calls `produce` with a sink for a file, or for standard output ("-"). Links are followed. A file
/// is written atomically and remains unchanged if `produce` throws. A device, a pipe, /dev/fd/N and
/// a file to which standard output or standard error is redirected are written directly. An existing
/// file is replaced only if it is empty or `replaceable`: by default, if it is text (is_text).
/// Throws Error(usage) if `path` is empty, belongs to a run or must not be replaced, Error(io) if
/// writing fails or another process is writing the same file.
void write_output(const std::string& path, const std::function<void(const Sink&)>& produce,
                  const std::function<bool(const std::filesystem::path&)>& replaceable = {});

/// Throws Error(usage) if the output belongs to a run (run_of) or is a regular file that is also an
/// input. Compares the files instead of their names, so links and redirected standard streams ("-")
/// are recognised. Commands call it with all files that they read, before they compute anything.
void check_output(const std::string& output, const std::vector<std::string>& inputs);

/// Whether the beginning of the file contains no zero byte, as in git: it may be replaced by text. A
/// picture, an archive or a model may not.
bool is_text(const std::filesystem::path& file);

/// Throws Error(usage) if the file name has the extension of an image or document format that heed
/// cannot write, such as .png. The message contains `command`, such as "heed plot", and `writes`,
/// the formats that the command writes.
void refuse_other_formats(const std::string& output, const std::string& command,
                          const std::string& writes);

/// Whether `path` is standard output: "-", /dev/stdout, or the file that standard output is
/// redirected to, except /dev/null.
bool is_standard_output(const std::string& path);

}  // namespace heed
