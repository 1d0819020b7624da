#pragma once
/// `heed fetch`: downloads well-known data sets and verifies their bytes.
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
  std::string url;     ///< after the base
  std::uint64_t size;  ///< bytes, unpacked
  std::string sha256;  ///< of the unpacked content, so that compression does not matter
};

struct FetchSet {
  std::string name;
  std::string terms;  ///< of use, in one line
  std::vector<FetchFile> files;
};

/// All data sets that can be fetched.
const std::vector<FetchSet>& fetch_sets();
/// By name; throws Error(usage), listing the available names.
const FetchSet& fetch_set(std::string_view name);

struct FetchOptions {
  std::filesystem::path to;                   ///< folder; created if missing
  std::optional<std::filesystem::path> from;  ///< copy from this folder (or FROM/<set>) instead
  std::string base;                           ///< prefix of every URL
};

/// To data/<set>, from GitHub or from the environment variable HEED_FETCH_BASE.
FetchOptions default_fetch_options(const FetchSet& set);

struct FetchResult {
  std::int64_t fetched = 0, present = 0;  ///< files; present: already there, with the right content
};

/// Fetches every file that is missing or wrong; a file gets its final name only once its content is
/// verified. `say` receives one message at a time. Throws Error(io) if a download fails,
/// Error(bad_input) if a file is missing in `from` or any content differs, Error(failed) without
/// curl; the files fetched before stay.
FetchResult fetch(const FetchSet& set, const FetchOptions& options,
                  const std::function<void(std::string_view)>& say);

}  // namespace heed
