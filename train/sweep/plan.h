#pragma once
/// The plan of a sweep: its axes and runs.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "train/config/config.h"

namespace heed {

/// A config key and the values to try.
struct SweepAxis {
  std::string key;
  std::vector<std::string> values;  ///< spelled as on the command line
};

/// The section `sweep` of a config, to which the command line may add arguments:
///   sweep: {model.norm: [pre, post], optim.lr: [1e-3, 3e-3], seeds: 3, random: 0, halving: false}
struct SweepPlan {
  std::vector<SweepAxis> axes;
  std::vector<std::string> overrides;  ///< overrides of every run
  /// Number of runs per point, with consecutive seeds; the first seed is the config's.
  std::int64_t seeds = 1;
  std::int64_t random = 0;  ///< number of points drawn from the grid; 0: all points
  bool halving = false;     ///< successive halving
};

/// One run: a point of the grid with one seed.
struct SweepMember {
  std::string name;       ///< name of its folder: "003-norm=post-seed=2"
  std::size_t point = 0;  ///< number of its point; runs that differ only in the seed share it
  std::vector<std::string> overrides;
};

/// The section `sweep` of a config file; a plan without axes if the file has no such section.
/// Throws Error(usage) with the positions of all mistakes.
SweepPlan read_sweep(const std::string& path);

/// Adds arguments of the command line: `key=a,b,c` is an axis, `key=value` an override of every
/// run. Both replace an axis with the same key. Commas within brackets, braces and quotes do not
/// separate values.
void add_arguments(SweepPlan& plan, std::span<const std::string> arguments);

/// The runs of a plan in a fixed order. Checks the config of every run. Throws Error(usage) for a
/// plan with neither axes nor several seeds, with contradictory settings, with a grid of more than
/// 1,000,000 points, with more than 10,000 runs or with two equal runs, or for an invalid config.
std::vector<SweepMember> members_of(const SweepPlan& plan, const std::string& config);

}  // namespace heed
