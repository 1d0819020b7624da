#pragma once
/// The run that is damaged: a small language model, trained by heed, with three checkpoints.
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/relcheck/measures.h"

namespace heed::relcheck {

inline constexpr std::int64_t kPartner = 10, kOlder = 20, kNewest = 30;  // the saved steps
inline const std::vector<std::string> kCheckpointFiles = {"model.safetensors",
                                                          "training.safetensors", "state.json"};

/// Exit status and output of the program.
struct Done {
  int status = -1;          ///< −1: killed by a signal, or hung
  std::string output = "";  ///< standard output and standard error
};

/// Runs heed in this folder, without a shell.
Done run_heed(const std::filesystem::path& folder, const std::vector<std::string>& arguments);

/// Trains into FOLDER/run and returns its path. A checkpoint has about 10 KB, or about 1 MB if
/// `large` is true.
std::filesystem::path train_small_run(const std::filesystem::path& folder, bool large);

std::filesystem::path checkpoint_of(const std::filesystem::path& run, std::int64_t step);

/// Flips one bit of a file in place.
void flip_bit(const std::filesystem::path& file, std::uint64_t bit);

/// Puts nothing, an empty file, a folder, a pipe or a link in place of a file.
struct Replacement {
  std::string name;
  void (*put)(const std::filesystem::path& file);
};
const std::vector<Replacement>& replacements();

/// Checks the commands on damaged runs: messages, exit status, the checkpoint that resume uses.
void measure_commands(Measures& measures, const std::filesystem::path& run);

}  // namespace heed::relcheck
