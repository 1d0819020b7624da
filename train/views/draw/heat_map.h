#pragma once
/// Heat maps: matrices drawn as areas of varying opacity.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "train/views/draw/svg.h"

namespace heed {

/// A matrix in row-major order.
struct HeatMap {
  std::int64_t rows = 0, columns = 0;
  std::vector<float> values;  ///< [rows, columns]; negative values are not drawn
  float largest = 1;          ///< value drawn with full opacity

  float at(std::int64_t row, std::int64_t column) const { return values[row * columns + column]; }
};

/// Reduces a map to at most `max_extent` rows and columns: each value is the mean of a block,
/// `largest` the largest mean, or 0 if all are negative. A map within these bounds is returned
/// unchanged.
HeatMap reduced(const HeatMap& map, std::int64_t max_extent);

/// The cells without labels, each width × height, in one path per level of opacity. Omits values
/// below `largest` / 24. Cells are drawn without anti-aliasing, which would show a seam between two
/// cells of the same level.
std::string heat_cells(const HeatMap& map, double width, double height);

/// The scale of a map's opacities: its lowest and highest value with `steps` cells between them,
/// and the meaning of the values.
struct HeatScale {
  std::string low, high, meaning;
  int steps = 12;
};
Drawing drawn(const HeatScale& scale);

/// The text of a labelled map.
struct MapText {
  std::string rows, columns;            ///< what the rows and the columns are
  std::string meaning;                  ///< the meaning of the values
  std::vector<std::string> cells = {};  ///< the text of each cell, in row-major order; empty: none
};

/// A map with row names on the left, column names above and a scale from 0 to `largest` below. Of
/// the four largest values in each row, those of at least `largest` / 20 have a tooltip "row →
/// column: value". Cells with text are larger if the map is small; text wider than its cell is
/// omitted.
Drawing labelled_map(const HeatMap& map, std::span<const std::string> rows,
                     std::span<const std::string> columns, const MapText& text);

}  // namespace heed
