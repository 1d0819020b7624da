#pragma once
/// Charts: marks over two axes. A scale maps values to a side of the plot; axes draw the scales.
#include <optional>
#include <string>
#include <vector>

#include "train/draw/svg.h"

namespace heed {

struct Point {
  double x = 0, y = 0;
};

/// Points joined by a line. It breaks at a point that is not finite.
struct Line {
  std::string name;  ///< in the legend; empty: not in it
  int colour = 0;    ///< any number; after palette_size colours they repeat, dashed
  bool faint = false;
  std::vector<Point> points;  ///< in ascending order of x
};

/// The area between two lines over the same x.
struct Band {
  int colour = 0;
  std::vector<double> x, low, high;
};

/// A bar from 0 to `y` over [left, right].
struct Bar {
  int colour = 0;
  double left = 0, right = 0, y = 0;
  std::string text;  ///< its tooltip
};

/// A highlighted point.
struct Dot {
  int colour = 0;
  Point at;
  std::string text;  ///< its tooltip
};

/// A tick on the x axis with a label of its own.
struct Tick {
  double at = 0;
  std::string text;
};

struct Chart {
  std::string title, x_label, y_label;
  bool log_x = false, log_y = false;    ///< values that are not above 0 are then left out
  std::optional<double> y_low, y_high;  ///< unset: from the marks
  std::vector<Tick> x_ticks;            ///< empty: numbers
  std::vector<Band> bands;
  std::vector<Bar> bars;
  std::vector<Line> lines;
  std::vector<Dot> dots;
  std::vector<std::pair<int, std::string>> legend;  ///< colours and names besides those of lines
};

/// Lines are reduced to what can be seen: in each column of pixels their first, lowest, highest and
/// last point. A chart without marks shows "no values".
Drawing drawn(const Chart& chart);

}  // namespace heed
