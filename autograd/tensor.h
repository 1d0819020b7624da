#pragma once
/// Reverse-mode automatic differentiation. A Tensor is a value and, if it requires a gradient, a
/// node: the recorded op that computed the value or, for a variable, a leaf. Nodes point to the
/// nodes of their inputs; this graph is the tape. `backward` visits its nodes from the newest to
/// the oldest and returns the gradients as a separate value.
///
///   Tensor w = Tensor::variable(Array::full({3}, 2));
///   Tensor loss = sum(mul(w, w));
///   Gradients g = backward(loss);
///   g[w];                              // 2 w = [4, 4, 4]
///
/// Source: reverse accumulation, Griewank and Walther, "Evaluating Derivatives", 2008.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <iosfwd>
#include <span>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "autograd/memory/array.h"
#include "autograd/profile.h"

HEED_BEGIN

class Node;

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

/// A value that an op saved for backward, and its version when it was saved.
struct SavedValue {
  static constexpr std::size_t result = static_cast<std::size_t>(-1);
  Array value;
  std::uint32_t version;
  std::size_t input;  ///< index of the input, or `result`
};
using SavedValues = std::vector<SavedValue, ArenaAllocator<SavedValue>>;

/// One recorded op, or a leaf (a variable).
class Node {
 public:
  Node(const Shape& shape, std::span<const NodeRef> inputs);
  virtual ~Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  virtual bool leaf() const { return false; }
  virtual const std::type_info& op() const = 0;
  /// Whether backward deliberately computes another function's gradient (Op::straight_through).
  virtual bool straight_through() const { return false; }
  /// Adds the op's contributions to the gradients of its inputs: dx[i] belongs to inputs()[i].
  virtual void backward(const Array& dy, std::span<const Grad> dx) = 0;
  /// Frees the saved values; the node is then `consumed`.
  virtual void release() = 0;

  const Shape& shape() const { return shape_; }
  std::span<const NodeRef> inputs() const { return inputs_; }
  /// 0 for a leaf. Increases along every path that starts at a leaf and, for the ops of a thread,
  /// over time (a Lamport clock), so that descending order is a valid and deterministic order for
  /// backward.
  std::uint64_t order() const { return order_; }
  bool consumed() const { return consumed_; }
  /// Sets the values that require_unchanged checks.
  void save(SavedValues values) { saved_ = std::move(values); }
  /// Throws Error if a value that backward needs has been changed since forward.
  void require_unchanged() const;

  static void* operator new(std::size_t bytes) { return arena_allocate(bytes)->memory(); }
  static void operator delete(void* memory) noexcept { arena_release(Block::of(memory)); }

 protected:
  std::vector<NodeRef, ArenaAllocator<NodeRef>> inputs_;
  bool consumed_ = false;
  SavedValues saved_;

 private:
  friend class NodeRef;
  std::atomic<std::int64_t> references_{1};
  Node* next_to_destroy_ = nullptr;
  std::uint64_t order_;
  Shape shape_;
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

/// Prints the value (see Array), followed by ", variable" for a variable and by ", with a gradient"
/// for the result of a recorded op.
std::ostream& operator<<(std::ostream& out, const Tensor& x);

/// A variable and a partial sum of its gradient, to which backward adds (recompute.h).
struct PartialGradient {
  Tensor variable;
  Array sum;  ///< may be undefined
};

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
  /// variable for which backward received a defined partial sum.
  bool depends_on(const Tensor& x) const { return by_leaf_.contains(x.node().get()); }
  [[deprecated("use depends_on")]] bool reach(const Tensor& x) const { return depends_on(x); }

 private:
  friend Gradients run_backward(const Tensor&, Array, bool, std::vector<PartialGradient>);
  using ByNode = std::unordered_map<const Node*, Array, std::hash<const Node*>, std::equal_to<>,
                                    ArenaAllocator<std::pair<const Node* const, Array>>>;
  const Node* leaf_of(const Tensor& x) const;

  ByNode by_leaf_;
  std::vector<const Node*, ArenaAllocator<const Node*>> taken_;
  std::vector<NodeRef, ArenaAllocator<NodeRef>> leaves_;  ///< keeps the nodes of by_leaf_ alive
};

/// Gradients of <cotangent, y>. The cotangent may be omitted if y has size 1; it is then 1. The
/// saved values of the graph are freed during the pass, so a graph can be used only once, unless
/// `keep_graph` is set. Throws if y is undefined or depends on no variable.
Gradients backward(const Tensor& y, Array cotangent = {}, bool keep_graph = false);
/// As above, but adds the gradient of each variable in `partial` to its partial sum. The result
/// contains the total.
Gradients backward(const Tensor& y, Array cotangent, std::vector<PartialGradient> partial);

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

