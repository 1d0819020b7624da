#include "autograd/tensor.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <unordered_set>

#include "autograd/kernels/elementwise.h"

HEED_BEGIN

// ---- nodes ---------------------------------------------------------------------------------

NodeRef::NodeRef(Node* node) : node_(node) {}

NodeRef::NodeRef(const NodeRef& other) : node_(other.node_) {
  if (node_ != nullptr) node_->references_.fetch_add(1, std::memory_order_relaxed);
}

NodeRef::~NodeRef() {
  if (node_ == nullptr || node_->references_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  // A node may hold the last reference to its input, and so on along a chain of any length. To
  // avoid recursion, a node that loses its last reference during another's destruction waits in a
  // list (of plain pointers, which also works for static objects at program exit).
  thread_local Node* to_destroy = nullptr;
  thread_local bool destroying = false;
  node_->next_to_destroy_ = to_destroy;
  to_destroy = node_;
  if (destroying) return;
  destroying = true;
  while (to_destroy != nullptr) delete std::exchange(to_destroy, to_destroy->next_to_destroy_);
  destroying = false;
}

Node::Node(const Shape& shape, std::span<const NodeRef> inputs)
    : shape_(shape), inputs_(inputs.begin(), inputs.end()) {
  thread_local std::uint64_t clock = 0;
  for (const NodeRef& input : inputs_) {
    if (input) clock = std::max(clock, input->order());
  }
  order_ = inputs_.empty() ? 0 : ++clock;
}

Node::~Node() {
  if (notes != nullptr) tape_hook->discard(notes);
}

namespace {

class Leaf final : public Node {
 public:
  explicit Leaf(const Shape& shape) : Node(shape, {}) {}
  const std::type_info& op() const override { return typeid(Leaf); }
  void backward(const Array&, std::span<const Grad>) override {}
  void release() override {}
};

thread_local bool recording_now = true;

}  // namespace

Tensor Tensor::variable(Array value) {
  const Shape shape = value.shape();
  return Tensor(std::move(value), NodeRef(new Leaf(shape)));
}

NoGrad::NoGrad() : before_(std::exchange(recording_now, false)) {}
NoGrad::~NoGrad() { recording_now = before_; }
bool recording() { return recording_now; }

// ---- calls of ops --------------------------------------------------------------------------

OpCall::OpCall(const std::type_info& op_type, std::span<const Array* const> inputs,
               std::span<const NodeRef> input_nodes)
    : op(op_type),
      values(inputs),
      nodes(input_nodes),
      recorded(recording_now &&
               std::ranges::any_of(nodes, [](const NodeRef& x) { return bool(x); })) {
  if (tape_hook != nullptr) tape_hook->begin(*this);
}
OpCall::~OpCall() {
  if (tape_hook != nullptr) tape_hook->end(*this);
}
void OpCall::finish(std::span<const Array> results, Node* node) {
  if (tape_hook != nullptr) tape_hook->finish(*this, results, node);
}

// ---- accumulation of gradients -------------------------------------------------------------

void Grad::require_gradient() const {
  if (slot_ == nullptr)
    fail("input {} is a constant and has no gradient: test its Grad first, as in `if (dx)`",
         input_);
}

const Shape& Grad::shape() const {
  require_gradient();
  return *shape_;
}

void Grad::add(Array g) const {
  if (slot_ == nullptr) return;
  if (g.shape() != *shape_)
    fail("expected a gradient of shape {} for input {}, got shape {}", *shape_, input_, g.shape());
  if (!slot_->defined()) {
    *slot_ = std::move(g);
  } else if (slot_->unique()) {
    kernels::add(slot_->data(), g.data(), slot_->data(), g.size());
  } else {  // shared, e.g. with another slot: Add passes the same dy to both inputs
    Array total(*shape_);
    kernels::add(slot_->data(), g.data(), total.data(), g.size());
    *slot_ = std::move(total);
  }
}

Array& Grad::sum() const {
  require_gradient();
  if (!slot_->defined()) *slot_ = Array::zeros(*shape_);
  real beta = 0;  // not needed: the slot is defined
  return target(beta);
}

Array& Grad::target(real& beta) const {
  require_gradient();
  beta = slot_->defined() ? real(1) : real(0);
  if (!slot_->defined()) {
    *slot_ = Array(*shape_);
  } else if (!slot_->unique()) {
    *slot_ = slot_->clone();
  }
  return *slot_;
}

Array Grad::take() const {
  require_gradient();
  return std::move(*slot_);
}

std::string op_name(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), std::free);
  const std::string whole = status == 0 ? name.get() : type.name();
  const std::size_t colon = whole.rfind(':');
  return colon == std::string::npos ? whole : whole.substr(colon + 1);
}

// ---- backward ------------------------------------------------------------------------------

