#pragma once
/// Drawings of the course: fixed small examples.
#include <vector>

#include "train/views/draw/svg.h"

namespace heed {

/// Softmax at five temperatures, and the entropy of its weights over the temperature.
std::vector<Drawing> softmax_plots();
/// The error of two difference formulas for 1/x over their step, in double and in float32.
std::vector<Drawing> gradcheck_plots();
/// A query and two keys in the plane, and their weights as one of the vectors changes.
std::vector<Drawing> score_plots();
/// A row's probabilities and its targets, without and with label smoothing, and their difference.
std::vector<Drawing> loss_plots();
/// Online softmax of a row of scores in three tiles, compared with the whole row.
std::vector<Drawing> tile_plots();
/// The tree of a beam search of width 2, and the probability of the result over the width.
std::vector<Drawing> beam_plots();
/// Rows that a decoder projects to keys and values, with a cache and without.
std::vector<Drawing> cache_plots();

}  // namespace heed