/// Observes the ops that this thread runs (finite_check.h has an example). By default no observer
/// is active; the cost is then a few pointer tests per op.
class OpObserver {
 public:
  virtual ~OpObserver() = default;
  /// Called for each result y that an op has computed. An entry of `inputs` is null if that input
  /// is a constant.
  virtual void result(const std::type_info& op, const Array& y,
                      std::span<const NodeRef> inputs) = 0;
  /// Called when an op's backward has added to the gradients dx of its inputs.
  virtual void gradients(const std::type_info& op, std::span<const NodeRef> inputs,
                         std::span<const Grad> dx) = 0;
  /// Runs a node's backward. A checker's observer may run it more than once.
  virtual void run_backward(Node& node, const Array& dy, std::span<const Grad> dx) {
    node.backward(dy, dx);
  }

  static inline thread_local OpObserver* active = nullptr;
};

// ---- how an op becomes a node --------------------------------------------------------------

/// The type that names an op in messages and profiles: Op itself, or Op::Named if Op is a template
/// that wraps another op.
template <class Op>
const std::type_info& type_of() {
  if constexpr (requires { typename Op::Named; })
    return typeid(typename Op::Named);
  else
    return typeid(Op);
}

/// An op is a struct with `Array forward(const Array&...)` and `void backward(const Array& dy,
/// Grad...) const`; its members are the values that backward needs. An op whose backward
/// deliberately computes another function's gradient declares this to gradcheck with `bool
/// straight_through() const`. n is the number of inputs, or 0 for an op with any number of inputs.
template <class Op, std::size_t n>
class OpNode final : public Node {
 public:
  OpNode(Op op, const Shape& shape, std::span<const NodeRef> inputs)
      : Node(shape, inputs), op_(std::move(op)) {}
  const std::type_info& op() const override { return type_of<Op>(); }
  void backward(const Array& dy, std::span<const Grad> dx) override {
    const OpTimer timer(op(), false);
    if constexpr (n == 0) {
      op_.backward(dy, dx);  // variadic op
    } else {
      [&]<std::size_t... i>(std::index_sequence<i...>) { op_.backward(dy, dx[i]...); }
      (std::make_index_sequence<n>());
    }
    if (OpObserver::active != nullptr) OpObserver::active->gradients(op(), inputs(), dx);
  }
  bool straight_through() const override {
    if constexpr (requires { op_.straight_through(); })
      return op_.straight_through();
    else
      return false;
  }
  void release() override {
    op_ = Op{};
    saved_ = {};
    consumed_ = true;
  }

 private:
  Op op_;
};

/// Runs op.forward and times it.
template <class Op, class... Values>
auto run_forward(Op& op, const Values&... values) {
  const OpTimer timer(type_of<Op>(), true);
  return op.forward(values...);
}

/// A node for the op's result, which has this shape.
template <std::size_t n, class Op>
NodeRef make_node(Op op, const Shape& shape, std::span<const NodeRef> inputs) {
  return NodeRef(new OpNode<Op, n>(std::move(op), shape, inputs));
}

/// Whether an op with these inputs is recorded: this thread records ops and an input requires a
/// gradient.
inline bool recorded(std::span<const NodeRef> inputs) {
  return recording() && std::ranges::any_of(inputs, [](const NodeRef& x) { return bool(x); });
}

/// Finds the values that an op saves: inputs that have more owners after forward than before
/// (results that are views of an input do not count as owners), and results that have more than one
/// owner and are not views of an input. If another thread copies or frees a shared value meanwhile,
/// values may be reported wrongly or missed.
class SavedValueFinder {
 public:
  /// Searches these values, which must outlive this object.
  explicit SavedValueFinder(std::span<const Array* const> values) : values_(values) {
    for (const Array* value : values) before_.push_back(value->owners());
  }
  SavedValues operator()(std::span<const Array> results) const {
    SavedValues saved;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const Array& value = *values_[i];
      const auto views =
          std::ranges::count_if(results, [&](const Array& result) { return result.shares(value); });
      if (value.owners() > before_[i] + views) saved.push_back({value, value.version(), i});
    }
    for (const Array& result : results) {
      const bool is_view =
          std::ranges::any_of(values_, [&](const Array* value) { return result.shares(*value); });
      if (!is_view && result.owners() > 1)
        saved.push_back({result, result.version(), SavedValue::result});
    }
    return saved;
  }

 private:
  std::span<const Array* const> values_;
  std::vector<std::int64_t, ArenaAllocator<std::int64_t>> before_;
};

/// The values to search: none if the op is not recorded.
inline std::span<const Array* const> values_to_search(std::span<const Array* const> values,
                                                      std::span<const NodeRef> inputs) {
  return recorded(inputs) ? values : values.first(0);
}

/// The op's result y, recorded if this thread records ops and an input requires a gradient.
template <std::size_t n, class Op>
Tensor record(Op op, Array y, std::span<const NodeRef> inputs, const SavedValueFinder& saved) {
  if (OpObserver::active != nullptr) OpObserver::active->result(type_of<Op>(), y, inputs);
  if (!recorded(inputs)) return Tensor(std::move(y));
  SavedValues values = saved(std::span(&y, 1));
  NodeRef node = make_node<n>(std::move(op), y.shape(), inputs);
  node->save(std::move(values));
  return Tensor(std::move(y), std::move(node));
}

