/// Compares the kernels with references in long double; errors are in units in the last place
/// (accuracy.h). Runs on every instruction set. The scalar references, which are the kernels of
/// machines without suitable vector instructions, are tested in the float build only.
#include <bit>
#include <type_traits>

#include "accuracy.h"
#include "autograd/kernels/elementwise.h"
#include "autograd/kernels/fast/rows.h"
#include "autograd/kernels/fast/unary_names.h"

using namespace heed;
using namespace heed::testing;

BOOST_AUTO_TEST_SUITE(kernels_accuracy)
using kernels::UnaryFunction;

namespace {

/// Runs body(name) for each instruction set. The double build skips the scalar references: they
/// compute in double, so their errors may exceed the limits for results in double.
template <class Body>
void for_each_accurate_target(const Body& body) {
  for_each_target([&](const std::string& target) {
    if (in_float || target != "plain") body(target);
  });
}

big sigmoid(big x) { return 1 / (1 + std::exp(-x)); }
big reference(UnaryFunction f, big x) {
  if (std::isnan(x)) return x;
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
      return std::max(x, big{0});
    case UnaryFunction::sigmoid:
      return sigmoid(x);
    case UnaryFunction::gelu:
      return x == -infinite ? 0 : x * std::erfc(-x / std::sqrt(big{2})) / 2;
    case UnaryFunction::silu:
      return x == -infinite ? 0 : x * sigmoid(x);
    case UnaryFunction::gelu_tanh: {
      if (x < -100) return 0;
      const big u = std::sqrt(2 / std::acos(big{-1})) * (x + big{0.044715L} * x * x * x);
      return x * sigmoid(2 * u);
    }
    default:
      return unary_value(f, static_cast<double>(x));
  }
}

/// Difficult values, random values at several scales, evenly spaced values, powers of 2 down to the
/// denormals, and evenly spaced bit patterns, including NaNs.
const Row& arguments() {
  static const Row values = [] {
    Row x = awkward_values();
    for (const Row& more : {normal_values(20000, 1, 1), normal_values(20000, 5, 2),
                            normal_values(20000, in_float ? 40 : 300, 3)}) {
      x.insert(x.end(), more.begin(), more.end());
    }
    const real largest = in_float ? real(120) : real(800);
    for (int i = 0; i < 20000; ++i) {
      x.push_back(largest * static_cast<real>(i - 10000) / 10000);
      x.push_back((i % 2 ? 1 : -1) *
                  std::pow(real(2), static_cast<real>(i - 16000) / (in_float ? 120 : 16)));
    }
    using Bits = std::conditional_t<in_float, std::uint32_t, std::uint64_t>;
    constexpr Bits count = 1 << 17, step = std::numeric_limits<Bits>::max() / count;
    for (Bits i = 0; i < count; ++i) x.push_back(std::bit_cast<real>(i * step));
    return x;
  }();
  return values;
}

