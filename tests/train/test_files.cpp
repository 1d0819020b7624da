#include "autograd/io/files.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <string_view>
#include <thread>

#include "tests/full_disk.h"
#include "tests/train/support.h"
#include "train/run/checkpoint_folder.h"
#include "train/run/run_folder.h"
#include "train/run/run_lock.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(files_and_folders)
namespace fs = std::filesystem;

namespace {

/// Makes renaming fail during a test: the two functions below replace those of the C library.
struct Renaming {
  bool can_exchange = true;
  std::string_view fails_from;  ///< name of the file or folder that cannot be renamed
} renaming;

int failed(int error) {
  errno = error;
  return -1;
}

}  // namespace

extern "C" int renameat2(int old_at, const char* from, int new_at, const char* to,
                         unsigned flags) noexcept {
  if (!renaming.can_exchange && (flags & RENAME_EXCHANGE) != 0) return failed(EINVAL);
  return static_cast<int>(::syscall(SYS_renameat2, old_at, from, new_at, to, flags));
}

extern "C" int rename(const char* from, const char* to) noexcept {
  if (!renaming.fails_from.empty() && fs::path(from).filename() == renaming.fails_from)
    return failed(EIO);
  return static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

// Hashes of the examples in FIPS 180-4 ("abc", a message of two blocks, a million "a") and of "".
BOOST_AUTO_TEST_CASE(sha256_equals_known_hashes) {
  BOOST_TEST(sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  BOOST_TEST(sha256_hex("abc") ==
             "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  BOOST_TEST(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
             "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  const TempFolder folder;
  put(folder / "a", std::string(1'000'000, 'a'));
  BOOST_TEST(sha256_file(folder / "a") ==
             "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  Sha256 sum;
  sum.update(as_bytes("ab"));
  sum.update(as_bytes("c"));
  BOOST_TEST(sum.hex() == sha256_hex("abc"));
  BOOST_TEST(sum.hex() == sha256_hex(""));  // hex() resets the hash
}

BOOST_AUTO_TEST_CASE(bytes_read_equal_bytes_written) {
  const TempFolder folder;
  std::string bytes("\0\xff\n", 3);
  bytes += std::string(3'000'000, 'x');  // the text exceeds one chunk
  write_file_durably(folder / "file", bytes);
  BOOST_TEST((read_bytes(folder / "file") == bytes));
  BOOST_TEST((get(folder / "file") == bytes));
  BOOST_TEST(folder.entries() == 1);
  write_file_durably(folder / "file", "");
  BOOST_TEST(read_bytes(folder / "file") == "");
  BOOST_TEST(read_bytes(folder / "file", 0) == "");
}

BOOST_AUTO_TEST_CASE(unreadable_file_is_reported_with_the_reason) {
  const TempFolder folder;
  HEED_CHECK_ERROR(Exit::bad_input, (folder / "none").string() + ": no such file",
                   read_bytes(folder / "none"));
  HEED_CHECK_ERROR(Exit::bad_input, "not a regular file", read_bytes(folder.path));
  BOOST_REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  HEED_CHECK_ERROR(Exit::bad_input, "not a regular file",
                   read_bytes(folder / "pipe"));  // does not wait for a writer of the pipe
  put(folder / "long", "12345");
  HEED_CHECK_ERROR(Exit::bad_input, "longer than 4 bytes", read_bytes(folder / "long", 4));
  HEED_CHECK_ERROR(Exit::bad_input, "no such file", sha256_file(folder / "none"));
}

BOOST_AUTO_TEST_CASE(file_writer_computes_size_and_sha256) {
  const TempFolder folder;
  FileWriter writer(folder / "file");
  std::string all;
  for (int i = 0; i < 300; ++i) {  // small writes, and some that are larger than the buffer
    const std::string piece(i % 100 == 99 ? 1'500'000 : 7 * i, static_cast<char>('a' + i % 26));
    writer.write(piece);
    all += piece;
  }
  writer.finish();
  BOOST_TEST(writer.size() == all.size());
  BOOST_TEST(writer.sha256() == sha256_hex(all));
  BOOST_TEST((get(folder / "file") == all));
}

BOOST_AUTO_TEST_CASE(failed_write_leaves_the_old_file_unchanged) {
  const TempFolder folder;
  put(folder / "file", "old");
  BOOST_CHECK_THROW(write_file_durably(folder / "file",
                                       [](FileWriter& writer) {
                                         writer.write("new");
                                         throw std::runtime_error("stop");
                                       }),
                    std::runtime_error);
  BOOST_TEST(get(folder / "file") == "old");
  BOOST_TEST(folder.entries() == 1);
  fs::create_directory(folder / "taken");
  HEED_CHECK_ERROR(Exit::io, "taken: Is a directory", write_file_durably(folder / "taken", "x"));
  BOOST_TEST(folder.entries() == 2);
  HEED_CHECK_ERROR(Exit::io, "No such file", write_file_durably(folder / "no/file", "x"));
}

BOOST_AUTO_TEST_CASE(temporary_file_of_a_killed_process_is_replaced) {
  const TempFolder folder;
  put(temporary_name(folder / "file"), "half and much longer than the new content");
  write_file_durably(folder / "file", "whole");
  BOOST_TEST(get(folder / "file") == "whole");
  BOOST_TEST(folder.entries() == 1);
}

BOOST_AUTO_TEST_CASE(only_a_regular_file_with_one_name_is_opened_for_writing) {
  const TempFolder folder;
  put(folder / "thesis", "precious");
  fs::create_symlink("thesis", folder / "link");
  fs::create_symlink("nowhere", folder / "dangling");
  fs::create_directory(folder / "folder");
  BOOST_REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  for (const char* name : {"link", "dangling", "folder", "pipe"}) {
    for (const int flags : {O_WRONLY, O_RDWR | O_CREAT, O_WRONLY | O_CREAT | O_APPEND, O_RDONLY})
      HEED_CHECK_ERROR(Exit::bad_input,
                       (folder / name).string() + ": a link, folder, pipe or device in place",
                       open_regular(folder / name, flags));
    HEED_CHECK_ERROR(Exit::bad_input, name, FileWriter(folder / name));
  }
  fs::create_hard_link(folder / "thesis", folder / "hard");
  for (const int flags : {O_WRONLY, O_RDWR | O_CREAT, O_WRONLY | O_CREAT | O_APPEND})
    HEED_CHECK_ERROR(Exit::bad_input, "hard: the file has a second name (a hard link)",
                     open_regular(folder / "hard", flags));
  BOOST_CHECK_NO_THROW(open_regular(folder / "hard", O_RDONLY));
  HEED_CHECK_ERROR(Exit::bad_input, "a second name", FileWriter(folder / "hard"));
  BOOST_TEST(get(folder / "thesis") == "precious");
  BOOST_TEST(folder.entries() == 6);
  HEED_CHECK_ERROR(Exit::io, "cannot open", open_regular(folder / "none", O_WRONLY));
  BOOST_CHECK_NO_THROW(open_regular(folder / "new", O_WRONLY | O_CREAT));
  write_file_durably(folder / "hard", "new");  // a rename replaces one name
  BOOST_TEST(get(folder / "thesis") == "precious");
}

BOOST_AUTO_TEST_CASE(full_disk_is_an_io_error) {
  const FileDescriptor full = open_file("/dev/full", O_WRONLY);
  HEED_CHECK_ERROR(Exit::io, "cannot write metrics: No space left on device",
                   write_all(full.get(), as_bytes("x"), "metrics"));
}

// A process cannot raise its limit again, so the test sets the limit in a child process.
BOOST_AUTO_TEST_CASE(exceeded_file_size_limit_is_an_io_error_and_leaves_the_old_file) {
  const TempFolder folder;
  put(folder / "file", "old");
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    int code = 0;
    try {
      write_file_durably(folder / "file", std::string(2000, 'x'));
    } catch (const Error& error) {
      code = static_cast<int>(error.code);
    }
    ::_exit(code);
  }
  int status = 0;
  BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
  BOOST_TEST(WEXITSTATUS(status) == static_cast<int>(Exit::io));
  BOOST_TEST(get(folder / "file") == "old");
  BOOST_TEST(folder.entries() == 1);
}

BOOST_AUTO_TEST_CASE(folders_are_created_with_their_parents) {
  const TempFolder folder;
  create_folders(folder / "a" / "b" / "c");
  BOOST_TEST(fs::is_directory(folder / "a" / "b" / "c"));
  create_folders(folder / "a" / "b" / "c");  // the folders exist already
  create_folders((folder / "d").string() + "/");
  BOOST_TEST(fs::is_directory(folder / "d"));
  put(folder / "file", "");
  HEED_CHECK_ERROR(Exit::io, "file", create_folders(folder / "file"));
  HEED_CHECK_ERROR(Exit::io, "file: File exists", create_folders(folder / "file" / "below"));
}

BOOST_AUTO_TEST_CASE(symbolic_link_is_created_or_replaced) {
  const TempFolder folder;
  replace_symlink("a", folder / "link");
  BOOST_TEST(fs::read_symlink(folder / "link") == "a");
  fs::create_symlink("half", temporary_name(folder / "link"));  // leftover of a killed process
  replace_symlink("b", folder / "link");
  BOOST_TEST(fs::read_symlink(folder / "link") == "b");
  BOOST_TEST(folder.entries() == 1);
  fs::create_directories(folder / "real" / "full");
  HEED_CHECK_ERROR(Exit::io, "real", replace_symlink("a", folder / "real"));
  BOOST_TEST(folder.entries() == 2);
}

/// A file of a checkpoint, with this content.
CheckpointFile text_file(const std::string& name, const std::string& content) {
  return {name, [content](FileWriter& writer) { writer.write(content); }};
}

BOOST_AUTO_TEST_CASE(new_folder_appears_only_when_complete) {
  const TempFolder folder;
  const CheckpointFile watcher{"two", [&](FileWriter& writer) {
                                 BOOST_TEST(!fs::exists(folder / "new"));
                                 writer.write("x");
                               }};
  write_files(folder / "new", 1, std::vector{text_file("one", "content"), watcher}, {});
  BOOST_TEST(get(folder / "new" / "one") == "content");
  BOOST_TEST(get(folder / "new" / "two") == "x");
  BOOST_TEST(contains(get(folder / "new" / "state.json"), sha256_hex("content")));
  BOOST_TEST(folder.entries() == 1);
}

BOOST_AUTO_TEST_CASE(folder_is_removed_if_writing_one_of_its_files_fails) {
  const TempFolder folder;
  const CheckpointFile fails{"two", [](FileWriter&) { throw Error(Exit::failed, "given up"); }};
  HEED_CHECK_ERROR(Exit::failed, "given up",
                   write_files(folder / "new", 1, std::vector{text_file("one", "1"), fails}, {}));
  BOOST_TEST(folder.entries() == 0);
}

BOOST_AUTO_TEST_CASE(new_folder_replaces_the_old_folder_and_leftovers) {
  const TempFolder folder;
  fs::create_directory(folder / "it");
  put(folder / "it" / "old", "old");
  fs::create_directory(folder / ".it.tmp");
  put(folder / ".it.tmp" / "left", "over");
  const CheckpointFile file{"new", [&](FileWriter& writer) {
                              BOOST_TEST(get(folder / "it" / "old") == "old");
                              writer.write("new");
                            }};
  write_files(folder / "it", 1, std::vector{file}, {});
  BOOST_TEST(!fs::exists(folder / "it" / "old"));
  BOOST_TEST(!fs::exists(folder / "it" / "left"));
  BOOST_TEST(get(folder / "it" / "new") == "new");
  BOOST_TEST(folder.entries() == 1);
  BOOST_TEST(remove_folder(folder / "it") == "");
  BOOST_TEST(folder.entries() == 0);
}

BOOST_AUTO_TEST_CASE(failed_replacement_without_rename_exchange_restores_the_old_folder) {
  for (const bool fails : {false, true}) {
    const TempFolder folder;
    fs::create_directory(folder / "it");
    put(folder / "it" / "old", "old");
    const std::vector files{text_file("new", "new")};
    renaming.can_exchange = false;
    renaming.fails_from = fails ? ".it.tmp" : "";
    if (fails) {
      HEED_CHECK_ERROR(Exit::io, "/it: Input/output error",
                       write_files(folder / "it", 1, files, {}));
    } else {
      write_files(folder / "it", 1, files, {});
    }
    renaming = {};
    BOOST_TEST(fs::exists(folder / "it" / "old") == fails);
    BOOST_TEST(fs::exists(folder / "it" / "new") == !fails);
  }
}

/// During its lifetime, the process runs as a user without root's permissions.
class OrdinaryUser {
 public:
  OrdinaryUser() { BOOST_REQUIRE(::geteuid() != 0 || ::seteuid(65534) == 0); }
  ~OrdinaryUser() { static_cast<void>(::seteuid(::getuid())); }
  OrdinaryUser(const OrdinaryUser&) = delete;
  OrdinaryUser& operator=(const OrdinaryUser&) = delete;
};

BOOST_AUTO_TEST_CASE(folders_that_cannot_be_removed_remain_and_are_reported) {
  const TempFolder folder;
  fs::permissions(folder.path, fs::perms::all);
  const auto make_undeletable = [&](const std::string& name) {
    fs::create_directory(folder / name);
    put(folder / name / "file", "of another user");
    fs::permissions(folder / name, fs::perms::owner_read | fs::perms::owner_exec);
  };
  make_undeletable(".it.tmp");
  {
    const OrdinaryUser user;
    const CheckpointFile file{"new", [&](FileWriter& writer) {
                                BOOST_TEST(fs::exists(folder / ".it.2.tmp"));
                                writer.write("new");
                              }};
    write_files(folder / "it", 1, std::vector{file}, {});
  }
  BOOST_TEST(get(folder / "it" / "new") == "new");
  for (int i = 2; i < 10; ++i) make_undeletable(".it." + std::to_string(i) + ".tmp");
  {
    const OrdinaryUser user;
    HEED_CHECK_ERROR(Exit::io, ".it.9.tmp: Permission denied",
                     write_files(folder / "it", 1, {}, {}));
  }
  fs::create_directory(folder / "run");
  fs::create_directories(folder / "run" / "checkpoints");
  for (const char* step : {"step-00000010", "step-00000020", "step-00000030"}) {
    const CheckpointFolder checkpoints(folder / "run");
    checkpoints.save(std::stoll(std::string(step).substr(5)), {}, {}, false);
  }
  const fs::perms all_write =
      fs::perms::owner_write | fs::perms::group_write | fs::perms::others_write;
  fs::permissions(folder / "run" / "checkpoints", all_write, fs::perm_options::remove);
  {
    const OrdinaryUser user;
    const std::vector<std::string> kept = CheckpointFolder(folder / "run").prune(2);
    BOOST_TEST_REQUIRE(kept.size() == 1U);
    BOOST_TEST(kept.front().find("step-00000010: Permission denied") != std::string::npos);
  }
  renaming.fails_from = "run";
  HEED_CHECK_ERROR(Exit::io, "Input/output error", remove_folder(folder / "run"));
  renaming = {};
  fs::permissions(folder / "run" / "checkpoints", fs::perms::owner_all);
  for (const fs::directory_entry& entry : fs::directory_iterator(folder.path))
    fs::permissions(entry.path(), fs::perms::owner_all);
}

BOOST_AUTO_TEST_CASE(checkpoint_left_by_an_interrupted_replacement_is_reported) {
  const TempFolder folder;
  const CheckpointFolder checkpoints(folder.path);
  for (const char* name : {"notes", ".step-00000010.tmp", ".step-00000020.old"})
    fs::create_directories(folder / "checkpoints" / name);
  BOOST_CHECK_NO_THROW(checkpoints.refuse_loss({}));
  put(folder / "checkpoints" / ".step-00000020.old" / "state.json", "{}");
  HEED_CHECK_ERROR(Exit::bad_input, ".step-00000020.old, which was about to be replaced",
                   checkpoints.refuse_loss({}));
}

BOOST_AUTO_TEST_CASE(second_lock_is_refused_with_the_process_id_of_the_holder) {
  const TempFolder folder;
  {
    const RunLock lock(folder.path);
    const std::string before = get(folder / ".lock");
    BOOST_TEST(before == "heed " + std::to_string(::getpid()) + "\n");
    HEED_CHECK_ERROR(
        Exit::locked,
        folder.path.string() + ": another heed process (" + std::to_string(::getpid()) + ")",
        RunLock(folder.path));
    BOOST_TEST(get(folder / ".lock") == before);
  }
  const RunLock again(folder.path);
  HEED_CHECK_ERROR(Exit::io, "No such file", RunLock(folder / "none"));
}

BOOST_AUTO_TEST_CASE(lock_file_written_by_heed_has_a_mark) {
  const TempFolder folder;
  BOOST_TEST(!RunLock::has_mark(folder.path, true));
  put(folder / ".lock", "");
  BOOST_TEST(RunLock::has_mark(folder.path, true));  // a full disk leaves an empty lock file
  BOOST_TEST(!RunLock::has_mark(folder.path, false));
  put(folder / ".lock", "4711\n");
  BOOST_TEST(!RunLock::has_mark(folder.path, true));
  fs::remove(folder / ".lock");
  { const RunLock lock(folder.path); }
  BOOST_TEST(RunLock::has_mark(folder.path, false));
}

BOOST_AUTO_TEST_CASE(mark_of_a_lock_survives_a_full_disk) {
  const TempFolder folder;
  put(folder / ".lock", "heed 4194304\n");
  {
    const FullDisk disk;
    const RunLock lock(folder.path);  // a full disk does not prevent resuming
    HEED_CHECK_ERROR(Exit::io, ".lock: File too large", lock.write_mark());
    BOOST_TEST(RunLock::has_mark(folder.path, false));
    BOOST_TEST(get(folder / ".lock") == "heed 4194304\n");
  }
  { const RunLock lock(folder.path); }
  BOOST_TEST(get(folder / ".lock") == "heed " + std::to_string(::getpid()) + "\n");
  for (const bool overwrite : {false, true}) {
    const RunFolder run{folder / (overwrite ? "replaced" : "new")};
    {
      const FullDisk disk;
      HEED_CHECK_ERROR(Exit::io, ".lock: File too large", lock_new_run(run, overwrite));
    }
    BOOST_TEST(RunLock::has_mark(run.path, true));
    BOOST_CHECK_NO_THROW(refuse_foreign_folder(run));
    BOOST_CHECK_NO_THROW(refuse_existing_run(run));
    BOOST_CHECK_NO_THROW(lock_new_run(run, overwrite));
  }
}

BOOST_AUTO_TEST_CASE(moved_or_replaced_folder_of_a_lock_is_detected) {
  const TempFolder folder;
  fs::create_directory(folder / "run");
  const RunLock lock(folder / "run");
  BOOST_CHECK_NO_THROW(lock.confirm());
  const std::string message =
      (folder / "run").string() + ": the folder, or its file .lock, was moved, removed or replaced";
  fs::rename(folder / "run", folder / "moved");
  HEED_CHECK_ERROR(Exit::io, message, lock.confirm());
  fs::create_directory(folder / "run");
  HEED_CHECK_ERROR(Exit::io, message, lock.confirm());
  const RunLock other(folder / "run");
  HEED_CHECK_ERROR(Exit::io, message, lock.confirm());
  BOOST_CHECK_NO_THROW(other.confirm());
  fs::remove_all(folder / "run");
  fs::rename(folder / "moved", folder / "run");
  BOOST_CHECK_NO_THROW(lock.confirm());
  HEED_CHECK_ERROR(Exit::io, message, other.confirm());
}

BOOST_AUTO_TEST_CASE(truncated_lock_file_is_recognised_as_free_or_held) {
  for (const std::string line : {"heed 7\n", "heed 4711\n", "heed 4194304\n"}) {
    for (std::size_t size = 0; size <= line.size(); ++size) {
      const TempFolder folder;
      put(folder / ".lock", line.substr(0, size));
      BOOST_TEST_INFO("the first " << size << " bytes of " << line);
      BOOST_TEST(RunLock::has_mark(folder.path, true));
      BOOST_CHECK_NO_THROW(RunLock::refuse_if_held(folder.path));
      BOOST_CHECK_NO_THROW(refuse_existing_run({folder.path}));
      const FileDescriptor holder = open_file(folder / ".lock", O_RDONLY);
      BOOST_REQUIRE(::flock(holder.get(), LOCK_EX | LOCK_NB) == 0);
      const std::string number = size == line.size() ? line.substr(5, line.size() - 6) : "";
      HEED_CHECK_ERROR(Exit::locked,
                       ": another heed process" + (number.empty() ? "" : " (" + number + ")") +
                           " is using this run",
                       RunLock::refuse_if_held(folder.path));
      BOOST_REQUIRE(::flock(holder.get(), LOCK_UN) == 0);
      BOOST_CHECK_NO_THROW(lock_new_run({folder.path}, true));
    }
  }
}

BOOST_AUTO_TEST_CASE(checking_a_lock_never_prevents_its_acquisition) {
  const TempFolder folder;
  put(folder / ".lock", "");
  std::vector<std::jthread> checkers;
  for (int i = 0; i < 4; ++i) {
    checkers.emplace_back([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        try {
          RunLock::refuse_if_held(folder.path);
        } catch (const Error&) {  // the main thread holds the lock
        }
      }
    });
  }
  for (int i = 0; i < 100; ++i) BOOST_REQUIRE_NO_THROW(RunLock(folder.path));
}

BOOST_AUTO_TEST_CASE(shared_lock_of_a_checker_only_delays_a_starting_run) {
  const TempFolder folder;
  put(folder / ".lock", "");
  const FileDescriptor checker = open_file(folder / ".lock", O_RDONLY);
  BOOST_REQUIRE(::flock(checker.get(), LOCK_SH | LOCK_NB) == 0);
  BOOST_CHECK_NO_THROW(RunLock::refuse_if_held(folder.path));
  const std::jthread end([&] {  // a starting run waits for the end of the check
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    ::flock(checker.get(), LOCK_UN);
  });
  BOOST_CHECK_NO_THROW(RunLock(folder.path));
}

BOOST_AUTO_TEST_CASE(lock_of_a_killed_process_is_free) {
  const TempFolder folder;
  int ready[2];
  BOOST_REQUIRE(::pipe(ready) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const RunLock lock(folder.path);
    static_cast<void>(::write(ready[1], "x", 1) == 1);
    for (;;) ::pause();
  }
  char byte = 0;
  BOOST_REQUIRE(::read(ready[0], &byte, 1) == 1);
  HEED_CHECK_ERROR(Exit::locked, "process (" + std::to_string(child) + ")", RunLock(folder.path));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
  BOOST_CHECK_NO_THROW(RunLock(folder.path));
}

BOOST_AUTO_TEST_SUITE_END()
