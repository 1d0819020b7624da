#include "autograd/gradcheck/audit.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "autograd/base/random.h"
#include "autograd/gradcheck/diagnosis.h"

HEED_BEGIN

namespace {

using Arrays = std::vector<Array>;

std::string poisoned_at(const Array& x) {
  for (std::int64_t i = 0; i < x.size(); ++i) {
    if (PoisonNewBlocks::is_poison(x.data()[i])) return index_in(x.shape(), i);
  }
  return {};
}

/// Runs one node's backward under different conditions. A resulting array is undefined if the op
/// does not contribute to that gradient.
class Trial {
 public:
  Trial(Node& node, const Array& dy, std::span<const Grad> dx) : node_(node), dy_(dy), dx_(dx) {}

  /// The gradients of the inputs, added to the initial values `slots`. The inputs for which
  /// `constant` is true count as constants.
  Arrays gradients(Arrays slots, const std::vector<bool>& constant = {}) const {
    run(constant, [&](std::size_t i) { return &slots[i]; });
    return slots;
  }
  Arrays gradients(const std::vector<bool>& constant = {}) const {
    return gradients(Arrays(dx_.size()), constant);
  }
  /// The gradient of inputs i and j if they are the same tensor.
  Array of_both(std::size_t i, std::size_t j) const {
    Arrays slots(dx_.size());
    run({}, [&](std::size_t k) { return &slots[k == j ? i : k]; });
    return slots[i];
  }

 private:
  template <class Slot>
  void run(const std::vector<bool>& constant, Slot slot) const {
    std::vector<Grad> grads;
    for (std::size_t i = 0; i < dx_.size(); ++i) {
      if (dx_[i] && (constant.empty() || !constant[i])) {
        grads.emplace_back(slot(i), &dx_[i].shape(), i);
      } else {
        grads.push_back(Grad::not_required(i));
      }
    }
    node_.backward(dy_, grads);
  }

  Node& node_;
  const Array& dy_;
  std::span<const Grad> dx_;
};

double largest(const Array& x) {
  double maximum = 0;
  for (const real v : x.values()) maximum = std::max(maximum, std::abs(static_cast<double>(v)));
  return maximum;
}

/// a + b, where an undefined array counts as zeros.
Array sum_of(const Array& a, const Array& b) {
  if (!a.defined() || !b.defined()) return a.defined() ? a : b;
  Array total = a.clone();
  for (std::int64_t i = 0; i < total.size(); ++i) total.data()[i] += b.data()[i];
  return total;
}

/// Whether a and b are equal except for rounding, relative to `scale`; NaN equals NaN.
bool close(const Array& a, const Array& b, double scale) {
  const double allowed = 1000 * std::numeric_limits<real>::epsilon() * scale;
  const auto at = [](const Array& x, std::int64_t i) {
    return x.defined() ? static_cast<double>(x.data()[i]) : 0.0;
  };
  for (std::int64_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const double p = at(a, i), q = at(b, i);
    if (p == q || (std::isnan(p) && std::isnan(q)) || std::abs(p - q) <= allowed) continue;
    return false;
  }
  return true;
}

/// Whether each entry of `after` is either the correct sum or the op's contribution alone.
bool some_overwritten(const Array& after, const Array& sum, const Array& first, double scale) {
  for (std::int64_t i = 0; i < after.size(); ++i) {
    const auto entry = [i](const Array& x) {
      return x.defined() ? Array::scalar(x.data()[i]) : Array::scalar(0);
    };
    if (!close(entry(after), entry(sum), scale) && !close(entry(after), entry(first), scale))
      return false;
  }
  return true;
}

/// Random values that represent contributions from other uses of an input.
Array contribution(const Shape& shape, double size, std::size_t input) {
  Array values(shape);
  Random random({0, Stream::check, 3, static_cast<std::uint32_t>(input)});
  for (real& v : values.values()) v = static_cast<real>(size * (0.5 + random.uniform()));
  return values;
}

std::string changes_dy(const Array& before, const Array& dy) {
  const auto bytes = static_cast<std::size_t>(dy.size()) * sizeof(real);
  if (bytes == 0 || std::memcmp(before.data(), dy.data(), bytes) == 0) return {};
  std::copy_n(before.data(), before.size(), Array(dy).data());
  return "changes dy, whose values other ops share: write into a new array or a clone";
}

std::string reads_unwritten(const Arrays& first) {
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (const std::string at = poisoned_at(first[i]); !at.empty()) {
      return fmt::format(
          "leaves the gradient of input {} at {} unwritten, or computes it from values that were "
          "never written (a new Array is not filled with zeros)",
          i, at);
    }
  }
  return {};
}

