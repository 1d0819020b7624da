#include "data/sources/matching.h"

#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <span>

namespace heed {
namespace {

namespace fs = std::filesystem;

bool has_wildcard(const std::string& name) {
  return name.find_first_of("*?[") != std::string::npos;
}

/// The entries of a folder whose names match a pattern; none if the folder cannot be read.
std::vector<fs::path> entries(const fs::path& folder, const std::string& pattern) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator at(folder.empty() ? fs::path(".") : folder, error), end;
       !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (fnmatch(pattern.c_str(), name.c_str(), FNM_PERIOD) == 0) found.push_back(folder / name);
  }
  return found;
}

/// Adds the files under `folder` that match the remaining parts of a pattern.
void add_matching(const fs::path& folder, std::span<const fs::path> parts,
                  std::vector<std::string>& found) {
  const std::string part = parts.front().string();
  const std::span<const fs::path> rest = parts.subspan(1);
  std::error_code error;
  if (part == "**") {
    if (!rest.empty()) add_matching(folder, rest, found);
    for (const fs::path& entry : entries(folder, "*")) {
      if (fs::is_directory(fs::symlink_status(entry, error)))
        add_matching(entry, parts, found);
      else if (rest.empty() && fs::is_regular_file(entry, error))
        found.push_back(entry.string());
    }
  } else if (!has_wildcard(part)) {
    if (!rest.empty()) return add_matching(folder / part, rest, found);
    if (fs::is_regular_file(folder / part, error)) found.push_back((folder / part).string());
  } else {
    for (const fs::path& entry : entries(folder, part)) {
      if (!rest.empty())
        add_matching(entry, rest, found);
      else if (fs::is_regular_file(entry, error))
        found.push_back(entry.string());
    }
  }
}

}  // namespace

std::vector<std::string> matching_files(const std::string& name) {
  std::error_code error;
  if (!has_wildcard(name) || fs::exists(name, error)) return {name};
  const fs::path pattern(name);
  const fs::path inside = pattern.relative_path();
  const std::vector<fs::path> parts(inside.begin(), inside.end());
  std::vector<std::string> found;
  add_matching(pattern.root_path(), parts, found);
  std::ranges::sort(found);
  // "**/**/x" can match a file several times.
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::vector<std::string> files_under(const std::filesystem::path& folder) {
  const fs::path all = "**";
  std::vector<std::string> found;
  add_matching(folder, {&all, 1}, found);
  std::ranges::sort(found);
  return found;
}

}  // namespace heed
