#pragma once
/// Helpers of the accuracy tests: errors in units in the last place, rows of difficult values,
/// and reference results in long double.
///
/// An error is measured in units in the last place of the exact result (near 0, in the smallest
/// denormal). A sum whose terms cancel loses digits, so a larger error is allowed. If the sum is
/// computed in double, an error of `slack` is allowed: `in_sum` times the largest term or a bound
/// on it. If the terms are rounded to float, the error is measured in units in the last place of
/// the largest term. Each test states which of the two applies.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "kernel_testing.h"

HEED_BEGIN
namespace testing {

using big = long double;
constexpr big infinite = std::numeric_limits<big>::infinity();
/// The error limit in units in the last place. It is higher in the double build, because the
/// kernels have no wider type for sums of 65,536 values.
constexpr double limit = in_float ? 4 : 64;
/// The error limit of a sum of up to 65,536 terms in double, relative to its largest term.
constexpr big in_sum = in_float ? 0x1p-49L : 0x1p-44L;

/// The unit in the last place of `real` at v.
inline big unit_at(big v) {
  return std::nextafter(static_cast<real>(std::abs(v)), inf) - static_cast<real>(std::abs(v));
}

/// Checks that errors are within a limit. The destructor logs the maximum error, which shows the
/// margin, and fails if it exceeds the limit or if no value was checked.
class MaxError {
 public:
  explicit MaxError(std::string what, double allowed = limit)
      : what_(std::move(what)), allowed_(allowed) {}
  MaxError(const MaxError&) = delete;
  ~MaxError() {
    BOOST_TEST_MESSAGE(what_ << ": maximum error " << worst_ << " ulp; values checked: " << count_);
    BOOST_CHECK_LE(worst_, allowed_);
    BOOST_CHECK_GT(count_, 0);
  }
  /// `at` identifies the value in messages. Errors of up to `slack` count as 0. If `largest`, the
  /// largest term of a sum, exceeds |expected|, errors are in units in the last place of `largest`.
  void check(real got, big expected, double at = 0, big slack = 0, big largest = 0) {
    ++count_;
    double error = ulps(got, expected);
    if (std::isfinite(got) && !std::isnan(expected)) {
      const big apart = std::abs(got - expected);
      if (largest > std::abs(expected)) error = static_cast<double>(apart / unit_at(largest));
      if (apart <= slack) error = 0;
    }
    worst_ = std::max(worst_, error);
    if (error > allowed_ && ++failures_ <= 5) {  // print at most five failures
      BOOST_ERROR(what_ << " at " << at << ": " << got << ", expected " << expected << ", error "
                        << error << " ulp");
    }
  }

