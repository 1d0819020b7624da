#pragma once
/// Names of files with wildcards: "src/**/*.py".
#include <string>
#include <vector>

namespace heed {

/// The files that a name means: itself, if it exists or has no wildcard; otherwise those that match, in the order of
/// their names. * and ? stand for any characters within a name, [a-z] for one of them, ** for any number of folders;
/// files and folders whose names begin with a dot do not match, and links to folders are not followed. Empty if
/// nothing matches.
std::vector<std::string> matching_files(const std::string& name);

}  // namespace heed
