#pragma once
/// Reverse-mode automatic differentiation. A Tensor is a value and, if it requires a gradient, a
/// node: the recorded op that computed the value or, for a variable, a leaf. Nodes point to the
/// nodes of their inputs; this graph is the tape. `backward` visits its nodes from the newest to
/// the oldest and returns the gradients as a separate value.
///
///   Tensor w = Tensor::variable(Array::scalar(3));
///   Tensor loss = w * w;
///   Gradients g = backward(loss);
///   g[w];                              // 2 w = 6
///
/// Source: reverse accumulation, Griewank and Walther, "Evaluating Derivatives", 2008.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <span>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <unordered_map>
#include <utility>
#include <vector>

#include "autograd/memory/array.h"

HEED_BEGIN

class Node;
struct TapeNotes;  // what an extension of the tape stores for a node (tape/hook.cpp)

/// A reference-counted pointer to a node. Chains of any length are destroyed without recursion.
class NodeRef {
 public:
  NodeRef() = default;
  explicit NodeRef(Node* node);  ///< acquires the initial reference of a new node
  NodeRef(const NodeRef& other);
  NodeRef(NodeRef&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  NodeRef& operator=(NodeRef other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~NodeRef();
  Node* get() const { return node_; }
  Node* operator->() const { return node_; }
  explicit operator bool() const { return node_ != nullptr; }

 private:
  Node* node_ = nullptr;
};

/// The slot to which an op's backward adds its contribution to the gradient of one input.
class Grad {
 public:
  Grad(Array* slot, const Shape* shape, std::size_t input)
      : slot_(slot), shape_(shape), input_(input) {}
  /// The Grad of a constant, whose gradient is not required.
  static Grad not_required(std::size_t input) { return {nullptr, nullptr, input}; }
  [[deprecated("use not_required")]] static Grad unwanted(std::size_t input) {
    return not_required(input);
  }

  /// False if the input is a constant, whose gradient need not be computed.
  explicit operator bool() const { return slot_ != nullptr; }
  const Shape& shape() const;
  /// Adds g, which must have the input's shape. The first contribution is stored without a copy. No
  /// effect if the input is a constant.
  void add(Array g) const;
  /// The sum so far, initially zeros, for backward passes that scatter into it. Throws if the input
  /// is a constant, as do shape, target and take.
  Array& sum() const;
  /// The sum so far; nullptr if there is none or the gradient is not required.
  const Array* value() const { return slot_ != nullptr && slot_->defined() ? slot_ : nullptr; }
  /// The target of kernels that compute target = beta * target + …. Sets beta to 0 for the first
  /// contribution (when the target's values are uninitialised) and to 1 for later ones.
  Array& target(real& beta) const;
  /// Moves the sum so far out of the slot, for a computation that continues the sum and adds it
  /// back. Returns an undefined array if there is none.
  Array take() const;

 private:
  void require_gradient() const;

  Array* slot_ = nullptr;
  const Shape* shape_ = nullptr;
  std::size_t input_ = 0;
};

/// One recorded op, or a leaf (a variable).
class Node {
 public:
  Node(const Shape& shape, std::span<const NodeRef> inputs);
  virtual ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  /// The type that names the op in messages.
  virtual const std::type_info& op() const = 0;
  /// Adds the op's contributions to the gradients of its inputs: dx[i] belongs to inputs()[i].
  virtual void backward(const Array& dy, std::span<const Grad> dx) = 0;
  /// Frees the values that the op saved for backward.
  virtual void release() = 0;
  /// Whether backward is a straight-through estimator: it deliberately computes the gradient of
  /// another function.
  virtual bool straight_through() const { return false; }

  const Shape& shape() const { return shape_; }  ///< shape of the op's result
  std::span<const NodeRef> inputs() const { return inputs_; }
  bool leaf() const { return inputs_.empty(); }
  /// 0 for a leaf; otherwise larger than the order of every input and of every op that this thread
  /// has recorded before (a Lamport clock). In descending order, each node precedes its inputs.
  std::uint64_t order() const { return order_; }

  bool consumed = false;       ///< backward has run and freed the saved values
  TapeNotes* notes = nullptr;  ///< what the TapeHook stores; freed with the node

  static void* operator new(std::size_t bytes) { return allocate_block(bytes)->memory(); }
  static void operator delete(void* memory) noexcept { release_block(Block::of(memory)); }

 private:
  friend class NodeRef;
  std::atomic<std::int64_t> references_{1};
  Node* next_to_destroy_ = nullptr;
  std::uint64_t order_;
  Shape shape_;
  std::vector<NodeRef, BlockAllocator<NodeRef>> inputs_;
};

class Tensor {
 public:
  Tensor() = default;                                ///< undefined, e.g. an omitted bias
  Tensor(Array value) : value_(std::move(value)) {}  ///< a constant, without a gradient
  Tensor(Array value, NodeRef node) : value_(std::move(value)), node_(std::move(node)) {}
  static Tensor variable(Array value);  ///< a leaf: backward computes its gradient

  bool defined() const { return value_.defined(); }
  const Array& value() const& { return value_; }
  Array value() && { return value_; }  ///< overload for temporaries
  /// Writable values, for optimizers, initialisers and checkers; all copies of the tensor share
  /// them. Call this function again before each change, so that backward can detect a graph that
  /// needs the former values.
  Array& mutable_value() {
    value_.mark_written();
    return value_;
  }
  const Shape& shape() const { return value_.shape(); }
  std::int64_t size() const { return value_.size(); }
  real item() const { return value_.item(); }
  /// Entry i of the first axis, without that axis, such as a row of a matrix; a negative i counts
  /// from the end. The selection is recorded on the tape.
  Tensor operator[](std::int64_t i) const;
  bool needs_grad() const { return static_cast<bool>(node_); }
  const NodeRef& node() const { return node_; }

 private:
  Array value_;
  NodeRef node_;
};

/// A parameter and its name in reports and checkpoints, such as "encoder.layers.0.norm1.weight".
struct NamedTensor {
  std::string name;
  Tensor tensor;
};

/// Prints the value (see Array), followed by ", variable" for a variable and by ", with a gradient"
/// for the result of a recorded op.
std::ostream& operator<<(std::ostream& out, const Tensor& x);

/// Called with a variable and its gradient, which is undefined if no op has added to it.
using OnGradient = std::function<void(const Node& variable, Array gradient)>;

/// The gradients of a loss with respect to the variables from which it was computed.
class Gradients {
 public:
  /// The gradient with respect to x, in x's shape; zeros if the loss does not depend on x or no op
  /// has added to the gradient. Throws for an undefined tensor, for a constant, for the result of
  /// an op, and after the gradient has been taken.
  Array operator[](const Tensor& x) const;
  /// Moves out the gradient with respect to x. Returns an undefined Array if there is none: the
  /// loss does not depend on x, or no op has added to the gradient. Throws in the same cases as
  /// operator[].
  Array take(const Tensor& x);
  /// Whether the loss depends on x, even if no op has added to the gradient of x. Also true for a
  /// variable whose gradient began with a defined partial sum.
  bool depends_on(const Tensor& x) const { return by_leaf_.contains(x.node().get()); }
  [[deprecated("use depends_on")]] bool reach(const Tensor& x) const { return depends_on(x); }
  /// Sets the value to which the next backward adds the gradient with respect to x.
  void begin(const Tensor& x, Array partial_sum);

 private:
  friend Gradients backward(const Tensor&, Array, bool, Gradients, const OnGradient&);
  using ByNode = std::unordered_map<const Node*, Array, std::hash<const Node*>, std::equal_to<>,
                                    BlockAllocator<std::pair<const Node* const, Array>>>;
  const Node* leaf_of(const Tensor& x) const;

  ByNode by_leaf_;
  std::vector<const Node*, BlockAllocator<const Node*>> taken_;
  std::vector<NodeRef, BlockAllocator<NodeRef>> leaves_;  ///< keeps the nodes of by_leaf_ alive
};

/// Gradients of ⟨cotangent, y⟩. The cotangent is the gradient of some loss with respect to y, in
/// y's shape (PyTorch: grad_outputs). It may be omitted if y has size 1; it is then 1. The
/// saved values of the graph are freed during the pass, so a graph can be used only once, unless
/// `keep_graph` is set. The result contains the gradients in `partial` plus those of this pass.
/// If given, `on_gradient` is called with each gradient once it is complete; the result omits it.
/// Throws if y is undefined or depends on no variable.
Gradients backward(const Tensor& y, Array cotangent = {}, bool keep_graph = false,
                   Gradients partial = {}, const OnGradient& on_gradient = {});

/// While an instance is alive, this thread's ops are not recorded.
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool before_;
};
bool recording();  ///< whether this thread records ops

// ---- how an op becomes a node --------------------------------------------------------------

/// The name of an op: "Softmax" for struct heed::…::Softmax.
std::string op_name(const std::type_info& type);

/// One call of an op, which begins before its forward and ends after it, even if forward throws.
struct OpCall {
  const std::type_info& op;
  std::span<const Array* const> values;  ///< the op's inputs
  std::span<const NodeRef> nodes;        ///< the nodes of the inputs; null for a constant
  /// Whether the tape records the call: this thread records ops, and an input requires a gradient.
  bool recorded;
  void* state = nullptr;  ///< what the TapeHook stores during the call

