#include "train/fetch/fetch.h"

#include <stdlib.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <set>

#include "autograd/io/files.h"
#include "autograd/io/formats/gzip.h"
#include "tests/train/support.h"
#include "train/config/config.h"
#include "train/fetch/subprocess.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(fetching)
namespace fs = std::filesystem;

namespace {

const std::string kText = "Zwei Männer.\nEin Hund.\n";
const std::string kPlain = "plain text";

/// A data set of two files; the second is stored compressed.
FetchSet small_set() {
  return {"small",
          "free for all",
          {{"plain.txt", "/a/plain.txt", kPlain.size(), sha256_hex(kPlain)},
           {"text.gz", "/a/b/text", kText.size(), sha256_hex(kText)}}};
}

/// Serves the data set from a folder: curl reads file:// URLs like https:// URLs.
struct Server {
  TempFolder root, home;
  FetchSet set = small_set();
  std::vector<std::string> messages;

  Server() {
    fs::create_directories(root / "a" / "b");
    put(root / "a/plain.txt", kPlain);
    put(root / "a/b/text", kText);
  }
  FetchOptions options() const {
    return {home / "data" / "small", std::nullopt, "file://" + root.path.string()};
  }
  FetchResult run(const FetchOptions& options) {
    return fetch(set, options, [&](std::string_view line) { messages.emplace_back(line); });
  }
  std::string stored(const std::string& name) const { return get(home / "data" / "small" / name); }
  std::int64_t files() const {
    return std::distance(fs::directory_iterator(home / "data" / "small"), {});
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(gzip_data_are_decompressed_exactly_or_refused) {
  for (const std::string& content : {std::string(), std::string("x"), std::string(300'000, 'y')}) {
    const std::string packed = pack_gzip(content);
    BOOST_TEST(is_gzip(packed));
    BOOST_TEST((unpack_gzip(packed, content.size(), "f") == content));
    BOOST_TEST((pack_gzip(content) == packed));
  }
  for (const std::size_t size :
       {65'535, 65'536, 65'537, 131'072}) {  // data are decompressed in chunks of 64 KiB
    const std::string content(size, 'y'), packed = pack_gzip(content);
    BOOST_TEST((unpack_gzip(packed, size, "f") == content), size << " bytes");
    BOOST_TEST((unpack_gzip(packed + packed, 2 * size, "f") == content + content));
  }
  const std::string packed = pack_gzip(kText);
  BOOST_TEST(unpack_gzip(packed + pack_gzip("more"), 100, "f") ==
             kText + "more");  // a gzip file of two members
  HEED_CHECK_ERROR(Exit::bad_input, "f: unpacks to more than 5 bytes", unpack_gzip(packed, 5, "f"));
  HEED_CHECK_ERROR(Exit::bad_input, "f: gzip data", unpack_gzip(packed + "rest", 100, "f"));
  HEED_CHECK_ERROR(Exit::bad_input, "truncated", unpack_gzip("", 100, "f"));
  for (std::size_t length = 1; length < packed.size(); ++length)
    HEED_CHECK_ERROR(Exit::bad_input, "f: gzip data",
                     unpack_gzip(packed.substr(0, length), 100, "f"));
  std::string damaged = packed;
  damaged[packed.size() - 6] ^= 1;  // a byte of the checksum
  HEED_CHECK_ERROR(Exit::bad_input, "damaged", unpack_gzip(damaged, 100, "f"));
}

BOOST_AUTO_TEST_CASE(programs_run_without_a_shell) {
  BOOST_TEST(run_program({"true"}, 2).status == 0);
  BOOST_TEST(run_program({"false"}, 2).status == 1);
  BOOST_TEST(run_program({"sh", "-c", "echo out; echo err >&2"}, 1).text == "out\n");
  BOOST_TEST(run_program({"sh", "-c", "echo out; echo err >&2"}, 2).text == "err\n");
  // The stream that is not captured goes to /dev/null instead of the terminal.
  BOOST_TEST(run_program({"readlink", "/proc/self/fd/2"}, 1).text == "/dev/null\n");
  BOOST_TEST(run_program({"sh", "-c", "to=$(readlink /proc/$$/fd/1); echo $to >&2"}, 2).text ==
             "/dev/null\n");
  const ProgramResult result = run_program({"ls", "--", "/no such $HOME; echo x"}, 2);
  BOOST_TEST(result.status != 0);
  BOOST_TEST(contains(result.text, "/no such $HOME; echo x"));
  BOOST_TEST(run_program({"sh", "-c", "kill -9 $$"}, 2).status == 128 + 9);
  BOOST_TEST(run_program({"sh", "-c", "kill -9 $$"}, 2).signal == 9);
  BOOST_TEST(run_program({"sh", "-c", "exit 137"}, 2).signal == 0);
  // The end of a long output is kept, because it contains the reason for a failure.
  const std::string end =
      run_program({"sh", "-c", "yes | head -c 300000 >&2; echo the reason >&2"}, 2).text;
  BOOST_TEST(end.ends_with("y\nthe reason\n"));
  BOOST_TEST(end.size() < 200'000);
  HEED_CHECK_ERROR(Exit::failed, "cannot run no-such-program-of-heed: No such file",
                   run_program({"no-such-program-of-heed"}, 2));
}

BOOST_AUTO_TEST_CASE(entries_of_data_sets_are_unique_and_complete) {
  std::set<std::string> names;
  for (const FetchSet& set : fetch_sets()) {
    BOOST_TEST(!set.terms.empty());
    for (const FetchFile& file : set.files) {
      BOOST_TEST(names.insert(set.name + "/" + file.name).second);
      BOOST_TEST(file.url.starts_with('/'));
      BOOST_TEST(file.size > 0);
      BOOST_TEST(file.sha256.size() == 64);
      BOOST_TEST(file.sha256.find_first_not_of("0123456789abcdef") == std::string::npos);
    }
  }
  BOOST_TEST(names.size() == 17);
  BOOST_TEST(fetch_set("multi30k").files.size() == 12);
  BOOST_TEST(fetch_set("mnist").files.size() == 4);
  HEED_CHECK_ERROR(Exit::usage, "no data set \"wmt\"; available: multi30k, tinyshakespeare, mnist",
                   fetch_set("wmt"));
}

BOOST_AUTO_TEST_CASE(missing_files_of_a_data_set_name_the_command_that_fetches_them) {
  BOOST_TEST(fetch_hint({"own.txt", "data/mnist/train-labels-idx1-ubyte.gz"}) ==
             "To download the data set: heed fetch mnist");
  BOOST_TEST(fetch_hint({"/tmp/multi30k/train.de.gz"}) ==
             "To download the data set: heed fetch multi30k --to /tmp/multi30k");
  BOOST_TEST(fetch_hint({"input.txt", "texts/train.de.gz"}) == "");
  BOOST_TEST(fetch_hint({"own.txt"}) == "");
}

// The shipped configs read files that `heed fetch` stores.
BOOST_AUTO_TEST_CASE(data_of_shipped_configs_can_be_fetched) {
  const fs::path configs = fs::path(HEED_SOURCE_DIR) / "configs";
  for (const auto& [name, set] :
       {std::pair("vit-mnist", "mnist"), {"swin-mnist", "mnist"}, {"multi30k-de-en", "multi30k"}}) {
    const DataOptions data = read_config(configs / (std::string(name) + ".yaml"), {}).data;
    for (const FilesOptions* files : {&data.train, &data.valid, &data.test}) {
      for (const auto& side : {files->source, files->target}) {
        for (const fs::path path : side) {
          BOOST_TEST_CONTEXT(path) {
            BOOST_TEST(path.parent_path() == default_fetch_options(fetch_set(set)).to);
            BOOST_TEST((std::ranges::count(fetch_set(set).files, path.filename().string(),
                                           &FetchFile::name) == 1));
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(environment_variable_sets_the_base_url) {
  ::unsetenv("HEED_FETCH_BASE");
  const FetchSet set = small_set();
  BOOST_TEST(default_fetch_options(set).base == "https://raw.githubusercontent.com");
  BOOST_TEST(default_fetch_options(set).to == "data/small");
  ::setenv("HEED_FETCH_BASE", "http://localhost:8000", 1);
  BOOST_TEST(default_fetch_options(set).base == "http://localhost:8000");
  ::unsetenv("HEED_FETCH_BASE");
}

BOOST_AUTO_TEST_CASE(downloads_are_checked_and_compressed) {
  Server server;
  const FetchResult result = server.run(server.options());
  BOOST_TEST(result.fetched == 2);
  BOOST_TEST(result.present == 0);
  BOOST_TEST(server.stored("plain.txt") == kPlain);
  BOOST_TEST(unpack_gzip(server.stored("text.gz"), 100, "f") == kText);
  BOOST_TEST(server.files() == 2);
  BOOST_REQUIRE(server.messages.size() == 3);
  BOOST_TEST(server.messages[0] == "free for all");
  BOOST_TEST(contains(server.messages[1], "plain.txt: 10 bytes, SHA-256 as expected"));
}

BOOST_AUTO_TEST_CASE(correct_files_are_kept_and_wrong_files_replaced) {
  Server server;
  server.run(server.options());
  fs::remove_all(server.root / "a");  // further downloads would fail
  FetchResult result = server.run(server.options());
  BOOST_TEST(result.fetched == 0);
  BOOST_TEST(result.present == 2);

  Server damaged;
  damaged.run(damaged.options());
  put(damaged.home / "data/small/plain.txt", "plain tex!");
  put(damaged.home / "data/small/text.gz", kText);  // correct content, but uncompressed
  result = damaged.run(damaged.options());
  BOOST_TEST(result.fetched == 2);
  BOOST_TEST(damaged.stored("plain.txt") == kPlain);
  BOOST_TEST(is_gzip(damaged.stored("text.gz")));
}

BOOST_AUTO_TEST_CASE(compressed_downloads_are_accepted) {
  Server server;
  put(server.root / "a/b/text", pack_gzip(kText));
  put(server.root / "a/plain.txt", pack_gzip(kPlain));
  BOOST_TEST(server.run(server.options()).fetched == 2);
  BOOST_TEST(server.stored("text.gz") == pack_gzip(kText));
  BOOST_TEST(server.stored("plain.txt") == kPlain);
}

BOOST_AUTO_TEST_CASE(wrong_content_is_refused_and_not_stored) {
  Server server;
  put(server.root / "a/plain.txt", "plain texT");
  HEED_CHECK_ERROR(Exit::bad_input,
                   "/a/plain.txt: the SHA-256 is " + sha256_hex("plain texT") + " instead of " +
                       sha256_hex(kPlain),
                   server.run(server.options()));
  BOOST_TEST(server.files() == 0);
  put(server.root / "a/plain.txt", "<html>blocked</html>");
  HEED_CHECK_ERROR(Exit::bad_input, "the unpacked size is 20 instead of 10 bytes",
                   server.run(server.options()));
  put(server.root / "a/plain.txt", pack_gzip(std::string(100'000, 'x')));
  HEED_CHECK_ERROR(Exit::bad_input, "unpacks to more than 10 bytes", server.run(server.options()));
  BOOST_TEST(server.files() == 0);
}

BOOST_AUTO_TEST_CASE(failed_download_is_reported_with_its_url) {
  Server server;
  fs::remove(server.root / "a/b/text");
  HEED_CHECK_ERROR(Exit::io,
                   "cannot fetch file://" + (server.root / "a/b/text").string() + ": curl: (37)",
                   server.run(server.options()));
  HEED_CHECK_ERROR(Exit::io, "put these files into a folder and use --from FOLDER: plain.txt, text",
                   server.run(server.options()));
  BOOST_TEST(server.stored("plain.txt") == kPlain);  // the file fetched earlier remains
  BOOST_TEST(server.files() == 1);
}

BOOST_AUTO_TEST_CASE(missing_curl_is_reported) {
  Server server;
  const std::string path = ::getenv("PATH");
  ::setenv("PATH", server.home.path.c_str(), 1);
  HEED_CHECK_ERROR(Exit::failed, "cannot run curl: No such file or directory; install curl",
                   server.run(server.options()));
  ::setenv("PATH", path.c_str(), 1);
}

BOOST_AUTO_TEST_CASE(files_are_copied_from_a_folder) {
  for (const std::string place : {"", "small"}) {
    for (const std::string name : {"text", "text.gz"}) {
      Server server;
      const TempFolder source;
      fs::create_directories(source / place);
      put(source / place / "plain.txt", kPlain);
      put(source / place / name, name == "text" ? kText : pack_gzip(kText));
      FetchOptions options = server.options();
      options.from = source.path;
      options.base = "file:///nowhere";
      BOOST_TEST(server.run(options).fetched == 2);
      BOOST_TEST(unpack_gzip(server.stored("text.gz"), 100, "f") == kText);
    }
  }
}

BOOST_AUTO_TEST_CASE(files_copied_from_a_folder_are_checked) {
  Server server;
  const TempFolder source;
  FetchOptions options = server.options();
  options.from = source.path;
  HEED_CHECK_ERROR(Exit::bad_input, "plain.txt: not found in " + source.path.string(),
                   server.run(options));
  put(source / "plain.txt", "something");
  HEED_CHECK_ERROR(Exit::bad_input, "plain.txt: the unpacked size is 9 instead of 10 bytes",
                   server.run(options));
  BOOST_TEST(server.files() == 0);
}

BOOST_AUTO_TEST_SUITE_END()
