#include "train/sweep/sweep.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <system_error>
#include <thread>

#include "autograd/base/error.h"
#include "autograd/base/team.h"
#include "autograd/io/files.h"
#include "autograd/io/formats/json_text.h"
#include "autograd/io/message_text.h"
#include "train/config/fields.h"
#include "train/config/trusted_plugins.h"
#include "train/fetch/subprocess.h"
#include "train/results/history.h"
#include "train/run/run_folder.h"
#include "train/tasks/evaluation.h"
#include "train/terminal/run_log.h"
#include "train/terminal/signals.h"

namespace heed {

namespace {

constexpr auto pause = std::chrono::milliseconds(200);
constexpr int pauses_per_update = 5;  // of the progress bar, which reads the metrics of all runs

/// The reason why a run failed: the signal that killed it, or its exit status and its last message.
std::string reason_of(const ProgramResult& result) {
  if (result.signal != 0) {
    const char* const name = ::sigabbrev_np(result.signal);
    return fmt::format(
        "killed by {}{}",
        name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", result.signal),
        result.signal == SIGKILL ? ", perhaps because memory ran out" : "");
  }
  const std::string name = "heed: ", &text = result.text;
  const std::size_t last = text.rfind("\n" + name);
  if (last == std::string::npos && !text.starts_with(name))
    return fmt::format("status {}: {}", result.status, result.last_line());
  const std::size_t begin = last == std::string::npos ? 0 : last + 1;
  return fmt::format("status {}: {}", result.status,
                     excerpt(text.substr(begin + name.size()), 400));
}

class Sweep {
 public:
  Sweep(const SweepOptions& options, const std::vector<SweepMember>& members)
      : options_(options), members_(members), state_(members.size()) {
    if (detect_style(STDERR_FILENO).terminal) bar_.emplace("sweep");
  }

  SweepResult run() {
    if (options_.halving)
      run_halving();
    else
      run_all(alive(), {});
    SweepResult result{{}, {}, signals_.stop()};
    for (std::size_t i = 0; i < members_.size(); ++i) {
      if (state_[i].finished || state_[i].dropped) result.finished.push_back(folder_of(i));
      if (!state_[i].reason.empty()) result.failed.push_back({members_[i].name, state_[i].reason});
    }
    return result;
  }

 private:
  struct State {
    bool finished = false, dropped = false;
    std::string reason;  ///< cause of the failure; empty: none
    int process = 0;     ///< process id during training, else 0
  };

  std::string folder_of(std::size_t i) const { return options_.folder / members_[i].name; }

  std::vector<std::size_t> alive() const {
    std::vector<std::size_t> all;
    for (std::size_t i = 0; i < members_.size(); ++i)
      if (!state_[i].dropped && state_[i].reason.empty()) all.push_back(i);
    return all;
  }

  /// A round of halving: train.steps of this round and of the last round; 0 without halving.
  struct Round {
    std::int64_t steps = 0, all = 0;
  };
  void run_all(const std::vector<std::size_t>& runs, const Round& round) {
    std::atomic<std::size_t> next = 0, done = 0;
    std::atomic<bool> ended = false;
    const auto work = [&] {
      for (std::size_t k; signals_.stop() == 0 && (k = next++) < runs.size();) {
        const std::size_t i = runs[k];
        std::string outcome;
        try {
          run_one(i, round);
          if (state_[i].finished) outcome = figure_of(i);
        } catch (const std::exception& error) {  // for example, a file of the run is damaged
          state_[i].finished = false;
          state_[i].reason = error.what();
        }
        report(i, ++done, runs.size(), round, outcome);
      }
    };
    std::thread watch([&] {
      for (int n = 0; !ended && signals_.stop() == 0; ++n) {
        if (n % pauses_per_update == 0) show_progress(runs, round);
        std::this_thread::sleep_for(pause);
      }
      pass_on(signals_.stop());
    });
    std::vector<std::thread> threads;
    try {
      for (std::int64_t j = 0; j < options_.jobs; ++j) threads.emplace_back(work);
    } catch (const std::system_error&) {  // too many for the system: fewer runs at a time
      if (threads.empty()) work();
    }
    for (std::thread& thread : threads) thread.join();
    ended = true;
    watch.join();
    if (bar_) bar_->finish();
  }

  /// On a terminal, shows the steps that the runs of a round have made. A run without a limit of
  /// steps makes the total unknown.
  void show_progress(const std::vector<std::size_t>& runs, const Round& round) {
    if (!bar_) return;
    ProgressState progress;
    bool known = true;
    for (const std::size_t i : runs) {
      const std::int64_t steps =
          round.steps > 0 ? round.steps
                          : read_config(options_.config, members_[i].overrides).train.steps;
      known = known && steps > 0;
      progress.total += steps;
      try {
        std::int64_t step = 0;
        for (const nlohmann::json& record : read_metrics(RunFolder{folder_of(i)}))
          step = std::max(step, record.value("step", std::int64_t{0}));
        progress.step += step;
      } catch (const Error&) {  // reported when the run ends
      }
    }
    if (!known) progress.total = 0;
    const std::lock_guard lock(mutex_);
    bar_->update(progress);
  }

