/// Errors against long double, in units in the last place. In float nothing here may be off by more
/// than 4; double has less room above it, so its limits are looser where long double's own rounding
/// or an argument's size shows.
#include <algorithm>

#include "autograd/kernels/elementwise.h"
#include "autograd/kernels/rows.h"
#include "kernel_testing.h"

using namespace heed;
using namespace heed::testing;
using kernels::Map;
using big = long double;

namespace {

constexpr big infinite = std::numeric_limits<big>::infinity();
const double limit = in_float ? 4 : 64;  // sums of 65,536 values in double have no wider type

/// Reports the worst error seen, so that the log shows how much room is left.
class Worst {
 public:
  explicit Worst(std::string what, double allowed = limit)
      : what_(std::move(what)), allowed_(allowed) {}
  ~Worst() {
    BOOST_TEST_MESSAGE(what_ << ": " << worst_ << " ulp");
    BOOST_CHECK_LE(worst_, allowed_);
  }
  void see(real got, big want, double at = 0) {
    const double error = ulps(got, want);
    worst_ = std::max(worst_, error);
    if (error > allowed_ && ++failures_ <= 5) {  // five of a kind are enough to read
      BOOST_ERROR(what_ << " at " << at << ": " << got << " where " << want << " is right, "
                        << error << " ulp");
    }
  }

 private:
  std::string what_;
  double allowed_, worst_ = 0;
  int failures_ = 0;
};

// ---- functions of one value ----------------------------------------------------------------

big sigmoid(big x) { return 1 / (1 + std::exp(-x)); }
big reference(Map f, big x) {
  if (std::isnan(x)) return x;
  switch (f) {
    case Map::exp:
      return std::exp(x);
    case Map::log:
      return std::log(x);
    case Map::tanh:
      return std::tanh(x);
    case Map::sigmoid:
      return sigmoid(x);
    case Map::gelu:
      return x == -infinite ? 0 : x * std::erfc(-x / std::sqrt(big{2})) / 2;
    case Map::silu:
      return x == -infinite ? 0 : x * sigmoid(x);
    case Map::gelu_tanh: {
      if (x < -100) return 0;
      const big u = std::sqrt(2 / std::acos(big{-1})) * (x + big{0.044715L} * x * x * x);
      return x * sigmoid(2 * u);
    }
    default:
      return x;
  }
}

void check_map(Map f, const char* name, double allowed, bool positive = false) {
  std::vector<real> x = awkward_values();
  const real most = in_float ? real(120) : real(800);
  for (const std::vector<real>& more : {normal_values(20000, 1, 1), normal_values(20000, 5, 2),
                                        normal_values(20000, in_float ? 40 : 300, 3)}) {
    x.insert(x.end(), more.begin(), more.end());
  }
  for (int i = 0; i < 20000; ++i) {  // evenly, and by magnitude down to the denormals
    x.push_back(most * static_cast<real>(i - 10000) / 10000);
    x.push_back((i % 2 ? 1 : -1) *
                std::pow(real(2), static_cast<real>(i - 16000) / (in_float ? 120 : 16)));
  }
  if (positive) std::erase_if(x, [](real v) { return !(v > 0); });
  std::vector<real> y(x.size());
  for_each_target([&](const std::string& target) {
    if (target == "plain") return;
    Worst worst(std::string(name) + " " + target, allowed);
    kernels::map(f, x.data(), y.data(), static_cast<std::int64_t>(x.size()));
    for (std::size_t i = 0; i < x.size(); ++i) worst.see(y[i], reference(f, x[i]), x[i]);
  });
}

// ---- rows ----------------------------------------------------------------------------------

/// Σ exp(x_j − m) over all but the first largest, in long double; an infinite m is taken as a
/// limit.
struct RowTruth {
  big m = -infinite, others = 0;
  std::size_t largest = 0;
  bool has_nan = false;

