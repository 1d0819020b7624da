#pragma once
/// One training step: runs the shards forward and backward, sums and clips their gradients, and
/// updates the weights.
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "autograd/base/team.h"
#include "data/batches/batch.h"
#include "nn/models/model.h"
#include "optim/optimizer.h"
#include "optim/pieces.h"
#include "train/distributed/parameter_exchange.h"

namespace heed {
struct Config;
}

HEED_BEGIN

struct StepOptions {
  std::uint64_t seed = 1;
  std::int64_t shards = 4;
  double label_smoothing = 0.0;
  double clip_norm = 0.0;
  /// Gradient checkpointing: blocks keep only their inputs, and backward runs them again.
  bool recompute = false;
  double rdrop = 0;   ///< weight of R-Drop's divergence (train/loop/augment.h); 0: off
  double cutoff = 0;  ///< probability that an input token becomes <unk>
  /// Returns the teacher's logits for a shard (train/loop/teacher.h); empty: no distillation.
  std::function<Distillation(const ModelInput&)> teacher = {};
  bool bf16 = false;  ///< large products in bf16 (autograd/kernels/fast/gemm/bf16.h), if available
};

StepOptions step_options(const Config& config);

struct StepResult {
  LossCounts counts;         ///< sums over the whole batch
  double gradient_norm = 0;  ///< Euclidean norm, before clipping
};

/// State that a shard shares with earlier batches and with the other shards of its step.
struct ShardContext {
  Lanes lanes = {};                 ///< lanes of a segment memory
  AllReduce* all_reduce = nullptr;  ///< sums the statistics of batch norm
  OnGradient on_gradient = {};      ///< receives the gradients during backward
};

/// The gradients of one shard, or their sums over several shards, in the order of the parameters.
/// The array of a parameter without a gradient is undefined.
using GradientList = std::vector<Array>;

class TrainStep {
 public:
  /// `exchange`: connects the ranks of a distributed run, each of which has a TrainStep and
  /// receives the same batches; null in a run of one process.
  TrainStep(const Model& model, Optimizer& optimizer, Team& team, const StepOptions& options,
            ParameterExchange* exchange = nullptr);

  /// Runs step number `step` (1, 2, …), which is part of dropout's random keys, on the shards of a
  /// batch. For given shards, the bits of the result do not depend on the numbers of threads and
  /// ranks. Throws Error(Exit::non_finite), with the weights unchanged, if the loss or the
  /// gradients' norm is NaN or infinite; on rank 0, the message names the first non-finite tensor,
  /// if there is one. A non-finite weight that does not affect the loss is found when it is
  /// updated: Error(Exit::non_finite) is then thrown after the update. Throws Error(Exit::failed)
  /// if the batch has no labels, and Error(Exit::io) if the model has batch norm and the system
  /// cannot create a thread for each shard.
  StepResult run(std::span<const Batch> shards, std::int64_t step, double lr);
  /// The segment memory, if the model has one.
  std::optional<SegmentMemory>& memory() { return memory_; }
  /// The norms of the last step's gradients, before clipping, by layer (nn/layer_name.h). The sum
  /// of their squares is the square of StepResult::gradient_norm. Costs one addition per piece.
  std::map<std::string, double> gradient_norms() const;

 private:
  void forward_backward(const Batch& shard, const ShardContext& context, std::int64_t number,
                        std::int64_t step, double divisor);
  /// Calls job(i, all_reduce) for each of this rank's shards, numbered from 0, on one thread per
  /// shard, because the shards wait for one another.
  void run_concurrently(const std::function<void(std::int64_t, AllReduce&)>& job);
  [[noreturn]] void refuse(std::span<const Batch> shards, std::span<const Lanes> lanes,
                           std::int64_t step, double loss, double gradient_norm);
  std::string cause(std::span<const Batch> shards, std::span<const Lanes> lanes,
                    std::int64_t step) const;
  /// Called when shard i has computed the gradient of a parameter, or has none. Computes the sums of
  /// the parameter's tree whose operands are ready, except sums over several ranks, so that few
  /// gradients exist at a time.
  void merge_into_tree(std::size_t i, std::size_t parameter);
  void add_to(std::size_t left, std::size_t right, std::size_t parameter);
  /// Computes the total gradient of a parameter after all shards have computed theirs.
  void sum_parameter(std::size_t parameter);
  /// Computes the remaining sums, together with the other ranks. Returns the squared
  /// norm of the total.
  double sum_shards();
  /// The array for the total gradient of a parameter, filled with −0 if this rank has no gradient.
  Array& total_of(std::size_t parameter);
  /// Computes these pieces of the total and the sum of squares of each, with `received` as in
  /// ParameterExchange::Add.
  void sum_pieces(Part pieces, std::span<real* const> received);
  void sum_piece(std::int64_t piece, std::int64_t place, std::span<real* const> received);
  /// Copies the counts of all shards and the sums of squares of all pieces to every rank.
  void share_counts();
  /// The list that receives the sums of this rank's pieces.
  GradientList& total() { return gradients_[static_cast<std::size_t>(local_shards_.begin)]; }
  Part local_pieces() const;  ///< the pieces of this rank
  /// Calls job(i) for these pieces on the team's threads.
  template <class Job>
  void for_pieces(Part pieces, const Job& job);
  /// Updates the weights. Returns whether the weights of all ranks were finite before the update.
  bool update(double lr, double grad_scale);
  /// Whether `finite` is true on every rank. Also exchanges stop signals (World::stop).
  bool all_ranks_finite(bool finite);
  void drop_gradients();  ///< frees the arrays but not the lists

  const Model& model_;
  std::optional<SegmentMemory> memory_;
  std::vector<NamedStatistics> statistics_;  ///< statistics of the model's batch norms
  Optimizer& optimizer_;
  Team& team_;
  StepOptions options_;
  ParameterExchange* exchange_;
  Part local_shards_;  ///< the shards of this rank
  std::vector<Piece> pieces_;
  std::vector<std::string> layers_;                        ///< the layer of each parameter
  std::unordered_map<const Node*, std::size_t> index_of_;  ///< the index of each parameter
  std::vector<Part> pieces_of_parameter_;
  std::vector<GradientList> gradients_;  ///< gradients of each shard; total() receives their sum
  std::vector<std::vector<bool>> complete_;  ///< by shard and parameter: backward has finished
  std::vector<char> summed_;                 ///< whether a parameter's total is complete
  /// For each parameter; index: the first shard of a right half. Value: exactly one of the two
  /// halves is ready.
  std::vector<std::vector<bool>> half_ready_;
  std::mutex tree_mutex_;
  std::vector<LossCounts> counts_;  ///< loss counts of each shard
  std::vector<double> squares_;     ///< sum of squares of each piece of the total gradient
};

/// The loss of shard number `number` (from 0) of a step, with R-Drop or distillation if the options
/// request it: the sum over its labels, divided by `divisor`. Adds to `counts`, if not null. The
/// shard must already be augmented.
Tensor shard_loss(const Model& model, const Batch& shard, std::int64_t number, std::int64_t step,
                  double divisor, const StepOptions& options, LossCounts* counts,
                  const ShardContext& context = {});
/// Augments the shard, computes its loss and runs backward.
Gradients shard_gradients(const Model& model, const Batch& shard, std::int64_t number,
                          std::int64_t step, double divisor, const StepOptions& options,
                          LossCounts* counts, const ShardContext& context = {});

HEED_END
