#pragma once
/// The two exchanges of a distributed step. Every rank owns consecutive pieces of the parameters:
/// it receives the gradients of these pieces from all ranks, updates the pieces, and sends the new
/// weights to all ranks. Only the owner keeps the optimizer's moments (ZeRO, stage 1: Rajbhandari
/// et al. 2020).
///
/// To limit memory, both exchanges proceed in rounds. In each round, a rank sends at most 1 MiB of
/// weights, or 1 MiB of gradients per subtree, to each other rank.
#include <functional>
#include <span>
#include <vector>

#include "optim/optimizer.h"
#include "optim/pieces.h"
#include "train/distributed/parts.h"
#include "train/distributed/world.h"

HEED_BEGIN

class ParameterExchange {
 public:
  ParameterExchange(World& world, std::vector<NamedTensor> parameters);

  World& world() { return world_; }
  /// The bounds of each rank's pieces: rank r owns the pieces [bounds[r], bounds[r + 1]) of
  /// pieces_of(parameters).
  const std::vector<std::int64_t>& bounds() const { return bounds_; }
  Part owned() const { return owned_by(world_.rank()); }
  /// The range of the values that this rank owns, for the optimizer.
  ValueRange owned_values() const { return values_of(owned()); }

  /// A callback that receives gradients of some of this rank's pieces. For each shard, `received`
  /// contains a pointer to the values of the subtree that begins with it
  /// (train/distributed/parts.h), one piece after the other; null if no other rank has sent such a
  /// subtree. The callback may overwrite the values.
  using Add = std::function<void(Part pieces, std::span<real* const> received)>;
  /// Sends this rank's subtrees of gradients to the owners. sums[s] contains the gradients of the
  /// subtree with first shard s, in the order of the parameters; an undefined array stands for an
  /// absent gradient. Calls `add` in each round in which this rank has pieces.
  void reduce(const std::vector<std::vector<Array>>& sums, const Add& add);
  /// Copies the weights of every piece from its owner to all other ranks.
  void gather_weights();
  /// Returns all moments on rank 0, in tensors of the parameters' shapes, and an empty list on the
  /// other ranks.
  std::vector<NamedTensor> gather_moments(const Optimizer& optimizer);
  /// Sets the moments of each rank's optimizer from those in rank 0's `whole`.
  void scatter_moments(std::vector<NamedTensor>& whole, Optimizer& optimizer);

 private:
  Part owned_by(std::int64_t rank) const { return {bounds_[rank], bounds_[rank + 1]}; }
  ValueRange values_of(Part pieces) const;
  /// The pieces of a rank in one round.
  Part chunk(std::int64_t rank, std::int64_t round) const;
  std::int64_t rounds() const;
  /// Copies moments from the owners' `local` to rank 0's `whole` (if `collect`), or from `whole` to
  /// `local`.
  void move_moments(std::vector<NamedTensor>& local, std::vector<NamedTensor>& whole, bool collect);

  World& world_;
  std::vector<NamedTensor> parameters_;
  std::vector<Piece> pieces_;
  std::int64_t values_ = 0;                        // number of values of all parameters
  std::vector<std::int64_t> bounds_;               // bounds of each rank's pieces
  std::vector<std::vector<std::int64_t>> chunks_;  // bounds of the pieces of each round, by rank
  std::vector<real> out_, in_;                     // buffers of one round
};

HEED_END
