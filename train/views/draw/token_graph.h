#pragma once
/// Graphs of tokens: columns of nodes, with edges between neighbouring columns.
#include <span>
#include <string>

#include "train/views/draw/heat_map.h"

namespace heed {

struct GraphColumn {
  std::string title;
  std::span<const std::string> nodes;
};

/// Draws columns of nodes. The rows of edges[i] are the nodes of column i, and its columns those of
/// column i + 1. A value of at least `threshold` becomes a line whose opacity is the value (at most
/// 1), rounded to a multiple of 0.05; if it is rounded to 0, the line is omitted. The nodes of the
/// first and last columns are labelled with their names.
Drawing token_graph(std::span<const GraphColumn> columns, std::span<const HeatMap> edges,
                    double threshold);

}  // namespace heed
