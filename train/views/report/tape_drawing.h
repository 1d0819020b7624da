#pragma once
/// A drawing of the tape of a computation (autograd/tensor.h).
#include <string>
#include <vector>

#include "nn/parameters.h"

HEED_BEGIN

/// An SVG file with the nodes that `result` depends on: parameters with their names, other leaves
/// as "variable", and ops, each below its inputs; each node with its shape. Arrows enter an op in
/// the order of its inputs. Constants are not drawn, because the tape does not contain them.
/// `head`: lines of text above the drawing.
///
/// The layout follows Sugiyama, Tagawa and Toda, "Methods for Visual Understanding of Hierarchical
/// System Structures", 1981: the row of an op is the length of the longest path from a leaf to it,
/// and a leaf is in the row above the first op that reads it; barycentres and exchanges of
/// neighbours determine the order within a row.
///
/// Throws Error(usage) if there are more than `max_drawn_nodes` nodes, Error(failed) if `result`
/// depends on no variable.
std::string tape_drawing(const Tensor& result, const Parameters& parameters,
                         const std::vector<std::string>& head);
inline constexpr std::size_t max_drawn_nodes = 400;

HEED_END
