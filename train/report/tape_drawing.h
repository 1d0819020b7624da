#pragma once
/// The tape of a computation (autograd/tensor.h) as a drawing.
#include <string>
#include <vector>

#include "nn/parameters.h"

HEED_BEGIN

/// An SVG file with the nodes that `result` depends on: parameters, by name, and ops, each below all
/// that it reads, with the shape of its result. Arrows enter an op in the order of its inputs.
/// Constants are not on the tape, and so not drawn. `head`: lines of text above.
///
/// The rows are those of Sugiyama, Tagawa and Toda, "Methods for Visual Understanding of Hierarchical
/// System Structures", 1981: the longest path from a parameter, and barycenters within a row.
///
/// Throws Error(usage) if there are more than `max_drawn_nodes`.
std::string tape_drawing(const Tensor& result, const Parameters& parameters,
                         const std::vector<std::string>& head);
inline constexpr std::size_t max_drawn_nodes = 400;

HEED_END
