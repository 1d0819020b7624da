#pragma once
/// Attention weights as drawings and pages.
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "train/views/draw/svg.h"
#include "train/views/report/attention/maps.h"

HEED_BEGIN

/// The top of a page: a title and named lines such as {"input", "a small dog"}.
struct PageHead {
  std::string title;
  std::vector<std::pair<std::string, std::string>> lines;
};

/// The head as HTML.
std::string page_head(const PageHead& head);
/// The style of pages with a head.
extern const std::string_view page_style;

/// A page with a small map of every head, its entropy and (for self-attention) its mean distance; a
/// viewer that shows any head in the lines, map or neurons view; graphs of the stacks; and large
/// maps with the tokens on both axes. For an image, the page also shows, over the image, the
/// attention of the encoder's class token (without one, the mean of all rows) and of each token
/// that a decoder reads. Maps with more than 64 rows or columns are reduced, with a note on the
/// page.
std::string attention_page(const AttentionMaps& maps, const PageHead& head);

struct FigureOptions {
  std::string view = "map";  ///< map, lines, neurons, graph or rollout
  /// The row of the query in the neurons view; unset: the last.
  std::optional<std::int64_t> query = std::nullopt;
  double threshold = 0.1;  ///< minimum weight of an edge in the graph and rollout views
};

/// Draws the first layer of `maps` or its stack. The views `lines` and `map` show the mean of the
/// layer's heads; a map is drawn over the image if the layer reads one, otherwise with the tokens
/// on both axes. `neurons` shows the layer's first head, `graph` the self-attention layers of the
/// stack that `maps` contains, and `rollout` the rollout over all layers of the stack.
Drawing attention_drawing(const AttentionMaps& maps, const FigureOptions& options = {});

HEED_END