  /// Prints a line, above the progress bar if there is one.
  void say(const std::string& line) {
    const std::lock_guard lock(mutex_);
    bar_ ? bar_->note(line) : print_message(line);
  }

  /// Sends the signal to the processes of all runs; signal 0 does nothing.
  void pass_on(int signal) {
    const std::lock_guard lock(mutex_);
    for (const State& state : state_)
      if (state.process > 0) ::kill(state.process, signal);
  }

  std::vector<std::string> command_of(std::size_t i, const Round& round) const {
    const std::string folder = folder_of(i);
    const bool begun = std::filesystem::exists(folder + "/config.yaml");
    std::vector<std::string> words{std::filesystem::read_symlink("/proc/self/exe").string()};
    if (begun) {
      words.insert(words.end(), {"resume", folder});
    } else {
      words.insert(words.end(), {"train", options_.config, "--run", folder});
      if (std::filesystem::exists(folder)) words.emplace_back("--overwrite");
      words.insert(words.end(), members_[i].overrides.begin(), members_[i].overrides.end());
    }
    if (trusts_all_plugins()) words.emplace_back("--trust-plugins");
    if (options_.jobs > 1) {
      const auto processors = static_cast<std::int64_t>(available_processors());
      words.push_back(
          fmt::format("threads={}", std::max<std::int64_t>(processors / options_.jobs, 1)));
    }
    if (round.steps > 0) {
      words.push_back(fmt::format("train.steps={}", round.steps));
      const ScheduleOptions schedule =
          read_config(options_.config, members_[i].overrides).optim.schedule;
      const bool ends =
          schedule.name == ScheduleKind::cosine || schedule.name == ScheduleKind::linear;
      if (!begun && ends && schedule.steps == 0)
        words.push_back(fmt::format("optim.schedule.steps={}", round.all));
      if (!begun && schedule.warmup != ScheduleOptions::automatic)
        words.push_back(fmt::format("optim.schedule.warmup={}", schedule.warmup));
    }
    return words;
  }

  void set_process(std::size_t i, int process) {
    const std::lock_guard lock(mutex_);
    state_[i].process = process;
  }

  void run_one(std::size_t i, const Round& round) {
    if (is_finished(i, round)) {
      state_[i].finished = true;
      return;
    }
    ProgramResult result;
    for (bool waits = false; !waits || result.status == static_cast<int>(Exit::locked);
         waits = true) {
      if (signals_.stop() != 0) return;
      if (waits) std::this_thread::sleep_for(pause);
      result = run_program(command_of(i, round), STDERR_FILENO,
                           [&](int process) { set_process(i, process); });
      set_process(i, 0);
      // A process that an earlier, killed sweep started may still be training this run.
      if (!waits && result.status == static_cast<int>(Exit::locked))
        say(members_[i].name + "  waits for another process that is training it");
    }
    if (result.status == 0)
      state_[i].finished = true;
    else if (signals_.stop() == 0)
      state_[i].reason = reason_of(result);
  }

  /// Whether a run has final metrics, of this round or a later one.
  bool is_finished(std::size_t i, const Round& round) const {
    if (!std::filesystem::exists(folder_of(i) + "/config.yaml")) return false;
    const RunResult result = read_history(folder_of(i)).result;
    if (result.where != "test" && result.where != "valid") return false;
    return round.steps == 0 || result.record.value("step", std::int64_t{0}) >= round.steps;
  }

  /// The metric train.best of a run and the data on which it was measured: "BLEU 40.61 on test".
  std::string figure_of(std::size_t i) const {
    const RunResult result = read_history(folder_of(i)).result;
    const Metric metric = result.config.train.best;
    const std::optional<double> value = figure(result, metric);
    return fmt::format("{} {} on {}", info_of(metric).label, value ? text_of(metric, *value) : "-",
                       result.where);
  }

  void report(std::size_t i, std::size_t done, std::size_t all, const Round& round,
              const std::string& outcome) {
    if (!state_[i].finished && state_[i].reason.empty()) return;  // stopped by a signal
    say(fmt::format("{} of {}{}  {}  {}", done, all,
                    round.steps > 0 ? fmt::format(", {} steps", round.steps) : "", members_[i].name,
                    state_[i].finished ? outcome : "failed: " + state_[i].reason));
  }

  // ---- halving ----------------------------------------------------------------------------------

  void run_halving() {
    const std::int64_t all = read_config(options_.config, members_.front().overrides).train.steps;
    std::set<std::size_t> points;
    for (const SweepMember& member : members_) points.insert(member.point);
    int rounds = 0;
    for (std::size_t n = points.size(); n > 1; n = (n + 1) / 2) ++rounds;
    for (int r = rounds; r >= 0 && signals_.stop() == 0; --r) {
      for (State& state : state_) state.finished = false;
      const std::int64_t steps = std::max<std::int64_t>(all >> r, 1);
      run_all(alive(), {steps, all});
      if (r > 0 && signals_.stop() == 0) drop_worse_half(steps);
    }
  }

