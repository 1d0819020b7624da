#pragma once
/// Attention as maps, lines between tokens, products of queries and keys, and graphs.
#include <string>
#include <vector>

#include "train/draw/heat_map.h"
#include "train/report/attention/maps.h"

HEED_BEGIN

/// Rows and columns of a map. Longer ones are reduced: a cell is the weight of a block of keys, its
/// mean over a block of queries, so that rows still sum to about 1.
constexpr std::int64_t max_cells = 64;

HeatMap map_of(const Array& weights);
Array mean_of_heads(const LayerWeights& layer);
/// The name of a row as a drawing shows it: a space is visible.
std::string label_of(const std::string& name);
/// The names of the rows of a reduced map: the first of each block.
std::vector<std::string> names_of_blocks(const std::vector<std::string>& names);

/// P as a map with the tokens on both axes.
Drawing map_view(const AttentionMaps& maps, const LayerWeights& layer, const Array& weights);

/// Lines from each query, at the left, to the keys, as in BertViz's head view (Vig 2019).
Drawing lines_view(const AttentionMaps& maps, const LayerWeights& layer, const Array& weights);

/// The query's values, and below them its products with those of each key, column by column. They add up
/// to q·k, which times the scale is the score, before what positions add (Vig 2019, neuron view).
Drawing neurons_view(const AttentionMaps& maps, const LayerWeights& layer, std::int64_t head,
                     std::int64_t query);

/// The self-attention of the source's or the target's layers, means of their heads, as a graph: from
/// each column to the next, weights from `threshold` on. Its width is 0 if there are no such layers.
Drawing graph_view(const AttentionMaps& maps, bool target, double threshold);

/// How much of each row that enters a stack reaches each row that leaves it, from `threshold` on.
Drawing rollout_view(const AttentionMaps& maps, bool target, double threshold);

/// A part of a page that shows any head as lines, as a map or by its neurons. Without JavaScript it
/// shows the first layer as lines. Queries and keys are included up to about a million numbers.
std::string viewer(const AttentionMaps& maps);
extern const std::string_view viewer_style;

HEED_END
