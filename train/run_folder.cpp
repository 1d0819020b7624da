#include "train/run_folder.h"

#include <fmt/chrono.h>
#include <sys/utsname.h>

#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "autograd/error.h"
#include "autograd/kernels/gemm.h"
#include "train/checkpoint_folder.h"
#include "train/files.h"
#include "train/json_text.h"
#include "train/run_lock.h"
#include "train/team.h"
#include "train/version.h"

namespace heed {

void refuse_existing_run(const RunFolder& run) {
  if (!std::filesystem::exists(run.config())) {
    if (!std::filesystem::exists(run.path / "checkpoints")) return;
    throw Error(Exit::usage, fmt::format("{} holds checkpoints, but no config.yaml: put it "
                                         "back to resume, or replace the run with --overwrite, "
                                         "which removes them",
                                         run.path.string()));
  }
  throw Error(
      Exit::usage,
      fmt::format("{} already holds a run: go on with it by `heed resume {}`, choose another "
                  "folder with --run, or replace it with --overwrite",
                  run.path.string(), run.path.string()));
}

void refuse_busy_run(const RunFolder& run) {
  // Not the config: a run that is being replaced has none.
  if (std::filesystem::exists(run.path / ".lock")) const RunLock nobody_else(run.path);
}

void clear_run(const RunFolder& run) {
  remove_tree(run.config());  // first: from here on this is no run,
  sync_folder(run.path);      // also after a power cut
  for (const char* name : {"run.json", "metrics.jsonl", "train.log", "best", "last", "average"})
    remove_tree(run.path / name);
  for (const char* side : {"tokenizer", "source", "target"}) {
    for (const char* kind : {".model", ".vocab"})
      remove_tree(run.path / (std::string(side) + kind));
  }
  remove_tree(run.path / "checkpoints");  // last: refuse_existing_run looks for it
}

std::string describe_run(const Config& config, const std::vector<std::string>& command) {
  std::string cpu;
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line) && cpu.empty();) {
    if (line.rfind("model name", 0) == 0)
      cpu = line.substr(std::min(line.size(), line.find(':') + 2));
  }
  utsname system{};
  uname(&system);
  const nlohmann::json record{
      {"version", version},
      {"command", command},
      {"started", fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr)))},
      {"seed", config.seed},
      {"shards", config.train.shards},
      {"threads", config.threads > 0 ? config.threads : available_processors()},
      {"cpu", cpu},
      {"processors", available_processors()},
      {"system", fmt::format("{} {} {}", system.sysname, system.release, system.machine)},
      {"compiler", compiler},
      {"flags", flags},
      {"blas", kernels::blas_name()}};
  return record.dump(2) + "\n";
}

std::vector<std::string> changed_surroundings(const RunFolder& run, const Config& config) {
  std::vector<std::string> changed;
  const auto text = [](const nlohmann::json& record, const char* key) {
    const auto found = record.find(key);
    return found == record.end() || !found->is_string() ? "nothing known"
                                                        : found->get<std::string>();
  };
  try {
    const std::string path = (run.path / "run.json").string();
    const nlohmann::json then = parse_json(read_bytes(path, 1 << 20), path),
                         now = nlohmann::json::parse(describe_run(config, {}));
    for (const char* key : {"version", "compiler", "flags", "cpu", "blas"}) {
      const std::string before = text(then, key), here = text(now, key);
      if (before != here) changed.push_back(fmt::format("{}: {}; it was {}", key, here, before));
    }
  } catch (const Error& e) {
    changed.emplace_back(e.what());  // a record is missing, not what is needed to go on
  }
  return changed;
}

void begin_run(const RunFolder& run, const Config& config, const Tokenizers& tokenizers,
               const std::vector<std::string>& command) {
  tokenizers.save(run.path);
  write_file_durably(run.path / "run.json", describe_run(config, command));
  write_file_durably(run.config(), write_yaml(config));  // last: its presence makes this a run
}

Config read_run_config(const RunFolder& run, const std::vector<std::string>& overrides) {
  if (!std::filesystem::exists(run.config())) {
    throw Error(Exit::bad_input,
                fmt::format("{}: no run here (there is no config.yaml)",
                            std::filesystem::absolute(run.path).lexically_normal().string()));
  }
  return read_config(run.config().string(), overrides);
}

std::filesystem::path find_weights(const RunFolder& run, const std::string& name) {
  std::vector<std::filesystem::path> choices;
  if (name.empty()) {
    choices = {run.average(), run.path / "best", run.path / "last"};
  } else if (name == "best" || name == "last" || name == "average") {
    choices = {run.path / name};
  } else if (name.find_first_not_of("0123456789") == std::string::npos && name.size() < 18) {
    choices = {CheckpointFolder(run.path).folder_of(std::stoll(name))};
  } else {
    choices = {name};
  }
  // The first that is there at all. If it is damaged, no other is taken in its place in silence.
  for (const auto& choice : choices) {
    if (std::filesystem::exists(std::filesystem::symlink_status(choice))) return choice;
  }
  throw Error(Exit::bad_input, fmt::format("{}: no weights{}", run.path.string(),
                                           name.empty() ? " yet" : " called " + name));
}

}  // namespace heed
