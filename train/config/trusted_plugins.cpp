#include "train/config/trusted_plugins.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>

#include "autograd/base/error.h"
#include "autograd/io/files.h"

namespace heed {
namespace {

bool trusts_all = false;

/// Throws Error(io) if the environment names no folder.
std::filesystem::path trust_list() {
  const auto folder = [](const char* variable) -> std::filesystem::path {
    const char* const value = std::getenv(variable);
    return value != nullptr && *value == '/' ? value : "";  // XDG: a relative path is invalid
  };
  std::filesystem::path state = folder("XDG_STATE_HOME");
  if (state.empty() && !folder("HOME").empty()) state = folder("HOME") / ".local/state";
  if (state.empty()) throw Error(Exit::io, "neither XDG_STATE_HOME nor HOME names a folder");
  return state / "heed/trusted";
}

std::string line_of(const std::string& sum, const std::filesystem::path& place) {
  return fmt::format("{}  {}\n", sum, place.string());
}

}  // namespace

void trust_all_plugins() { trusts_all = true; }
bool trusts_all_plugins() { return trusts_all; }

bool is_trusted_plugin(const std::string& sum, const std::filesystem::path& place) {
  constexpr std::uint64_t max_bytes = std::uint64_t{16} << 20;
  try {
    return ("\n" + read_bytes(trust_list(), max_bytes)).find("\n" + line_of(sum, place)) !=
           std::string::npos;
  } catch (const Error&) {
    return false;
  }
}

void list_trusted_plugin(const std::string& sum, const std::filesystem::path& place) {
  if (place.string().find('\n') != std::string::npos)
    throw Error(Exit::io, "its path contains a line break");
  const std::filesystem::path list = trust_list();
  create_folders(list.parent_path());
  const FileDescriptor file = open_file(list, O_RDWR | O_CREAT | O_APPEND | O_NONBLOCK);
  if (uninterrupted([&] { return ::flock(file.get(), LOCK_EX); }) < 0)
    throw_io("lock", list, errno);
  if (is_trusted_plugin(sum, place)) return;  // another process was faster
  // A writer that was killed may have left the last line without its end.
  char last = '\n';
  const off_t size = ::lseek(file.get(), 0, SEEK_END);
  if (size > 0 && uninterrupted([&] { return ::pread(file.get(), &last, 1, size - 1); }) < 0)
    throw_io("read", list, errno);
  write_all(file.get(), as_bytes((last == '\n' ? "" : "\n") + line_of(sum, place)), list);
  sync_file(file.get(), list);
  sync_folder(list.parent_path());
}

}  // namespace heed
