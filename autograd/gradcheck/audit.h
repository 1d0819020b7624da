#pragma once
/// Checks of an op's backward for faults that have no effect in the given graph, so that finite
/// differences do not detect them. The backward must add instead of overwriting, leave dy
/// unchanged, compute the same gradients if one or all other inputs are constants and correct ones if
/// two inputs are the same tensor, be deterministic, and read only initialised values.
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "autograd/memory/arena.h"
#include "autograd/tape/observer.h"
#include "autograd/tensor.h"

HEED_BEGIN

/// While an instance is alive, it checks every op of this thread, forward once and backward several
/// times, and records the first fault. New arrays are poisoned (PoisonNewBlocks). Results and
/// gradients are also passed to an observer installed earlier.
class Audit final : public OpObserver {
 public:
  explicit Audit(std::span<const NamedTensor> checked);

  /// The first fault, with the name of the op; "" if there is none.
  const std::string& problem() const { return problem_; }
  /// Whether the fault is that a backward computed another gradient when it ran again.
  bool unrepeatable() const { return unrepeatable_; }
  /// Descriptions of the variables of the graph that are not among the checked ones, such as
  /// "input 1 of Affine, of shape [2, 2]".
  const std::vector<std::string>& unlisted() const { return unlisted_; }
  /// The straight-through op that the gradient of this variable has passed through; "" if there is
  /// none.
  std::string straight_through(const Tensor& variable) const;

  void result(const std::type_info& op, const Array& y, std::span<const NodeRef> inputs) override;
  void run_backward(Node& node, const Array& dy, std::span<const Grad> dx) override;

 private:
  std::string examine(Node& node, const Array& dy, std::span<const Grad> dx);
  void note_unlisted(const Node& node);
  void note_straight_through(const Node& node);

  std::unordered_set<const Node*> known_;  ///< checked variables, and unlisted ones already noted
  std::vector<std::string> unlisted_;
  /// Nodes whose gradient passed through a straight-through op, and the name of that op.
  std::unordered_map<const Node*, std::string> behind_;
  /// Whether an op's backward is running. The variables of graphs that this backward builds are not
  /// examined.
  bool in_backward_ = false;
  std::string problem_;
  bool unrepeatable_ = false;
  PoisonNewBlocks poison_;
};

HEED_END
