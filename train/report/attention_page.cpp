#include "train/report/attention_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "autograd/base/error.h"
#include "autograd/base/formats/base64.h"
#include "train/draw/heat_map.h"
#include "train/draw/svg.h"

HEED_BEGIN

namespace {

constexpr std::int64_t most_cells = 64;  // along an axis
constexpr double picture_side = 128;     // pixels, the longer one
constexpr double gap = 8;

HeatMap map_of(const Array& weights) {
  HeatMap map{weights.rows(), weights.cols(), {}, 0};
  for (const real w : weights.values()) {
    map.values.push_back(static_cast<float>(w));
    map.largest = std::max(map.largest, map.values.back());
  }
  return map;
}

Array mean_of_heads(const LayerWeights& layer) {
  Array mean = Array::zeros(layer.heads.front().weights.shape());
  for (const HeadWeights& one : layer.heads) {
    for (std::int64_t i = 0; i < mean.size(); ++i)
      mean.data()[i] += one.weights.data()[i] / static_cast<real>(layer.heads.size());
  }
  return mean;
}

/// The names of the rows of a reduced map: the first of each block.
std::vector<std::string> names_of_blocks(const std::vector<std::string>& names) {
  const std::int64_t n = std::ssize(names), blocks = std::min(n, most_cells);
  std::vector<std::string> some;
  for (std::int64_t i = 0; i < blocks; ++i)
    some.push_back(names[i * n / blocks] + (blocks < n ? " …" : ""));
  return some;
}

Drawing large_map(const AttentionMaps& maps, const LayerWeights& layer, const Array& weights) {
  return labelled_map(reduced(map_of(weights), most_cells), names_of_blocks(maps.queries(layer)),
                      names_of_blocks(maps.keys(layer)));
}

bool is_reduced(const AttentionMaps& maps) {
  return std::max(std::ssize(maps.source), std::ssize(maps.target)) > most_cells;
}

std::string small_map(const Array& weights, const std::string& anchor, const std::string& about) {
  constexpr double side = 96;
  const HeatMap map = reduced(map_of(weights), most_cells);
  const double cell =
      side / static_cast<double>(std::max<std::int64_t>({map.rows, map.columns, 1}));
  const double width = cell * static_cast<double>(map.columns),
               height = cell * static_cast<double>(map.rows);
  const std::string body = fmt::format(
      "<title>{}</title>\n{}<rect class=\"frame\" width=\"{}\" height=\"{}\"/>\n", xml_text(about),
      heat_cells(map, cell, cell), svg_number(width), svg_number(height));
  return fmt::format("<a href=\"#{}\">{}</a>", anchor, svg_element(width, height, body));
}

// ---- pictures ------------------------------------------------------------------------------------

/// How large a picture is drawn, and the picture itself as an element.
struct DrawnPicture {
  double width, height;
  std::string element;

