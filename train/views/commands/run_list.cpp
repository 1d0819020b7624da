#include "train/views/commands/run_list.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "autograd/base/error.h"
#include "autograd/io/files.h"
#include "autograd/io/formats/json_text.h"
#include "train/run/checkpoint_folder.h"
#include "train/run/run_lock.h"
#include "train/run/run_record.h"
#include "train/tasks/evaluation.h"
#include "train/terminal/table.h"

namespace heed {

namespace {

constexpr std::array<std::string_view, 7> state_names{
    "running", "finished", "stopped", "no checkpoint", "pruned", "quantised", "broken"};
constexpr int levels = 4;

std::string_view name_of(RunState state) { return state_names.at(static_cast<std::size_t>(state)); }

// ---- finding ------------------------------------------------------------------------------------

/// A run whose files cannot be examined is listed as broken.
bool is_run(const std::filesystem::path& folder) {
  std::error_code ignored;  // an unreadable folder is skipped
  const auto exists = [&](const char* name) {
    return std::filesystem::exists(std::filesystem::symlink_status(folder / name, ignored));
  };
  if (!exists("config.yaml") && !exists("run.json")) return false;
  if (exists("checkpoints") || exists("metrics.jsonl")) return true;
  try {
    return RunLock::has_mark(folder, true);
  } catch (const Error&) {
    return true;
  }
}

/// Adds the runs up to `deeper` levels below `folder`, and `folder` itself if it is a run. `seen`
/// contains the visited folders.
void find_runs(const std::filesystem::path& folder, int deeper, std::set<std::string>& seen,
               std::vector<std::string>& found) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(folder, error);
  if (error || !seen.insert(real.string()).second) return;
  if (is_run(folder)) found.push_back(folder.string());
  if (deeper == 0) return;
  constexpr std::array<std::string_view, 5> parts{"checkpoints", "average", "best", "last",
                                                  "tensorboard"};
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    std::error_code ignored;
    if (name.starts_with('.') || std::ranges::find(parts, name) != parts.end()) continue;
    if (at->is_directory(ignored)) find_runs(at->path(), deeper - 1, seen, found);
  }
}

// ---- reading ------------------------------------------------------------------------------------

std::int64_t last_change(const RunFolder& run) {
  std::int64_t time = 0;
  for (const auto& file : {run.metrics(), run.log(), run.config(), run.path / "run.json"}) {
    struct stat about {};
    if (::stat(file.c_str(), &about) == 0)
      time = std::max(time, static_cast<std::int64_t>(about.st_mtime));
  }
  return time;
}

/// Sets the members that the records determine. The caller then adjusts state and step to the lock
/// and the checkpoints.
void set_from_records(RunLine& line, std::vector<nlohmann::json> records) {
  line.state = RunState::stopped;
  for (const nlohmann::json& record : records) {
    const std::string kind = record.value("kind", "");
    if (kind == "weights" || kind == "test" || kind == "final-valid")
      line.state = RunState::finished;
    if (kind == "pruned") line.state = RunState::pruned;
    if (kind == "quantised") line.state = RunState::quantised;
    if (record.contains("step")) line.step = whole_number(record.at("step"));
    line.seconds = record.value("seconds", line.seconds);
  }
  set_results(line.result, std::move(records));
}

/// Whether run.json lists plugins.
bool had_plugins(const RunFolder& run) {
  try {
    const nlohmann::json record = read_run_json(run);
    return record.contains("plugins") && !record.at("plugins").empty();
  } catch (const Error&) {
    return false;
  }
}

Config config_of(const RunFolder& run) {
  try {
    return read_run_config(run, {}, PluginUse::leave);
  } catch (const Error& error) {
    if (!had_plugins(run)) throw;
    const std::string_view message = error.what();
    throw Error(
        error.code,
        "{} (perhaps a name from a plugin, which `heed runs` does not load: see `heed show {}`)",
        message.substr(0, message.find('\n')), run.path.string());
  }
}

