#pragma once
/// Elementwise functions: in double, their formulas and derivatives, which are the reference
/// implementations for fast/simd/unary_functions-inl.h. A new activation is added to
/// HEED_ACTIVATIONS, any other function to the enum and its names (fast/unary_names.h). Either needs
/// a case in unary_value and unary_derivative, a struct and a case of with_unary_function in
/// unary_functions-inl.h and, if its derivative uses x or y, a term in unary_needs_x or
/// unary_needs_y. The tests then cover it.
#include <cmath>

namespace heed {

/// The activations come first. `gelu` is x Φ(x) with the exact normal distribution, `gelu_tanh` its
/// approximation by tanh (Hendrycks and Gimpel 2016); `silu` is x σ(x).
#define HEED_ACTIVATIONS(NAME) \
  NAME(relu)                   \
  NAME(gelu)                   \
  NAME(gelu_tanh)              \
  NAME(silu)                   \
  NAME(tanh)                   \
  NAME(sigmoid)
#define HEED_ENUMERATOR(name) name,
enum class UnaryFunction { HEED_ACTIVATIONS(HEED_ENUMERATOR) neg, exp, log, sqrt };
#undef HEED_ENUMERATOR

/// Whether f's derivative is computed from x (unary_needs_x) or from y = f(x) (unary_needs_y). That
/// of neg is constant and needs neither.
constexpr bool unary_needs_x(UnaryFunction f) {
  return f == UnaryFunction::log || f == UnaryFunction::gelu || f == UnaryFunction::gelu_tanh ||
         f == UnaryFunction::silu;
}
constexpr bool unary_needs_y(UnaryFunction f) {
  return f == UnaryFunction::exp || f == UnaryFunction::sqrt || f == UnaryFunction::tanh ||
         f == UnaryFunction::relu || f == UnaryFunction::sigmoid;
}

namespace unary_functions {

/// σ(x) = 1 / (1 + e^-x), computed from e^-|x|, which is at most 1.
inline double sigmoid(double x) {
  const double e = std::exp(-std::abs(x));
  return (x < 0 ? e : 1) / (1 + e);
}
/// Φ(x), the standard normal distribution function. erfc keeps the left tail accurate, whereas 1 +
/// erf would cancel there.
inline double normal_cdf(double x) { return 0.5 * std::erfc(-x * 0.70710678118654752440); }
inline double normal_pdf(double x) { return 0.39894228040143267794 * std::exp(-0.5 * x * x); }
/// gelu_tanh(x) = x (1 + tanh u) / 2 = x σ(2u). The next two functions return 2u and its
/// derivative.
inline double gelu_tanh_2u(double x) { return 1.5957691216057307118 * x * (1 + 0.044715 * x * x); }
inline double gelu_tanh_2du(double x) { return 1.5957691216057307118 * (1 + 3 * 0.044715 * x * x); }

}  // namespace unary_functions

/// f(x)
inline double unary_value(UnaryFunction f, double x) {
  switch (f) {
    case UnaryFunction::neg:
      return -x;
    case UnaryFunction::exp:
      return std::exp(x);
    case UnaryFunction::log:
      return std::log(x);
    case UnaryFunction::sqrt:
      return std::sqrt(x);
    case UnaryFunction::tanh:
      return std::tanh(x);
    case UnaryFunction::relu:
      return x <= 0 ? 0 : x;
    case UnaryFunction::sigmoid:
      return unary_functions::sigmoid(x);
    // These three are 0 at -inf, where their formulas would compute -inf * 0.
    case UnaryFunction::gelu:
      return x < -40 ? 0 : x * unary_functions::normal_cdf(x);
    case UnaryFunction::gelu_tanh:
      return x < -40 ? 0 : x * unary_functions::sigmoid(unary_functions::gelu_tanh_2u(x));
    case UnaryFunction::silu:
      return x < -800 ? 0 : x * unary_functions::sigmoid(x);
  }
  return x;
}

/// f'(x), from x or from y = f(x), according to unary_needs_x and unary_needs_y.
inline double unary_derivative(UnaryFunction f, double x, double y) {
  switch (f) {
    case UnaryFunction::neg:
      return -1;
    case UnaryFunction::exp:
      return y;
    case UnaryFunction::log:
      return 1 / x;
    case UnaryFunction::sqrt:
      return 0.5 / y;
    case UnaryFunction::tanh:
      return 1 - y * y;
    case UnaryFunction::relu:
      return y <= 0 ? 0 : 1;
    case UnaryFunction::sigmoid:
      return y * (1 - y);
    case UnaryFunction::gelu:
      if (std::abs(x) > 40) return x > 0 ? 1 : 0;
      return unary_functions::normal_cdf(x) + x * unary_functions::normal_pdf(x);
    case UnaryFunction::gelu_tanh: {
      if (std::abs(x) > 40) return x > 0 ? 1 : 0;
      const double u = unary_functions::gelu_tanh_2u(x), s = unary_functions::sigmoid(u);
      return s + x * s * unary_functions::sigmoid(-u) * unary_functions::gelu_tanh_2du(x);
    }
    case UnaryFunction::silu: {
      if (std::abs(x) > 800) return x > 0 ? 1 : 0;
      const double s = unary_functions::sigmoid(x);
      return s + x * s * unary_functions::sigmoid(-x);
    }
  }
  return 1;
}

}  // namespace heed
