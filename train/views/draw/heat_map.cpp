#include "train/views/draw/heat_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>

#include "autograd/io/message_text.h"

namespace heed {

namespace {

constexpr int shades = 12;

/// The opacity level of a value: 0 (not drawn) to `shades`.
int level_of(float value, float largest) {
  if (!(value > 0) || !(largest > 0)) return 0;
  return std::clamp(static_cast<int>(std::lround(shades * value / largest)), 0, shades);
}

/// The columns of the n largest values of a row, in ascending order. Of equal values, the first
/// are chosen.
std::vector<std::int64_t> largest_columns(const HeatMap& map, std::int64_t row, std::int64_t n) {
  std::vector<std::int64_t> columns(static_cast<std::size_t>(map.columns));
  std::iota(columns.begin(), columns.end(), std::int64_t{0});
  std::ranges::stable_sort(columns, std::greater(), [&](std::int64_t c) { return map.at(row, c); });
  columns.resize(static_cast<std::size_t>(std::min(n, map.columns)));
  std::ranges::sort(columns);
  return columns;
}

}  // namespace

HeatMap reduced(const HeatMap& map, std::int64_t max_extent) {
  const std::int64_t rows = std::min(map.rows, max_extent),
                     columns = std::min(map.columns, max_extent);
  if (rows == map.rows && columns == map.columns) return map;
  HeatMap small{rows, columns, {}, 0};
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      const std::int64_t top = r * map.rows / rows, bottom = (r + 1) * map.rows / rows,
                         left = c * map.columns / columns, right = (c + 1) * map.columns / columns;
      double sum = 0;
      for (std::int64_t i = top; i < bottom; ++i)
        for (std::int64_t j = left; j < right; ++j) sum += map.at(i, j);
      small.values.push_back(
          static_cast<float>(sum / static_cast<double>((bottom - top) * (right - left))));
      small.largest = std::max(small.largest, small.values.back());
    }
  }
  return small;
}

std::string heat_cells(const HeatMap& map, double width, double height) {
  std::array<std::string, shades + 1> paths;
  for (std::int64_t r = 0; r < map.rows; ++r) {
    for (std::int64_t c = 0; c < map.columns;) {
      const int level = level_of(map.at(r, c), map.largest);
      std::int64_t end = c + 1;  // adjacent cells of a row with the same level form one area
      while (end < map.columns && level_of(map.at(r, end), map.largest) == level) ++end;
      const double length = static_cast<double>(end - c) * width;
      paths[level] += svg("M{} {}h{}v{}h-{}z", static_cast<double>(c) * width,
                          static_cast<double>(r) * height, length, height, length);
      c = end;
    }
  }
  std::string body;
  for (int level = 1; level <= shades; ++level) {
    if (!paths[level].empty())
      body += fmt::format("<path class=\"heat l{}\" shape-rendering=\"crispEdges\" d=\"{}\"/>\n",
                          level, paths[level]);
  }
  return body;
}

Drawing drawn(const HeatScale& scale) {
  constexpr double step = 8, height = 10, gap = 4;
  HeatMap steps{1, scale.steps + 1, {}, static_cast<float>(scale.steps)};
  for (int i = 0; i <= scale.steps; ++i) steps.values.push_back(static_cast<float>(i));
  const double left = label_length(scale.low) + gap,
               width = step * static_cast<double>(steps.columns),
               meaning = left + width + gap + label_length(scale.high) + 2 * gap;
  return {meaning + label_length(scale.meaning), height + gap,
          svg("<text y=\"9\">{}</text><g transform=\"translate({} 0)\">\n{}<rect class=\"frame\" "
              "width=\"{}\" height=\"{}\"/></g><text x=\"{}\" y=\"9\">{}</text><text x=\"{}\" "
              "y=\"9\">{}</text>\n",
              xml_text(scale.low), left, heat_cells(steps, step, height), width, height,
              left + width + gap, xml_text(scale.high), meaning, xml_text(scale.meaning))};
}

Drawing labelled_map(const HeatMap& map, std::span<const std::string> rows,
                     std::span<const std::string> columns, const MapText& text) {
  constexpr double smallest = 14, largest = 40, wanted_height = 320, gap = 4, line = 14;
  constexpr int dark = 9;  // level from which text has the colour of the background
  const double cell = text.cells.empty() ? smallest
                                         : std::clamp(wanted_height / static_cast<double>(map.rows),
                                                      smallest, largest);
  const double left = label_length(rows) + gap, slanted = 0.71 * label_length(columns),
               top = slanted + 12;
  const double width = cell * static_cast<double>(map.columns),
               height = cell * static_cast<double>(map.rows);
  std::string body;
  for (std::int64_t c = 0; c < map.columns; ++c) {
    body += svg("<text transform=\"translate({} {}) rotate(-45)\">{}</text>\n",
                left + (static_cast<double>(c) + 0.7) * cell, top - gap,
                xml_text(excerpt(columns[c], max_label)));
  }
  for (std::int64_t r = 0; r < map.rows; ++r) {
    body += svg("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", left - gap,
                top + (static_cast<double>(r) + 0.5) * cell + 3.5,
                xml_text(excerpt(rows[r], max_label)));
  }
  body += svg("<g transform=\"translate({} {})\">\n{}", left, top, heat_cells(map, cell, cell));
  for (std::int64_t i = 0; i < std::ssize(text.cells); ++i) {
    if (label_length(text.cells[i]) > cell) continue;
    body += svg("<text{} x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                level_of(map.values[i], map.largest) < dark ? "" : " class=\"over-heat\"",
                (static_cast<double>(i % map.columns) + 0.5) * cell,
                (static_cast<double>(i / map.columns) + 0.5) * cell + 3.5, xml_text(text.cells[i]));
  }
  for (std::int64_t r = 0; r < map.rows; ++r) {
    for (const std::int64_t c : largest_columns(map, r, 4)) {
      if (!(map.at(r, c) >= map.largest / 20) || map.largest == 0) continue;
      body +=
          svg("<rect class=\"cell\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>{} → {}: "
              "{:.3f}</title></rect>\n",
              static_cast<double>(c) * cell, static_cast<double>(r) * cell, cell, cell,
              xml_text(rows[r]), xml_text(columns[c]), map.at(r, c));
    }
  }
  const std::string axes = fmt::format("rows: {}; columns: {}", text.rows, text.columns);
  const Drawing scale = drawn(HeatScale{"0", fmt::format("{:.3g}", map.largest), text.meaning});
  body +=
      svg("<rect class=\"frame\" width=\"{}\" height=\"{}\"/>\n</g>\n"
          "<text x=\"{}\" y=\"{}\">{}</text>\n<g transform=\"translate({} {})\">\n{}</g>\n",
          width, height, gap, top + height + line, xml_text(axes), gap, top + height + line + gap,
          scale.body);
  return {std::max({left + width + slanted, label_length(axes), scale.width}) + 2 * gap,
          top + height + line + gap + scale.height, body};
}

}  // namespace heed