/// The largest difference between the values of a and b, where an undefined array counts as zeros.
double largest_difference(const Array& a, const Array& b) {
  const Array& shape_of_both = a.defined() ? a : b;
  double maximum = 0;
  for (std::int64_t i = 0; i < shape_of_both.size(); ++i) {
    const double p = a.defined() ? a.data()[i] : 0, q = b.defined() ? b.data()[i] : 0;
    maximum = std::max(maximum, std::abs(p - q));
  }
  return maximum;
}

std::string differs_when_repeated(const Trial& trial, const Arrays& first) {
  const Arrays second = trial.gradients();
  for (std::size_t i = 0; i < first.size(); ++i) {
    const double scale = largest(first[i]);
    if (close(first[i], second[i], scale)) continue;
    return fmt::format(
        "computes a different gradient of input {} when it runs again (by {:.2g} of its largest "
        "value)",
        i, largest_difference(first[i], second[i]) / scale);
  }
  return {};
}

std::string does_not_add(const Trial& trial, const Arrays& first, std::span<const Grad> dx) {
  Arrays earlier(first.size()), begun(first.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (!dx[i]) continue;
    earlier[i] = contribution(dx[i].shape(), std::max(1.0, largest(first[i])), i);
    begun[i] = earlier[i].clone();
  }
  const Arrays after = trial.gradients(std::move(begun));
  for (std::size_t i = 0; i < first.size(); ++i) {
    const double scale = largest(earlier[i]) + largest(first[i]);
    const Array sum = sum_of(earlier[i], first[i]);
    if (!dx[i] || earlier[i].size() == 0 || close(after[i], sum, scale)) continue;
    return some_overwritten(after[i], sum, first[i], scale)
               ? fmt::format(
                     "overwrites the gradient of input {}, to which other uses of the tensor have "
                     "contributed: add to it",
                     i)
               : fmt::format(
                     "does not add its contribution to the gradient of input {}: if the gradient "
                     "already contains values, the sum is wrong",
                     i);
  }
  return {};
}

/// Compares the gradients with those that are computed if some inputs are constants, as the
/// condition says.
std::string differs_with(const std::vector<bool>& constant, const std::string& condition,
                         const Trial& trial, const Arrays& first) {
  Arrays rest;
  try {
    rest = trial.gradients(constant);
  } catch (const std::exception& error) {
    return fmt::format("fails if {}: {}", condition, error.what());
  }
  for (std::size_t k = 0; k < first.size(); ++k) {
    if (!constant[k] && !close(rest[k], first[k], largest(first[k])))
      return fmt::format("computes a different gradient of input {} if {}", k, condition);
  }
  return {};
}

/// Each input as the only constant and, which differs if there are more than two, as the only
/// variable.
std::string needs_every_gradient(const Trial& trial, const Arrays& first,
                                 std::span<const Grad> dx) {
  const auto required = std::count_if(dx.begin(), dx.end(), [](const Grad& g) { return bool(g); });
  for (std::size_t i = 0; i < dx.size(); ++i) {
    for (const bool alone : {false, true}) {
      if (!dx[i] || required < (alone ? 3 : 2)) continue;
      std::vector<bool> constant(dx.size(), alone);
      constant[i] = !alone;
      const std::string condition = alone ? fmt::format("input {} is the only variable", i)
                                          : fmt::format("input {} is a constant", i);
      if (std::string fault = differs_with(constant, condition, trial, first); !fault.empty())
        return fault;
    }
  }
  return {};
}

