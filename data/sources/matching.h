#pragma once
/// File names with wildcards: "src/**/*.py".
#include <string>
#include <vector>

namespace heed {

/// Returns the files that match a name, sorted by name, or the name itself if it exists or has no
/// wildcard. The result is empty if no file matches. * matches any characters within a name, ? one
/// character, [a-z] one character of a range, ** any number of folders. No wildcard matches a dot
/// at the start of a name, and ** does not follow symbolic links to folders.
std::vector<std::string> matching_files(const std::string& name);

}  // namespace heed
