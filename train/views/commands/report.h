#pragma once
/// The page of `heed report`.
#include <string>
#include <vector>

namespace heed {

/// The report of run folders or of the folder of a sweep as an HTML page; `profile`: also the time of
/// each op. Throws Error(usage) if a folder is not a run, Error(bad_input) if a file is damaged.
std::string report_of(const std::vector<std::string>& runs, bool profile = false);

}  // namespace heed
