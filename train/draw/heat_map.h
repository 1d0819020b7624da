#pragma once
/// Matrices of values from 0 up as areas of varying opacity.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "train/draw/svg.h"

namespace heed {

/// A matrix to draw, row by row.
struct HeatMap {
  std::int64_t rows = 0, columns = 0;
  std::vector<float> values;  ///< [rows, columns], at least 0
  float largest = 1;          ///< the value of full opacity

  float at(std::int64_t row, std::int64_t column) const { return values[row * columns + column]; }
};

/// A map of at most `max_extent` rows and columns: each of its values is the mean of a block of the given
/// ones. `largest` becomes the largest of the means. The same map if it is small enough.
HeatMap reduced(const HeatMap& map, std::int64_t max_extent);

/// The cells alone, each width × height, in one path for each level of opacity; nothing for values
/// that would be nearly invisible.
std::string heat_cells(const HeatMap& map, double width, double height);

/// A map with row names on the left and column names above. The four largest cells
/// of each row have a tooltip "row → column: value", if they have at least a twentieth of the largest
/// value.
Drawing labelled_map(const HeatMap& map, std::span<const std::string> rows,
                     std::span<const std::string> columns);

}  // namespace heed
