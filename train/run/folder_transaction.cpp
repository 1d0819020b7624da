#include "train/run/folder_transaction.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cstdio>
#include <system_error>
#include <utility>

#include "autograd/base/error.h"
#include "autograd/base/files.h"

namespace heed {
namespace fs = std::filesystem;
namespace {

/// `.NAME.END`, the name of a folder while it is being written or removed; what a killed process
/// left there is removed. `.NAME.2.END` and so on, if what is there cannot be removed.
fs::path passing_name(const fs::path& folder, std::string_view end) {
  constexpr int most = 9;
  for (int number = 1;; ++number) {
    fs::path name =
        folder.parent_path() / fmt::format(".{}{}.{}", folder.filename().string(),
                                           number > 1 ? fmt::format(".{}", number) : "", end);
    const std::string why = remove_tree_if_allowed(name);
    if (why.empty()) return name;
    if (number == most) throw Error(Exit::io, why);
  }
}

/// Exchanges the names of two folders atomically (Linux; false if the file system cannot).
bool exchange(const fs::path& a, const fs::path& b) {
  return ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0;
}

}  // namespace

FolderTransaction::FolderTransaction(fs::path folder)
    : folder_(std::move(folder)), temporary_(passing_name(folder_, "tmp")) {
  create_folders(temporary_);
}

FolderTransaction::~FolderTransaction() {
  if (committed_) return;
  std::error_code ignored;  // an error is already in flight; the next transaction cleans up
  fs::remove_all(temporary_, ignored);
}

FolderTransaction::Written FolderTransaction::write(const std::string& name,
                                                    const std::function<void(FileWriter&)>& write) {
  FileWriter writer(temporary_ / name);
  write(writer);
  writer.finish();
  return {writer.size(), writer.sha256()};
}

FolderTransaction::Written FolderTransaction::write(const std::string& name,
                                                    std::string_view bytes) {
  return write(name, [&](FileWriter& writer) { writer.write(bytes); });
}

void FolderTransaction::commit() {
  sync_folder(temporary_);
  std::error_code ignored;
  if (!fs::exists(fs::symlink_status(folder_, ignored))) {
    rename_durably(temporary_, folder_);
  } else if (exchange(temporary_, folder_)) {
    sync_folder(folder_.parent_path());
    static_cast<void>(remove_tree_if_allowed(temporary_));  // now the older folder
  } else {
    const fs::path old = passing_name(folder_, "old");
    rename_durably(folder_, old);
    try {
      rename_durably(temporary_, folder_);
    } catch (const Error&) {
      std::error_code stays_hidden;
      fs::rename(old, folder_, stays_hidden);
      throw;
    }
    remove_tree(old);
  }
  committed_ = true;
}

std::string hide_folder_if_allowed(const fs::path& folder) {
  const fs::path old = passing_name(folder, "old");
  if (uninterrupted([&] { return ::rename(folder.c_str(), old.c_str()); }) < 0) {
    if (!is_refusal(errno)) throw_io("put in place", old, errno);
    return fmt::format("cannot remove {}: {}", folder.string(),
                       std::system_category().message(errno));
  }
  sync_folder(folder.parent_path());
  return "";
}

void remove_folder_at_once(const fs::path& folder) {
  const fs::path old = passing_name(folder, "old");
  rename_durably(folder, old);
  remove_tree(old);
}

}  // namespace heed
