/// Random graphs of ops. The input is a program: 'v' or 'c' (a variable or a constant) with a
/// shape, and op bytes with operands; then backward runs from the last result. An op must throw
/// Error if a shape is wrong; otherwise it must run, forward and backward. If its operands are tame
/// (operands.h), its results must be finite and, in double precision, its gradients.
#include <algorithm>
#include <cmath>
#include <optional>

#include "tests/fuzz/operands.h"

HEED_BEGIN

namespace graphs {
namespace {

using fuzz::require;

constexpr int max_steps = 24;
constexpr std::int64_t max_values = 1 << 10;
/// An array with this number of values exceeds the memory limit of the tests.
constexpr std::int64_t far_too_many = std::int64_t{1} << 31;

/// Whether ops on arrays of this shape could run for long without failing for lack of memory. This
/// includes empty arrays: [n, 0] times [0, n] has n² values.
bool laborious(const Shape& shape) {
  std::int64_t values = 1;
  for (const std::int64_t n : shape.extents()) values *= std::max<std::int64_t>(n, 1);
  return values > max_values && values < far_too_many;
}

bool all_within(const Array& x, real limit) {
  for (const real value : x.values())
    if (!(std::abs(value) <= limit)) return false;
  return true;
}

bool all_finite(const Array& x) {
  for (const real value : x.values())
    if (!std::isfinite(value)) return false;
  return true;
}

/// Fills x with random values in [-2, 2), a different sequence for each kind.
void fill(Array& x, unsigned char kind) {
  Random random({.seed = kind, .stream = Stream::check});
  for (real& value : x.values()) value = static_cast<real>(4 * random.uniform() - 2);
}

class Graph {
 public:
  explicit Graph(std::string_view program) : bytes_(program) {}

  /// Runs the program. After a refused step the program continues; the first Error is thrown at the
  /// end.
  void run() {
    for (int i = 0; i < max_steps && !bytes_.empty(); ++i) {
      try {
        step();
      } catch (const Error& error) {
        require(error.what()[0] != '\0', "an error has a message");
        if (!first_) first_ = error;
      }
    }
    if (!made_.empty()) fuzz::must_work([&] { check_backward(made_.back()); });
    if (first_) throw *first_;
  }

 private:
  void step() {
    const unsigned char what = bytes_.byte();
    if (what == 'v' || what == 'c') return make_leaf(what == 'v');
    const OpCall& call = op_calls()[what % op_calls().size()];
    Operands operands(bytes_, made_);
    Made result{call.run(operands), false};
    require(result.tensor.defined(), std::string(call.name) + " returns a value");
    if (laborious(result.tensor.shape())) return;
    const bool tame = operands.tame() && call.total;
    require(!tame || all_finite(result.tensor.value()), std::string(call.name) + " is finite");
    result.tame = tame && all_within(result.tensor.value(), largest_tame);
    made_.push_back(std::move(result));
  }

  void make_leaf(bool variable) {
    const Shape shape = Operands(bytes_, made_).shape();
    if (laborious(shape)) return;
    Array value(shape);
    fill(value, bytes_.byte());
    made_.push_back({variable ? Tensor::variable(value) : Tensor(value), true});
    if (variable) variables_.push_back(made_.back().tensor);
  }

  /// Checks that backward returns gradients of the right shapes, with the same values if it is
  /// repeated on a kept graph, and that it throws Error on a consumed graph.
  void check_backward(const Made& y) {
    if (!y.tensor.needs_grad()) return;
    const Array ones = Array::full(y.tensor.shape(), 1);
    const Gradients kept = backward(y.tensor, ones, true);
    const Gradients spent = backward(y.tensor, ones);
    for (const Tensor& x : variables_) {
      const Array a = kept[x], b = spent[x];
      require(a.shape() == x.shape() && b.shape() == x.shape(),
              "a gradient has the shape of its variable");
      for (std::int64_t i = 0; i < a.size(); ++i)
        require(a.data()[i] == b.data()[i] || std::isnan(a.data()[i]), "backward is repeatable");
      // A correct product of many factors may overflow in float.
      const bool wide = sizeof(real) == sizeof(double);
      require(!wide || !y.tame || all_finite(a), "a gradient is finite");
    }
    if (y.tensor.node()->leaf()) return;
    bool refused = false;
    try {
      backward(y.tensor, ones);
    } catch (const Error&) {
      refused = true;
    }
    require(refused, "backward on a consumed graph is refused");
  }

  fuzz::Bytes bytes_;
  std::vector<Made> made_;
  std::vector<Tensor> variables_;
  std::optional<Error> first_;
};

}  // namespace
}  // namespace graphs

HEED_END

void heed::fuzz::target(std::string_view input) { heed::graphs::Graph(input).run(); }
