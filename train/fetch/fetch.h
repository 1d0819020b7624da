#pragma once
/// `heed fetch`: downloads well-known data sets and verifies their content.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

struct FetchFile {
  std::string name;    ///< local name; stored compressed if it ends in .gz
  std::string url;     ///< URL relative to the base
  std::uint64_t size;  ///< size of the unpacked content, in bytes
  std::string sha256;  ///< SHA-256 of the unpacked content, independent of the compression
};

struct FetchSet {
  std::string name;
  std::string terms;  ///< terms of use, in one line
  std::vector<FetchFile> files;
};

/// All data sets that can be fetched.
const std::vector<FetchSet>& fetch_sets();
/// The data set with this name. Throws Error(usage), listing the available names, if there is none.
const FetchSet& fetch_set(std::string_view name);

/// The command that fetches these missing files, as a sentence. Empty unless one of them is a file
/// of a data set, in a folder with the name of the set.
std::string fetch_hint(const std::vector<std::string>& missing);

struct FetchOptions {
  std::filesystem::path to;  ///< destination folder; created if missing
  /// The folder to copy the files from, or its parent; unset: the files are downloaded.
  std::optional<std::filesystem::path> from;
  std::string base;  ///< prefix of every URL
};

/// The default options: downloads to data/<set>, from GitHub or from the base URL in the
/// environment variable HEED_FETCH_BASE.
FetchOptions default_fetch_options(const FetchSet& set);

struct FetchResult {
  std::int64_t fetched = 0;  ///< number of files downloaded or copied
  std::int64_t present = 0;  ///< number of files that were present with the correct content
};

/// Fetches every file that is missing or has wrong content. A file receives its final name only
/// after its content is verified. `report` receives one message at a time. Throws Error(io) if a
/// download fails, Error(bad_input) if a file is missing in `from` or any content differs,
/// Error(failed) if curl is not installed; files fetched earlier remain.
FetchResult fetch(const FetchSet& set, const FetchOptions& options,
                  const std::function<void(std::string_view)>& report);

}  // namespace heed
