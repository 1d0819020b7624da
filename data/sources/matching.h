#pragma once
/// File names with wildcards: "src/**/*.py".
#include <filesystem>
#include <string>
#include <vector>

namespace heed {

/// Returns the paths of the files that match the pattern `name`, sorted, or `name` itself if it
/// exists or has no wildcard. The result is empty if no file matches. * matches any characters
/// except /, ? one character, [a-z] one character of a range, ** any number of nested folders. No
/// wildcard matches a dot at the start of a file or folder name, and ** does not follow symbolic
/// links to folders.
std::vector<std::string> matching_files(const std::string& name);

/// The files in a folder and its subfolders, sorted, by the same rules.
std::vector<std::string> files_under(const std::filesystem::path& folder);

}  // namespace heed
