#pragma once
/// What finite differences cannot see of an op's backward, because the graph at hand does not need it:
/// that it adds, and does not overwrite; that it leaves dy alone; that constants among its inputs
/// change nothing; that it gives the same again; that all it reads was written.
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "autograd/named_tensor.h"

HEED_BEGIN

/// While one is alive, it tries every op that this thread runs, forward once and backward several
/// times, and keeps what it finds. New arrays are poisoned (PoisonNewArrays). An observer installed
/// earlier sees results and gradients as well.
class Audit final : public OpObserver {
 public:
  explicit Audit(std::span<const NamedTensor> checked);
  ~Audit() override { active = before_; }
  Audit(const Audit&) = delete;
  Audit& operator=(const Audit&) = delete;

  /// What is wrong with an op, which is named; "" if nothing.
  const std::string& problem() const { return problem_; }
  /// The variables that the graph leads to and that were not among those given, as
  /// "input 1 of Affine, of shape [2, 2]".
  const std::vector<std::string>& unlisted() const { return unlisted_; }
  /// The straight-through op that the gradient of this variable has passed through; "" if there is none.
  std::string straight_through(const Tensor& variable) const;

  void result(const std::type_info& op, const Array& y, std::span<const NodeRef> inputs) override;
  void gradients(const std::type_info& op, std::span<const NodeRef> inputs,
                 std::span<const Grad> dx) override;
  void run_backward(Node& node, const Array& dy, std::span<const Grad> dx) override;

 private:
  std::string examine(Node& node, const Array& dy, std::span<const Grad> dx) const;
  void note_unlisted(const Node& node);
  void note_straight_through(const Node& node);

  std::unordered_set<const Node*> known_;  ///< variables given, or noted already
  std::vector<std::string> unlisted_;
  std::unordered_map<const Node*, std::string>
      behind_;                ///< nodes whose gradient has passed through one, and its name
  bool in_backward_ = false;  ///< of an op; a graph that it makes has variables of its own
  std::string problem_;
  PoisonNewArrays poison_;
  OpObserver* before_;
};

HEED_END
