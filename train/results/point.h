#pragma once

namespace heed {

/// A point of a curve or of a chart.
struct Point {
  double x = 0, y = 0;
};

}  // namespace heed
