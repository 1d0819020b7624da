#include "train/fetch/fetch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <system_error>

#include "autograd/base/error.h"
#include "autograd/io/files.h"
#include "autograd/io/formats/gzip.h"
#include "autograd/io/sha256.h"
#include "train/fetch/subprocess.h"

namespace heed {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kGitHub = "https://raw.githubusercontent.com";

// ---- data sets -------------------------------------------------------------------------------

constexpr std::string_view kMulti30k = "/multi30k/dataset/master/data/task1/";

/// A file of raw text, which is compressed at the source.
FetchFile raw(const std::string& name, std::uint64_t size, const std::string& sha256) {
  return {name + ".gz", fmt::format("{}raw/{}.gz", kMulti30k, name), size, sha256};
}

/// A file of text that Moses has lower-cased, normalised and tokenised. It is uncompressed at the
/// source.
FetchFile tok(const std::string& name, std::uint64_t size, const std::string& sha256) {
  return {name + ".gz", fmt::format("{}tok/{}", kMulti30k, name), size, sha256};
}

FetchSet multi30k() {
  return {
      "multi30k",
      "Multi30k task 1, German and English (github.com/multi30k/dataset): for research and "
      "education, not for commercial use",
      {
          // clang-format off
    raw("train.de", 2110398, "2c2b73fd2b548fbcde3a875e0a78d6ee94d498bfdee6bd3eae3945779e9ddf72"),
    raw("train.en", 1801238, "460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6"),
    raw("val.de", 75981, "660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660"),
    raw("val.en", 63297, "1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227"),
    raw("test_2016_flickr.de", 70649, "4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16"),
    raw("test_2016_flickr.en", 62076, "399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182"),
    tok("train.lc.norm.tok.de", 2150008, "cb5a23529b65ec2061f1dc446192a9c37382b63cc75f81a0be59d34894b3a505"),
    tok("train.lc.norm.tok.en", 1837696, "08925f8e0572bcd5a006702fc5fe20e2d77c6917d4eebd576fc20de6693c2119"),
    tok("val.lc.norm.tok.de", 77273, "97232bd273eceb7207f689527386a97e4be2616b18ada47576bdaf96c8ae1f00"),
    tok("val.lc.norm.tok.en", 64608, "46573ce391ae227f1c72f873392436a20ef18e0a6d518098cfbd70b77c8572ec"),
    tok("test_2016_flickr.lc.norm.tok.de", 71917, "c6a33d39d48f9f510de147651316cd9d918e09ad0219df734a2f16b6baccacc4"),
    tok("test_2016_flickr.lc.norm.tok.en", 63307, "5b7f32627cf99eced828311b955dae9800bb52bc8b91cf8b6526829e605b29d2"),
          // clang-format on
      }};
}

FetchSet tinyshakespeare() {
  return {"tinyshakespeare",
          "Tiny Shakespeare (github.com/karpathy/char-rnn): the text is in the public domain",
          {{"input.txt", "/karpathy/char-rnn/master/data/tinyshakespeare/input.txt", 1115394,
            "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"}}};
}

FetchSet mnist() {
  const auto file = [](const std::string& name, std::uint64_t size, const std::string& sha256) {
    return FetchFile{name + ".gz", fmt::format("/fgnt/mnist/master/{}.gz", name), size, sha256};
  };
  return {
      "mnist",
      "MNIST, 70,000 handwritten digits (github.com/fgnt/mnist): by Yann LeCun and Corinna Cortes; "
      "observe their terms",
      {
          // clang-format off
    file("train-images-idx3-ubyte", 47040016, "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"),
    file("train-labels-idx1-ubyte", 60008, "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"),
    file("t10k-images-idx3-ubyte", 7840016, "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"),
    file("t10k-labels-idx1-ubyte", 10008, "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"),
          // clang-format on
      }};
}

// ---- fetching --------------------------------------------------------------------------------

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

/// The maximum size of a downloaded file: gzip adds little to incompressible data.
std::uint64_t max_size(const FetchFile& file) { return file.size + file.size / 100 + 4096; }

/// The unpacked content of a file, after its size and SHA-256 are verified. Error messages begin
/// with `where`, the origin of the file.
std::string checked_content(const std::string& bytes, const FetchFile& file,
                            const std::string& where) {
  std::string content = is_gzip(bytes) ? unpack_gzip(bytes, file.size, where) : bytes;
  if (content.size() != file.size)
    throw Error(Exit::bad_input, "{}: the unpacked size is {} instead of {} bytes", where,
                content.size(), file.size);
  const std::string sum = sha256_hex(content);
  if (sum != file.sha256)
    throw Error(Exit::bad_input, "{}: the SHA-256 is {} instead of {}", where, sum, file.sha256);
  return content;
}

bool is_present(const fs::path& path, const FetchFile& file) {
  try {
    const std::string bytes = read_bytes(path, max_size(file));
    if (is_gzip(bytes) != ends_in_gz(file.name)) return false;
    checked_content(bytes, file, path.string());
    return true;
  } catch (const Error& error) {
    if (error.code == Exit::bad_input) return false;  // missing, or with different content
    throw;
  }
}

void download(const std::string& url, const fs::path& into, const FetchFile& file,
              const FetchSet& set) {
  std::vector<std::string> command{"curl", "--fail", "--location", "--silent", "--show-error"};
  for (const auto& [option, value] : {std::pair<std::string, std::string>("--retry", "3"),
                                      {"--connect-timeout", "20"},
                                      {"--speed-limit", "100"},
                                      {"--speed-time", "60"},
                                      {"--max-filesize", std::to_string(max_size(file))},
                                      {"--output", into.string()},
                                      {"--url", url}})
    command.insert(command.end(), {option, value});
  ProgramResult curl;
  try {
    curl = run_program(command, STDERR_FILENO);
  } catch (const Error& error) {
    throw Error(error.code, "{}; install curl, or copy the files from a folder with --from",
                error.what());
  }
  if (curl.status == 0) return;
  const std::string reason = curl.last_line();
  std::vector<std::string> names;
  for (const FetchFile& each : set.files) names.push_back(fs::path(each.url).filename().string());
  throw Error(
      Exit::io,
      "cannot fetch {}: {}\nWithout a network, put these files into a folder and use --from FOLDER: "
      "{}\nThe environment variable https_proxy names a proxy, HEED_FETCH_BASE a mirror of {}",
      url, reason.empty() ? fmt::format("curl exited with status {}", curl.status) : reason,
      fmt::join(names, ", "), kGitHub);
}

/// The path of a file in the folder of --from or its subfolder named after the set, under its local
/// or original name, compressed or not.
fs::path find_in(const fs::path& from, const FetchSet& set, const FetchFile& file) {
  const std::string at_source = fs::path(file.url).filename().string();
  const std::string unpacked =
      ends_in_gz(file.name) ? file.name.substr(0, file.name.size() - 3) : file.name + ".gz";
  for (const fs::path& folder : {from / set.name, from}) {
    for (const std::string& name : {file.name, at_source, unpacked}) {
      std::error_code ignored;
      if (fs::is_regular_file(folder / name, ignored)) return folder / name;
    }
  }
  throw Error(Exit::bad_input, "{}: not found in {} or its subfolder {}", file.name,
              fs::absolute(from).string(), set.name);
}

}  // namespace

