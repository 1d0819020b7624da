#pragma once
/// Attention as maps, lines between tokens, products of queries and keys, and graphs.
#include <string>
#include <vector>

#include "train/views/draw/heat_map.h"
#include "train/views/report/attention/maps.h"

HEED_BEGIN

/// Maximum number of rows and of columns of a map. Larger maps are reduced: a cell is the weight of
/// a block of keys, averaged over a block of queries, so that rows still sum to about 1.
constexpr std::int64_t max_cells = 64;

HeatMap map_of(const Array& weights);
/// The label of a row: its name, or ␣ for a space.
std::string label_of(const std::string& name);
/// The labels of the rows or columns of a map: their names or, if there are more than max_cells,
/// the first name of each block with an ellipsis.
std::vector<std::string> names_of_blocks(const std::vector<std::string>& names);

/// The weights P as a map with the tokens on both axes. As in all drawings, a query of a decoder is
/// named after the token that it reads, although its output predicts the next one.
Drawing map_view(const AttentionMaps& maps, const LayerWeights& layer, const Array& weights);

/// Lines from each query, at the left, to the keys, as in BertViz's head view (Vig 2019).
Drawing lines_view(const AttentionMaps& maps, const LayerWeights& layer, const Array& weights);

/// The values of the query in row `query`, and below them their products with the values of each
/// key. The products of a key sum to q·k; times the scale, this is the score without position terms
/// (Vig 2019, neuron view).
Drawing neurons_view(const AttentionMaps& maps, const LayerWeights& layer, std::int64_t head,
                     std::int64_t query);

/// The self-attention layers of the source or of the target as a graph. The edges between two
/// columns show the mean weights of a layer's heads; weights below `threshold` are omitted. If
/// there are no such layers, the drawing is empty (width 0).
Drawing graph_view(const AttentionMaps& maps, bool target, double threshold);

/// The attention rollout of a stack as a graph, with edges for shares of at least `threshold`. If
/// the rollout is undefined, the drawing is empty.
Drawing rollout_view(const AttentionMaps& maps, bool target, double threshold);

/// A part of a page that shows any head in the lines, map or neurons view. Without JavaScript, it
/// shows the mean of the first layer's heads in the lines view. It contains at most 900,000 values
/// of queries and keys.
std::string viewer(const AttentionMaps& maps);
extern const std::string_view viewer_style;

HEED_END