  explicit RowTruth(const std::vector<real>& x) {
    for (std::size_t j = 0; j < x.size(); ++j) {
      has_nan = has_nan || std::isnan(x[j]);
      if (x[j] > m) m = x[largest = j];
    }
    for (std::size_t j = 0; j < x.size(); ++j) others += j == largest ? 0 : weight(x[j]);
  }
  big weight(real x) const {
    if (has_nan) return not_a_number;
    if (x == -inf) return 0;
    return x == m ? 1 : std::exp(x - m);
  }
  big log_sum() const {
    return std::isinf(m) && !has_nan ? m : m + std::log1p(has_nan ? not_a_number : others);
  }
};

/// Every pair of the named values, rows of one kind, and random rows, of 1 to 65,536 values.
std::vector<std::vector<real>> awkward_rows() {
  const std::vector<real> values = {0,
                                    Limits::denorm_min(),
                                    -Limits::denorm_min(),
                                    real(1e-40),
                                    real(1e38),
                                    real(-1e38),
                                    inf,
                                    -inf,
                                    not_a_number,
                                    real(0.1),
                                    -1,
                                    real(-30)};
  std::vector<std::vector<real>> rows;
  for (const std::size_t n : {1, 2, 65536}) {
    for (const real a : values) {
      rows.emplace_back(n, a);
      if (n == 1) continue;
      for (const real b : values) {
        if (n > 2 && b != 0 && b != -1 && b != real(1e38)) continue;  // long rows: fewer of them
        rows.emplace_back(n, b);
        rows.back()[n / 2] = a;
      }
    }
  }
  for (const std::int64_t n : {1, 2, 3, 17, 64, 1000, 65536}) {
    for (const double size : {1e-3, 1.0, 5.0, 30.0, 1e3}) {
      for (std::uint64_t seed = 0; seed < (n < 100 ? 50 : n < 2000 ? 5 : 1); ++seed)
        rows.push_back(normal_values(n, size, seed));
    }
  }
  return rows;
}
const std::vector<std::vector<real>>& test_rows() {
  static const std::vector<std::vector<real>> rows = awkward_rows();
  return rows;
}

/// Normalisation in long double, of what it sees: infinities at their limit, as the kernels
/// promise.
struct NormTruth {
  std::vector<big> seen;
  big mean = 0, variance = 0, square = 0, eps;

