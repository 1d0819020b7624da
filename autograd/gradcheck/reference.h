#pragma once
/// The gradient check in its simplest form. autograd/gradcheck.h refines it: adaptive steps, kinks,
/// random directions, faults that finite differences do not show, likely causes.
///
/// The result y of f is reduced to s = <u, y> with random weights u (the cotangent), because a plain
/// sum hides errors: the gradient of sum(softmax(x)) is zero, so an empty backward would pass. Each
/// derivative ds/dx from `backward` is compared with the five-point stencil
///   (s(x−2h) − 8 s(x−h) + 8 s(x+h) − s(x+2h)) / 12h                error h⁴ s⁽⁵⁾/30
/// (Abramowitz and Stegun 1964, 25.3.6). Intended for float64.
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "autograd/base/random.h"
#include "autograd/tensor.h"

HEED_BEGIN
namespace reference {

/// The entry of one tensor at which the two derivatives differ most. They agree if error <= 1, where
/// error = |analytic − numeric| / (10⁻⁸ + 10⁻⁶ max(|analytic|, |numeric|)).
struct GradientCheck {
  std::string name;
  std::int64_t entry = 0;
  double analytic = 0, numeric = 0, error = 0;
};

/// s = <u, f()>
inline double weighted_sum(const std::function<Tensor()>& f, const Array& u) {
  const NoGrad no_grad;
  const Array y = f().value();
  double s = 0;
  for (std::int64_t i = 0; i < y.size(); ++i) s += double{u.data()[i]} * y.data()[i];
  return s;
}

/// ds/dx by the stencil above. x is restored.
inline double slope(const std::function<Tensor()>& f, const Array& u, real& x, double h) {
  const real before = x;
  const auto s = [&](double t) {
    x = static_cast<real>(before + t);
    return weighted_sum(f, u);
  };
  const double slope = (s(-2 * h) - 8 * s(-h) + 8 * s(h) - s(2 * h)) / (12 * h);
  x = before;
  return slope;
}

/// Checks ds/dp for each entry of each variable p. f must use these tensors or copies of them, and
/// return the same result for the same values.
inline std::vector<GradientCheck> check_gradients(const std::function<Tensor()>& f,
                                                  const std::vector<NamedTensor>& parameters) {
  const Tensor y = f();
  Array u(y.shape());
  Random random({1, Stream::check, 0, 0});
  for (real& v : u.values()) v = static_cast<real>(random.normal());
  const Gradients gradients = backward(y, u);
  std::vector<GradientCheck> worst;
  for (const NamedTensor& p : parameters) {
    const Array g = gradients[p.tensor];
    Array x = p.tensor.value();  // shares its values, so f uses the changed ones
    worst.push_back({p.name});
    for (std::int64_t i = 0; i < x.size(); ++i) {
      GradientCheck entry{p.name, i, g.data()[i], 0, std::numeric_limits<double>::infinity()};
      // Curvature and a kink near x, as of relu, spoil large steps, and rounding spoils small ones:
      // steps are tried until one agrees.
      for (double h = 1e-3; h > 1e-7 && entry.error > 1; h /= 8) {
        const double numeric = slope(f, u, x.data()[i], h), a = entry.analytic;
        const double error =
            std::abs(a - numeric) / (1e-8 + 1e-6 * std::max(std::abs(a), std::abs(numeric)));
        if (error < entry.error) {
          entry.numeric = numeric;
          entry.error = error;
        }
      }
      if (entry.error > worst.back().error) worst.back() = entry;
    }
  }
  return worst;
}

}  // namespace reference
HEED_END
