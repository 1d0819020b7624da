#pragma once
/// One training step: shards forward and backward, their gradients summed, clipped, applied.
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
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
  bool recompute = false;  ///< blocks keep their inputs only, and run again in backward
  double rdrop = 0;        ///< weight of R-Drop's divergence; 0: one pass (train/loop/augment.h)
  double cutoff = 0;       ///< probability that a token becomes <unk>
  /// Gives the teacher's logits of a batch (train/loop/teacher.h); empty: no distillation.
  std::function<Distillation(const ModelInput&)> teacher = {};
  bool bf16 = false;  ///< large products in bf16 (autograd/kernels/gemm/bf16.h), if available
};

StepOptions step_options(const Config& config);

struct StepResult {
  LossCounts counts;         ///< of the whole batch
  double gradient_norm = 0;  ///< before clipping
};

/// What a shard shares with earlier batches and with the other shards of its step.
struct ShardContext {
  Lanes lanes = {};                 ///< of a segment memory
  AllReduce* all_reduce = nullptr;  ///< of batch norm's statistics
};

/// Gradients of one shard, in the order of the parameters; undefined if a parameter has none.
using GradientList = std::vector<Array>;

class TrainStep {
 public:
  /// `exchange`: with the other ranks of a distributed run, each of which has a TrainStep and is given
  /// the same batches.
  TrainStep(const Model& model, Optimizer& optimizer, Team& team, const StepOptions& options,
            ParameterExchange* exchange = nullptr);

  /// Step number `step` (1, 2, …; it keys the dropout) on a batch cut into shards. The bits of the
  /// result depend on the shards, not on the threads or ranks. Throws Error(Exit::non_finite), with the
  /// weights unchanged, if the loss or the gradients' norm is NaN or infinite; the message tells
  /// where that began. A non-finite weight that does not affect the loss is found when it is
  /// updated: the step is completed, then Error(Exit::non_finite) is thrown.
  StepResult run(std::span<const Batch> shards, std::int64_t step, double lr);
  /// Keys and values of earlier batches, if the model uses a memory.
  std::optional<SegmentMemory>& memory() { return memory_; }
  /// The norms of the last step's gradients, before clipping, by layer (nn/layer_name.h); their
  /// squares add up to that of StepResult::gradient_norm. Costs one addition for each piece.
  std::map<std::string, double> gradient_norms() const;

 private:
  void forward_backward(const Batch& shard, const ShardContext& context, std::int64_t number,
                        std::int64_t step, double divisor);
  /// Calls job(i, all_reduce) for each of this rank's shards, each on its own thread, because they wait
  /// for one another.
  void run_concurrently(const std::function<void(std::int64_t, AllReduce&)>& job);
  [[noreturn]] void refuse(std::span<const Batch> shards, std::span<const Lanes> lanes,
                           std::int64_t step, double loss, double gradient_norm);
  std::string cause(std::span<const Batch> shards, std::span<const Lanes> lanes,
                    std::int64_t step) const;
  /// Called when shard i has its gradients. Computes the sums of the tree that are ready, except
  /// the root and what needs another rank's shards, so that few sets of gradients exist at a time.
  void merge_into_tree(std::size_t i);
  void add_to(std::size_t left, std::size_t right);
  /// Sums what is left of the tree, with the other ranks. Returns the squared norm.
  double sum_shards();
  /// The sums and squares of some pieces; `received` as in ParameterExchange::Add.
  void sum_pieces(Part pieces, std::span<real* const> received);
  /// Gives every rank the counts of all shards and the squares of all pieces.
  void share_counts();
  /// The list that receives the sums of this rank's pieces.
  GradientList& total() { return gradients_[static_cast<std::size_t>(local_shards_.begin)]; }
  Part local_pieces() const;  ///< that this rank owns
  /// Calls job(i) for these pieces, on the team.
  template <class Job>
  void for_pieces(Part pieces, const Job& job);
  /// Returns whether all weights were finite before.
  bool update(double lr, double grad_scale);
  /// Whether it is finite on every rank. Also spreads stop signals (World::stop).
  bool all_ranks_finite(bool finite);
  void drop_gradients();  ///< keeps the lists for the next step

  const Model& model_;
  std::optional<SegmentMemory> memory_;
  std::vector<NamedStatistics> statistics_;  ///< of the model's batch norms
  Optimizer& optimizer_;
  Team& team_;
  StepOptions options_;
  ParameterExchange* exchange_;
  Part local_shards_;  ///< the shards of this rank
  std::vector<Piece> pieces_;
  std::vector<std::string> layers_;      ///< of each parameter
  std::vector<GradientList> gradients_;  ///< of each shard; the sum ends up in total()
  std::vector<bool> half_ready_;  ///< of each sum, indexed by its right half: one half is ready
  std::mutex tree_mutex_;
  std::vector<LossCounts> counts_;  ///< of each shard
  std::vector<double> squares_;     ///< of each piece: its contribution to the squared norm
};

/// The loss of shard number `number` of a step, divided by `divisor`. The shard has been
/// augmented.
Tensor shard_loss(const Model& model, const Batch& shard, std::int64_t number, std::int64_t step,
                  double divisor, const StepOptions& options, LossCounts* counts,
                  const ShardContext& context = {});
/// Augments the shard, computes its loss and runs backward.
Gradients shard_gradients(const Model& model, const Batch& shard, std::int64_t number,
                          std::int64_t step, double divisor, const StepOptions& options,
                          LossCounts* counts, const ShardContext& context = {});

HEED_END
