#include "train/fetch/fetch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <system_error>

#include "autograd/base/error.h"
#include "autograd/base/files.h"
#include "autograd/base/gzip.h"
#include "autograd/base/sha256.h"
#include "train/fetch/subprocess.h"

namespace heed {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kGitHub = "https://raw.githubusercontent.com";

bool ends_in_gz(const std::string& name) { return name.ends_with(".gz"); }

/// A temporary file of this process, removed on destruction.
struct PartFile {
  fs::path path;
  explicit PartFile(const fs::path& final_path)
      : path(final_path.parent_path() /
             fmt::format(".{}.{}.part", final_path.filename().string(), ::getpid())) {}
  ~PartFile() { ::unlink(path.c_str()); }
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;
};

/// The maximum size of a file as downloaded: gzip adds little to incompressible data.
std::uint64_t longest(const FetchFile& file) { return file.size + file.size / 100 + 4096; }

/// The unpacked content of a downloaded file, with its size and sum verified; `where`: its origin.
std::string checked_content(const std::string& bytes, const FetchFile& file,
                            const std::string& where) {
  std::string content = is_gzip(bytes) ? unpack_gzip(bytes, file.size, where) : bytes;
  if (content.size() != file.size)
    throw Error(Exit::bad_input, fmt::format("{}: {} bytes (unpacked) instead of {}", where,
                                             content.size(), file.size));
  const std::string sum = sha256_hex(content);
  if (sum != file.sha256)
    throw Error(Exit::bad_input,
                fmt::format("{}: SHA-256 {} instead of {}", where, sum, file.sha256));
  return content;
}

bool is_present(const fs::path& path, const FetchFile& file) {
  try {
    const std::string bytes = read_bytes(path, longest(file));
    if (is_gzip(bytes) != ends_in_gz(file.name)) return false;
    checked_content(bytes, file, path.string());
    return true;
  } catch (const Error& error) {
    if (error.code == Exit::bad_input) return false;  // missing, or something else
    throw;
  }
}

std::string curl_reason(const ProgramResult& result) {
  std::string_view text = result.text;
  while (text.ends_with('\n')) text.remove_suffix(1);
  if (const std::size_t line = text.rfind('\n'); line != std::string_view::npos)
    text.remove_prefix(line + 1);
  return text.empty() ? fmt::format("curl ended with status {}", result.status) : std::string(text);
}

ProgramResult run_curl(const std::vector<std::string>& arguments) {
  try {
    return run_program(arguments, STDERR_FILENO);
  } catch (const Error& error) {
    throw Error(
        error.code,
        fmt::format("{}; install it, or take the files from a folder with --from", error.what()));
  }
}

void download(const std::string& url, const fs::path& into, const FetchFile& file,
              bool is_default_base) {
  const std::string protocols = is_default_base ? "=https" : "=https,http,file";
  const ProgramResult result = run_curl({"curl",
                                         "--fail",
                                         "--location",
                                         "--silent",
                                         "--show-error",
                                         "--retry",
                                         "3",
                                         "--connect-timeout",
                                         "20",
                                         "--speed-limit",
                                         "100",
                                         "--speed-time",
                                         "60",
                                         "--max-filesize",
                                         std::to_string(longest(file)),
                                         "--proto",
                                         protocols,
                                         "--proto-redir",
                                         protocols,
                                         "--output",
                                         into.string(),
                                         "--url",
                                         url});
  if (result.status != 0)
    throw Error(Exit::io, fmt::format("cannot fetch {}: {}", url, curl_reason(result)));
}

/// The path of a file in a folder given by --from: there or in a subfolder named after the set,
/// under its local or original name, packed or not.
fs::path find_in(const fs::path& from, const FetchSet& set, const FetchFile& file) {
  const std::string at_source = fs::path(file.url).filename().string();
  const std::string bare =
      ends_in_gz(file.name) ? file.name.substr(0, file.name.size() - 3) : file.name + ".gz";
  for (const fs::path& folder : {from / set.name, from}) {
    for (const std::string& name : {file.name, at_source, bare}) {
      std::error_code ignored;
      if (fs::is_regular_file(folder / name, ignored)) return folder / name;
    }
  }
  throw Error(Exit::bad_input, fmt::format("{}: not there (looked in {} and its folder {})",
                                           file.name, fs::absolute(from).string(), set.name));
}

}  // namespace

FetchOptions default_fetch_options(const FetchSet& set) {
  const char* base = std::getenv("HEED_FETCH_BASE");
  return {fs::path("data") / set.name, std::nullopt, base && *base ? base : std::string(kGitHub)};
}

FetchResult fetch(const FetchSet& set, const FetchOptions& options,
                  const std::function<void(std::string_view)>& say) {
  say(set.terms);
  create_folders(options.to);
  FetchResult result;
  for (const FetchFile& file : set.files) {
    const fs::path path = options.to / file.name;
    if (is_present(path, file)) {
      ++result.present;
      say(fmt::format("{}: already present", path.string()));
      continue;
    }
    std::string bytes, where;
    if (options.from) {
      const fs::path source = find_in(*options.from, set, file);
      where = source.string();
      bytes = read_bytes(source, longest(file));
    } else {
      const PartFile part(path);
      where = options.base + file.url;
      download(where, part.path, file, options.base == kGitHub);
      bytes = read_bytes(part.path, longest(file));
    }
    const std::string content = checked_content(bytes, file, where);
    if (is_gzip(bytes) != ends_in_gz(file.name))
      bytes = ends_in_gz(file.name) ? pack_gzip(content) : content;
    write_file_durably(path, bytes);
    ++result.fetched;
    say(fmt::format("{}: {} bytes, SHA-256 as expected", path.string(), bytes.size()));
  }
  return result;
}

}  // namespace heed
