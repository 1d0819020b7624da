#include "train/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>

#include "train/files.h"

namespace heed {

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
    write_file_durably(
        path, [&](FileWriter& file) { produce([&](std::string_view text) { file.write(text); }); });
  }
}

}  // namespace heed
