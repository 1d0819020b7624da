#pragma once
/// Which runs a sweep consists of.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "train/config/config.h"

namespace heed {

/// A key and the values to try.
struct SweepAxis {
  std::string key;
  std::vector<std::string> values;  ///< as on the command line
};

/// The section `sweep` of a config, or what the command line says:
///   sweep: {model.norm: [pre, post], optim.lr: [1e-3, 3e-3], seeds: 3, random: 0, halving: false}
struct SweepPlan {
  std::vector<SweepAxis> axes;
  std::vector<std::string> overrides;  ///< of every run
  std::int64_t seeds = 1;              ///< per point: consecutive ones from the config's on
  std::int64_t random = 0;             ///< points drawn from the grid; 0: all of them
  bool halving = false;                ///< drop the worse half again and again
};

/// One run: a point of the grid with one seed.
struct SweepMember {
  std::string name;       ///< of its folder: "003-norm=post-seed=2"
  std::size_t point = 0;  ///< number of its point; its other seeds have the same
  std::vector<std::string> overrides;
};

/// The section `sweep` of a config file; a plan without axes if there is none. Throws Error(usage) with
/// the place of a mistake.
SweepPlan read_sweep(const std::string& path);

/// Adds `key=a,b,c` and `key=value` of the command line: an axis, or an override of every run. Commas
/// within brackets, braces and quotes do not separate values. Either replaces an axis of the same key.
void add_arguments(SweepPlan& plan, std::span<const std::string> arguments);

/// The runs of a plan in a fixed order. Every one's config is checked. Throws Error(usage) for a
/// plan without axes and seeds, one of more than 10,000 runs or with two equal ones, or a config that
/// is wrong.
std::vector<SweepMember> members_of(const SweepPlan& plan, const std::string& config);

}  // namespace heed
