#pragma once
/// The time of each op in a training step, and the matrix products of the step.
#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "autograd/base/team.h"
#include "autograd/kernels/fast/gemm/product_log.h"
#include "autograd/tape/profile.h"
#include "train/loop/step.h"

HEED_BEGIN

/// The products of a shard, forward and backward, in order of execution. Addresses identify
/// operands; their memory may already be freed.
struct ShardProducts {
  kernels::ProductFlops flops;
  std::vector<kernels::Product> list;
};

/// A profile of several steps. Each step is repeated without its update to time every op. All
/// figures are means per step.
class StepProfile {
 public:
  /// Repeats forward and backward of the shards of step `number`, which took `step_seconds`, on the
  /// threads of `team`. Returns the products of each shard.
  std::vector<ShardProducts> add(double step_seconds, const Model& model,
                                 std::span<const Batch> shards, std::int64_t number,
                                 const StepOptions& options, Team& team);

  struct Row {
    std::string name;  ///< name of an op, or of a kind of time outside ops
    std::int64_t calls = 0;
    double forward = 0, backward = 0;  ///< time in seconds, divided by the number of threads
    double seconds = 0;                ///< contribution to step_seconds()
    double flops = 0, bytes = 0;       ///< of all threads (autograd/tape/profile.h)
  };
  /// The ops, the most expensive first; then the time outside ops. The sum of `seconds` is
  /// step_seconds().
  std::vector<Row> rows() const;
  /// The rates that the machine reaches on the team's threads: FLOPs per second of the step's products,
  /// and bytes read and written per second by a copy in memory.
  struct Roof {
    double flops = 0, bytes = 0;
  };
  /// The least time of an op at these rates. An op whose values are in cache can be faster.
  static double roof_seconds(const Row& row, const Roof& roof);
  /// The bytes that gradient sums and the update read and write in a step.
  void count_update(double bytes) { update_bytes_ = bytes; }
  double step_seconds() const { return std::max(steps_, phases_) / count(); }
  std::string table(const Roof& roof) const;
  nlohmann::json json(const Roof& roof) const;

 private:
  double count() const { return static_cast<double>(added_ > 0 ? added_ : 1); }

  std::int64_t added_ = 0, threads_ = 1;
  double steps_ = 0;    ///< duration of all steps, in seconds
  double phases_ = 0;   ///< duration of forward and backward of the repeated steps, in seconds
  double working_ = 0;  ///< time spent on shards, in seconds, summed over threads and steps
  double update_bytes_ = 0;
  OpTimes ops_;  ///< times summed over threads and steps
};

HEED_END