const std::vector<FetchSet>& fetch_sets() {
  static const std::vector<FetchSet> sets = {multi30k(), tinyshakespeare(), mnist()};
  return sets;
}

const FetchSet& fetch_set(std::string_view name) {
  std::vector<std::string> names;
  for (const FetchSet& set : fetch_sets()) {
    if (set.name == name) return set;
    names.push_back(set.name);
  }
  throw Error(Exit::usage, "fetch: no data set \"{}\"; available: {}", name,
              fmt::join(names, ", "));
}

std::string fetch_hint(const std::vector<std::string>& missing) {
  for (const FetchSet& set : fetch_sets()) {
    for (const fs::path path : missing) {
      const fs::path folder = path.parent_path();
      const std::string name = path.filename().string();
      if (folder.filename() != set.name) continue;  // input.txt elsewhere is another file
      if (std::ranges::find(set.files, name, &FetchFile::name) == set.files.end()) continue;
      const bool usual = folder == default_fetch_options(set).to;
      return fmt::format("To download the data set: heed fetch {}{}", set.name,
                         usual ? "" : " --to " + folder.string());
    }
  }
  return "";
}

FetchOptions default_fetch_options(const FetchSet& set) {
  const char* base = std::getenv("HEED_FETCH_BASE");
  return {fs::path("data") / set.name, std::nullopt, base && *base ? base : std::string(kGitHub)};
}

FetchResult fetch(const FetchSet& set, const FetchOptions& options,
                  const std::function<void(std::string_view)>& report) {
  report(set.terms);
  create_folders(options.to);
  FetchResult result;
  for (const FetchFile& file : set.files) {
    const fs::path path = options.to / file.name;
    if (is_present(path, file)) {
      ++result.present;
      report(fmt::format("{}: already present", path.string()));
      continue;
    }
    std::string bytes, where;
    if (options.from) {
      const fs::path source = find_in(*options.from, set, file);
      where = source.string();
      bytes = read_bytes(source, max_size(file));
    } else {
      const PartFile part(path);
      where = options.base + file.url;
      download(where, part.path, file, set);
      bytes = read_bytes(part.path, max_size(file));
    }
    const std::string content = checked_content(bytes, file, where);
    if (is_gzip(bytes) != ends_in_gz(file.name))
      bytes = ends_in_gz(file.name) ? pack_gzip(content) : content;
    write_file_durably(path, bytes);
    ++result.fetched;
    report(fmt::format("{}: {} bytes, SHA-256 as expected", path.string(), bytes.size()));
  }
  return result;
}

}  // namespace heed
