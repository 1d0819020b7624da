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
/// compiler, flags, processor, BLAS, seed and command, and the SHA-256 of config.yaml, of the
/// tokenizers' files, and of each split as token ids.
void begin_run(const RunFolder& run, const Config& config, const Tokenizers& tokenizers,
               const SplitSums& sums, const std::vector<std::string>& command);

/// Makes this the config of a run that is gone on with, and these its data, all but the number of
/// threads: a later `resume`, `eval` or `generate` shall not have to be told again.
void adopt_config(const RunFolder& run, Config config, const SplitSums& sums);

/// Throws Error(bad_input) where a tokenizer is not the one that the run began with: ids would mean
/// other words. Returns what people should know, a line for each: config.yaml was edited; run.json
/// is lost or broken, so that there is nothing to compare with.
std::vector<std::string> check_files(const RunFolder& run);

/// What is not as run.json says of program, machine and data, a line for each: with these a run that
/// is gone on with may not give the bits it would have given. Nothing where run.json is lost.
std::vector<std::string> changed_surroundings(const RunFolder& run, const Config& config,
                                              const SplitSums& sums);

}  // namespace heed