/// The permitted error of a function, in units in the last place.
double allowed(UnaryFunction f) {
  switch (f) {
    case UnaryFunction::neg:
    case UnaryFunction::relu:
      return 0;
    case UnaryFunction::sqrt:
      return 0.501;
    case UnaryFunction::exp:
      return 2;
    case UnaryFunction::gelu:
      return limit;
    case UnaryFunction::gelu_tanh:
      return in_float ? 4 : 5000;  // in double, u itself has rounding errors
    default:
      return 4;
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(unary_functions_are_accurate) {
  const Row& x = arguments();
  Row y(x.size());
  for (std::size_t k = 0; k < unary_function_count; ++k) {
    const UnaryFunction f = static_cast<UnaryFunction>(k);
    for_each_accurate_target([&](const std::string& target) {
      MaxError worst(std::string(name_of(f)) + " " + target, allowed(f));
      kernels::unary(f, x.data(), y.data(), static_cast<std::int64_t>(x.size()));
      for (std::size_t i = 0; i < x.size(); ++i) worst.check(y[i], reference(f, x[i]), x[i]);
    });
  }
}

BOOST_AUTO_TEST_CASE(softmax_and_log_sum_exp_are_accurate) {
  for_each_accurate_target([](const std::string& target) {
    MaxError weights("softmax " + target), in_place("log Σ exp returned by softmax " + target),
        sums("log Σ exp " + target);
    for (const Row& x : test_rows()) {
      const auto n = static_cast<std::int64_t>(x.size());
      const ExactRow exact(x);
      Row y = x;
      const real log_sum = kernels::log_sum_exp_row(x.data(), n);
      const real beside = kernels::softmax_row(y.data(), y.data(), n);
      const big slack = std::isfinite(exact.m) ? in_sum * std::abs(exact.m)
                                               : 0;  // m and log(1 + rest) may cancel
      sums.check(log_sum, exact.log_sum(), static_cast<double>(n), slack);
      in_place.check(beside, exact.log_sum(), static_cast<double>(n), slack);
      for (std::size_t i = 0; i < x.size(); ++i) weights.check(y[i], exact.softmax(x[i]), x[i]);
    }
  });
}

// In these short rows, the largest value and log(1 + rest) nearly cancel. In the double build,
// 1 + rest may also be off by a few units, because the kernels have no wider type.
BOOST_AUTO_TEST_CASE(log_sum_exp_near_zero_is_accurate) {
  for_each_accurate_target([](const std::string& target) {
    MaxError sums("log Σ exp near 0 " + target);
    Random random(RandomKey{.seed = 3});
    for (int i = 0; i < 200000; ++i) {
      Row x(static_cast<std::size_t>(2 + i % 3));
      const double largest = -std::log(static_cast<double>(x.size())) * random.uniform();
      for (real& v : x) v = static_cast<real>(largest + 2 * std::log(random.uniform() + 1e-9));
      x[0] = static_cast<real>(largest);
      const ExactRow exact(x);
      sums.check(kernels::log_sum_exp_row(x.data(), static_cast<std::int64_t>(x.size())),
                 exact.log_sum(), x[0], in_sum * (in_float ? std::abs(exact.m) : 1));
    }
  });
}

BOOST_AUTO_TEST_CASE(log_softmax_is_accurate) {
  for_each_accurate_target([](const std::string& target) {
    MaxError logs("log-softmax " + target);
    for (const Row& x : test_rows()) {
      const ExactRow exact(x);
      Row y = x;
      kernels::log_softmax_row(y.data(), y.data(), static_cast<std::int64_t>(x.size()));
      for (std::size_t i = 0; i < x.size(); ++i) logs.check(y[i], exact.log_softmax(x[i]), x[i]);
    }
  });
}

BOOST_AUTO_TEST_CASE(cross_entropy_is_accurate) {
  for_each_accurate_target([](const std::string& target) {
    MaxError losses("cross-entropy " + target), smoothed("cross-entropy, smoothed " + target);
    for (const Row& x : test_rows()) {
      const ExactRow exact(x);
      const auto n = static_cast<std::int64_t>(x.size());
      const bool unlikely = std::isinf(exact.m) && !exact.has_nan;
      big mean = 0;
      for (const real v : x) mean += (exact.m - v) / static_cast<big>(n);
      for (const std::size_t t : {std::size_t{0}, x.size() / 2, exact.largest}) {
        const auto loss_of = [&](real smoothing) {
          Row logits = x;
          return kernels::cross_entropy_row(logits.data(), n, static_cast<std::int32_t>(t),
                                            smoothing, 1, false)
              .loss;
        };
        const big log_total = exact.has_nan ? big{not_a_number} : std::log1p(exact.rest);
        const big nll = unlikely ? infinite : (exact.m - x[t]) + log_total;
        const big soft = unlikely ? infinite : big{0.75} * nll + big{0.25} * (mean + log_total);
        losses.check(static_cast<real>(loss_of(0)), nll, x[t]);
        smoothed.check(static_cast<real>(loss_of(real(0.25))), soft, x[t]);
      }
    }
  });
}

// The mean and the sums are computed in double. Because x − mean may cancel, an error of
// in_sum · max |x| · rstd is allowed in x̂. Because x̂ · gain + bias may cancel, an additional
// error of in_sum · |x̂ · gain| is allowed in this sum.
BOOST_AUTO_TEST_CASE(norms_are_accurate) {
  const real eps = real(1e-5);
  for_each_accurate_target([&](const std::string& target) {
    MaxError layer("layer norm " + target, in_float ? 4 : 512),
        rms("RMS norm " + target, in_float ? 4 : 512),
        affine("layer norm with gain and bias " + target);
    for (const Row& x : test_rows()) {
      const auto n = static_cast<std::int64_t>(x.size());
      const ExactNorm exact(x, eps);
      real mean = 0, scale = 0;
      Row y(x.size()), z(x.size()), moved(x.size());
      const Row gain = normal_values(n, 1, 8), bias = normal_values(n, 1, 9);
      kernels::layer_norm(x.data(), nullptr, nullptr, eps, y.data(), &mean, &scale, 1, n);
      kernels::layer_norm(x.data(), gain.data(), bias.data(), eps, moved.data(), &mean, &scale, 1,
                          n);
      kernels::rms_norm(x.data(), nullptr, eps, z.data(), &scale, 1, n);
      const big slack = in_sum * exact.largest * exact.layer_root();
      for (std::size_t i = 0; i < x.size(); ++i) {
        layer.check(y[i], exact.layer(i), x[i], slack);
        affine.check(moved[i], exact.layer(i) * gain[i] + bias[i], x[i],
                     (slack + in_sum * std::abs(exact.layer(i))) * std::abs(gain[i]));
        rms.check(z[i], exact.rms(i), x[i]);
      }
    }
  });
}

BOOST_AUTO_TEST_SUITE_END()
