#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "tests/fuzz/target.h"
#include "tests/processor_time.h"

namespace heed::fuzz {
namespace {

constexpr double max_yardsticks = 100;  // about 5 s in an optimised build on a fast machine

bool judge(std::string_view input) {
  try {
    target(input);
    return true;
  } catch (const Error& error) {
    require(error.what()[0] != '\0', "an error has a message");
    return false;
  }
}

}  // namespace

bool accepts(std::string_view input) {
  bool accepted = false;
  const auto work = [&] { accepted = judge(input); };
  double seconds = test::min_seconds(1, work);
  if (seconds < 0.1) return accepted;  // far below the limit
  const double max_seconds = max_yardsticks * test::yardstick();
  for (int i = 0; i < 2 && seconds > max_seconds; ++i)  // the machine may be busy
    seconds = std::min(seconds, test::min_seconds(1, work));
  require(seconds <= max_seconds, "an input takes at most 100 times as long as the reference work");
  return accepted;
}

void require(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "violated: %s\n", what.c_str());
  std::abort();
}

void must_work(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    require(false, std::string("an accepted input works: ") + error.what());
  }
}

void require_refusal(const Error& error, Exit code, std::string_view beginning) {
  const std::string message = error.what();
  require(error.code == code, "the error has the right code: " + message);
  require(message.starts_with(beginning), "the message has the right beginning: " + message);
}

unsigned char Bytes::byte() {
  if (left_.empty()) return 0;
  const auto first = static_cast<unsigned char>(left_.front());
  left_.remove_prefix(1);
  return first;
}

std::string_view Bytes::until(std::string_view mark) {
  const std::size_t end = std::min(left_.find(mark), left_.size());
  const std::string_view part = left_.substr(0, end);
  left_.remove_prefix(std::min(end + mark.size(), left_.size()));
  return part;
}

const std::filesystem::path& scratch() {
  struct Folder {
    Folder() {
      const bool memory = getenv("TMPDIR") == nullptr && ::access("/dev/shm", W_OK) == 0;
      std::string name = memory ? "/dev/shm" : std::filesystem::temp_directory_path().string();
      name += "/heed-fuzz-XXXXXX";
      require(mkdtemp(name.data()) != nullptr, "a temporary folder can be created: " + name);
      path = name;
    }
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
    std::filesystem::path path;
  };
  static const Folder folder;
  return folder.path;
}

std::filesystem::path put(const std::filesystem::path& name, std::string_view bytes) {
  const std::filesystem::path path = scratch() / name;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  require(file.good(), "a file can be written: " + path.string());
  return path;
}

std::string get(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace heed::fuzz

/// The entry point of libFuzzer.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  heed::fuzz::accepts({reinterpret_cast<const char*>(data), size});
  return 0;
}
