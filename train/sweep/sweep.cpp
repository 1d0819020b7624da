#include "train/sweep/sweep.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "autograd/base/error.h"
#include "autograd/base/files.h"
#include "autograd/base/formats/json_text.h"
#include "autograd/base/team.h"
#include "train/fetch/subprocess.h"
#include "train/report/runs/history.h"
#include "train/tasks/evaluation.h"
#include "train/terminal/signals.h"

namespace heed {

namespace {

constexpr auto pause = std::chrono::milliseconds(200);

/// The file of this program, for the processes of the runs.
std::string this_program() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

/// The last line of a message, which says what went wrong.
std::string last_line(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  const std::size_t at = text.find_last_of("\n\r");
  return at == std::string::npos ? text : text.substr(at + 1);
}

class Sweep {
 public:
  Sweep(const SweepOptions& options, const std::vector<SweepMember>& members,
        const std::function<void(const std::string&)>& tell)
      : options_(options), members_(members), tell_(tell), state_(members.size()) {}

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
    std::string reason;  ///< why it failed
    int process = 0;     ///< while it runs
  };

  std::string folder_of(std::size_t i) const { return options_.folder / members_[i].name; }

  std::vector<std::size_t> alive() const {
    std::vector<std::size_t> all;
    for (std::size_t i = 0; i < members_.size(); ++i)
      if (!state_[i].dropped && state_[i].reason.empty()) all.push_back(i);
    return all;
  }

  /// Trains these runs, options_.jobs at a time. `steps`: train.steps of this round and of the last.
  struct Round {
    std::int64_t steps = 0, all = 0;
  };
  void run_all(const std::vector<std::size_t>& runs, const Round& round) {
    std::atomic<std::size_t> next = 0, done = 0;
    std::atomic<bool> ended = false;
    const auto work = [&] {
      for (std::size_t k; signals_.stop() == 0 && (k = next++) < runs.size();) {
        run_one(runs[k], round);
        report(runs[k], ++done, runs.size(), round);
      }
    };
    std::thread watch([&] {
      while (!ended) {
        std::this_thread::sleep_for(pause);
        if (const int signal = signals_.stop(); signal != 0 && !passed_on_.exchange(true))
          pass_on(signal);
      }
    });
    std::vector<std::thread> threads;
    for (std::int64_t j = 0; j < options_.jobs; ++j) threads.emplace_back(work);
    for (std::thread& thread : threads) thread.join();
    ended = true;
    watch.join();
  }

  void pass_on(int signal) {
    const std::lock_guard lock(mutex_);
    for (const State& state : state_)
      if (state.process > 0) ::kill(state.process, signal);
  }

  std::vector<std::string> command_of(std::size_t i, const Round& round) const {
    const std::string folder = folder_of(i);
    const bool begun = std::filesystem::exists(folder + "/config.yaml");
    std::vector<std::string> words{this_program()};
    if (begun) {
      words.insert(words.end(), {"resume", folder});
    } else {
      words.insert(words.end(), {"train", options_.config, "--run", folder});
      if (std::filesystem::exists(folder)) words.emplace_back("--overwrite");
      words.insert(words.end(), members_[i].overrides.begin(), members_[i].overrides.end());
    }
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
    }
    return words;
  }

  void run_one(std::size_t i, const Round& round) {
    if (is_finished(i, round)) {
      state_[i].finished = true;
      return;
    }
    ProgramResult result;
    do {  // a run of an earlier call that was killed may still go on
      if (signals_.stop() != 0) return;
      result = run_program(command_of(i, round), STDERR_FILENO, [&](int process) {
        const std::lock_guard lock(mutex_);
        state_[i].process = process;
      });
      const std::lock_guard lock(mutex_);
      state_[i].process = 0;
      if (result.status == static_cast<int>(Exit::locked)) std::this_thread::sleep_for(pause);
    } while (result.status == static_cast<int>(Exit::locked));
    if (result.status == 0)
      state_[i].finished = true;
    else if (signals_.stop() == 0)
      state_[i].reason = fmt::format("status {}: {}", result.status, last_line(result.text));
  }

  /// Whether a run has final figures, of this round or a later one.
  bool is_finished(std::size_t i, const Round& round) const {
    if (!std::filesystem::exists(folder_of(i) + "/config.yaml")) return false;
    const History history = read_history(folder_of(i));
    if (history.result.where != "test" && history.result.where != "valid") return false;
    return round.steps == 0 || history.step >= round.steps;
  }

