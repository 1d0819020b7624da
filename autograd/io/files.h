#pragma once
/// Reading files, and writing files that survive a crash. Once write_file_durably has returned, the
/// data survive a killed process or a power failure: the function writes the bytes to a temporary
/// file in the same folder, syncs this file to disk (fsync), renames it, and then syncs the folder.
///
/// Unless stated otherwise, a function whose system call fails throws Error(io) with the file and
/// the reason. Interrupted calls are repeated, and short writes are continued. The temporary file
/// of NAME is always called `.NAME.tmp`, so the next write replaces one that a killed process has
/// left.
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "autograd/base/error.h"
#include "autograd/io/sha256.h"

namespace heed {

/// Repeats a system call as long as signals interrupt it. `call` returns the system's result:
/// negative on failure, with the reason in errno.
template <class Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

/// A view of the bytes of a text.
inline std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// An open file descriptor, closed on destruction.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int number) : number_(number) {}
  ~FileDescriptor();
  FileDescriptor(FileDescriptor&& other) noexcept;
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;

  int get() const { return number_; }
  /// Closes the descriptor now. Throws if the system reports an error, because bytes may then be
  /// lost.
  void close(const std::filesystem::path& path);

 private:
  int number_ = -1;
};

/// open(2); programs that this process executes do not inherit the descriptor.
FileDescriptor open_file(const std::filesystem::path& path, int flags);

/// As open_file, for the files that heed itself names. Throws Error(bad_input) if the path is a
/// link, a folder, a pipe or a device, at once and without following it, and for writing also if
/// the file has a second name (hard link): the bytes of a file elsewhere would change. `flags` must
/// not contain O_TRUNC, which would empty the file before it is examined.
FileDescriptor open_regular(const std::filesystem::path& path, int flags);

/// write(2) until everything is written.
void write_all(int descriptor, std::span<const std::byte> bytes, const std::filesystem::path& path);

/// ftruncate(2).
void set_length(int descriptor, std::uint64_t length, const std::filesystem::path& path);

/// Syncs a file's bytes to disk.
void sync_file(int descriptor, const std::filesystem::path& path);
/// Syncs a folder's entries to disk, if the file system supports this.
void sync_folder(const std::filesystem::path& folder);

/// Reads a file sequentially. The constructor throws Error(bad_input) if there is no such file or
/// it is not of a permitted kind; reading throws Error(io) if the disk fails.
class FileReader {
 public:
  /// The kinds of files that may be read: regular files only; also pipes and "-" (standard input);
  /// or also devices. The last two are for files that the user named: a lack of read permission is
  /// then bad_input instead of io.
  enum class Kinds { files, files_and_pipes, also_devices };

  explicit FileReader(const std::filesystem::path& path, Kinds kinds = Kinds::files);

  /// The name used in messages.
  const std::string& name() const { return name_; }
  /// Size of a regular file in bytes; 0 for other kinds, whose size is unknown.
  std::uint64_t size() const { return size_; }
  /// Whether the input is a terminal.
  bool terminal() const;
  /// Reads the next bytes, at least one and at most as many as fit; returns their number, 0 at the
  /// end.
  std::size_t read_some(std::span<char> into);
  /// Fills `into` with the next bytes. Throws Error(bad_input) if the file ends first.
  void read(std::span<std::byte> into);

 private:
  int descriptor() const;

  std::string name_;
  FileDescriptor file_;  // empty for standard input, which must remain open
  std::uint64_t size_ = 0;
};

/// The bytes of a regular file. Throws as FileReader does, Error(bad_input) if the file is longer
/// than `limit` bytes (default: 1 GiB), and Error(io) if memory is exhausted.
std::string read_bytes(const std::filesystem::path& path, std::uint64_t limit = 1U << 30);

/// Writes a file sequentially, overwriting an existing one, and computes its size and SHA-256. The
/// constructor throws the errors of open_regular. The bytes are on disk when finish() returns; until
/// then, the file is incomplete.
class FileWriter {
 public:
  explicit FileWriter(std::filesystem::path path);

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(as_bytes(text)); }
  void finish();

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t size() const { return size_; }           ///< number of bytes written so far
  const std::string& sha256() const { return sha256_; }  ///< hash of all bytes, after finish()

 private:
  void flush();

  std::filesystem::path path_;
  FileDescriptor file_;
  std::string buffer_;
  Sha256 sum_;
  std::string sha256_;
  std::uint64_t size_ = 0;
};

/// Creates or replaces a file atomically: an older file of that name exists until the new one is
/// complete.
void write_file_durably(const std::filesystem::path& path,
                        const std::function<void(FileWriter&)>& write);
void write_file_durably(const std::filesystem::path& path, std::string_view bytes);

/// Creates a folder and its missing parents, and syncs them to disk.
void create_folders(const std::filesystem::path& folder);

/// rename(2), then a sync of the folder. Both paths must be in the same folder.
void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);

/// Makes `link` a symbolic link to `target` (relative to the link's folder), replacing an older
/// link atomically.
void replace_symlink(const std::filesystem::path& target, const std::filesystem::path& link);

/// Whether this errno means that a removal is refused: the file is in use, or the process lacks
/// permission.
bool is_refusal(int error);

/// Removes a file or a folder with its contents, if it exists.
void remove_tree(const std::filesystem::path& path);

/// As remove_tree, but returns the reason for a refusal (is_refusal) instead of throwing; "" on
/// success.
std::string remove_tree_if_allowed(const std::filesystem::path& path);

/// The temporary name of `path` in the same folder: `.NAME.tmp`.
std::filesystem::path temporary_name(const std::filesystem::path& path);

/// Whether a file of any kind has this name, even a dangling link. Throws Error(io) if this cannot
/// be determined.
bool path_exists(const std::filesystem::path& path);

/// For an entry of a run folder. Throws Error(bad_input) unless the entry is missing or itself, not
/// by a link, of this kind: `regular` or `directory`.
void require_kind(const std::filesystem::path& entry, std::filesystem::file_type kind);

/// The exit status for a failed open or stat: bad_input if the path leads to no file, to a folder
/// or to a pipe; io if the file may be intact and another attempt may succeed. For a file that the
/// user `named`, a lack of read permission, a name that is too long and a missing device are also
/// bad_input.
Exit exit_of_reading(int error, bool named = false);

/// The error for a failed open, read or stat, such as "PATH: no such file".
Error cannot_read(const std::filesystem::path& path, int error, bool named = false);

/// The name of a file in messages: its absolute path, or "standard input" for "-".
std::string shown_path(const std::filesystem::path& path);

/// Throws Error(io): "cannot WHAT PATH: reason", with the reason for the errno value `error`.
[[noreturn]] void throw_io(std::string_view what, const std::filesystem::path& path, int error);

// ---- former names, for one release ---------------------------------------------------------

[[deprecated("use path_exists")]] inline bool is_there(const std::filesystem::path& path) {
  return path_exists(path);
}

}  // namespace heed