 private:
  std::string what_;
  double allowed_, worst_ = 0;
  int failures_ = 0;
  std::int64_t count_ = 0;
};

using Row = std::vector<real>;

inline const Row& special_values() {
  static const Row values = {0,
                             real(-0.0),
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
  return values;
}

/// Adds rows that repeat one value, some of them with another value in the middle.
inline void add_pairs(std::vector<Row>& rows) {
  for (const std::size_t n : {1, 2, 3, 16, 17, 1025, 65536}) {
    for (const real a : special_values()) {
      rows.emplace_back(n, a);
      if (n == 1) continue;
      for (const real b : special_values()) {
        if (n > 2 && b != 0 && b != -1 && b != real(1e38)) continue;
        if (n > 2000 && b != -1) continue;  // fewer long rows
        rows.emplace_back(n, b);
        rows.back()[n / 2] = a;
      }
    }
  }
}

/// Adds rows of random values at several scales, then rows of random values with special values at
/// random positions: in one row finite ones, in the next −inf, then +inf and finite ones, then all.
inline void add_random(std::vector<Row>& rows) {
  const std::vector<Row> strewn = {{0, Limits::denorm_min(), real(-1e-40), real(1e38), real(-1e38)},
                                   {-inf},
                                   {real(-1e38), 0, inf},
                                   special_values()};
  for (const std::int64_t n : {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 64, 127, 1000, 1025, 65536}) {
    for (const double size : {1e-3, 1.0, 5.0, 30.0, 1e3}) {
      for (std::uint64_t seed = 0; seed < (n < 100 ? 20 : n < 2000 ? 5 : 1); ++seed)
        rows.push_back(normal_values(n, size, seed));
    }
    for (std::uint64_t seed = 0; seed < (n < 100 ? 8 : 1); ++seed) {
      for (const Row& values : strewn) {
        rows.push_back(normal_values(n, 3, seed));
        Random random(RandomKey{.seed = seed, .index = static_cast<std::uint64_t>(n)});
        for (real& v : rows.back()) {
          if (random.below(7) == 0)
            v = values[random.below(static_cast<std::uint32_t>(values.size()))];
        }
      }
    }
  }
}

/// Adds rows whose log Σ exp is close to 0: n values near −log n, since n e^(−log n) = 1, and rows
/// of one value near 0 and much smaller ones.
inline void add_cancelling(std::vector<Row>& rows) {
  for (const std::size_t n : {1, 2, 3, 17, 1000, 65536}) {
    const auto value = static_cast<real>(-std::log(static_cast<big>(n)));
    rows.emplace_back(n, value);
    for (const real to : {inf, -inf}) {
      rows.emplace_back(n, value);
      rows.back()[n / 2] = std::nextafter(value, to);
    }
  }
  rows.push_back({0, real(-30), real(-31)});
  rows.push_back({real(-1e-8), real(-18.42), real(-40)});
  rows.push_back({real(-40), real(1e-30), real(-90)});
}

inline const std::vector<Row>& test_rows() {
  static const std::vector<Row> rows = [] {
    std::vector<Row> all;
    add_pairs(all);
    add_random(all);
    add_cancelling(all);
    return all;
  }();
  return rows;
}
inline bool all_finite(const Row& x) {
  return std::all_of(x.begin(), x.end(), [](real v) { return std::isfinite(v); });
}

/// The exact softmax, log-softmax and log Σ exp of a row with maximum m; limits if m is infinite.
/// `rest` is Σ exp(x_j − m) without the term of the first maximum.
struct ExactRow {
  big m = -infinite, rest = 0;
  std::size_t largest = 0;
  bool has_nan = false;

  explicit ExactRow(const Row& x) {
    for (std::size_t j = 0; j < x.size(); ++j) {
      has_nan = has_nan || std::isnan(x[j]);
      if (x[j] > m) m = x[largest = j];
    }
    for (std::size_t j = 0; j < x.size(); ++j) rest += j == largest ? 0 : weight(x[j]);
  }
  big weight(real x) const {
    if (has_nan) return not_a_number;
    if (x == -inf) return 0;
    return x == m ? 1 : std::exp(x - m);
  }
  /// The softmax of one value; 0 if all values are −inf.
  big softmax(real x) const { return m == -infinite && !has_nan ? 0 : weight(x) / (1 + rest); }
  big log_sum() const {
    return std::isinf(m) && !has_nan ? m : m + std::log1p(has_nan ? not_a_number : rest);
  }
  big log_softmax(real x) const {
    if (has_nan) return not_a_number;
    if (x == -inf) return -infinite;
    return (x == m ? 0 : x - m) - std::log1p(rest);
  }
};

/// The exact layer norm and RMS norm of a row. For a row with infinities, they are limits, as in
/// the kernels.
struct ExactNorm {
  std::vector<big> norm_input;
  big mean = 0, variance = 0, square = 0, largest = 0, eps;

  ExactNorm(const Row& x, big eps_) : norm_input(x.begin(), x.end()), eps(eps_) {
    const bool infinity = std::any_of(x.begin(), x.end(), [](real v) { return std::isinf(v); });
    if (infinity) {
      eps = 0;
      for (big& v : norm_input)
        v = std::isnan(v) ? v : std::isinf(v) ? std::copysign(big{1}, v) : 0;
    }
    const auto n = static_cast<big>(x.size());
    for (const big v : norm_input) {
      mean += v;
      square += v * v / n;
      largest = std::max(largest, std::abs(v));
    }
    mean /= n;
    big error = 0;  // a long double cannot represent a sum of 65,536 doubles exactly
    for (const big v : norm_input) error += (v - mean) / n;
    mean += error;
    for (const big v : norm_input) variance += (v - mean) * (v - mean) / n;
  }
  static big over_root(big v, big s) { return s == 0 ? 0 : v / std::sqrt(s); }
  big layer_root() const { return over_root(1, variance + eps); }
  big rms_root() const { return over_root(1, square + eps); }
  big layer(std::size_t i) const { return over_root(norm_input[i] - mean, variance + eps); }
  big rms(std::size_t i) const { return over_root(norm_input[i], square + eps); }
};

}  // namespace testing
HEED_END