namespace {

template <class T>
using PooledVector = std::vector<T, BlockAllocator<T>>;

/// y and all nodes that it depends on, in the order of backward: newest first, but each variable
/// directly after the last op that adds to its gradient.
PooledVector<Node*> order_of_backward(Node* y) {
  PooledVector<Node*> ops{y}, order;
  std::unordered_set<Node*, std::hash<Node*>, std::equal_to<>, BlockAllocator<Node*>> seen{y};
  const auto add_new = [&](Node* node, bool leaf, PooledVector<Node*>& to) {
    for (const NodeRef& x : node->inputs()) {
      if (x && x->leaf() == leaf && seen.insert(x.get()).second) to.push_back(x.get());
    }
  };
  for (std::size_t i = 0; i < ops.size(); ++i) add_new(ops[i], false, ops);
  std::sort(ops.begin(), ops.end(), [](Node* a, Node* b) { return a->order() < b->order(); });
  for (Node* op : ops) {
    add_new(op, true, order);
    order.push_back(op);
  }
  std::reverse(order.begin(), order.end());
  return order;
}

Array initial_cotangent(const Tensor& y, Array given) {
  if (given.defined()) {
    if (given.shape() != y.shape())
      fail("[backward] the cotangent has shape {}, but the result has shape {}", given.shape(),
           y.shape());
    return given;
  }
  if (y.size() != 1)
    fail("[backward] expected a loss of one value, got shape {}; pass a cotangent", y.shape());
  return Array::full(y.shape(), 1);
}

/// Runs a node's backward. Errors name the op.
void run_node(Node& node, const Array& dy, std::span<const Grad> dx) {
  try {
    if (tape_hook != nullptr) {
      tape_hook->backward(node, dy, dx);
    } else {
      node.backward(dy, dx);
    }
  } catch (const Error& error) {
    throw Error(error.code, "[backward of {}] {}", op_name(node.op()), error.what());
  }
}

/// Frees the values that only backward needs.
void consume(Node& node) {
  node.release();
  if (node.notes != nullptr) tape_hook->discard(std::exchange(node.notes, nullptr));
  node.consumed = true;
}

}  // namespace

Gradients backward(const Tensor& y, Array cotangent, bool keep_graph, Gradients partial,
                   const OnGradient& on_gradient) {
  if (!y.defined()) fail("[backward] the result is an undefined tensor");
  if (!y.needs_grad()) fail("[backward] the result depends on no variable");
  Gradients gradients = std::move(partial);
  // The sum so far of each node's gradient, complete when the node is visited.
  Gradients::ByNode slots = std::exchange(gradients.by_leaf_, {});
  Grad(&slots[y.node().get()], &y.shape(), 0).add(initial_cotangent(y, std::move(cotangent)));
  PooledVector<Grad> dx;
  for (Node* node : order_of_backward(y.node().get())) {
    const auto slot = slots.find(node);
    if (node->leaf()) {
      if (node == y.node().get()) gradients.leaves_.push_back(y.node());
      if (on_gradient)
        on_gradient(*node, std::move(slot->second));
      else
        gradients.by_leaf_.emplace(node, std::move(slot->second));
      continue;
    }
    if (node->consumed)
      fail("[backward] backward has already run on this graph; set keep_graph the first time");
    // Zeros if no op has added to it.
    const Array dy = slot->second.defined() ? std::move(slot->second) : Array::zeros(node->shape());
    slots.erase(slot);
    dx.clear();
    for (const NodeRef& input : node->inputs()) {
      if (!input) {
        dx.push_back(Grad::not_required(dx.size()));
        continue;
      }
      dx.emplace_back(&slots[input.get()], &input->shape(), dx.size());  // stable addresses
      if (input->leaf()) gradients.leaves_.push_back(input);
    }
    run_node(*node, dy, dx);
    if (!keep_graph) consume(*node);
  }
  for (auto& [leaf, sum] : slots) {  // partial sums of variables that y does not depend on
    if (sum.defined()) gradients.by_leaf_.try_emplace(leaf, std::move(sum));
  }
  return gradients;
}

void Gradients::begin(const Tensor& x, Array partial_sum) {
  const Node* const leaf = leaf_of(x);
  if (!partial_sum.defined()) return;
  if (partial_sum.shape() != x.shape())
    fail("[gradients] expected a partial sum of shape {}, got {}", x.shape(), partial_sum.shape());
  leaves_.push_back(x.node());
  by_leaf_[leaf] = std::move(partial_sum);
}

/// The node of the variable x; throws if x is not a variable or if its gradient has been taken.
const Node* Gradients::leaf_of(const Tensor& x) const {
  if (!x.defined()) fail("[gradients] an undefined tensor has no gradient");
  if (!x.needs_grad()) fail("[gradients] a constant has no gradient");
  const Node* const node = x.node().get();
  if (!node->leaf()) fail("[gradients] expected a variable, got the result of an op");
  if (std::ranges::find(taken_, node) != taken_.end())
    fail("[gradients] the gradient of this variable, of shape {}, has already been taken",
         x.shape());
  return node;
}

Array Gradients::operator[](const Tensor& x) const {
  const auto found = by_leaf_.find(leaf_of(x));
  if (found == by_leaf_.end() || !found->second.defined()) return Array::zeros(x.shape());
  return found->second;
}

Array Gradients::take(const Tensor& x) {
  const auto found = by_leaf_.find(leaf_of(x));
  if (found == by_leaf_.end()) return {};
  taken_.push_back(found->first);
  return std::move(found->second);
}

HEED_END
