#include "autograd/io/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <system_error>
#include <utility>
#include <vector>

namespace heed {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;  // size of FileWriter's buffer in bytes

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

}  // namespace

bool path_exists(const fs::path& path) {
  std::error_code error;
  const auto status = fs::symlink_status(path, error);
  if (error && exit_of_reading(error.value()) == Exit::io) throw_io("examine", path, error.value());
  return fs::exists(status);
}

void require_kind(const fs::path& entry, fs::file_type kind) {
  if (!path_exists(entry)) return;
  std::error_code ignored;
  const fs::file_type found = fs::symlink_status(entry, ignored).type();
  if (found == kind || found == fs::file_type::not_found) return;
  const char* const expected = kind == fs::file_type::directory ? "folder" : "regular file";
  throw Error(Exit::bad_input,
              "{}: not a {}{}: heed reads and writes nothing through it, because a run folder may "
              "come from elsewhere; put the {} itself in its place, or remove it",
              entry.string(), expected, found == fs::file_type::symlink ? ", but a link" : "",
              expected);
}

Exit exit_of_reading(int error, bool named) {
  // fs::file_size fails with ENOTSUP for a pipe.
  constexpr std::array nowhere{ENOENT, ENOTDIR, ELOOP, EISDIR, ENOTSUP};
  // User errors, if the user named the path.
  constexpr std::array mistaken{EACCES, ENAMETOOLONG, ENXIO};
  const bool theirs = std::ranges::find(nowhere, error) != nowhere.end() ||
                      (named && std::ranges::find(mistaken, error) != mistaken.end());
  return theirs ? Exit::bad_input : Exit::io;
}

std::string shown_path(const fs::path& path) {
  if (path == "-") return "standard input";
  std::error_code failed;
  const fs::path absolute = fs::absolute(path, failed);
  return (failed ? path : absolute.lexically_normal()).string();
}

Error cannot_read(const fs::path& path, int error, bool named) {
  return {exit_of_reading(error, named),
          fmt::format("{}: {}", shown_path(path),
                      error == ENOENT ? "no such file" : std::generic_category().message(error))};
}

void throw_io(std::string_view what, const fs::path& path, int error) {
  throw Error(Exit::io, "cannot {} {}: {}", what, path.string(),
              std::generic_category().message(error));
}

fs::path temporary_name(const fs::path& path) {
  return path.parent_path() / fmt::format(".{}.tmp", path.filename().string());
}

// ---- descriptors ----------------------------------------------------------------------------

FileDescriptor::~FileDescriptor() {
  if (number_ >= 0) ::close(number_);
}

FileDescriptor::FileDescriptor(FileDescriptor&& other) noexcept
    : number_(std::exchange(other.number_, -1)) {}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}

void FileDescriptor::close(const fs::path& path) {
  // On Linux the descriptor is closed even if close() was interrupted; a second close() could close
  // another thread's new file.
  if (::close(std::exchange(number_, -1)) < 0 && errno != EINTR) throw_io("close", path, errno);
}

FileDescriptor open_file(const fs::path& path, int flags) {
  FileDescriptor file(
      uninterrupted([&] { return ::open(path.c_str(), flags | O_CLOEXEC, mode_t{0666}); }));
  if (file.get() < 0) throw_io((flags & O_CREAT) ? "create" : "open", path, errno);
  return file;
}

FileDescriptor open_regular(const fs::path& path, int flags) {
  // With O_NONBLOCK, open() of a pipe without a reader fails at once (ENXIO).
  const int all = flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  FileDescriptor file(uninterrupted([&] { return ::open(path.c_str(), all, mode_t{0666}); }));
  struct stat about {};
  const int error = file.get() < 0 || ::fstat(file.get(), &about) < 0 ? errno : 0;
  if (error == ELOOP || error == ENXIO || error == EISDIR ||
      (error == 0 && !S_ISREG(about.st_mode)))
    throw Error(Exit::bad_input,
                "{}: a link, folder, pipe or device in place of a regular file: remove it",
                path.string());
  if (error != 0) throw_io((flags & O_CREAT) ? "create" : "open", path, error);
  if ((flags & O_ACCMODE) != O_RDONLY && about.st_nlink > 1)
    throw Error(Exit::bad_input,
                "{0}: the file has a second name (a hard link), under which it would change too: "
                "replace it by a copy (cp {0} COPY && mv COPY {0})",
                path.string());
  return file;
}

