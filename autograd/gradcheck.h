#pragma once
/// Compares the gradients of a function of tensors, of a layer and its parameters, or of a whole
/// model with finite differences.
///
///   #include "autograd/gradcheck.h"             // link heed::f64
///   BOOST_TEST(gradcheck(f, x, w));             // f(x, w) returns a Tensor of any shape
///   BOOST_TEST(gradcheck(layer, x));            // checks x and all of layer.parameters()
///   BOOST_TEST(gradcheck({.rel = 1e-5, .names = {"x", "w"}}, f, x, w));
///   GradcheckResult r =
///       gradcheck_parameters([&] { return loss(model, batch); }, model.parameters());
///
/// The result converts to true if the check passes. When printed, it reports for each wrong tensor
/// the worst entries, their errors and, if the numbers indicate one, the likely cause. The library
/// depends on no test framework.
///
/// Method: f's output y is reduced to s = <u, y> with random weights u (the cotangent), because a
/// plain sum hides errors: the gradient of sum(softmax(x)) is zero, so an empty backward would
/// pass. The analytic gradient of s comes from `backward`, the numeric one from the five-point
/// stencil
///   s'(x) ≈ (s(x−2h) − 8 s(x−h) + 8 s(x+h) − s(x+2h)) / 12h,     error h⁴ s⁽⁵⁾/30
/// (Abramowitz and Stegun 1964, 25.3.6). If they disagree, h is halved until two step sizes agree,
/// so strong curvature, or a kink near x, causes no failure. A kink at x itself (left and right
/// slopes converge to different values, as for relu at 0) is reported as such and accepted if the
/// analytic value is one of the slopes or lies between them; a tensor whose checked entries are all
/// at kinks fails.
///
/// Finite differences do not detect some faults of a backward, so every recorded op is also checked
/// separately (autograd/gradcheck/audit.h): its backward must add to the gradients of its inputs,
/// leave dy unchanged, work without the gradients of constants, be deterministic, and read only
/// initialised values. A further forward of f, at other values, must not change its gradients, and
/// those at other values must be right too (kept_values.cpp). If a gradient is wrong, each op of the
/// graph is checked alone, to name the one that is wrong (each_op.cpp).
///
/// If an op declares a straight-through gradient (Op::straight_through, autograd/tensor.h), finite
/// differences cannot agree: tensors whose gradient passes through it are listed but not compared.
///
/// Intended for float64. A float32 build works too, with looser defaults, but detects only gross
/// errors.
#include <concepts>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "autograd/base/enum_names.h"
#include "autograd/tensor.h"

HEED_BEGIN

struct ParameterCheck;

struct GradcheckOptions {
  /// An entry is correct if |analytic − numeric| <= abs + rel · max(|analytic|, |numeric|).
  double rel = sizeof(real) == 8 ? 1e-6 : 1e-2;
  double abs = sizeof(real) == 8 ? 1e-8 : 1e-3;
  /// Initial step h: for an entry x, as a multiple of max(1, |x|); for a direction, as a multiple
  /// of max(1, root mean square of x). The product is rounded down to a power of two. 0 selects
  /// ε^(1/5), which balances truncation against rounding, but ε^(1/3) for directions, along which
  /// many kinks may be near x.
  double step = 0;
  std::uint64_t seed = 1;  ///< seed of the cotangent, the directions and the choice of entries
  std::vector<std::string> names = {};  ///< names of the inputs; default "input 0", "input 1", …
  std::int64_t max_entries = 0;  ///< maximum number of entries per tensor, drawn at random; 0: all
  /// For large models: if above 0, the number of random directions d per tensor. Instead of single
  /// entries, <gradient, d> is compared with the slope of s(x + t d), in a few calls of f per
  /// direction.
  int directions = 0;
  /// If true, outputs that remain ±inf when x changes (as in a masked log-softmax) are ignored; if
  /// false, they fail the check. NaN always fails it.
  bool ignore_infinite_outputs = false;
  /// Whether f may depend on variables that are not checked. If false, such a dependence fails the
  /// check, because parameters() may have omitted the variable.
  bool allow_unlisted = false;
  bool stop_at_first = false;  ///< check no further tensors after one that fails
  /// Called after each tensor, for a progress display.
  std::function<void(const ParameterCheck&)> on_parameter = nullptr;
};

/// Ordered by severity. A tensor has the status of its worst entry, or `unstable` if all checked
/// entries are at kinks.
enum class GradcheckStatus {
  ok,
  empty,       ///< the tensor or f's result has no values: nothing to check
  declared,    ///< the gradient passes through a straight-through op: no comparison
  kink,        ///< s is not differentiable at x; the analytic value is a valid subgradient
  unstable,    ///< the numeric derivative does not converge: fails
  wrong,       ///< the derivatives differ, or the tensor is not a variable: fails
  non_finite,  ///< a value or derivative is NaN or infinite: fails
};
constexpr auto names_of(GradcheckStatus) {
  return enum_names<GradcheckStatus>("ok", "empty", "straight-through", "ok except at kinks",
                                     "unstable", "wrong", "not finite");
}
inline bool passes(GradcheckStatus status) { return status <= GradcheckStatus::kink; }

