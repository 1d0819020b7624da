#pragma once
/// The time of a training step, op by op, and the matrix products it executes.
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "autograd/base/team.h"
#include "autograd/kernels/gemm/product_log.h"
#include "autograd/profile.h"
#include "train/loop/step.h"

HEED_BEGIN

/// The products of a shard, forward and backward, in the order of their execution. Addresses
/// identify operands; the memory may have been freed since.
struct ShardProducts {
  kernels::ProductFlops flops;
  std::vector<kernels::Product> list;
};

/// Steps, each repeated without its update and with every op timed. All figures are means per step.
class StepProfile {
 public:
  /// Forward and backward of the shards of a step that took `step_seconds`, on the same threads.
  /// Returns the products of each shard.
  std::vector<ShardProducts> add(double step_seconds, const Model& model,
                                 std::span<const Batch> shards, std::int64_t number,
                                 const StepOptions& options, Team& team);

  struct Row {
    std::string name;  ///< of an op, or of the time outside ops
    std::int64_t calls = 0;
    double forward = 0, backward = 0;  ///< seconds of an op, divided by the number of threads
    double seconds = 0;                ///< of the step
  };
  /// The ops, the most expensive first; then the time outside ops. The sum is step_seconds().
  std::vector<Row> rows() const;
  double step_seconds() const { return steps_ / count(); }
  std::string table() const;
  nlohmann::json json() const;

 private:
  double count() const { return static_cast<double>(added_ > 0 ? added_ : 1); }

  std::int64_t added_ = 0, threads_ = 1;
  double steps_ = 0;    ///< seconds of all steps
  double phases_ = 0;   ///< of their forward and backward phases, start to end
  double working_ = 0;  ///< in these phases: of all threads while processing a shard
  OpTimes ops_;         ///< of all threads
};

HEED_END
