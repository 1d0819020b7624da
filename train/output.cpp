#include "train/output.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>

#include <filesystem>

#include "train/files.h"

namespace heed {

namespace {

/// While one lives, a signal that ends the process removes an unfinished file first.
class Unfinished {
 public:
  explicit Unfinished(const std::filesystem::path& file) {
    path = ::strdup(file.c_str());
    for (std::size_t i = 0; i < ending.size(); ++i) {
      struct sigaction action {};
      action.sa_handler = &Unfinished::remove;
      action.sa_flags = SA_RESETHAND;  // once; then the signal does what it always did
      sigaction(ending[i], &action, &before_[i]);
    }
  }
  ~Unfinished() {
    for (std::size_t i = 0; i < ending.size(); ++i) sigaction(ending[i], &before_[i], nullptr);
    ::free(path);
  }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;

 private:
  static void remove(int number) {
    ::unlink(path);
    ::raise(number);
  }

  static constexpr std::array<int, 3> ending{SIGINT, SIGTERM, SIGHUP};
  static inline char* path = nullptr;
  std::array<struct sigaction, 3> before_{};
};

}  // namespace

void write_output(const std::string& path, const std::function<void(const Sink&)>& produce) {
  std::error_code ignored;
  if (path == "-") {
    produce(
        [](std::string_view text) { write_all(STDOUT_FILENO, as_bytes(text), "standard output"); });
  } else if (std::filesystem::exists(path, ignored) &&
             !std::filesystem::is_regular_file(path, ignored)) {
    FileDescriptor file = open_file(path, O_WRONLY);
    produce([&](std::string_view text) { write_all(file.get(), as_bytes(text), path); });
    file.close(path);
  } else {
    const Unfinished remove_on_signal(temporary_name(path));
    write_file_durably(
        path, [&](FileWriter& file) { produce([&](std::string_view text) { file.write(text); }); });
  }
}

}  // namespace heed
