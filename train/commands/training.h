#pragma once
/// Training as by `heed train` and `heed resume`, and what both share: from the config to the tested
/// model. `world` is nullptr for a run of one process.
#include <functional>
#include <optional>

#include "train/commands/command_line.h"
#include "train/distributed/launch.h"
#include "train/loop/trainer.h"

namespace heed {

/// By default, the run is in runs/<name>.
struct TrainCommand : ConfigArguments, NewRunArguments {};

struct ResumeCommand {
  std::string run;
  std::vector<std::string> overrides;
  bool json = false;
};

struct TrainedRun {
  int status = 0;  ///< that of train_and_test
  RunFolder run;
};
TrainedRun train_new_run(const TrainCommand& options);
/// Returns the status of train_and_test.
int resume_run(const ResumeCommand& options);

inline bool is_first(const World* world) { return world == nullptr || world->first(); }

/// Runs a rank other than rank 0, with the config that it has read or received.
int follow(World& world, const Config& config);

/// Builds the trainer of rank 0 or of a run of one process. Throws on all ranks if any rank fails,
/// for example because the model does not fit into its memory.
void make_trainer(std::optional<Trainer>& trainer, const Config& config, const RunFolder& run,
                  const ExperimentData& data, RunLog& run_log, World* world);

void log_ranks(World* world, Trainer& trainer, const Config& config, RunLog& run_log);

/// Logs why a configured bf16 is not used.
void explain_precision(const Config& config, RunLog& run_log);

/// Runs `work`. If it throws, the message is also written to the log.
int logged(RunLog& run_log, const std::function<int()>& work);

/// Trains from the trainer's current state to the end and evaluates the chosen weights. Returns the
/// exit status: 128 + the number of the signal that stopped the training, else 0. Throws
/// Error(non_finite) if the final loss is not finite.
int train_and_test(Trainer& trainer, const RunFolder& run, const ExperimentData& data,
                   RunLog& run_log, bool json);

}  // namespace heed
