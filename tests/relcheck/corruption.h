#pragma once
/// A run to damage: a small language model, trained by heed, with three checkpoints.
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

/// Trains into FOLDER/run and returns its path. A checkpoint takes about 10 KB, that of a large
/// model about 1 MB.
std::filesystem::path train_small_run(const std::filesystem::path& folder, bool large);

std::filesystem::path checkpoint_of(const std::filesystem::path& run, std::int64_t step);

/// Flips bits of a file in place.
void flip_bit(const std::filesystem::path& file, std::uint64_t bit);

/// Replaces a file by something else.
struct Replacement {
  std::string name;
  void (*put)(const std::filesystem::path& file);
};
const std::vector<Replacement>& replacements();

/// The commands on damaged runs: messages, exit status, and the checkpoint they resume from.
void measure_commands(Measures& measures, const std::filesystem::path& run);

}  // namespace heed::relcheck
