#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "tests/patience.h"
#include "tests/relcheck/corruption.h"
#include "train/run/checkpoint_folder.h"

namespace heed::relcheck {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kConfig = R"(name: lm
task: lm
data: {{train: {{text: text.txt}}, valid_fraction: 0.1}}
tokenizer: {{kind: char}}
model: {{d_model: {0}, heads: 2, d_ff: {1}, layers: {2}, dropout: 0.1, positions: learned,
        max_positions: 24, context: 24}}
optim: {{name: adam, lr: 2.0e-3}}
train: {{steps: 30, shards: 2, log_every: 10, validate_every: 10, save_every: 10, keep: 5,
        batch_sequences: 8}}
threads: 1
seed: 5
)";

[[noreturn]] void become_heed(const fs::path& folder, const std::vector<std::string>& arguments,
                              const fs::path& output) {
  std::vector<char*> words{const_cast<char*>(HEED_PROGRAM)};
  for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const int out = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const int in = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (out < 0 || in < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0 ||
      ::chdir(folder.c_str()) != 0)
    _exit(126);
  execv(HEED_PROGRAM, words.data());
  _exit(127);
}

}  // namespace

Done run_heed(const fs::path& folder, const std::vector<std::string>& arguments) {
  const fs::path output = folder / "output.txt";
  const pid_t child = fork();
  if (child < 0) throw_io("start", HEED_PROGRAM, errno);
  if (child == 0) become_heed(folder, arguments, output);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(test::patience);
  int ended = 0;
  bool late = false;
  while (waitpid(child, &ended, WNOHANG) == 0) {
    if (!late && std::chrono::steady_clock::now() > end) {
      kill(child, SIGKILL);
      late = true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return {WIFEXITED(ended) ? WEXITSTATUS(ended) : -1, get(output)};
}

fs::path train_small_run(const fs::path& folder, bool large) {
  put(folder / "text.txt", repeated("the quick brown fox jumps over a lazy dog and sleeps.\n", 60));
  const int width = large ? 64 : 8;
  put(folder / "lm.yaml", fmt::format(kConfig, width, 4 * width, large ? 2 : 1));
  const fs::path run = folder / "run";
  const Done done = run_heed(folder, {"train", "lm.yaml", "--run", run.string()});
  if (done.status != 0)
    throw Error(Exit::failed, "training the run to be damaged failed: " + done.output);
  return run;
}

fs::path checkpoint_of(const fs::path& run, std::int64_t step) {
  return CheckpointFolder(run).folder_of(step);
}

void flip_bit(const fs::path& file, std::uint64_t bit) {
  const FileDescriptor open = open_file(file, O_RDWR);
  const auto at = static_cast<off_t>(bit / 8);
  unsigned char byte = 0;
  if (pread(open.get(), &byte, 1, at) != 1) throw_io("read", file, errno);
  byte = static_cast<unsigned char>(byte ^ (1u << bit % 8));
  if (pwrite(open.get(), &byte, 1, at) != 1) throw_io("write", file, errno);
}

const std::vector<Replacement>& replacements() {
  static const std::vector<Replacement> all = {
      {"nothing", [](const fs::path&) {}},
      {"an empty file", [](const fs::path& file) { put(file, ""); }},
      {"a folder", [](const fs::path& file) { fs::create_directory(file); }},
      {"a pipe", [](const fs::path& file) { make_pipe(file); }},
      {"a dangling link", [](const fs::path& file) { fs::create_symlink("none", file); }},
      {"a link to itself", [](const fs::path& file) { fs::create_symlink(file.filename(), file); }},
      {"a link to an endless device",
       [](const fs::path& file) { fs::create_symlink("/dev/zero", file); }},
      {"a link to an empty device",
       [](const fs::path& file) { fs::create_symlink("/dev/null", file); }},
      {"a link to another checkpoint's file",
       [](const fs::path& file) {
         const fs::path run = file.parent_path().parent_path().parent_path();
         fs::create_symlink(checkpoint_of(run, kPartner) / file.filename(), file);
       }},
  };
  return all;
}

}  // namespace heed::relcheck