  explicit DrawnPicture(const PatchGrid& grid) {
    const auto h = static_cast<double>(grid.picture.height),
               w = static_cast<double>(grid.picture.width);
    const double scale = picture_side / std::max(h, w);
    width = w * scale;
    height = h * scale;
    element = fmt::format(
        "<image width=\"{}\" height=\"{}\" preserveAspectRatio=\"none\" "
        "style=\"image-rendering:pixelated\" href=\"data:image/png;base64,{}\"/>\n",
        svg_number(width), svg_number(height), base64(png_of(grid.picture)));
  }
};

/// What a query attends to, over the picture: the weights of its cells.
struct Glance {
  std::string name;
  std::vector<float> weights;  // [cells]
};

/// The weights of the cells in a row of P.
std::vector<float> patch_weights(const PatchGrid& grid, const real* row) {
  const real* const first = row + grid.first;
  return {first, first + grid.rows * grid.columns};
}

/// The queries whose attention to the picture matters: each row of a decoder, named by the token
/// that follows it; in the encoder (self) the class row, or the mean of all rows.
std::vector<Glance> glances(const AttentionMaps& maps, bool self, const Array& p) {
  const PatchGrid& grid = *maps.grid;
  std::vector<Glance> all;
  if (!self) {
    for (std::int64_t i = 0; i < p.rows(); ++i) {
      all.push_back(
          {i + 1 < p.rows() ? maps.target[i + 1] : "(end)", patch_weights(grid, p.row(i))});
    }
    return all;
  }
  if (grid.first > 0) return {{"class row", patch_weights(grid, p.row(0))}};
  std::vector<float> mean(static_cast<std::size_t>(grid.rows * grid.columns));
  for (std::int64_t i = 0; i < p.rows(); ++i) {
    for (std::size_t j = 0; j < mean.size(); ++j)
      mean[j] += static_cast<float>(p.row(i)[j] / static_cast<real>(p.rows()));
  }
  return {{"mean of all patches", mean}};
}

bool reads_picture(const AttentionMaps& maps, const LayerWeights& layer) {
  return maps.grid && !layer.keys_are_target;
}

/// Pictures side by side, the first without weights, each with its name below.
Drawing strip(const PatchGrid& grid, const std::vector<Glance>& all) {
  const DrawnPicture drawn(grid);
  const double step = drawn.width + gap, line = 16;
  std::string body;
  for (std::size_t i = 0; i <= all.size(); ++i) {
    body += fmt::format("<g transform=\"translate({} 0)\">\n{}",
                        svg_number(static_cast<double>(i) * step), drawn.element);
    if (i > 0) {
      const Glance& glance = all[i - 1];
      HeatMap map{grid.rows, grid.columns, glance.weights,
                  *std::ranges::max_element(glance.weights)};
      const double cell =
          drawn.width * static_cast<double>(grid.side) / static_cast<double>(grid.picture.width);
      body += fmt::format("<g class=\"over\">{}</g>\n",
                          svg_element(drawn.width, drawn.height, heat_cells(map, cell, cell)));
    }
    body += fmt::format(
        "<rect class=\"frame\" width=\"{}\" height=\"{}\"/>\n"
        "<text x=\"0\" y=\"{}\">{}</text>\n</g>\n",
        svg_number(drawn.width), svg_number(drawn.height), svg_number(drawn.height + 12),
        i == 0 ? "the picture" : xml_text(all[i - 1].name));
  }
  return {step * static_cast<double>(all.size() + 1), drawn.height + line, body};
}

constexpr std::string_view over_style = ".over .heat{fill:#ffe100;stroke:#000;stroke-width:.3}\n";

std::string pictures(const AttentionMaps& maps) {
  if (!maps.grid) return "";
  std::string body =
      "<h2>Over the picture</h2>\n<p>The mean of the heads shown, scaled to its largest weight. "
      "A decoder's row is named by the token that follows it, which it predicts.</p>\n";
  for (const LayerWeights& layer : maps.layers) {
    if (!reads_picture(maps, layer)) continue;
    const Drawing drawn = strip(*maps.grid, glances(maps, layer.self, mean_of_heads(layer)));
    body += fmt::format("<h3>{}</h3>\n<div class=\"wide\">{}</div>\n", xml_text(layer.name),
                        svg_element(drawn.width, drawn.height, drawn.body));
  }
  if (maps.source_rollout.defined()) {
    const Drawing drawn = strip(*maps.grid, glances(maps, true, maps.source_rollout));
    body += fmt::format(
        "<h3>All layers of the encoder (attention rollout)</h3>\n<div "
        "class=\"wide\">{}</div>\n",
        svg_element(drawn.width, drawn.height, drawn.body));
  }
  return body;
}

// ---- the page ------------------------------------------------------------------------------------

std::string anchor_of(std::size_t layer, const HeadWeights& head) {
  return fmt::format("l{}h{}", layer, head.number);
}

std::string overview(const AttentionMaps& maps) {
  std::string rows;
  for (std::size_t l = 0; l < maps.layers.size(); ++l) {
    const LayerWeights& layer = maps.layers[l];
    rows += fmt::format("<tr><th>{}</th>", xml_text(layer.name));
    for (const HeadWeights& head : layer.heads) {
      const std::string distance =
          layer.self ? fmt::format(", distance {:.1f}", head.distance) : "";
      rows += fmt::format("<td>{}<div class=\"quiet\">entropy {:.2f}{}</div></td>",
                          small_map(head.weights, anchor_of(l, head),
                                    fmt::format("{}, head {}", layer.name, head.number)),
                          head.entropy, distance);
    }
    rows += "</tr>\n";
  }
  return fmt::format(
      "<h2>All heads</h2>\n<p>Queries from top to bottom, keys from left to right, each map scaled "
      "to its largest weight. Entropy in nats, distance in rows: means over the "
      "queries.</p>\n<div class=\"wide\"><table>\n{}</table></div>\n",
      rows);
}

std::string large_maps(const AttentionMaps& maps) {
  std::string body = "<h2>Head by head</h2>\n";
  for (std::size_t l = 0; l < maps.layers.size(); ++l) {
    const LayerWeights& layer = maps.layers[l];
    body += fmt::format("<details{}><summary>{}</summary>\n", l == 0 ? " open" : "",
                        xml_text(layer.name));
    for (const HeadWeights& head : layer.heads) {
      const Drawing map = large_map(maps, layer, head.weights);
      body += fmt::format(
          "<section id=\"{}\"><h3>head {}</h3>\n<div class=\"wide\">{}</div></section>\n",
          anchor_of(l, head), head.number, svg_element(map.width, map.height, map.body));
    }
    body += "</details>\n";
  }
  return body;
}

}  // namespace

std::string attention_page(const AttentionMaps& maps, const PageHead& head) {
  std::string body = fmt::format("<h1>{}</h1>\n<dl>\n", xml_text(head.title));
  for (const auto& [name, text] : head.lines)
    body += fmt::format("<dt>{}</dt><dd>{}</dd>\n", xml_text(name), xml_text(text));
  body += "</dl>\n";
  if (is_reduced(maps)) {
    body += fmt::format(
        "<p>Maps with more than {} rows or columns are reduced: a cell is the mean "
        "of a block of weights.</p>\n",
        most_cells);
  }
  constexpr std::string_view style =
      "dt{float:left;clear:left;width:6em;color:var(--quiet)}dd{margin-left:6em}\n"
      "table{border-spacing:8px}th{text-align:left;font-weight:normal;padding-right:1em}\n"
      ".quiet{color:var(--quiet);font-size:11px}.wide{overflow-x:auto}summary{cursor:pointer}\n";
  return html_page(head.title, std::string(style) + std::string(over_style),
                   body + pictures(maps) + overview(maps) + large_maps(maps));
}

Drawing attention_drawing(const AttentionMaps& maps, const LayerWeights& layer) {
  const Array mean = mean_of_heads(layer);
  if (!reads_picture(maps, layer)) return large_map(maps, layer, mean);
  Drawing drawn = strip(*maps.grid, glances(maps, layer.self, mean));
  drawn.body.insert(0, fmt::format("<style>{}</style>\n", over_style));
  return drawn;
}

std::string attention_figure(const AttentionMaps& maps, const LayerWeights& layer) {
  return svg_file(attention_drawing(maps, layer));
}

HEED_END