void read_run(RunLine& line) {
  const RunFolder run{line.result.folder};
  // The lock is checked before the files are read: if it is not held, the files are final.
  const bool locked = RunLock::is_held(run.path);
  line.result.config = config_of(run);
  set_from_records(line, read_metrics(run));
  const std::vector<std::int64_t> steps = CheckpointFolder(run.path).steps();
  if (locked) {
    line.state = RunState::running;
  } else if (steps.empty()) {
    line.state = RunState::no_checkpoint;
  } else if (line.state != RunState::finished) {
    line.step = steps.back();
  }
}

RunLine line_of(const std::string& folder) {
  RunLine line;
  line.result.folder = folder;
  line.changed = last_change({folder});
  try {
    read_run(line);
  } catch (const std::exception& error) {
    const std::string_view message = error.what();
    line.state = RunState::broken;
    line.result.where.clear();
    line.error = message.substr(0, message.find('\n'));
  }
  return line;
}

// ---- printing -----------------------------------------------------------------------------------

Metric metric_of(const Config& config) {
  return config.train.early_stopping.metric.value_or(config.train.best);
}

/// The value of the metric that selects the best checkpoint: "BLEU 40.61 (test)".
std::string best_figure(const RunResult& result) {
  const Metric metric = metric_of(result.config);
  const std::optional<double> value = figure(result, metric);
  if (!value) return "-";
  return fmt::format("{} {} ({})", info_of(metric).label, heed::text_of(metric, *value),
                     result.where);
}

std::string progress_text(const RunLine& line) {
  const std::int64_t all = line.result.config.train.steps;
  if (line.state == RunState::finished || line.state > RunState::no_checkpoint || all == 0)
    return fmt::format("{}", line.step);
  return fmt::format("{} of {}", line.step, all);
}

std::string age(std::int64_t seconds) {
  if (seconds < 60) return "just now";
  if (seconds < 3600) return fmt::format("{} min ago", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{} h ago", seconds / 3600);
  return fmt::format("{} days ago", seconds / 86400);
}

}  // namespace

std::vector<RunLine> list_runs(const std::string& folder) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored))
    throw Error(Exit::usage, "{}: no such folder", folder);
  std::set<std::string> seen;
  std::vector<std::string> found;
  find_runs(folder, levels, seen, found);
  std::vector<RunLine> runs;
  for (const std::string& run : found) runs.push_back(line_of(run));
  std::ranges::sort(runs, [](const RunLine& a, const RunLine& b) {
    return std::tie(a.changed, a.result.folder) < std::tie(b.changed, b.result.folder);
  });
  return runs;
}

std::string text_of(const std::vector<RunLine>& runs, std::int64_t now) {
  std::vector<std::vector<std::string>> rows{
      {"run", "task", "state", "step", "figure", "minutes", "changed"}};
  for (const RunLine& line : runs) {
    const RunResult& result = line.result;
    if (line.state == RunState::broken) {
      rows.push_back({result.folder, "-", "broken: " + line.error});
      continue;
    }
    rows.push_back({result.folder, std::string(info_of(result.config.task).name),
                    std::string(name_of(line.state)), progress_text(line), best_figure(result),
                    fmt::format("{:.1f}", line.seconds / 60), age(now - line.changed)});
  }
  return aligned(rows);
}

nlohmann::json json_of(const std::vector<RunLine>& runs) {
  nlohmann::json all = nlohmann::json::array();
  for (const RunLine& line : runs) {
    const RunResult& result = line.result;
    nlohmann::json entry{
        {"run", result.folder}, {"state", name_of(line.state)}, {"changed", line.changed}};
    if (line.state == RunState::broken) {
      entry["error"] = line.error;
    } else {
      entry.update({{"name", result.config.name},
                    {"task", info_of(result.config.task).name},
                    {"step", line.step},
                    {"steps", result.config.train.steps},
                    {"seconds", line.seconds},
                    {"metric", info_of(metric_of(result.config)).name}});
    }
    if (!result.where.empty()) entry.update({{"data", result.where}, {"figures", result.record}});
    all.push_back(std::move(entry));
  }
  return {{"runs", all}};
}

}  // namespace heed