  /// The metric in the last validation up to `step`, as a mean over the runs of a point. Ignoring
  /// later validations lets a resumed sweep repeat its decisions. NaN if a run failed or has no
  /// such validation.
  double value_of(std::size_t point, Metric metric, std::int64_t step) const {
    double sum = 0, count = 0;
    for (std::size_t i = 0; i < members_.size(); ++i) {
      if (members_[i].point != point) continue;
      if (!state_[i].reason.empty()) return std::nan("");
      const History history = read_history(folder_of(i));
      const Curve* const curve = history.find(fmt::format("valid.{}", info_of(metric).name));
      double last = std::nan("");
      if (curve != nullptr)
        for (const Point& p : curve->points)
          if (p.x <= static_cast<double>(step)) last = p.y;
      sum += last;
      ++count;
    }
    return sum / count;
  }

  /// Whether a is better than b; NaN is never better.
  static bool better(Metric metric, double a, double b) {
    return is_better(metric, a, std::isfinite(b) ? std::optional(b) : std::nullopt);
  }

  /// Drops the worse half of the points. Points with equal metrics (such as an exact match of 0)
  /// are ranked by the loss.
  void drop_worse_half(std::int64_t step) {
    const Metric metric = read_config(options_.config, members_.front().overrides).train.best;
    std::set<std::size_t> points;
    for (const std::size_t i : alive()) points.insert(members_[i].point);
    std::map<std::size_t, std::pair<double, double>> values;
    for (const std::size_t point : points)
      values[point] = {value_of(point, metric, step), value_of(point, Metric::loss, step)};
    std::vector<std::size_t> order(points.begin(), points.end());
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
      const auto& [value_a, loss_a] = values[a];
      const auto& [value_b, loss_b] = values[b];
      if (value_a != value_b) return better(metric, value_a, value_b);
      return better(Metric::loss, loss_a, loss_b);
    });
    for (std::size_t k = (order.size() + 1) / 2; k < order.size(); ++k) {
      for (std::size_t i = 0; i < members_.size(); ++i)
        if (members_[i].point == order[k]) state_[i].dropped = true;
    }
  }

  const SweepOptions& options_;
  const std::vector<SweepMember>& members_;
  std::vector<State> state_;
  SignalRequests signals_;
  std::optional<ProgressBar> bar_;  ///< on a terminal
  std::mutex mutex_;                ///< guards the processes of state_ and bar_
};

nlohmann::json record_of(const SweepOptions& options, const std::vector<SweepMember>& members) {
  nlohmann::json record{
      {"config", options.config}, {"halving", options.halving}, {"runs", nlohmann::json::array()}};
  for (const SweepMember& member : members)
    record["runs"].push_back({{"name", member.name}, {"overrides", member.overrides}});
  const Config first = read_config(options.config, members.front().overrides);
  for (const Field& field : fields())
    if (changes_results(field.key)) record["settings"][field.key] = field.get(first);
  return record;
}

/// Throws Error(usage) if the sweep `old` of the folder differs from `now`. Different settings show
/// that the config was edited. Keys that only one sweep contains are ignored, because they belong
/// to another version of heed.
void require_same(const nlohmann::json& old, const nlohmann::json& now,
                  const SweepOptions& options) {
  const auto same = [&](const char* key) {
    return old.is_object() && old.contains(key) && old.at(key) == now.at(key);
  };
  if (!same("runs") || !same("halving"))
    throw Error(Exit::usage,
                "{} holds another sweep: its sweep.json lists other runs or sets halving "
                "differently. Choose another folder with --run, or repeat the arguments of "
                "that sweep",
                options.folder.string());
  std::vector<std::string> edited;
  if (old.contains("settings"))
    for (const auto& [key, value] : old.at("settings").items())
      if (now.at("settings").contains(key) && now.at("settings").at(key) != value)
        edited.push_back(key);
  if (!edited.empty())
    throw Error(Exit::usage,
                "{} has changed since the sweep in {} began: {}. The remaining runs would not be "
                "comparable; undo the change, or choose another folder with --run",
                options.config, options.folder.string(), fmt::join(edited, ", "));
}

}  // namespace

RunLock claim_folder(const SweepOptions& options, const std::vector<SweepMember>& members) {
  const nlohmann::json record = record_of(options, members);
  const std::filesystem::path path = options.folder / "sweep.json";
  refuse_inside_run(options.folder);
  if (!path_exists(path) && path_exists(options.folder / "config.yaml"))
    throw Error(Exit::usage,
                "{} holds a run, so it cannot be the folder of a sweep: "
                "choose another folder with --run",
                options.folder.string());
  create_folders(options.folder);
  RunLock lock(options.folder,
               "running a sweep in this folder: wait until it ends, or choose another folder with "
               "--run");
  if (path_exists(path)) {
    require_same(parse_json(read_bytes(path), path.string()), record, options);
  } else {
    lock.write_mark();
    write_file_durably(path,
                       record.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  }
  return lock;
}

SweepResult run_sweep(const SweepOptions& options, const std::vector<SweepMember>& members) {
  return Sweep(options, members).run();
}

}  // namespace heed
