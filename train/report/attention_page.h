#pragma once
/// Attention weights as drawings.
#include <string>
#include <utility>
#include <vector>

#include "train/draw/svg.h"
#include "train/report/attention_maps.h"

HEED_BEGIN

/// The top of the page: a title, and named lines such as {"input", "a small dog"}.
struct PageHead {
  std::string title;
  std::vector<std::pair<std::string, std::string>> lines;
};

/// A page with a small map of every layer and head, its entropy and how far it looks,
/// and large maps with the tokens on both axes. For a picture, also what each output token, or the
/// label, attends to in it. Maps with more than 64 rows or columns are reduced, and the page says so.
std::string attention_page(const AttentionMaps& maps, const PageHead& head);

/// A layer, the mean of its heads: over the picture if it reads one (what each output token, or the
/// label, attends to), else as a map with the tokens on both axes.
Drawing attention_drawing(const AttentionMaps& maps, const LayerWeights& layer);
/// The same as an SVG file.
std::string attention_figure(const AttentionMaps& maps, const LayerWeights& layer);

HEED_END
