#include "autograd/tape/recompute.h"
#include "autograd/tape/many.h"

#include <unordered_set>

#include "autograd/kernels/fast/gemm/product_log.h"

HEED_BEGIN

namespace {

/// Throws if y depends on a variable that is not in `listed`: its gradient would be lost silently.
void refuse_unlisted(const Tensor& y, std::span<const Tensor> listed) {
  std::unordered_set<const Node*> seen;
  for (const Tensor& x : listed) seen.insert(x.node().get());
  std::vector<const Node*> left{y.node().get()};
  while (!left.empty()) {
    const Node* const node = left.back();
    left.pop_back();
    if (node == nullptr || !seen.insert(node).second) continue;
    if (node->leaf())
      fail(
          "[recompute] f reads a variable of shape {} that `variables` does not list: its gradient "
          "would be lost",
          node->shape());
    for (const NodeRef& input : node->inputs()) left.push_back(input.get());
  }
}

/// Inputs of the op: those of f, then the variables that f reads.
struct Recompute {
  Recomputed f;
  std::vector<Tensor> variables;
  std::vector<Array> inputs;  // the inputs of f

  Array forward(std::span<const Array> all) {
    inputs.assign(all.begin(), all.end() - static_cast<std::ptrdiff_t>(variables.size()));
    const NoGrad no_grad;
    return f(std::vector<Tensor>(inputs.begin(), inputs.end())).value();
  }
  /// The inner backward begins with the gradients accumulated so far. It adds to them in the order
  /// in which backward would add if the graph had kept all values.
  void backward(const Array& dy, std::span<const Grad> dx) const {
    std::vector<Tensor> leaves;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      leaves.push_back(dx[i] ? Tensor::variable(inputs[i]) : Tensor(inputs[i]));
    Tensor y;
    {
      // The model's FLOPs exclude recomputation.
      const kernels::DeclaredFlops counted([] { return 0.0; });
      y = f(leaves);
    }
    leaves.insert(leaves.end(), variables.begin(), variables.end());
    if (!y.needs_grad()) return;
    refuse_unlisted(y, leaves);
    Gradients partial;
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      if (dx[i]) partial.begin(leaves[i], dx[i].take());
    }
    Gradients gradients = heed::backward(y, dy, false, std::move(partial));
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      Array g = dx[i] ? gradients.take(leaves[i]) : Array();
      if (g.defined()) dx[i].add(std::move(g));
    }
  }
};

}  // namespace

Tensor recompute(Recomputed f, std::span<const Tensor> inputs, std::span<const Tensor> variables) {
  std::vector<Tensor> all(inputs.begin(), inputs.end());
  for (const Tensor& x : variables) {
    if (!x.node() || !x.node()->leaf())
      fail("[recompute] expected variables, got a constant or the result of an op");
    all.push_back(x);
  }
  return apply(Recompute{std::move(f), {variables.begin(), variables.end()}, {}}, all);
}

HEED_END