  OpCall(const std::type_info& op_type, std::span<const Array* const> inputs,
         std::span<const NodeRef> input_nodes);
  ~OpCall();
  OpCall(const OpCall&) = delete;
  OpCall& operator=(const OpCall&) = delete;
  /// Receives the results of forward, and the node that records the call or nullptr.
  void finish(std::span<const Array> results, Node* node);
};

/// Extensions follow the tape through these functions: they time and observe ops, and detect saved
/// values that change between forward and backward (tape/hook.cpp).
class TapeHook {
 public:
  virtual void begin(OpCall& call) = 0;
  virtual void finish(OpCall& call, std::span<const Array> results, Node* node) = 0;
  virtual void end(OpCall& call) noexcept = 0;
  /// Calls node.backward.
  virtual void backward(Node& node, const Array& dy, std::span<const Grad> dx) = 0;
  virtual void discard(TapeNotes* notes) noexcept = 0;

 protected:
  ~TapeHook() = default;
};
/// nullptr: no extensions. Defined in the file that a program links: tape/hook.cpp, which contains
/// all extensions, or plain.cpp.
extern TapeHook* const tape_hook;

/// Whether the op declares that its backward deliberately computes another function's gradient.
template <class Op>
bool is_straight_through(const Op& op) {
  if constexpr (requires { op.straight_through(); }) return op.straight_through();
  return false;
}

/// An op is a struct with `Array forward(const Array&...)` and `void backward(const Array& dy,
/// Grad...) const`; its members are its arguments and the values that backward needs; release()
/// replaces it by Op{}. An op whose backward deliberately computes another function's gradient
/// declares this to gradcheck with `bool straight_through() const`. n is the number of inputs.
template <class Op, std::size_t n>
class OpNode final : public Node {
 public:
  OpNode(Op op, const Shape& shape, std::span<const NodeRef> inputs)
      : Node(shape, inputs), op_(std::move(op)) {}
  const std::type_info& op() const override { return typeid(Op); }
  void backward(const Array& dy, std::span<const Grad> dx) override {
    [&]<std::size_t... i>(std::index_sequence<i...>) { op_.backward(dy, dx[i]...); }
    (std::make_index_sequence<n>());
  }
  void release() override { op_ = Op{}; }
  bool straight_through() const override { return is_straight_through(op_); }

 private:
  Op op_;
};

/// The op's result, recorded if this thread records ops and an input requires a gradient. For ops
/// with any number of inputs or several results, see tape/many.h.
template <class Op, std::same_as<Tensor>... Inputs>
Tensor apply(Op op, const Inputs&... inputs) {
  constexpr std::size_t n = sizeof...(Inputs);
  const std::array<const Array*, n> values{&inputs.value()...};
  const std::array<NodeRef, n> nodes{inputs.node()...};
  OpCall call(typeid(Op), values, nodes);
  Array y = op.forward(inputs.value()...);
  NodeRef node;
  if (call.recorded) node = NodeRef(new OpNode<Op, n>(std::move(op), y.shape(), nodes));
  call.finish({&y, 1}, node.get());
  return Tensor(std::move(y), std::move(node));
}

HEED_END
