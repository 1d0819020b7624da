#include "train/folder_transaction.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cstdio>
#include <system_error>
#include <utility>

#include "autograd/error.h"

namespace heed {
namespace fs = std::filesystem;
namespace {

/// The name that a folder has while it is being removed.
fs::path discarded_name(const fs::path& folder) {
  return folder.parent_path() / (fmt::format(".{}.old", folder.filename().string()));
}

/// Lets two folders trade names in one step (Linux; false where the file system cannot).
bool exchange(const fs::path& a, const fs::path& b) {
  return ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0;
}

}  // namespace

FolderTransaction::FolderTransaction(fs::path folder)
    : folder_(std::move(folder)), temporary_(temporary_name(folder_)) {
  remove_tree(temporary_);
  create_folders(temporary_);
}

FolderTransaction::~FolderTransaction() {
  if (committed_) return;
  std::error_code ignored;  // already on the way out; the next transaction removes what is left
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
    remove_tree(temporary_);  // now the older folder
  } else {
    const fs::path old = discarded_name(folder_);
    remove_tree(old);
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

void hide_folder(const fs::path& folder) {
  const fs::path old = discarded_name(folder);
  remove_tree(old);
  rename_durably(folder, old);
}

void remove_folder_at_once(const fs::path& folder) {
  hide_folder(folder);
  remove_tree(discarded_name(folder));
}

}  // namespace heed