/// Runs the op and, if necessary, records it.
template <class Op, std::same_as<Tensor>... Inputs>
Tensor apply(Op op, const Inputs&... inputs) {
  const std::array<const Array*, sizeof...(Inputs)> values{&inputs.value()...};
  const std::array<NodeRef, sizeof...(Inputs)> nodes{inputs.node()...};
  const SavedValueFinder saved(values_to_search(values, nodes));
  Array y = run_forward(op, inputs.value()...);
  return record<sizeof...(Inputs)>(std::move(op), std::move(y), nodes, saved);
}

/// The same for an op with any number of inputs: forward receives a std::span<const Array>, and
/// backward a std::span<const Grad>.
template <class Op>
Tensor apply(Op op, std::span<const Tensor> inputs) {
  std::vector<Array, ArenaAllocator<Array>> values;
  std::vector<const Array*, ArenaAllocator<const Array*>> addresses;
  std::vector<NodeRef, ArenaAllocator<NodeRef>> nodes;
  for (const Tensor& x : inputs) {
    addresses.push_back(&x.value());
    nodes.push_back(x.node());
  }
  const SavedValueFinder saved(values_to_search(addresses, nodes));
  for (const Tensor& x : inputs) values.push_back(x.value());
  Array y = run_forward(op, std::span<const Array>(values));
  values.clear();
  return record<0>(std::move(op), std::move(y), nodes, saved);
}

// Without these overloads, an unqualified call with a std::vector would select std::apply, which
// expects tuples.
template <class Op>
Tensor apply(Op op, const std::vector<Tensor>& inputs) {
  return apply(std::move(op), std::span<const Tensor>(inputs));
}
template <class Op>
Tensor apply(Op op, std::vector<Tensor>& inputs) {
  return apply(std::move(op), std::span<const Tensor>(inputs));
}
template <class Op>
Tensor apply(Op op, std::vector<Tensor>&& inputs) {
  return apply(std::move(op), std::span<const Tensor>(inputs));
}

// ---- ops with several results --------------------------------------------------------------

/// The form in which the tape records an op with several results: as an op with one result, the
/// concatenated values of all results.
template <class Op>
struct Results {
  using Named = Op;
  Op op;
  std::vector<Shape, ArenaAllocator<Shape>> shapes;

  template <class... Grads>
  void backward(const Array& dy, Grads... dx) const {
    std::vector<Array, ArenaAllocator<Array>> parts;
    std::int64_t begin = 0;
    for (const Shape& shape : shapes) {
      parts.push_back(dy.sliced(begin, begin + shape.size()).reshaped(shape));
      begin += shape.size();
    }
    op.backward(std::span<const Array>(parts), dx...);
  }
};

/// Extracts one result of such an op: the values of the concatenation that start at `begin`.
struct ResultPart {
  std::int64_t begin = 0;
  void backward(const Array& dy, Grad dall) const;
};

/// Runs and, if necessary, records an op with several results: forward returns std::vector<Array>,
/// and backward receives std::span<const Array> dy instead of one dy. The cotangent of an unused
/// result is zero.
template <class Op, std::same_as<Tensor>... Inputs>
std::vector<Tensor> apply_many(Op op, const Inputs&... inputs) {
  constexpr std::size_t n = sizeof...(Inputs);
  const std::array<const Array*, n> values{&inputs.value()...};
  const std::array<NodeRef, n> nodes{inputs.node()...};
  const SavedValueFinder saved(values_to_search(values, nodes));
  std::vector<Array> ys = run_forward(op, inputs.value()...);
  if (OpObserver::active != nullptr) {
    for (const Array& y : ys) OpObserver::active->result(typeid(Op), y, nodes);
  }
  std::vector<Tensor> results;
  if (!recorded(nodes)) {
    for (Array& y : ys) results.emplace_back(std::move(y));
    return results;
  }
  SavedValues saved_values = saved(ys);
  Results<Op> all{std::move(op), {}};
  std::int64_t size = 0;
  for (const Array& y : ys) {
    all.shapes.push_back(y.shape());
    size += y.size();
  }
  const std::array<NodeRef, 1> node{make_node<n>(std::move(all), {size}, nodes)};
  node[0]->save(std::move(saved_values));
  std::int64_t begin = 0;
  for (Array& y : ys) {
    NodeRef part = make_node<1>(ResultPart{begin}, y.shape(), node);
    begin += y.size();
    results.emplace_back(std::move(y), std::move(part));
  }
  return results;
}

// ---- deprecated names, kept for one release ---------------------------------------------------------

using KeptValue [[deprecated("use SavedValue")]] = SavedValue;
using KeptValues [[deprecated("use SavedValues")]] = SavedValues;
using KeptSearch [[deprecated("use SavedValueFinder")]] = SavedValueFinder;
using Started [[deprecated("use PartialGradient")]] = PartialGradient;

HEED_END
