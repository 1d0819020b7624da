#include "train/views/report/attention/views.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "autograd/io/message_text.h"
#include "train/views/draw/svg.h"
#include "train/views/draw/token_graph.h"

HEED_BEGIN

HeatMap map_of(const Array& weights) {
  HeatMap map{weights.rows(), weights.cols(), {}, 0};
  for (const real w : weights.values()) {
    map.values.push_back(static_cast<float>(w));
    map.largest = std::max(map.largest, map.values.back());
  }
  HeatMap small = reduced(map, max_cells);
  // A cell shows the sum of the weights over a block of keys, because the mean would be too faint
  // for long inputs. The same factor for all blocks avoids stripes, although some blocks have one
  // key more.
  const float keys = static_cast<float>(map.columns) /
                     static_cast<float>(std::max<std::int64_t>(small.columns, 1));
  for (float& v : small.values) v *= keys;
  small.largest *= keys;
  return small;
}

std::string label_of(const std::string& name) { return name == " " ? "␣" : name; }

std::vector<std::string> names_of_blocks(const std::vector<std::string>& names) {
  const std::int64_t n = std::ssize(names), blocks = std::min(n, max_cells);
  std::vector<std::string> some;
  for (std::int64_t i = 0; i < blocks; ++i)
    some.push_back(label_of(names[i * n / blocks]) + (blocks < n ? " …" : ""));
  return some;
}

Drawing map_view(const AttentionMaps& maps, const LayerWeights& layer, const Array& weights) {
  return labelled_map(
      map_of(weights), names_of_blocks(maps.queries(layer)), names_of_blocks(maps.keys(layer)),
      {layer.queries_are_target ? "queries (tokens read)" : "queries", "keys", "weight of a key"});
}

Drawing lines_view(const AttentionMaps& maps, const LayerWeights& layer, const Array& weights) {
  const std::vector<std::string> queries = names_of_blocks(maps.queries(layer)),
                                 keys = names_of_blocks(maps.keys(layer));
  return token_graph(std::array{GraphColumn{"queries", queries}, GraphColumn{"keys", keys}},
                     std::array{map_of(weights)}, 0);
}

namespace {

/// Cells in two colours, for positive and negative values.
std::string signed_cells(const HeatMap& map, double width, double height) {
  HeatMap negated = map;
  for (float& v : negated.values) v = -v;
  return heat_cells(map, width, height) + "<g class=\"cold\">" +
         heat_cells(negated, width, height) + "</g>\n";
}

float largest_magnitude(const std::vector<float>& values) {
  float largest = 0;
  for (const float v : values) largest = std::max(largest, std::abs(v));
  return largest;
}

HeatMap transposed(const HeatMap& map) {
  HeatMap result{map.columns, map.rows, {}, map.largest};
  for (std::int64_t c = 0; c < map.columns; ++c)
    for (std::int64_t r = 0; r < map.rows; ++r) result.values.push_back(map.at(r, c));
  return result;
}

}  // namespace

