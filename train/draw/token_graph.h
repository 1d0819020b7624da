#pragma once
/// Graphs of tokens: columns of nodes, with edges between neighbouring columns.
#include <span>
#include <string>
#include <vector>

#include "train/draw/heat_map.h"

namespace heed {

struct GraphColumn {
  std::string title;
  std::span<const std::string> nodes;
};

/// The values of edges[i] join columns i (its rows) and i + 1 (its columns): lines whose opacity is the
/// value, from `threshold` on. The nodes of the first and last column are named; the others are dots.
Drawing token_graph(std::span<const GraphColumn> columns, std::span<const HeatMap> edges,
                    double threshold);

}  // namespace heed
