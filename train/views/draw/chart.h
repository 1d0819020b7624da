#pragma once
/// Charts: lines, bars, bands and dots over two axes with linear or logarithmic scales.
#include <optional>
#include <string>
#include <vector>

#include "train/results/point.h"
#include "train/views/draw/svg.h"

namespace heed {

/// Points joined by a line, which breaks at points that are not finite.
struct Line {
  std::string name;  ///< name in the legend; empty: none
  /// Index of a colour. After palette_size indices, the colours repeat, dashed and solid in turn.
  int colour = 0;
  bool faint = false;
  std::vector<Point> points;  ///< points in ascending order of x
};

/// The area between two lines.
struct Band {
  int colour = 0;
  std::vector<Point> low, high;
};

/// A bar from 0 to `y` over [left, right].
struct Bar {
  int colour = 0;
  double left = 0, right = 0, y = 0;
  std::string text;  ///< tooltip
};

/// A highlighted point.
struct Dot {
  int colour = 0;
  Point at;
  std::string text;  ///< tooltip
};

/// A labelled tick on the x axis.
struct Tick {
  double at = 0;
  std::string text;
};

struct Chart {
  std::string title = {}, x_label = {}, y_label = {};
  bool log_x = false, log_y = false;  ///< logarithmic axes, which omit values that are not positive
  std::optional<double> y_low = {},
                        y_high = {};  ///< bounds of the y axis; unset: those of the values
  std::vector<Tick> x_ticks = {};     ///< ticks of the x axis; empty: round numbers
  std::vector<Band> bands = {};
  std::vector<Bar> bars = {};
  std::vector<Line> lines = {};
  std::vector<Dot> dots = {};
  std::vector<std::pair<int, std::string>> legend =
      {};  ///< entries besides the lines: colour and name
};

/// Draws a chart. If more than four successive points of a line are in the same column of pixels,
/// only the first, lowest, highest and last of them are drawn. Lines that coincide are dashed, so
/// that their colours alternate. If an axis has no value that it can show, the chart is an empty
/// frame with the title and the text "no values".
Drawing drawn(const Chart& chart);

}  // namespace heed
