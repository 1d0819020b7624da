#pragma once
/// `heed fetch`: gets well-known data sets, and makes sure that everybody has the same bytes.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

struct FetchFile {
  std::string name;    ///< here; kept packed if it ends in .gz, however it came
  std::string url;     ///< after the base
  std::uint64_t size;  ///< bytes, unpacked
  std::string sha256;  ///< of the unpacked content, so that packing does not matter
};

struct FetchSet {
  std::string name;
  std::string terms;  ///< what one may do with it, in one line
  std::vector<FetchFile> files;
};

/// All that can be fetched.
const std::vector<FetchSet>& fetch_sets();
/// By name; throws Error(usage) with the names there are.
const FetchSet& fetch_set(std::string_view name);

struct FetchOptions {
  std::filesystem::path to;                   ///< folder; made if missing
  std::optional<std::filesystem::path> from;  ///< copy from this folder (or FROM/<set>) instead
  std::string base;                           ///< begin of every URL
};

/// To data/<set>, from GitHub or from where the environment variable HEED_FETCH_BASE says.
FetchOptions default_fetch_options(const FetchSet& set);

struct FetchResult {
  std::int64_t fetched = 0, present = 0;  ///< files; present: already there, with the right content
};

/// Gets every file that is missing or wrong; a file takes its name only when its content is the
/// expected one. `say` is given one line of talk at a time. Throws Error(io) when a download fails,
/// Error(bad_input) when a file is missing in `from` or any content differs, Error(failed)
/// without curl; the files before that one stay.
FetchResult fetch(const FetchSet& set, const FetchOptions& options,
                  const std::function<void(std::string_view)>& say);

}  // namespace heed
