#include "train/views/draw/token_graph.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "autograd/io/message_text.h"
#include "train/views/draw/svg.h"

namespace heed {

namespace {

constexpr double line = 16, heading = 24;

double height_of(double node) { return heading + line * (node + 0.5); }

/// The edges between the columns at x = `from` and x = `to`, in one path per level of opacity.
std::string paths(const HeatMap& edges, double from, double to, double threshold) {
  constexpr int levels = 20;
  std::map<int, std::string> by_level;
  for (std::int64_t r = 0; r < edges.rows; ++r) {
    for (std::int64_t c = 0; c < edges.columns; ++c) {
      const double value = edges.at(r, c);
      const int level = static_cast<int>(std::lround(levels * std::min(value, 1.0)));
      if (!(value >= threshold) || level == 0) continue;
      by_level[level] += svg("M{} {}L{} {}", from, height_of(static_cast<double>(r)), to,
                             height_of(static_cast<double>(c)));
    }
  }
  std::string body;
  for (const auto& [level, path] : by_level) {
    body += svg("<path class=\"edge\" stroke-opacity=\"{}\" d=\"{}\"/>\n",
                static_cast<double>(level) / levels, path);
  }
  return body;
}

}  // namespace

Drawing token_graph(std::span<const GraphColumn> columns, std::span<const HeatMap> edges,
                    double threshold) {
  const double gap = columns.size() > 2 ? 84 : 140, dot = 6;
  const double left = std::max(label_length(columns.front().nodes) + dot,
                               label_length(columns.front().title) / 2),
               right = std::max(label_length(columns.back().nodes) + dot,
                                label_length(columns.back().title) / 2);
  std::size_t rows = 0;
  for (const GraphColumn& column : columns) rows = std::max(rows, column.nodes.size());
  std::string body;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const double x = left + gap * static_cast<double>(i);
    body += svg("<text x=\"{}\" y=\"12\" text-anchor=\"middle\">{}</text>\n", x,
                xml_text(columns[i].title));
    if (i > 0) body += paths(edges[i - 1], x - gap, x, threshold);
    const bool first = i == 0, last = i + 1 == columns.size();
    for (std::size_t r = 0; r < columns[i].nodes.size(); ++r) {
      const double y = height_of(static_cast<double>(r));
      body += svg("<circle class=\"node\" cx=\"{}\" cy=\"{}\" r=\"2\"/>\n", x, y);
      if (!first && !last) continue;
      body += svg("<text x=\"{}\" y=\"{}\"{}>{}</text>\n", first ? x - dot : x + dot, y + 3.5,
                  first ? " text-anchor=\"end\"" : "",
                  xml_text(excerpt(columns[i].nodes[r], max_label)));
    }
  }
  return {left + gap * static_cast<double>(columns.size() - 1) + right,
          heading + line * static_cast<double>(rows), body};
}

}  // namespace heed
