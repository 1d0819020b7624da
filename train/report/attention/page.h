#pragma once
/// Attention weights as drawings.
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "train/draw/svg.h"
#include "train/report/attention/maps.h"

HEED_BEGIN

/// The top of the page: a title, and named lines such as {"input", "a small dog"}.
struct PageHead {
  std::string title;
  std::vector<std::pair<std::string, std::string>> lines;
};

/// The head as HTML, and the style of pages that have one.
std::string page_head(const PageHead& head);
extern const std::string_view page_style;

/// A page with a small map of every layer and head, its entropy and how far it looks; any head as lines,
/// a map or by its neurons; graphs of the stacks; and large maps with the tokens on both axes. For a
/// picture, also what each output token, or the label, attends to in it. Maps with more than 64 rows or
/// columns are reduced, and the page says so.
std::string attention_page(const AttentionMaps& maps, const PageHead& head);

struct FigureOptions {
  std::string view = "map";                          ///< or lines, neurons, graph, rollout
  std::optional<std::int64_t> query = std::nullopt;  ///< of neurons; unset: the last
  double threshold = 0.1;                            ///< of graph and rollout
  double millimetres = 0;                            ///< width on paper; 0: in pixels
};

/// The first layer: the mean of its heads, over the picture if it reads one (what each
/// output token, or the label, attends to), else with the tokens on both axes. neurons: its first head;
/// graph: all layers of its stack.
Drawing attention_drawing(const AttentionMaps& maps, const FigureOptions& options = {});
/// The same as an SVG file.
std::string attention_figure(const AttentionMaps& maps, const FigureOptions& options = {});

HEED_END