std::string needs_different_inputs(const Trial& trial, const Arrays& first,
                                   std::span<const Grad> dx) {
  for (std::size_t i = 0; i < dx.size(); ++i) {
    for (std::size_t j = i + 1; j < dx.size(); ++j) {
      if (!dx[i] || !dx[j] || dx[i].shape() != dx[j].shape()) continue;
      if (!close(trial.of_both(i, j), sum_of(first[i], first[j]),
                 largest(first[i]) + largest(first[j]))) {
        return fmt::format("computes a wrong gradient if inputs {} and {} are the same tensor", i,
                           j);
      }
    }
  }
  return {};
}

}  // namespace

Audit::Audit(std::span<const NamedTensor> checked) {
  for (const NamedTensor& p : checked) known_.insert(p.tensor.node().get());
}

void Audit::result(const std::type_info& op, const Array& y, std::span<const NodeRef> inputs) {
  OpObserver::result(op, y, inputs);
  if (!problem_.empty()) return;
  if (const std::string at = poisoned_at(y); !at.empty()) {
    problem_ = fmt::format(
        "the forward of {} leaves its result at {} unwritten, or computes it from values that were "
        "never written (a new Array is not filled with zeros)",
        op_name(op), at);
  }
}

void Audit::note_unlisted(const Node& node) {
  for (std::size_t i = 0; i < node.inputs().size(); ++i) {
    const NodeRef& input = node.inputs()[i];
    if (!input || !input->leaf() || !known_.insert(input.get()).second) continue;
    unlisted_.push_back(
        fmt::format("input {} of {}, of shape {}", i, op_name(node.op()), input->shape()));
  }
}

std::string Audit::straight_through(const Tensor& variable) const {
  const auto found = behind_.find(variable.node().get());
  return found == behind_.end() ? "" : found->second;
}

/// Marks the inputs of a straight-through op, and those of marked nodes, with the op's name.
/// Backward visits a node after all nodes that use it, so the marks reach every variable.
void Audit::note_straight_through(const Node& node) {
  const auto found = behind_.find(&node);
  if (found == behind_.end() && !node.straight_through()) return;
  const std::string name = found == behind_.end() ? op_name(node.op()) : found->second;
  for (const NodeRef& input : node.inputs()) behind_.emplace(input.get(), name);
}

/// Returns a description of the first fault, or "".
std::string Audit::examine(Node& node, const Array& dy, std::span<const Grad> dx) {
  const Trial trial(node, dy, dx);
  const Array before = dy.clone();
  const Arrays first = trial.gradients();
  if (std::string fault = changes_dy(before, dy); !fault.empty()) return fault;
  if (std::string fault = reads_unwritten(first); !fault.empty()) return fault;
  if (std::string fault = differs_when_repeated(trial, first); !fault.empty()) {
    unrepeatable_ = true;
    return fault;
  }
  if (std::string fault = does_not_add(trial, first, dx); !fault.empty()) return fault;
  if (std::string fault = needs_every_gradient(trial, first, dx); !fault.empty()) return fault;
  return needs_different_inputs(trial, first, dx);
}

void Audit::run_backward(Node& node, const Array& dy, std::span<const Grad> dx) {
  if (!in_backward_) {
    note_unlisted(node);
    note_straight_through(node);
  }
  if (problem_.empty()) {
    // No observer is called, because trials are not part of the caller's backward pass.
    const ScopedValue<OpObserver*> unobserved(active, nullptr);
    const std::string fault = examine(node, dy, dx);
    if (!fault.empty()) problem_ = fmt::format("the backward of {} {}", op_name(node.op()), fault);
  }
  const ScopedValue<bool> running(in_backward_, true);
  node.backward(dy, dx);
}

HEED_END