struct GradcheckEntry {
  std::int64_t index = 0;  ///< flat index; with directions: index of the direction
  double analytic = 0;
  double numeric = 0;
  /// |analytic − numeric| / (abs/rel + max(|analytic|, |numeric|)); correct if at most rel.
  double error = 0;
  /// Estimated error of the numeric value, from rounding and, if several step sizes were needed,
  /// from the difference between their slopes.
  double uncertainty = 0;
  double left = 0, right = 0;  ///< one-sided slopes at a kink
  GradcheckStatus status = GradcheckStatus::ok;
};

struct ParameterCheck {
  std::string name;
  Shape shape;
  std::int64_t entries = 0;  ///< number of values in the tensor
  std::int64_t checked = 0;  ///< number of entries or, in directional mode, of directions checked
  std::int64_t wrong = 0;    ///< number of entries or directions that fail
  std::int64_t kinks = 0;    ///< number of entries or directions with status `kink`
  bool directional = false;
  double largest = 0;      ///< largest magnitude of an analytic or numeric derivative
  double worst_error = 0;  ///< largest error of the entries without status `kink`; may be infinite
  GradcheckStatus status = GradcheckStatus::ok;
  std::string cause;                   ///< cause of a failure, if the numbers show one
  std::string declared_by;             ///< the straight-through op, if the status is declared
  std::vector<GradcheckEntry> worst;   ///< some failing entries, worst first
  std::vector<GradcheckEntry> kinked;  ///< some entries at kinks
};

struct GradcheckResult {
  std::vector<ParameterCheck> parameters;  ///< inputs first, then the layer's parameters
  std::string problem;                     ///< an error of f as a whole; empty if there is none
  std::string wrong_op;            ///< the op that makes gradients wrong and the cause, if found
  std::vector<std::string> notes;  ///< reasons why the check may prove little
  double rel = 0, abs = 0;
  std::uint64_t seed = 0;

  bool passed() const;
  explicit operator bool() const { return passed(); }
  std::string report() const;
};
std::ostream& operator<<(std::ostream& out, const GradcheckResult& result);

/// Checks d f() / d p for each variable p in `parameters`. f must use these tensors or copies of
/// them: all copies share the values, which the check changes in place and restores exactly, even
/// if f throws. f runs many times and must return the same result for the same values: fix
/// dropout's RandomKey. The result may have any shape; a model's loss is one value.
GradcheckResult gradcheck_parameters(const std::function<Tensor()>& f,
                                     const std::vector<NamedTensor>& parameters,
                                     const GradcheckOptions& options = {});

namespace gradcheck_detail {

/// Whether F has `parameters()`. If parameters() does not return a range of NamedTensors, a call of
/// gradcheck does not compile, so no parameter remains unchecked.
template <class F>
concept HasParameters = requires(F& f) {
  f.parameters();
};

template <class F, class... Tensors>
Tensor call(F& f, const Tensors&... x) {
  if constexpr (std::invocable<F&, const Tensors&...>) {
    return f(x...);
  } else {
    static_assert(
        requires { f.forward(x...); },
        "gradcheck: neither f(x...) nor f.forward(x...) accepts these tensors");
    return f.forward(x...);
  }
}

/// f as a function of the list of its inputs.
using Function = std::function<Tensor(const std::vector<Tensor>&)>;
GradcheckResult check(const Function& f, const std::vector<Tensor>& inputs,
                      const std::vector<NamedTensor>& parameters, const GradcheckOptions& options);

}  // namespace gradcheck_detail

/// Checks the gradients of f with respect to each input and, if f has `parameters()`, each
/// parameter. f is a callable, or a layer with `forward`, that accepts these tensors and returns a
/// tensor. The inputs are copied; the parameters are changed in place and restored. An undefined
/// input is passed on as undefined and not checked.
///
/// If all gradients are correct, variants are checked too: each input in turn as a constant; two
/// inputs of equal shape as the same tensor; inputs of other shapes, which f must accept or refuse
/// by an exception. (A shape is skipped if f throws or returns values that are not finite.) An
/// extent that no parameter has is replaced by 1, by 0 and by a larger one, and the inputs get a
/// further axis.
///
/// Arguments without gradients (ids, offsets, masks) belong in a lambda's captures.
template <class F, std::convertible_to<Tensor>... Tensors>
requires(!std::same_as<std::remove_cvref_t<F>, GradcheckOptions>) GradcheckResult
    gradcheck(const GradcheckOptions& options, F&& f, const Tensors&... inputs) {
  std::vector<NamedTensor> parameters;
  if constexpr (gradcheck_detail::HasParameters<std::remove_reference_t<F>>) {
    for (auto&& parameter : f.parameters()) parameters.push_back(parameter);
  }
  const auto call = [&](const std::vector<Tensor>& x) {
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
      return gradcheck_detail::call(f, x[i]...);
    }
    (std::index_sequence_for<Tensors...>());
  };
  return gradcheck_detail::check(call, {Tensor(inputs)...}, parameters, options);
}

template <class F, std::convertible_to<Tensor>... Tensors>
requires(!std::same_as<std::remove_cvref_t<F>, GradcheckOptions>) GradcheckResult
    gradcheck(F&& f, const Tensors&... inputs) {
  return gradcheck(GradcheckOptions{}, f, inputs...);
}

HEED_END
