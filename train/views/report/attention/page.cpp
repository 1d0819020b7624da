#include "train/views/report/attention/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "autograd/io/formats/base64.h"
#include "autograd/io/message_text.h"
#include "train/views/draw/heat_map.h"
#include "train/views/report/attention/views.h"

HEED_BEGIN

namespace {

constexpr double image_side = 128;  // length of an image's longer side, in pixels
constexpr double gap = 8;

/// A map as an image with one pixel per cell, in 16 shades, so that the file is small.
std::string small_map(const Array& weights, std::size_t layer, std::size_t head,
                      const std::string& about) {
  constexpr std::array<int, 3> darkest{11, 95, 165};
  constexpr int shades = 15;
  const HeatMap map = map_of(weights);
  Image image{map.rows, map.columns, 3, {}};
  for (const float w : map.values) {
    const double share = w > 0 ? std::round(shades * w / map.largest) / shades : 0;
    for (const int c : darkest)
      image.values.push_back(static_cast<std::uint8_t>(std::lround(255 - share * (255 - c))));
  }
  if (image.values.empty()) return "";
  const double cell = 96 / static_cast<double>(std::max(map.rows, map.columns));
  return svg(
      "<a href=\"#viewer\" data-layer=\"{}\" data-head=\"{}\"><img class=\"map\" width=\"{}\" "
      "height=\"{}\" alt=\"{}\" title=\"{}\" src=\"data:image/png;base64,{}\"></a>",
      layer, head, cell * static_cast<double>(map.columns), cell * static_cast<double>(map.rows),
      xml_text(about), xml_text(about), base64(png_of(image)));
}

// ---- images -------------------------------------------------------------------------------------

/// The attention weights of a query over the cells of an image.
struct QueryWeights {
  std::string name;
  std::vector<float> weights;  // [cells]
};

/// The weights of the cells in a row of P.
std::vector<float> patch_weights(const PatchGrid& grid, const real* row) {
  const real* const first = row + grid.first;
  return {first, first + grid.rows * grid.columns};
}

/// The queries whose weights are drawn over the image: in a decoder each row, named after the token
/// that it reads, as in all other drawings; in the encoder (self) the class token or, without one,
/// the mean of all rows.
std::vector<QueryWeights> query_weights(const AttentionMaps& maps, bool self, const Array& p) {
  const PatchGrid& grid = *maps.grid;
  std::vector<QueryWeights> all;
  if (!self) {
    for (std::int64_t i = 0; i < p.rows(); ++i)
      all.push_back({label_of(maps.target[i]), patch_weights(grid, p.row(i))});
    return all;
  }
  if (grid.first > 0) return {{"class token", patch_weights(grid, p.row(0))}};
  std::vector<float> mean(static_cast<std::size_t>(grid.rows * grid.columns));
  for (std::int64_t i = 0; i < p.rows(); ++i) {
    for (std::size_t j = 0; j < mean.size(); ++j)
      mean[j] += static_cast<float>(p.row(i)[j] / static_cast<real>(p.rows()));
  }
  return {{"mean of all patches", mean}};
}

bool reads_image(const AttentionMaps& maps, const LayerWeights& layer) {
  return maps.grid && !layer.keys_are_target;
}

/// Copies of the image side by side, the first without weights, each with a name and its maximum
/// below.
Drawing strip(const PatchGrid& grid, const std::vector<QueryWeights>& all) {
  const auto h = static_cast<double>(grid.image.height), w = static_cast<double>(grid.image.width);
  const double scale = image_side / std::max(h, w), width = w * scale, height = h * scale;
  double widest = width;
  for (const QueryWeights& query : all)
    widest = std::max(widest, label_length(excerpt(query.name, max_label)));
  const double step = widest + gap, line = 14;
  const std::string image =
      svg("<image width=\"{}\" height=\"{}\" preserveAspectRatio=\"none\" "
          "style=\"image-rendering:pixelated\" href=\"data:image/png;base64,{}\"/>\n",
          width, height, base64(png_of(grid.image)));
  std::string body;
  for (std::size_t i = 0; i <= all.size(); ++i) {
    std::string name = "the image", maximum;
    body += svg("<g transform=\"translate({} 0)\">\n{}", static_cast<double>(i) * step, image);
    if (i > 0) {
      const QueryWeights& query = all[i - 1];
      HeatMap map{grid.rows, grid.columns, query.weights, *std::ranges::max_element(query.weights)};
      const double cell = width * static_cast<double>(grid.side) / w;
      body += fmt::format("<g class=\"over\">{}</g>\n",
                          svg_element({width, height, heat_cells(map, cell, cell)}));
      name = excerpt(query.name, max_label);
      maximum = fmt::format("maximum {:.3g}", map.largest);
    }
    body +=
        svg("<rect class=\"frame\" width=\"{0}\" height=\"{1}\"/>\n"
            "<text y=\"{2}\">{3}</text><text y=\"{4}\">{5}</text>\n</g>\n",
            width, height, height + line, xml_text(name), height + 2 * line, maximum);
  }
  const Drawing key = drawn(HeatScale{"0", "maximum", "weight of a cell of the image"});
  body += svg("<g class=\"over\" transform=\"translate(0 {})\">\n{}</g>\n", height + 2.5 * line,
              key.body);
  return {std::max(step * static_cast<double>(all.size() + 1), key.width),
          height + 2.5 * line + key.height, body};
}

constexpr std::string_view over_style = ".over .heat{fill:#ffe100}\n";

/// A drawing as an element of a page, with a scroll bar if it is wider than the page.
std::string wide(const Drawing& drawing) {
  return fmt::format("<div class=\"wide\">{}</div>\n", svg_element(drawing));
}

std::string images(const AttentionMaps& maps) {
  if (!maps.grid) return "";
  std::string body =
      "<h2>Attention over the image</h2>\n<p>The copies of the image show the mean weights of the "
      "selected heads, each scaled to its maximum. In a decoder, the caption is the token that "
      "the decoder reads; with these weights, it predicts the next token.</p>\n";
  for (const LayerWeights& layer : maps.layers) {
    if (!reads_image(maps, layer)) continue;
    body +=
        fmt::format("<h3>{}</h3>\n{}", xml_text(layer.name),
                    wide(strip(*maps.grid, query_weights(maps, layer.self, mean_of_heads(layer)))));
  }
  if (maps.source_rollout.defined())
    body += "<h3>All layers of the encoder (attention rollout)</h3>\n" +
            wide(strip(*maps.grid, query_weights(maps, true, maps.source_rollout)));
  return body;
}

// ---- the page -----------------------------------------------------------------------------------

std::string overview(const AttentionMaps& maps) {
  std::string rows;
  for (std::size_t l = 0; l < maps.layers.size(); ++l) {
    const LayerWeights& layer = maps.layers[l];
    rows += fmt::format("<tr><th>{}</th>", xml_text(layer.name));
    for (std::size_t h = 0; h < layer.heads.size(); ++h) {
      const HeadWeights& head = layer.heads[h];
      std::string figures = fmt::format("maximum {:.2f}", map_of(head.weights).largest);
      if (maps.nonnegative) figures += fmt::format(", entropy {:.2f}", head.entropy);
      if (maps.nonnegative && layer.self)
        figures += fmt::format(", distance {:.1f}", head.distance);
      rows += fmt::format(
          "<td>{}<div class=\"quiet\">{}</div></td>",
          small_map(head.weights, l, h, fmt::format("{}, head {}", layer.name, head.number)),
          figures);
    }
    rows += "</tr>\n";
  }
  return fmt::format(
      "<h2>All heads</h2>\n<p>Queries from top to bottom, keys from left to right, each map scaled "
      "to its largest weight. {}</p>\n<div class=\"wide\"><table>\n{}</table></div>\n",
      maps.nonnegative ? "Entropy in nats, distance in rows: means over the queries."
                       : "With model.attention.map: sum, weights may be negative or above 1; "
                         "negative weights are not drawn.",
      rows);
}

/// A map of every head with the tokens on both axes or, if these maps have more than `max_values`
/// cells in total, a map of each layer's mean.
std::string large_maps(const AttentionMaps& maps) {
  constexpr std::int64_t max_values = 40'000;
  std::int64_t values = 0;
  for (const LayerWeights& layer : maps.layers) {
    for (const HeadWeights& head : layer.heads) values += std::ssize(map_of(head.weights).values);
  }
  std::string body = "<h2>Layer by layer</h2>\n";
  if (values > max_values)
    body += "<p>The mean of each layer's heads; the maps of all heads would be too large.</p>\n";
  for (std::size_t l = 0; l < maps.layers.size(); ++l) {
    const LayerWeights& layer = maps.layers[l];
    body += fmt::format("<details{}><summary>{}</summary>\n", l == 0 ? " open" : "",
                        xml_text(layer.name));
    if (values > max_values) {
      body += wide(map_view(maps, layer, mean_of_heads(layer)));
    } else {
      for (const HeadWeights& head : layer.heads)
        body += fmt::format("<h3>head {}</h3>\n{}", head.number,
                            wide(map_view(maps, layer, head.weights)));
    }
    body += "</details>\n";
  }
  return body;
}

std::string graphs(const AttentionMaps& maps) {
  constexpr double threshold = 0.1;
  std::string body;
  for (const bool target : {false, true}) {
    const Drawing graph = graph_view(maps, target, threshold);
    if (graph.width == 0) continue;
    body += fmt::format("<h3>Self-attention of the {}</h3>\n{}", target ? "target" : "source",
                        wide(graph));
    const Drawing all = rollout_view(maps, target, threshold);
    if (all.width > 0) body += "<h3>Rollout over all layers</h3>\n" + wide(all);
  }
  if (body.empty()) return body;
  return fmt::format(
      "<h2>Graphs</h2>\n<p>Lines lead from keys to the queries that read them, layer by layer. "
      "Each line shows the mean weight of the selected heads; weights below {} are omitted. "
      "Rollout is the product of (A + I) / 2 over all layers, where A is the mean of all heads of "
      "a layer and I the identity (Abnar and Zuidema 2020).</p>\n{}",
      threshold, body);
}

Drawing drawing(const AttentionMaps& maps, const FigureOptions& options) {
  const LayerWeights& layer = maps.layers.front();
  if (options.view == "graph") return graph_view(maps, layer.queries_are_target, options.threshold);
  if (options.view == "rollout")
    return rollout_view(maps, layer.queries_are_target, options.threshold);
  if (options.view == "neurons")
    return neurons_view(maps, layer, layer.heads.front().number,
                        options.query.value_or(std::ssize(maps.queries(layer)) - 1));
  const Array mean = mean_of_heads(layer);
  if (options.view == "lines") return lines_view(maps, layer, mean);
  return reads_image(maps, layer) ? strip(*maps.grid, query_weights(maps, layer.self, mean))
                                  : map_view(maps, layer, mean);
}

}  // namespace