Drawing neurons_view(const AttentionMaps& maps, const LayerWeights& layer, std::int64_t head,
                     std::int64_t query) {
  constexpr double cell = 9, line = 14, top = 34;
  const AttentionRecord& record = layer.record;
  const std::int64_t size = record.layout.size;
  std::vector<std::string> keys;
  for (const std::string& name : maps.keys(layer)) keys.push_back(label_of(name));
  const real* const q = record.query(query, head);
  HeatMap query_map{1, size, {q, q + size}, 0}, products{std::ssize(keys), size, {}, 0};
  for (std::int64_t j = 0; j < products.rows; ++j) {
    const real* const k = record.key(j, head);
    for (std::int64_t c = 0; c < size; ++c)
      products.values.push_back(static_cast<float>(q[c] * k[c]));
  }
  const std::string name = "query: " + excerpt(label_of(maps.queries(layer)[query]), max_label);
  const double left = std::max(label_length(keys), label_length(name)) + 6;
  query_map.largest = largest_magnitude(query_map.values);
  products.largest = largest_magnitude(products.values);
  const double right = left + cell * static_cast<double>(size);
  std::string body =
      svg("<text x=\"{0}\" y=\"{1}\" text-anchor=\"end\">{2}</text>\n<g transform=\"translate({3} "
          "{4})\">\n{5}</g>\n<g transform=\"translate({3} {6})\">\n{7}</g>\n"
          "<text x=\"{8}\" y=\"{1}\">Σ q ⊙ k</text>\n<text x=\"{9}\" y=\"{1}\">weight</text>\n",
          left - 6, top - 14, xml_text(name), left, top - 24, signed_cells(query_map, cell, line),
          top, signed_cells(products, cell, line), right + 8, right + 64);
  for (std::int64_t j = 0; j < products.rows; ++j) {
    double sum = 0;
    for (std::int64_t c = 0; c < size; ++c) sum += double{q[c]} * double{record.key(j, head)[c]};
    const std::string y = svg_number(top + line * static_cast<double>(j) + 10);
    body +=
        svg("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text><text x=\"{}\" y=\"{}\">{}</text>"
            "<text x=\"{}\" y=\"{}\">{}</text>\n",
            left - 6, y, xml_text(excerpt(keys[j], max_label)), right + 8, y,
            fmt::format("{:.3f}", sum), right + 64, y,
            record.reads[0].row(query)[j] == 0
                ? "not read"
                : fmt::format("{:.3f}", record.of(0, head).row(query)[j]));
  }
  const double below = top + line * static_cast<double>(products.rows) + 8;
  const Drawing scale =
      drawn(HeatScale{"0", fmt::format("±{:.3g}", products.largest),
                      fmt::format("q ⊙ k, negative values orange; the query above: up to ±{:.3g}",
                                  query_map.largest)});
  body += svg("<g transform=\"translate({} {})\">\n{}</g>\n", left, below, scale.body);
  return {std::max(right + 110, left + scale.width + 4), below + scale.height, body};
}

Drawing graph_view(const AttentionMaps& maps, bool target, double threshold) {
  const std::vector<std::string> names = names_of_blocks(target ? maps.target : maps.source);
  std::vector<GraphColumn> columns{{"input", names}};
  std::vector<HeatMap> edges;
  for (const LayerWeights& layer : maps.layers) {
    if (!layer.self || layer.queries_are_target != target) continue;
    edges.push_back(transposed(map_of(mean_of_heads(layer))));
    columns.push_back({fmt::format("layer {}", edges.size() - 1), names});
  }
  return edges.empty() ? Drawing{} : token_graph(columns, edges, threshold);
}

Drawing rollout_view(const AttentionMaps& maps, bool target, double threshold) {
  const Array& all = target ? maps.target_rollout : maps.source_rollout;
  if (!all.defined()) return {};
  const std::vector<std::string> names = names_of_blocks(target ? maps.target : maps.source);
  return token_graph(std::array{GraphColumn{"input", names}, GraphColumn{"last layer", names}},
                     std::array{transposed(map_of(all))}, threshold);
}

// ---- the viewer --------------------------------------------------------------------------------

