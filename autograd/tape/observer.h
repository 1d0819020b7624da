#pragma once
#include <span>
#include <typeinfo>

#include "autograd/base/scoped_value.h"
#include "autograd/tensor.h"

HEED_BEGIN

/// While an instance is alive, it observes the ops that this thread runs (finite_check.h has an
/// example). Results and gradients are passed on to the observer that it replaces. By default no
/// observer is active; the cost is then a few pointer tests per op.
class OpObserver {
 public:
  OpObserver() : scope_(active, this) {}
  virtual ~OpObserver() = default;
  /// Called before an op's forward.
  virtual void begin(const OpCall& call) {
    if (scope_.before != nullptr) scope_.before->begin(call);
  }
  /// Called after an op's forward, with the node that records the call or nullptr.
  virtual void finish(const OpCall& call, std::span<const Array> results, Node* /*node*/) {
    for (const Array& y : results) result(call.op, y, call.nodes);
  }
  /// Called for each result y that an op has computed. An entry of `inputs` is null if that input
  /// is a constant.
  virtual void result(const std::type_info& op, const Array& y, std::span<const NodeRef> inputs) {
    if (scope_.before != nullptr) scope_.before->result(op, y, inputs);
  }
  /// Called when an op's backward has added to the gradients dx of its inputs.
  virtual void gradients(const std::type_info& op, std::span<const NodeRef> inputs,
                         std::span<const Grad> dx) {
    if (scope_.before != nullptr) scope_.before->gradients(op, inputs, dx);
  }
  /// Runs a node's backward. A checker's observer may run it more than once.
  virtual void run_backward(Node& node, const Array& dy, std::span<const Grad> dx) {
    node.backward(dy, dx);
  }

  static inline thread_local OpObserver* active = nullptr;

 private:
  ScopedValue<OpObserver*> scope_;
};

HEED_END
