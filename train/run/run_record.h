#pragma once
/// run.json: what a run was started with, so far as its bits depend on it.
#include <string>
#include <vector>

#include "data/tokenizers/tokenizer.h"
#include "train/run/run_folder.h"

namespace heed {

/// SHA-256 of what training sees of each split: ids, and where sequences end. "" of an empty one.
struct SplitSums {
  std::string train, valid, test;
};

/// Writes the tokenizers, run.json and config.yaml of a run that begins. run.json has version,
/// compiler, flags, processor, BLAS, seed, command and the git revision (where there is one), and the SHA-256 of config.yaml, of the
/// tokenizers' files, and of each split as token ids.
void begin_run(const RunFolder& run, const Config& config, const Tokenizers& tokenizers,
               const SplitSums& sums, const std::vector<std::string>& command);

/// Makes this the config of a resumed run, and these its data, the number of threads excepted, so that
/// later commands need not be given the keys again.
void adopt_config(const RunFolder& run, Config config, const SplitSums& sums);

/// Throws Error(bad_input) where a tokenizer differs from that of the run's beginning: ids would mean
/// other words. Returns notes for the user, a line each: config.yaml was edited; run.json is missing
/// or broken, so that there is nothing to compare with.
std::vector<std::string> check_files(const RunFolder& run);

/// How program, machine and data differ from those in run.json, a line each: the bits of a resumed run
/// may then differ from those of an uninterrupted one. Empty where run.json is missing.
std::vector<std::string> changed_surroundings(const RunFolder& run, const Config& config,
                                              const SplitSums& sums);

}  // namespace heed