namespace {

/// Maximum number of values of queries and keys in a page; each is encoded in two bytes.
constexpr std::int64_t max_neurons = 900'000;

/// Encodes values between `low` and `high` as whole numbers from 0 to 4095, in two base64 digits
/// each.
template <class Values>
std::string coded(const Values& values, double low, double high) {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (const auto v : values) {
    const double share = high > low ? (static_cast<double>(v) - low) / (high - low) : 0;
    const auto n = static_cast<std::size_t>(std::lround(4095 * std::clamp(share, 0.0, 1.0)));
    text += digits[n / 64];
    text += digits[n % 64];
  }
  return text;
}

/// The queries and keys of a head, and the largest magnitude of each.
nlohmann::json neurons_of(const AttentionRecord& record, std::int64_t head) {
  std::vector<float> q, k;
  const std::int64_t size = record.layout.size;
  for (std::int64_t i = 0; i < record.reads[0].rows(); ++i)
    q.insert(q.end(), record.query(i, head), record.query(i, head) + size);
  for (std::int64_t j = 0; j < record.reads[0].cols(); ++j)
    k.insert(k.end(), record.key(j, head), record.key(j, head) + size);
  const double a = largest_magnitude(q), b = largest_magnitude(k);
  return {{"a", a}, {"b", b}, {"q", coded(q, -a, a)}, {"k", coded(k, -b, b)}};
}

/// The data for the viewer script. Adds to `left_out` the number of layers that are too large for
/// the neurons view.
nlohmann::json viewer_data(const AttentionMaps& maps, std::int64_t& left_out) {
  nlohmann::json layers = nlohmann::json::array();
  std::int64_t room = max_neurons;
  for (const LayerWeights& layer : maps.layers) {
    const Array& first = layer.heads.front().weights;
    const std::int64_t size = layer.record.layout.size,
                       neurons = std::ssize(layer.heads) * size * (first.rows() + first.cols());
    const bool fits = neurons <= room && std::max(first.rows(), first.cols()) <= max_cells;
    if (fits) room -= neurons;
    left_out += fits ? 0 : 1;
    nlohmann::json heads = nlohmann::json::array();
    for (const HeadWeights& head : layer.heads) {
      nlohmann::json one{{"n", head.number}, {"w", coded(map_of(head.weights).values, 0, 1)}};
      if (fits) one.update(neurons_of(layer.record, head.number));
      heads.push_back(std::move(one));
    }
    layers.push_back({{"name", layer.name},
                      {"q", layer.queries_are_target ? "target" : "source"},
                      {"k", layer.keys_are_target ? "target" : "source"},
                      {"size", size},
                      {"scale", layer.record.scale},
                      {"heads", std::move(heads)}});
  }
  return {{"layers", std::move(layers)},
          {"source", names_of_blocks(maps.source)},
          {"target", names_of_blocks(maps.target)}};
}

/// JSON within a script element, with "<" escaped because "</script>" would end it.
std::string script_json(const nlohmann::json& data) {
  std::string text = data.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  for (std::size_t at = 0; (at = text.find('<', at)) != std::string::npos;)
    text.replace(at, 1, "\\u003c");
  return text;
}

constexpr std::string_view script = R"js(
(() => {
const data = JSON.parse(document.getElementById('weights').textContent);
const form = document.getElementById('choose'), box = document.getElementById('drawing');
const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const value = {};
[...digits].forEach((c, i) => value[c] = i);
const decode = (text, low, high) => Array.from({length: text.length / 2}, (_, i) =>
  low + (high - low) * (64 * value[text[2 * i]] + value[text[2 * i + 1]]) / 4095);
const add = (parent, tag, attributes, text) => {
  const e = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const k in attributes) e.setAttribute(k, attributes[k]);
  if (text !== undefined) e.textContent = text;
  parent.append(e);
  return e;
};
const cut = s => [...s].length > 40 ? [...s].slice(0, 39).join('') + '…' : s;
const pen = document.createElement('canvas').getContext('2d');
pen.font = '10px system-ui,sans-serif';
const room = names => Math.max(...names.map(name => pen.measureText(cut(name)).width)) + 10;
const option = (select, label, v) => select.append(new Option(label, v));
const fill = (select, labels) => {
  const previous = select.value;
  select.replaceChildren();
  labels.forEach(([label, v]) => option(select, label, v));
  if (labels.some(l => l[1] === previous)) select.value = previous;
};
const weights = (layer, head) => {
  const all = layer.heads.filter((h, i) => head === 'mean' || String(i) === head).map(h => decode(h.w, 0, 1));
  return all[0].map((_, i) => all.reduce((sum, w) => sum + w[i], 0) / all.length);
};
const cell = (svg, x, y, w, h, share, title) => {
  const r = add(svg, 'rect', {x, y, width: w, height: h, class: 'heat', 'shape-rendering': 'crispEdges', 'fill-opacity': Math.min(1, Math.abs(share)).toFixed(3)});
  if (share < 0) r.style.fill = 'var(--cold)';
  add(r, 'title', {}, title);
};
const scale = (svg, x, y, high, meaning) => {
  add(svg, 'text', {x, y: y + 9}, '0');
  for (let i = 0; i <= 12; ++i) cell(svg, x + 12 + 8 * i, y, 8, 10, i / 12, '');
  add(svg, 'text', {x: x + 120, y: y + 9}, high + ' ' + meaning);
};
function lines(svg, P, Q, K) {
  const left = room(Q), all = [], only = (side, n) => all.forEach(([i, j, e]) =>
    e.style.display = n === null || (side ? j : i) === n ? '' : 'none');
  P.forEach((p, at) => {
    const i = Math.floor(at / K.length), j = at % K.length;
    if (p < 0.01) return;
    const e = add(svg, 'path', {class: 'edge', 'stroke-opacity': p.toFixed(3), 'stroke-width': 1.5, d: `M${left} ${16 * i + 12}l160 ${16 * (j - i)}`});
    add(e, 'title', {}, `${Q[i]} → ${K[j]}: ${p.toFixed(3)}`);
    all.push([i, j, e]);
  });
  [Q, K].forEach((names, side) => names.forEach((name, n) => {
    const t = add(svg, 'text', {x: side ? left + 166 : left - 6, y: 16 * n + 15, 'text-anchor': side ? 'start' : 'end'}, cut(name));
    t.onmouseenter = () => only(side, n);
    t.onmouseleave = () => only(side, null);
  }));
  return [left + 166 + room(K), 16 * Math.max(Q.length, K.length) + 8];
}
function map(svg, P, Q, K, layer) {
  const largest = Math.max(...P), left = room(Q), top = 10 + 0.71 * room(K), below = top + 6 + 14 * Q.length;
  P.forEach((p, at) => { const i = Math.floor(at / K.length), j = at % K.length;
    cell(svg, left + 14 * j, top + 6 + 14 * i, 14, 14, p / largest, `${Q[i]} → ${K[j]}: ${p.toFixed(3)}`); });
  Q.forEach((name, i) => add(svg, 'text', {x: left - 6, y: top + 17 + 14 * i, 'text-anchor': 'end'}, cut(name)));
  K.forEach((name, j) => add(svg, 'text', {transform: `translate(${left + 10 + 14 * j} ${top}) rotate(-45)`}, cut(name)));
  add(svg, 'text', {x: 4, y: below + 14}, `rows: queries${layer.q === 'target' ? ' (tokens read)' : ''}; columns: keys`);
  scale(svg, 4, below + 20, largest.toPrecision(3), 'weight of a key');
  return [Math.max(300, left + 14 * K.length + room(K)), below + 34];
}
function neurons(svg, P, Q, K, layer, head, row) {
  const h = layer.heads[head === 'mean' ? 0 : head], n = layer.size;
  if (!h.q) { add(svg, 'text', {x: 0, y: 15}, 'Too many values for a page: give a shorter input, or choose a layer with heed attention --layer.'); return [600, 24]; }
  const q = decode(h.q, -h.a, h.a).slice(row * n, row * n + n), k = decode(h.k, -h.b, h.b);
  const w = Math.max(5, Math.min(14, 640 / n)), left = Math.max(room(K), room(['q: ' + Q[row]])), right = left + 10 + n * w, product = k.map((v, i) => v * q[i % n]);
  const largest = product.reduce((m, v) => Math.max(m, Math.abs(v)), 0) || 1;
  add(svg, 'text', {x: left - 6, y: 15, 'text-anchor': 'end'}, 'q: ' + cut(Q[row]));
  q.forEach((v, c) => cell(svg, left + c * w, 4, w, 14, v / (h.a || 1), `q[${c}] = ${v.toFixed(3)}`));
  add(svg, 'text', {x: right, y: 15}, `Σ q ⊙ k   (× ${layer.scale.toPrecision(3)} = score)   weight`);
  K.forEach((name, j) => {
    const terms = product.slice(j * n, j * n + n), y = 28 + 14 * j, sum = terms.reduce((a, v) => a + v, 0);
    add(svg, 'text', {x: left - 6, y: y + 11, 'text-anchor': 'end'}, cut(name));
    terms.forEach((v, c) => cell(svg, left + c * w, y, w, 14, v / largest, `q[${c}] k[${c}] = ${v.toFixed(3)}`));
    add(svg, 'text', {x: right, y: y + 11}, sum.toFixed(2));
    add(svg, 'text', {x: right + 60, y: y + 11}, '= ' + (sum * layer.scale).toFixed(2));
    add(svg, 'text', {x: right + 130, y: y + 11}, decode(h.w, 0, 1)[row * K.length + j].toFixed(3));
  });
  scale(svg, left, 34 + 14 * K.length, '±' + largest.toPrecision(3), 'q ⊙ k, negative values orange; the query above: up to ±' + h.a.toPrecision(3));
  return [Math.max(right + 260, left + 500), 50 + 14 * K.length];
}
function draw() {
  const layer = data.layers[form.layer.value], Q = data[layer.q], K = data[layer.k];
  fill(form.head, [...(form.view.value === 'neurons' ? [] : [['mean of the heads', 'mean']]), ...layer.heads.map((h, i) => ['head ' + h.n, String(i)])]);
  fill(form.query, Q.map((name, i) => [i + ': ' + cut(name), String(i)]));
  form.query.parentNode.hidden = form.view.value !== 'neurons';
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  const [w, h] = {lines, map, neurons}[form.view.value](svg, weights(layer, form.head.value), Q, K, layer, form.head.value, Number(form.query.value));
  svg.setAttribute('width', w);
  svg.setAttribute('height', h);
  box.replaceChildren(svg);
}
fill(form.layer, data.layers.map((l, i) => [l.name, String(i)]));
form.hidden = false;
form.onchange = draw;
document.querySelectorAll('a[data-head]').forEach(a => a.onclick = () => {
  form.layer.value = a.dataset.layer;
  draw();
  form.head.value = a.dataset.head;
  draw();
});
draw();
})();
)js";

}  // namespace