  NormTruth(const std::vector<real>& x, big eps_) : seen(x.begin(), x.end()), eps(eps_) {
    const bool infinity = std::any_of(x.begin(), x.end(), [](real v) { return std::isinf(v); });
    if (infinity) {
      eps = 0;
      for (big& v : seen) v = std::isnan(v) ? v : std::isinf(v) ? std::copysign(big{1}, v) : 0;
    }
    const auto n = static_cast<big>(x.size());
    for (const big v : seen) mean += v, square += v * v / n;
    mean /= n;
    big error = 0;  // 65,536 doubles do not fit into a long double exactly either
    for (const big v : seen) error += (v - mean) / n;
    mean += error;
    for (const big v : seen) variance += (v - mean) * (v - mean) / n;
  }
  static big over_root(big v, big s) { return s == 0 ? 0 : v / std::sqrt(s); }
  big layer(std::size_t i) const { return over_root(seen[i] - mean, variance + eps); }
  big rms(std::size_t i) const { return over_root(seen[i], square + eps); }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(kernels_accuracy)

BOOST_AUTO_TEST_CASE(maps) {
  check_map(Map::gelu, "gelu", limit);
  check_map(Map::gelu_tanh, "gelu_tanh", in_float ? 4 : 5000);  // no wider type to work out u in
  check_map(Map::exp, "exp", 2);
  check_map(Map::sigmoid, "sigmoid", 4);
  check_map(Map::silu, "silu", 4);
  check_map(Map::tanh, "tanh", 5);
  check_map(Map::log, "log", 5, true);
}

BOOST_AUTO_TEST_CASE(softmax_and_log_sum_exp) {
  for_each_target([](const std::string& target) {
    if (target == "plain") return;
    Worst weights("softmax " + target), in_place("log Σ exp beside softmax, in place " + target),
        sums("log Σ exp " + target);
    for (const std::vector<real>& x : test_rows()) {
      const auto n = static_cast<std::int64_t>(x.size());
      const RowTruth truth(x);
      const big total = truth.m == -infinite ? 1 : 1 + truth.others;
      std::vector<real> y = x;
      const real log_sum = kernels::log_sum_exp_row(x.data(), n);
      const real beside = kernels::softmax_row(y.data(), y.data(), n);
      // Where m and the logarithm cancel, double has no wider type to be exact in.
      const bool well = in_float || std::abs(truth.log_sum()) > std::abs(truth.m) / 4 ||
                        std::isnan(truth.log_sum());
      if (well) sums.see(log_sum, truth.log_sum(), static_cast<double>(n));
      if (well) in_place.see(beside, truth.log_sum(), static_cast<double>(n));
      for (std::size_t i = 0; i < x.size(); ++i)
        weights.see(y[i], truth.weight(x[i]) / total, x[i]);
    }
  });
}

BOOST_AUTO_TEST_CASE(cross_entropy) {
  for_each_target([](const std::string& target) {
    if (target == "plain") return;
    Worst losses("cross-entropy " + target), smoothed("cross-entropy, smoothed " + target),
        at_target("its gradient at the target " + target);
    for (const std::vector<real>& x : test_rows()) {
      const RowTruth truth(x);
      const auto n = static_cast<std::int64_t>(x.size());
      big mean = 0;
      for (const real v : x) mean += (truth.m - v) / static_cast<big>(n);
      for (const std::size_t t : {std::size_t{0}, x.size() / 2, truth.largest}) {
        std::vector<real> logits = x;
        const auto row =
            kernels::cross_entropy_row(logits.data(), n, static_cast<std::int32_t>(t), 0, 1, true);
        const auto soft = kernels::cross_entropy_row(
            std::vector<real>(x).data(), n, static_cast<std::int32_t>(t), real(0.25), 1, true);
        const big nll = std::isinf(truth.m) && !truth.has_nan ? infinite
                        : truth.has_nan                       ? big{not_a_number}
                                        : (truth.m - x[t]) + std::log1p(truth.others);
        losses.see(static_cast<real>(row.loss), nll, x[t]);
        smoothed.see(static_cast<real>(soft.loss),
                     std::isinf(nll) || truth.has_nan
                         ? nll
                         : big{0.75} * nll + big{0.25} * (mean + std::log1p(truth.others)),
                     x[t]);
        if (std::isinf(truth.m) || truth.has_nan) continue;
        const big p = truth.weight(x[t]) / (1 + truth.others);
        at_target.see(logits[t], t == truth.largest ? -truth.others / (1 + truth.others) : p - 1,
                      x[t]);
      }
    }
  });
}

BOOST_AUTO_TEST_CASE(norms) {
  const real eps = real(1e-5);
  for_each_target([&](const std::string& target) {
    if (target == "plain") return;
    int wrong = 0;
    Worst layer("layer norm " + target), rms("RMS norm " + target, in_float ? 4 : 512);
    for (const std::vector<real>& x : test_rows()) {
      const auto n = static_cast<std::int64_t>(x.size());
      const NormTruth truth(x, eps);
      real mean = 0, scale = 0;
      std::vector<real> y(x.size()), z(x.size());
      kernels::layer_norm(x.data(), nullptr, nullptr, eps, y.data(), &mean, &scale, 1, n);
      kernels::rms_norm(x.data(), nullptr, eps, z.data(), &scale, 1, n);
      for (std::size_t i = 0; i < x.size(); ++i) {
        if (in_float) layer.see(y[i], truth.layer(i), x[i]);
        wrong += !in_float && !close(y[i], static_cast<real>(truth.layer(i)), 1e-10, 1);
        rms.see(z[i], truth.rms(i), x[i]);
      }
    }
    BOOST_CHECK_EQUAL(wrong, 0);
  });
}

BOOST_AUTO_TEST_SUITE_END()
