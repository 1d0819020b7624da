#include "train/commands/derived_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "autograd/base/error.h"
#include "train/run/checkpoint_folder.h"
#include "train/run/jsonl.h"
#include "train/run/run_lock.h"
#include "train/terminal/run_log.h"

namespace heed {

void check_destination(const DerivedRun& run) {
  std::error_code ignored;
  if (std::filesystem::equivalent(run.from, run.to.path, ignored))
    throw Error(Exit::usage, "--run must differ from the original run");
  RunLock::refuse_if_held(run.to.path);
  // Unlike the message of refuse_existing_run, this one does not suggest resuming the run.
  if (!run.overwrite && std::filesystem::exists(run.to.config(), ignored) &&
      std::filesystem::exists(run.to.path / "run.json", ignored))
    throw Error(Exit::usage,
                "{} already holds a run: choose another folder with --run, "
                "or replace it with --overwrite",
                run.to.path.string());
  run.overwrite ? refuse_foreign_folder(run.to) : refuse_existing_run(run.to);
}

DerivedFrom DerivedFrom::run(const std::string& run, const TrainedModel& original) {
  const std::vector<std::int64_t>& steps = original.weights.steps;
  return {steps.empty() ? 0 : *std::ranges::max_element(steps), original.tokenizers,
          recorded_sums(RunFolder{run})};
}

namespace {

/// Writes the files of the run to the folder. `lock` is that of the folder or of the one around it.
void write_files(const RunFolder& to, const RunLock& lock, const DerivedRun& run,
                 const DerivedFrom& original, const Config& config, const nlohmann::json& record,
                 const std::function<void(FileWriter&)>& write_model) {
  const std::vector<CheckpointFile> files{{"model.safetensors", write_model}};
  nlohmann::json state = record;
  original.tokenizers.save(to.path);
  state["trained_with"] = trained_with(to, config);
  CheckpointFolder(to.path).save(original.step, files, state, true);
  JsonlWriter metrics(to.metrics());
  metrics.append(record);
  metrics.sync();
  lock.confirm();
  begin_run(to, config, original.tokenizers, original.sums, run.command);  // completes the run
}

}  // namespace

void write_derived_run(const DerivedRun& run, const DerivedFrom& original, const Config& config,
                       const nlohmann::json& record,
                       const std::function<void(FileWriter&)>& write_model) {
  if (!run.overwrite || !path_exists(run.to.config())) {
    const RunLock lock = lock_new_run(run.to, run.overwrite);
    return write_files(run.to, lock, run, original, config, record, write_model);
  }
  // The existing run remains until the new one is complete: writing can fail, as on a full disk.
  const RunLock lock(run.to.path);
  check_kinds(run.to);
  const RunFolder unfinished{run.to.replacement()};
  remove_tree(unfinished.path);
  create_folders(unfinished.path);
  try {
    write_files(unfinished, lock, run, original, config, record, write_model);
  } catch (...) {
    static_cast<void>(remove_tree_if_allowed(unfinished.path));
    throw;
  }
  replace_run(run.to);
}

nlohmann::json record_of(const DerivedRun& run, const TrainedModel& original,
                         const std::string& kind) {
  nlohmann::json record{{"kind", kind}, {"from", run.from}};
  for (const nlohmann::json& earlier : read_jsonl(RunFolder{run.from}.metrics())) {
    const std::string made = earlier.value("kind", "");
    if (made != "pruned" && made != "quantised") continue;
    record["earlier"] = earlier.value("earlier", nlohmann::json::array());
    record["earlier"].push_back(earlier);
    for (const char* key : {"earlier", "heads"}) record["earlier"].back().erase(key);
  }
  record.update(original.weights.json());
  return record;
}

void report_derived_run(const DerivedRun& run, nlohmann::json record, const std::string& text,
                        bool json) {
  const std::string kind = record.at("kind");
  if (json) {
    record["run"] = run.to.path.string();
    print_text(record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  } else {
    print_text(text);
  }
  print_message(fmt::format("the {} run is in {}", kind, run.to.path.string()));
}

}  // namespace heed