  void report(std::size_t i, std::size_t done, std::size_t all, const Round& round) {
    if (!state_[i].finished && state_[i].reason.empty()) return;  // stopped
    std::string outcome = "failed: " + state_[i].reason;
    if (state_[i].finished) {
      const History history = read_history(folder_of(i));
      const Metric metric = history.result.config.train.best;
      const std::optional<double> value = figure(history.result, metric);
      outcome = fmt::format("{} {} on {}", info_of(metric).label,
                            value ? text_of(metric, *value) : "-", history.result.where);
    }
    const std::lock_guard lock(mutex_);
    tell_(fmt::format("{} of {}{}  {}  {}", done, all,
                      round.steps > 0 ? fmt::format(", {} steps", round.steps) : "",
                      members_[i].name, outcome));
  }

  // ---- halving ----------------------------------------------------------------------------------

  void run_halving() {
    const std::int64_t all = read_config(options_.config, members_.front().overrides).train.steps;
    if (all <= 0)
      throw Error(Exit::usage, "--halving divides train.steps, which the config does not give");
    std::set<std::size_t> points;
    for (const SweepMember& member : members_) points.insert(member.point);
    int rounds = 0;
    for (std::size_t n = points.size(); n > 1; n = (n + 1) / 2) ++rounds;
    for (int r = rounds; r >= 0 && signals_.stop() == 0; --r) {
      for (State& state : state_) state.finished = false;
      run_all(alive(), {std::max<std::int64_t>(all >> r, 1), all});
      if (r > 0 && signals_.stop() == 0) drop_worse_half();
    }
  }

  /// The mean of the last validations of a point's runs; NaN if one failed.
  double value_of(std::size_t point, Metric metric) const {
    double sum = 0, count = 0;
    for (std::size_t i = 0; i < members_.size(); ++i) {
      if (members_[i].point != point) continue;
      if (!state_[i].reason.empty()) return std::nan("");
      const History history = read_history(folder_of(i));
      const Curve* const curve = history.find(fmt::format("valid.{}", info_of(metric).name));
      sum += curve != nullptr ? curve->points.back().y : std::nan("");
      ++count;
    }
    return sum / count;
  }

  /// NaN is never better.
  static bool better(Metric metric, double a, double b) {
    return is_better(metric, a, std::isfinite(b) ? std::optional(b) : std::nullopt);
  }

  /// Points that are equal by the metric, as with an exact match of 0, are told apart by the loss.
  void drop_worse_half() {
    const Metric metric = read_config(options_.config, members_.front().overrides).train.best;
    std::set<std::size_t> points;
    for (const std::size_t i : alive()) points.insert(members_[i].point);
    std::map<std::size_t, std::pair<double, double>> values;
    for (const std::size_t point : points)
      values[point] = {value_of(point, metric), value_of(point, Metric::loss)};
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
  const std::function<void(const std::string&)>& tell_;
  std::vector<State> state_;
  SignalRequests signals_;
  std::atomic<bool> passed_on_ = false;
  std::mutex mutex_;
};

}  // namespace

void claim_folder(const SweepOptions& options, const std::vector<SweepMember>& members) {
  nlohmann::json record{
      {"config", options.config}, {"halving", options.halving}, {"runs", nlohmann::json::array()}};
  for (const SweepMember& member : members)
    record["runs"].push_back({{"name", member.name}, {"overrides", member.overrides}});
  const std::filesystem::path path = options.folder / "sweep.json";
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) {
    if (parse_json(read_bytes(path), path.string()) == record) return;
    throw Error(
        Exit::usage,
        fmt::format("{} holds another sweep: its sweep.json names other runs. Choose another "
                    "folder with --run, or give the arguments that it was started with",
                    options.folder.string()));
  }
  if (std::filesystem::exists(options.folder / "config.yaml", ignored))
    throw Error(Exit::usage, fmt::format("{} holds a run, so it cannot be the folder of a sweep: "
                                         "choose another with --run",
                                         options.folder.string()));
  create_folders(options.folder);
  write_file_durably(path, record.dump(2) + "\n");
}

SweepResult run_sweep(const SweepOptions& options, const std::vector<SweepMember>& members,
                      const std::function<void(const std::string&)>& tell) {
  return Sweep(options, members, tell).run();
}

}  // namespace heed