void write_all(int descriptor, std::span<const std::byte> bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t put =
        uninterrupted([&] { return ::write(descriptor, bytes.data(), bytes.size()); });
    if (put < 0) throw_io("write", path, errno);
    if (put == 0)
      throw_io("write", path, ENOSPC);  // no progress and no error: a retry could loop forever
    bytes = bytes.subspan(put);
  }
}

void set_length(int descriptor, std::uint64_t length, const fs::path& path) {
  if (uninterrupted([&] { return ::ftruncate(descriptor, static_cast<off_t>(length)); }) < 0)
    throw_io("shorten", path, errno);
}

void sync_file(int descriptor, const fs::path& path) {
  // An fsync that fails, unless interrupted by a signal, must not be retried: the kernel may
  // already have dropped the pages, and a second call would then report success. The caller must
  // treat the data as lost.
  if (uninterrupted([&] { return ::fsync(descriptor); }) < 0) throw_io("sync", path, errno);
}

void sync_folder(const fs::path& folder) {
  const FileDescriptor file = open_file(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY);
  // Some file systems cannot sync a folder: fsync then fails with EINVAL, which is ignored.
  if (uninterrupted([&] { return ::fsync(file.get()); }) < 0 && errno != EINVAL)
    throw_io("sync", folder, errno);
}

// ---- reading --------------------------------------------------------------------------------

FileReader::FileReader(const fs::path& path, Kinds kinds) : name_(shown_path(path)) {
  const bool named = kinds != Kinds::files, standard = named && path == "-";
  // With O_NONBLOCK, open() of a pipe without a writer returns at once; the pipe is refused below.
  const int wait = named ? 0 : O_NONBLOCK;
  if (!standard) {
    file_ = FileDescriptor(
        uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | wait); }));
  }
  struct stat about {};
  if ((!standard && file_.get() < 0) || ::fstat(descriptor(), &about) < 0)
    throw cannot_read(path, errno, named);
  const auto refuse = [&](std::string_view what) {
    throw Error(Exit::bad_input, "{}: {}", name_, what);
  };
  const bool device = S_ISCHR(about.st_mode) || S_ISBLK(about.st_mode);
  if (!named && !S_ISREG(about.st_mode)) refuse("not a regular file");
  if (S_ISDIR(about.st_mode)) refuse("is a folder, not a file");
  if (device && !standard && kinds != Kinds::also_devices) refuse("is a device, not a file");
  if (S_ISREG(about.st_mode)) size_ = about.st_size;
}

int FileReader::descriptor() const { return file_.get() < 0 ? STDIN_FILENO : file_.get(); }

bool FileReader::terminal() const { return ::isatty(descriptor()) == 1; }

std::size_t FileReader::read_some(std::span<char> into) {
  const ssize_t got = uninterrupted([&] { return ::read(descriptor(), into.data(), into.size()); });
  if (got < 0) throw_io("read", name_, errno);
  return got;
}

void FileReader::read(std::span<std::byte> into) {
  while (!into.empty()) {
    const std::size_t got = read_some({reinterpret_cast<char*>(into.data()), into.size()});
    if (got == 0) throw Error(Exit::bad_input, "{}: ends too early (truncated?)", name_);
    into = into.subspan(got);
  }
}

