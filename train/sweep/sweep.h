#pragma once
/// Trains the runs of a sweep, each in a process of its own, in one folder.
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "train/sweep/plan.h"

namespace heed {

struct SweepOptions {
  std::string config;            ///< the file that every run is trained from
  std::filesystem::path folder;  ///< of the runs and of sweep.json
  std::int64_t jobs = 1;         ///< runs at a time
  bool halving = false;
};

struct FailedRun {
  std::string name, reason;
};

struct SweepResult {
  std::vector<std::string> finished;  ///< folders of runs with final figures, dropped ones too
  std::vector<FailedRun> failed;
  int signal = 0;  ///< that stopped it; 0: none
};

/// Writes sweep.json, which says what the folder holds: its runs, and all settings of the first one.
/// Throws Error(usage) if it holds something else already, or the config was edited since.
void claim_folder(const SweepOptions& options, const std::vector<SweepMember>& members);

/// Trains each run, or continues it; finished ones stay. `on_message` receives a line about each as it
/// ends. A stop signal is passed on to the runs, which save and end.
///
/// With halving, all points are trained for a part of train.steps, the better half of them for
/// twice as many steps, and so on, until the rest reaches train.steps (successive halving, Jamieson
/// and Talwalkar 2016). Points are judged by the mean over their seeds of the last validation's
/// train.best. The learning rate follows train.steps throughout.
SweepResult run_sweep(const SweepOptions& options, const std::vector<SweepMember>& members,
                      const std::function<void(const std::string&)>& on_message);

}  // namespace heed