const std::string_view viewer_style =
    "form label{margin-right:1em}select{max-width:80vw}[hidden]{display:none}\n"
    "#drawing{overflow-x:auto;margin-top:1em}\n";

std::string viewer(const AttentionMaps& maps) {
  const LayerWeights& first = maps.layers.front();
  const Drawing lines = lines_view(maps, first, mean_of_heads(first));
  std::int64_t left_out = 0;
  const std::string data = script_json(viewer_data(maps, left_out));
  const std::string note =
      left_out == 0 ? ""
                    : fmt::format(
                          " The neurons view is not available for {} of {} layers, because "
                          "their queries and keys are too large for the page.",
                          left_out, maps.layers.size());
  return fmt::format(
      "<h2 id=\"viewer\">One head</h2>\n<p>Lines lead from each query, at the left, to the keys "
      "that it reads. A query of a decoder is named after the token that the decoder reads; its "
      "output predicts the next token. The neurons view shows the elementwise products of a query "
      "and each key; their sum times the scale is the score without position terms.{}</p>\n"
      "<form id=\"choose\" hidden><label>layer <select name=\"layer\"></select></label><label>head "
      "<select name=\"head\"></select></label><label>view <select "
      "name=\"view\"><option>lines<option>map<option>neurons</select></label><label>query <select "
      "name=\"query\"></select></label></form>\n"
      "<div id=\"drawing\"><p>{}, the mean of its heads. With JavaScript, this part shows any "
      "layer and head.</p>\n{}</div>\n"
      "<script type=\"application/json\" id=\"weights\">{}</script>\n<script>{}</script>\n",
      note, xml_text(first.name), svg_element(lines), data, script);
}

HEED_END
