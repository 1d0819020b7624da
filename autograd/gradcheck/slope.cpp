#include "autograd/gradcheck/slope.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

HEED_BEGIN

namespace {

constexpr int halvings = 20;  // reduces ε^(1/5) to about 1e-9 in float64
constexpr int patience = 12;  // number of halvings without progress before the search ends
constexpr int doublings = 5;
// Number of consecutive halvings that must leave the gap between the left and the right slope
// unchanged for it to count as a kink.
constexpr int halvings_of_a_kink = 3;
// Number of consecutive halvings that must shrink this gap for the function to count as smooth.
constexpr int halvings_of_a_curve = 2;

/// s at ±h and ±2h, minus s(0).
struct Stencil {
  double h = 0;
  Difference outer_left, left, right, outer_right;

  /// Abramowitz and Stegun 25.3.6.
  double central() const {
    return (8 * (right.value - left.value) - (outer_right.value - outer_left.value)) / (12 * h);
  }
  /// Quadratic extrapolation from one side; its error is O(h²).
  double from_right() const { return (4 * right.value - outer_right.value) / (2 * h); }
  double from_left() const { return (outer_left.value - 4 * left.value) / (2 * h); }
  double gap() const { return from_right() - from_left(); }
  double rounding() const {
    return (8 * (right.rounding + left.rounding) + outer_right.rounding + outer_left.rounding) /
           (12 * h);
  }
};

/// Whether halving h leaves the gap between the right and the left slope unchanged, to within the
/// fraction `within`, as at a kink. If the function is smooth, the gap, about −s⁽⁴⁾h³/2, shrinks by
/// a factor of 8. The result is false for a gap below `min_gap` or within rounding.
bool gap_remains(const Stencil& wide, const Stencil& narrow, double min_gap, double within) {
  const double gap = narrow.gap();
  return std::abs(gap) > std::max(min_gap, 50 * narrow.rounding()) &&
         std::abs(gap - wide.gap()) <= within * std::abs(gap);
}

/// Whether halving the step shrinks the gap as for a smooth function, or the gap is too small to
/// matter. The agreement of two step sizes is no proof of smoothness: with several kinks within the
/// stencil, they may agree on a wrong slope by accident.
bool gap_shrinks(const Stencil& wide, const Stencil& narrow, double min_gap) {
  return std::abs(narrow.gap()) <=
         std::max({min_gap, 50 * narrow.rounding(), 0.25 * std::abs(wide.gap())});
}

/// Whether the slopes from both sides differ; for a smooth function, they are nearly equal. The
/// central slope alone does not reveal a kink: it may have the expected value, as for |x| at 0.
bool may_be_a_kink(const Stencil& s) {
  const double slopes = std::max(std::abs(s.from_left()), std::abs(s.from_right()));
  return std::abs(s.gap()) > std::max(1e-2 * slopes, 50 * s.rounding());
}

/// The best estimate so far, from two step sizes.
struct Best : Slope {
  bool smooth = false;  ///< the gap shrinks between the two step sizes and at every smaller one
};

/// Updates `best` and returns true if the new pair of stencils is better. A smooth pair is better
/// than one that is not smooth; otherwise, the pair with the smaller uncertainty is better.
bool keep_better(Best& best, const Stencil& wide, const Stencil& narrow, double min_gap) {
  const double difference = std::abs(wide.central() - narrow.central());
  if (!std::isfinite(difference)) return false;
  const double uncertainty = std::max(difference, std::min(wide.rounding(), narrow.rounding()));
  const bool smooth = gap_shrinks(wide, narrow, min_gap);
  const bool better = smooth == best.smooth ? uncertainty < best.uncertainty : smooth;
  if (best.finite && !better) return false;
  best.value = wide.rounding() < narrow.rounding() ? wide.central() : narrow.central();
  if (difference > wide.rounding() + narrow.rounding()) best.value = narrow.central();
  best.uncertainty = uncertainty;
  best.finite = true;
  best.smooth = smooth;
  return true;
}

}  // namespace

Slope measure_slope(const Line& line, double expected, double step,
                    const std::function<double(double)>& tolerance) {
  step = std::exp2(std::floor(std::log2(step)));  // a power of two makes halving exact
  const Stencil first{step, line(-2 * step), line(-step), line(step), line(2 * step)};
  Best best;
  std::optional<Slope> right;  // slope of the first stencil, if it agrees with the expected one
  if (std::isfinite(first.central())) {
    static_cast<Slope&>(best) = {first.central(), first.rounding(),  true,
                                 false,           first.from_left(), first.from_right()};
    if (std::abs(expected - best.value) <= tolerance(best.value)) right = best;
    if (right && !may_be_a_kink(first)) return best;
    best.uncertainty = std::numeric_limits<double>::infinity();
  }

  Stencil now = first;
  std::optional<Stencil> bent;  // the narrowest stencil that shows a kink
  bool remains = false;
  int stuck = 0, steady = 0, smooth = 0;
  for (int k = 0; k < halvings; ++k) {
    const double h = now.h / 2;
    const Stencil next{h, now.left, line(-h), line(h), now.right};
    const double min_gap =
        tolerance(std::max(std::abs(next.from_left()), std::abs(next.from_right())));
    if (bent && 50 * next.rounding() > 0.5 * std::abs(bent->gap())) {
      // Smaller steps cannot show whether the kink is at x or beside it: rounding would hide the
      // difference.
      remains = true;
      break;
    }
    const bool before = remains;
    remains = gap_remains(now, next, min_gap, 0.1);
    steady = remains ? steady + 1 : 0;
    // While a kink lies within the stencil, two step sizes may agree on a mean of the slopes on its
    // two sides.
    const bool better = !remains && keep_better(best, now, next, min_gap);
    stuck = better || remains || before || !best.finite ? 0 : stuck + 1;
    smooth = gap_shrinks(now, next, min_gap) ? smooth + 1 : 0;
    best.smooth = best.smooth && smooth > 0;
    const bool at_kink = remains && gap_remains(now, next, min_gap, 1e-6);
    now = next;
    if (at_kink || steady >= halvings_of_a_kink) bent = now;
    if (at_kink) break;
    // A kink near x resembles one at x until the steps are smaller than its distance from x.
    if (remains || !best.finite) continue;
    if (right && !bent) return *right;  // curved without a kink
    if (stuck == patience) break;
    if (best.smooth && smooth >= halvings_of_a_curve &&
        (best.uncertainty <= 0.1 * tolerance(best.value) || now.rounding() > 10 * best.uncertainty))
      break;
  }
  const bool converged = best.finite && best.uncertainty <= tolerance(best.value);
  if (bent && (remains || !converged)) {
    const double value = bent->central();
    return {value, bent->rounding(),  std::isfinite(value),
            true,  bent->from_left(), bent->from_right()};
  }
  if (bent) return best;  // larger steps would agree on a mean of the slopes beside the kink
  const Stencil narrowest = now;
  now = first;  // larger steps are more precise if rounding dominates
  for (int k = 0; k < doublings && best.finite && best.uncertainty > 0.1 * tolerance(best.value);
       ++k) {
    const double h = 2 * now.h;
    const Stencil next{h, line(-2 * h), now.outer_left, now.outer_right, line(2 * h)};
    keep_better(best, next, now,
                tolerance(std::max(std::abs(now.from_left()), std::abs(now.from_right()))));
    now = next;
  }
  if (!best.smooth) best.uncertainty = std::max(best.uncertainty, std::abs(narrowest.gap()));
  return best;
}

HEED_END