const std::string_view page_style =
    "dl{display:grid;grid-template-columns:6em 1fr}dt{color:var(--quiet)}dd{margin:0;"
    "overflow-wrap:anywhere}\n.quiet{color:var(--quiet);font-size:11px}.wide{overflow-x:auto}\n";

std::string page_head(const PageHead& head) {
  std::string body = fmt::format("<h1>{}</h1>\n<dl>\n", xml_text(head.title));
  for (const auto& [name, text] : head.lines)
    body += fmt::format("<dt>{}</dt><dd>{}</dd>\n", xml_text(name), xml_text(excerpt(text, 1000)));
  return body + "</dl>\n";
}

std::string attention_page(const AttentionMaps& maps, const PageHead& head) {
  std::string body = page_head(head);
  if (std::max(std::ssize(maps.source), std::ssize(maps.target)) > max_cells) {
    body += fmt::format(
        "<p>Maps with more than {} rows or columns are reduced: a cell is the weight of a block of "
        "keys, averaged over a block of queries.</p>\n",
        max_cells);
  }
  constexpr std::string_view style =
      "table{border-spacing:8px}th{text-align:left;font-weight:normal;padding-right:1em;"
      "overflow-wrap:normal}\n"
      "summary{cursor:pointer}.map{image-rendering:pixelated;outline:1px solid var(--line)}\n"
      "@media(prefers-color-scheme:dark){.map{filter:invert(1) hue-rotate(180deg);"
      "mix-blend-mode:screen}}\n";
  return html_page(
      head.title, fmt::format("{}{}{}{}", page_style, style, viewer_style, over_style),
      body + images(maps) + overview(maps) + viewer(maps) + graphs(maps) + large_maps(maps));
}

Drawing attention_drawing(const AttentionMaps& maps, const FigureOptions& options) {
  Drawing all = drawing(maps, options);
  all.body.insert(0, fmt::format("<style>{}</style>\n", over_style));
  return all;
}

HEED_END
