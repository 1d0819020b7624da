#pragma once
/// A run to damage: a small language model, trained by the program itself, with three checkpoints.
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/relcheck/measures.h"

namespace heed::relcheck {

inline constexpr std::int64_t kPartner = 10, kOlder = 20, kNewest = 30;  // the steps saved
inline const std::vector<std::string> kCheckpointFiles = {"model.safetensors",
                                                          "training.safetensors", "state.json"};

/// What the program did.
struct Done {
  int status = -1;        ///< −1: it did not end by itself, or hung
  std::string talk = "";  ///< both of its outputs
};

/// Runs heed in this folder, without a shell.
Done run_heed(const std::filesystem::path& folder, const std::vector<std::string>& arguments);

/// Trains into FOLDER/run and returns that. A small model's checkpoint has about 10 KB, a large
/// one's about 1 MB.
std::filesystem::path train_small_run(const std::filesystem::path& folder, bool large);

std::filesystem::path checkpoint_of(const std::filesystem::path& run, std::int64_t step);

/// Turns the bits of a file over in place.
void flip_bit(const std::filesystem::path& file, std::uint64_t bit);

/// Puts something into the place of a file.
struct Replacement {
  std::string name;
  void (*put)(const std::filesystem::path& file);
};
const std::vector<Replacement>& replacements();

/// The commands on damaged runs: what they say, how they end, what they go on from.
void measure_commands(Measures& measures, const std::filesystem::path& run);

}  // namespace heed::relcheck
