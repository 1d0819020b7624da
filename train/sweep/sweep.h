#pragma once
/// Trains the runs of a sweep, one process per run, in one folder.
#include <filesystem>
#include <string>
#include <vector>

#include "train/run/run_lock.h"
#include "train/sweep/plan.h"

namespace heed {

struct SweepOptions {
  std::string config;            ///< path of the config
  std::filesystem::path folder;  ///< folder of the runs and sweep.json
  std::int64_t jobs = 1;         ///< maximum number of simultaneous runs
  bool halving = false;
};

struct FailedRun {
  std::string name, reason;
};

struct SweepResult {
  /// Folders of the runs that have final metrics or that halving has dropped.
  std::vector<std::string> finished;
  std::vector<FailedRun> failed;
  int signal = 0;  ///< signal that stopped the sweep; 0: none
};

/// Locks the folder and writes sweep.json, which lists the runs of the folder and, for the first run,
/// the settings that can change results. If the file exists, it must describe the same sweep. Throws
/// Error(usage) if the folder contains another sweep or a run or is inside a run, or if the config
/// has changed since the sweep began; Error(locked) if another process runs a sweep in it.
RunLock claim_folder(const SweepOptions& options, const std::vector<SweepMember>& members);

/// Trains or continues each run; finished runs remain unchanged. Prints a line when a run ends or
/// waits for another process. A stop signal is passed on to the runs, which save a checkpoint and
/// end.
///
/// With halving, all points are trained for a fraction of train.steps, then the better half for
/// twice as many steps, and so on, until one point is left and reaches train.steps (successive
/// halving, Jamieson and Talwalkar 2016). Points are ranked by the metric train.best of the last
/// validation of the round, averaged over their seeds. The learning-rate schedule is the same in
/// all rounds.
SweepResult run_sweep(const SweepOptions& options, const std::vector<SweepMember>& members);

}  // namespace heed
