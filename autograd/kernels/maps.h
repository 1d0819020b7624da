#pragma once
/// Functions of one value: their names and, in double, their formulas and derivatives. These are
/// the plain twins of simd/maps-inl.h. A new activation goes into HEED_ACTIVATIONS, any
/// other function into the enum and its names; both need a case in each function below; the tests then include it.
#include <cmath>

#include "autograd/base/enum_names.h"

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
#define HEED_NAME(name) #name,
enum class Map { HEED_ACTIVATIONS(HEED_ENUMERATOR) neg, exp, log, sqrt };
constexpr auto names_of(Map) {
  return enum_names<Map>(HEED_ACTIVATIONS(HEED_NAME) "neg", "exp", "log", "sqrt");
}
#undef HEED_ENUMERATOR
#undef HEED_NAME

inline constexpr std::size_t map_count = names_of(Map{}).size();
/// The number of activations: the maps before neg.
inline constexpr std::size_t activation_count = static_cast<std::size_t>(Map::neg);

/// What f's derivative is computed from: x, y = f(x), or neither.
constexpr bool map_needs_x(Map f) {
  return f == Map::log || f == Map::gelu || f == Map::gelu_tanh || f == Map::silu;
}
constexpr bool map_needs_y(Map f) {
  return f == Map::exp || f == Map::sqrt || f == Map::tanh || f == Map::relu || f == Map::sigmoid;
}

namespace maps {

/// σ(x) = 1 / (1 + e^-x), computed from the side where the exponential is at most 1.
inline double sigmoid(double x) {
  const double e = std::exp(-std::abs(x));
  return (x < 0 ? e : 1) / (1 + e);
}
/// Φ(x), the normal distribution. erfc keeps the left tail exact where 1 + erf would cancel.
inline double normal_cdf(double x) { return 0.5 * std::erfc(-x * 0.70710678118654752440); }
inline double normal_pdf(double x) { return 0.39894228040143267794 * std::exp(-0.5 * x * x); }
/// gelu_tanh(x) = x (1 + tanh u) / 2 = x σ(2u); this is 2u and its derivative.
inline double gelu_tanh_2u(double x) { return 1.5957691216057307118 * x * (1 + 0.044715 * x * x); }
inline double gelu_tanh_2du(double x) { return 1.5957691216057307118 * (1 + 3 * 0.044715 * x * x); }

}  // namespace maps

/// f(x)
inline double map_value(Map f, double x) {
  switch (f) {
    case Map::neg:
      return -x;
    case Map::exp:
      return std::exp(x);
    case Map::log:
      return std::log(x);
    case Map::sqrt:
      return std::sqrt(x);
    case Map::tanh:
      return std::tanh(x);
    case Map::relu:
      return x <= 0 ? 0 : x;
    case Map::sigmoid:
      return maps::sigmoid(x);
    // These three are 0 at -inf, where their formulas would compute -inf * 0.
    case Map::gelu:
      return x < -40 ? 0 : x * maps::normal_cdf(x);
    case Map::gelu_tanh:
      return x < -40 ? 0 : x * maps::sigmoid(maps::gelu_tanh_2u(x));
    case Map::silu:
      return x < -800 ? 0 : x * maps::sigmoid(x);
  }
  return x;
}

/// f'(x), from x or from y = f(x), as map_needs_x and map_needs_y say.
inline double map_derivative(Map f, double x, double y) {
  switch (f) {
    case Map::neg:
      return -1;
    case Map::exp:
      return y;
    case Map::log:
      return 1 / x;
    case Map::sqrt:
      return 0.5 / y;
    case Map::tanh:
      return 1 - y * y;
    case Map::relu:
      return y <= 0 ? 0 : 1;
    case Map::sigmoid:
      return y * (1 - y);
    case Map::gelu:
      if (std::abs(x) > 40) return x > 0 ? 1 : 0;
      return maps::normal_cdf(x) + x * maps::normal_pdf(x);
    case Map::gelu_tanh: {
      if (std::abs(x) > 40) return x > 0 ? 1 : 0;
      const double u = maps::gelu_tanh_2u(x), s = maps::sigmoid(u);
      return s + x * s * maps::sigmoid(-u) * maps::gelu_tanh_2du(x);
    }
    case Map::silu: {
      if (std::abs(x) > 800) return x > 0 ? 1 : 0;
      const double s = maps::sigmoid(x);
      return s + x * s * maps::sigmoid(-x);
    }
  }
  return 1;
}

}  // namespace heed
