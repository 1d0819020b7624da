#pragma once
/// File names with wildcards: "src/**/*.py".
#include <string>
#include <vector>

namespace heed {

/// The files that match a name, in the order of their names; the name itself if it exists or has no
/// wildcard; empty if no file matches. * matches any characters within a name, ? one character,
/// [a-z] one character of a range, ** any number of folders. Names that begin with a dot do not
/// match, and symbolic links to folders are not followed.
std::vector<std::string> matching_files(const std::string& name);

}  // namespace heed
