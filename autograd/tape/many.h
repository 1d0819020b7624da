#pragma once
/// Ops with any number of inputs, and ops with several results.
#include <vector>

#include "autograd/tensor.h"

HEED_BEGIN

/// The node of an op with any number of inputs: its backward receives a std::span<const Grad>.
template <class Op>
class VariadicNode final : public Node {
 public:
  VariadicNode(Op op, const Shape& shape, std::span<const NodeRef> inputs)
      : Node(shape, inputs), op_(std::move(op)) {}
  const std::type_info& op() const override { return typeid(Op); }
  void backward(const Array& dy, std::span<const Grad> dx) override { op_.backward(dy, dx); }
  void release() override { op_ = Op{}; }
  bool straight_through() const override { return is_straight_through(op_); }

 private:
  Op op_;
};

/// As for a fixed number of inputs, but forward receives a std::span<const Array>, and backward a
/// std::span<const Grad>.
template <class Op>
Tensor apply(Op op, std::span<const Tensor> inputs) {
  std::vector<const Array*, BlockAllocator<const Array*>> addresses;
  std::vector<NodeRef, BlockAllocator<NodeRef>> nodes;
  for (const Tensor& x : inputs) {
    addresses.push_back(&x.value());
    nodes.push_back(x.node());
  }
  OpCall call(typeid(Op), addresses, nodes);
  std::vector<Array, BlockAllocator<Array>> values;
  for (const Tensor& x : inputs) values.push_back(x.value());
  Array y = op.forward(std::span<const Array>(values));
  values.clear();  // so that the inputs have only the owners that the op has added
  NodeRef node;
  if (call.recorded) node = NodeRef(new VariadicNode<Op>(std::move(op), y.shape(), nodes));
  call.finish({&y, 1}, node.get());
  return Tensor(std::move(y), std::move(node));
}

// Without this overload, an unqualified call with a std::vector would select std::apply, which has
// the same parameters but expects a tuple.
template <class Op, class Inputs>
requires std::same_as<std::remove_cvref_t<Inputs>, std::vector<Tensor>> Tensor
apply(Op&& op, Inputs&& inputs) {
  return apply(std::forward<Op>(op), std::span<const Tensor>(inputs));
}

/// The node of an op with several results. The tape records it as an op with one result, the
/// concatenated values of all results.
template <class Op, std::size_t n>
class ResultsNode final : public Node {
 public:
  using Shapes = std::vector<Shape, BlockAllocator<Shape>>;
  ResultsNode(Op op, Shapes shapes, std::int64_t size, std::span<const NodeRef> inputs)
      : Node({size}, inputs), op_(std::move(op)), shapes_(std::move(shapes)) {}
  const std::type_info& op() const override { return typeid(Op); }
  void backward(const Array& dy, std::span<const Grad> dx) override {
    std::vector<Array, BlockAllocator<Array>> parts;
    std::int64_t begin = 0;
    for (const Shape& shape : shapes_) {
      parts.push_back(dy.sliced(begin, begin + shape.size()).reshaped(shape));
      begin += shape.size();
    }
    [&]<std::size_t... i>(std::index_sequence<i...>) {
      op_.backward(std::span<const Array>(parts), dx[i]...);
    }
    (std::make_index_sequence<n>());
  }
  void release() override { op_ = Op{}; }
  bool straight_through() const override { return is_straight_through(op_); }

 private:
  Op op_;
  Shapes shapes_;
};

/// Extracts one result of an op with several results: the values of the concatenation that start at
/// `begin`.
struct ResultPart {
  std::int64_t begin = 0;
  void backward(const Array& dy, Grad dall) const {
    real* const to = dall.sum().data() + begin;
    for (std::int64_t i = 0; i < dy.size(); ++i) to[i] += dy.data()[i];
  }
};

/// Runs and, if necessary, records an op with several results: forward returns std::vector<Array>,
/// and backward receives std::span<const Array> dy instead of one dy. The cotangent of an unused
/// result is zero.
template <class Op, std::same_as<Tensor>... Inputs>
std::vector<Tensor> apply_many(Op op, const Inputs&... inputs) {
  constexpr std::size_t n = sizeof...(Inputs);
  const std::array<const Array*, n> values{&inputs.value()...};
  const std::array<NodeRef, n> nodes{inputs.node()...};
  OpCall call(typeid(Op), values, nodes);
  std::vector<Array> ys = op.forward(inputs.value()...);
  std::array<NodeRef, 1> all;
  if (call.recorded) {
    typename ResultsNode<Op, n>::Shapes shapes;
    std::int64_t size = 0;
    for (const Array& y : ys) {
      shapes.push_back(y.shape());
      size += y.size();
    }
    all[0] = NodeRef(new ResultsNode<Op, n>(std::move(op), std::move(shapes), size, nodes));
  }
  call.finish(ys, all[0].get());
  std::vector<Tensor> results;
  std::int64_t begin = 0;
  for (Array& y : ys) {
    NodeRef part;
    if (all[0]) part = NodeRef(new OpNode<ResultPart, 1>(ResultPart{begin}, y.shape(), all));
    begin += y.size();
    results.emplace_back(std::move(y), std::move(part));
  }
  return results;
}

HEED_END