std::string read_bytes(const fs::path& path, std::uint64_t limit) {
  FileReader file(path);
  if (file.size() > limit)
    throw Error(Exit::bad_input, "{}: longer than {} bytes", file.name(), limit);
  std::string bytes;
  try {
    bytes.resize(file.size());
  } catch (const std::exception&) {  // bad_alloc or length_error
    throw Error(Exit::io, "{}: not enough memory for its {} bytes", file.name(), file.size());
  }
  std::size_t have = 0;
  while (const std::size_t got = file.read_some(std::span(bytes).subspan(have))) have += got;
  bytes.resize(have);
  return bytes;
}

// ---- writing --------------------------------------------------------------------------------

FileWriter::FileWriter(fs::path path)
    : path_(std::move(path)), file_(open_regular(path_, O_WRONLY | O_CREAT)) {
  set_length(file_.get(), 0, path_);
}

void FileWriter::write(std::span<const std::byte> bytes) {
  sum_.update(bytes);
  size_ += bytes.size();
  if (buffer_.size() + bytes.size() > kPiece) flush();
  if (bytes.size() >= kPiece)
    write_all(file_.get(), bytes, path_);
  else
    buffer_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

void FileWriter::flush() {
  write_all(file_.get(), as_bytes(buffer_), path_);
  buffer_.clear();
}

void FileWriter::finish() {
  flush();
  sync_file(file_.get(), path_);
  file_.close(path_);
  sha256_ = sum_.hex();
}

void write_file_durably(const fs::path& path, const std::function<void(FileWriter&)>& write) {
  const fs::path temporary = temporary_name(path);
  try {
    FileWriter writer(temporary);
    write(writer);
    writer.finish();
    rename_durably(temporary, path);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
}

void write_file_durably(const fs::path& path, std::string_view bytes) {
  write_file_durably(path, [&](FileWriter& writer) { writer.write(bytes); });
}

// ---- names ----------------------------------------------------------------------------------

void create_folders(const fs::path& folder) {
  std::vector<fs::path> missing;
  std::error_code ignored;
  for (fs::path at = folder; !at.empty() && !fs::is_directory(at, ignored); at = at.parent_path()) {
    if (at.has_filename()) missing.push_back(at);
    if (at == at.parent_path()) break;
  }
  std::reverse(missing.begin(), missing.end());  // parents come first
  for (const fs::path& at : missing) {
    const int made = uninterrupted([&] { return ::mkdir(at.c_str(), mode_t{0777}); });
    if (made < 0 && !(errno == EEXIST && fs::is_directory(at, ignored)))
      throw_io("create folder", at, errno);
    sync_folder(folder_of(at));
  }
}

void rename_durably(const fs::path& from, const fs::path& to) {
  if (uninterrupted([&] { return ::rename(from.c_str(), to.c_str()); }) < 0)
    throw_io("create or replace", to, errno);
  sync_folder(folder_of(to));
}

void replace_symlink(const fs::path& target, const fs::path& link) {
  const fs::path temporary = temporary_name(link);
  remove_tree(temporary);
  if (uninterrupted([&] { return ::symlink(target.c_str(), temporary.c_str()); }) < 0)
    throw_io("create link", link, errno);
  try {
    rename_durably(temporary, link);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
}

bool is_refusal(int error) {  // ENOTEMPTY: NFS reports it for a folder with an open file
  return error == EACCES || error == EPERM || error == EBUSY || error == ENOTEMPTY;
}

std::string remove_tree_if_allowed(const fs::path& path) {
  std::error_code error;
  do {
    fs::remove_all(path, error);
  } while (error == std::errc::interrupted);
  if (!error) return "";
  if (is_refusal(error.value()))
    return fmt::format("cannot remove {}: {}", path.string(), error.message());
  throw_io("remove", path, error.value());
}

void remove_tree(const fs::path& path) {
  if (const std::string why = remove_tree_if_allowed(path); !why.empty())
    throw Error(Exit::io, why);
}

}  // namespace heed
