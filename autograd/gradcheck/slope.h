#pragma once
/// The numeric side of the gradient checker: the slope at t = 0 of a function of one variable.
#include <functional>

#include "autograd/base/real.h"

HEED_BEGIN

/// s(t) − s(0) and an estimate of its rounding error. The value is the sum of the differences of
/// the individual outputs, because the difference of two sums would lose more digits.
struct Difference {
  double value = 0;
  double rounding = 0;
};
using Line = std::function<Difference(double t)>;

struct Slope {
  double value = 0;
  double uncertainty = 0;  ///< estimated error, from rounding and from comparing step sizes
  bool finite = false;     ///< some step size had a finite result
  bool kink = false;       ///< left and right slopes converge to different values
  double left = 0, right = 0;
};

/// The slope, as precisely as needed to decide whether it lies within `tolerance(slope)` of
/// `expected`. One stencil suffices if its slope lies within this tolerance and it shows no kink.
/// Otherwise, the step is halved until two step sizes agree; if rounding dominates, it is also
/// doubled. The first step is `step`, rounded down to a power of two.
Slope measure_slope(const Line& line, double expected, double step,
                    const std::function<double(double)>& tolerance);

HEED_END
