#pragma once
/// Maps from the scores S of a query to weights P over the keys that it reads:
/// - softmax: P = exp(S) / Σ exp(S)
/// - sum: P = S / Σ S. Weights may be negative, and diverge as Σ S approaches 0.
/// - hard: P = 1 for the largest score (the first of equal ones), 0 for all others. The true
///   gradient is 0 almost everywhere, so backward uses that of softmax (a straight-through
///   estimator: Bengio, Léonard and Courville 2013; Jang et al. 2017).
#include <algorithm>
#include <cmath>

#include "autograd/base/enum_names.h"
#include "autograd/kernels/fast/attention.h"
#include "autograd/kernels/rows.h"

namespace heed {

enum class ScoreMap { softmax, sum, hard };
constexpr auto names_of(ScoreMap) { return enum_names<ScoreMap>("softmax", "sum", "hard"); }

}  // namespace heed

HEED_BEGIN
namespace kernels {

/// Divides n scores by their sum Σ S and returns this sum.
inline real divide_by_sum(real* scores, std::int64_t n) {
  double sum = 0;
  for (std::int64_t j = 0; j < n; ++j) sum += scores[j];
  for (std::int64_t j = 0; j < n; ++j) scores[j] = static_cast<real>(scores[j] / sum);
  return static_cast<real>(sum);
}

/// Sets the first of the largest softmax weights to 1 and all others to 0. NaN remains NaN.
inline void keep_first_largest(real* weights, std::int64_t n) {
  if (n == 0 || std::isnan(weights[0])) return;  // softmax returns NaN for all keys or for none
  real* const largest = std::max_element(weights, weights + n);
  std::fill(weights, weights + n, real(0));
  *largest = 1;
}

/// Replaces the scores of one query, which reads n keys, by its weights.
inline void map_scores(ScoreMap map, real* scores, std::int64_t n) {
  if (map == ScoreMap::sum) {
    divide_by_sum(scores, n);
    return;
  }
  softmax_row(scores, scores, n);
  if (map == ScoreMap::hard) keep_first_largest(scores, n);
}

}  // namespace kernels
HEED_END
