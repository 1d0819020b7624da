// The drawings and the page of `heed attention`, tested with artificial weights.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <regex>

#include "autograd/base/random.h"
#include "train/views/report/attention/page.h"
#include "train/views/report/attention/views.h"

using namespace heed;

BOOST_AUTO_TEST_SUITE(attention_views)

namespace {

Array random_array(const Shape& shape, std::uint64_t seed) {
  Random random({.seed = seed, .stream = Stream::check, .index = 3});
  Array x(shape);
  for (real& v : x.values()) v = static_cast<real>(2 * random.uniform() - 1);
  return x;
}

/// Maps of an encoder with random queries, keys and weights. `size`: the width of a head.
AttentionMaps random_maps(std::int64_t layers, std::int64_t heads, std::int64_t size,
                          const std::vector<std::string>& tokens) {
  AttentionMaps maps;
  maps.source = tokens;
  const auto n = std::ssize(tokens);
  for (std::int64_t l = 0; l < layers; ++l) {
    LayerWeights layer;
    layer.name = "encoder.layers." + std::to_string(l) + ".self_attn";
    AttentionRecord& r = layer.record;
    r.heads = heads;
    r.layout = {heads, heads, size};
    r.q = random_array({n, 3 * heads * size}, static_cast<std::uint64_t>(l + 1));
    r.reads.push_back(Array::full({n, n}, 1));
    for (std::int64_t h = 0; h < heads; ++h) {
      Array p = random_array({n, n}, static_cast<std::uint64_t>(1000 * l + h));
      for (std::int64_t i = 0; i < n; ++i) {
        double sum = 0;
        for (std::int64_t j = 0; j < n; ++j) sum += p.row(i)[j] = std::exp(3 * p.row(i)[j]);
        for (std::int64_t j = 0; j < n; ++j) p.row(i)[j] /= static_cast<real>(sum);
      }
      r.weights.push_back(p);
      layer.heads.push_back({h, p, 1, 1});
    }
    maps.layers.push_back(std::move(layer));
  }
  maps.source_rollout = rollout(maps, false);
  return maps;
}

std::vector<std::string> tokens(std::int64_t n) {
  std::vector<std::string> all;
  for (std::int64_t i = 0; i < n; ++i) all.push_back("token" + std::to_string(i));
  return all;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++n;
  return n;
}

}  // namespace

BOOST_AUTO_TEST_CASE(layer_names_are_matched_by_dot_separated_parts) {
  BOOST_TEST(has_parts("encoder.layers.1.self_attn", "encoder.layers.1"));
  BOOST_TEST(!has_parts("encoder.layers.10.self_attn", "encoder.layers.1"));
  BOOST_TEST(has_parts("encoder.layers.10.self_attn", "layers.10"));
  BOOST_TEST(has_parts("decoder.layers.0.multihead_attn", "multihead_attn"));
  BOOST_TEST(!has_parts("decoder.layers.0.multihead_attn", "multihead"));
}

BOOST_AUTO_TEST_CASE(page_of_a_large_model_omits_large_maps) {
  const std::string page = attention_page(random_maps(12, 12, 64, tokens(60)), {"large", {}});
  BOOST_TEST(page.size() < 5'000'000u);
  BOOST_TEST(page.size() > 1'000'000u);  // contains the weights of all heads
  BOOST_TEST(page.find("the maps of all heads would be too large") != std::string::npos);
  const std::string longer = attention_page(random_maps(2, 2, 8, tokens(300)), {"long", {}});
  BOOST_TEST(longer.size() < 1'000'000u);
  BOOST_TEST(longer.find("are reduced") != std::string::npos);
  BOOST_TEST(longer.find("The neurons view is not available for 2 of 2 layers") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(hostile_tokens_are_escaped) {
  std::vector<std::string> names{"<script>alert(1)</script>", "\"'><img src=x>", "</svg>", "&lt;",
                                 std::string(10'000, 'x'),    "\x01\x1b[31m\xff"};
  const AttentionMaps maps = random_maps(1, 1, 4, names);
  const std::string page = attention_page(maps, {names[0], {{names[1], names[4]}}});
  BOOST_TEST(count(page, "<script") == 2u);  // one for the data, one for heed's script
  BOOST_TEST(count(page, "</script>") == 2u);
  BOOST_TEST(page.find("<img src=x") == std::string::npos);
  BOOST_TEST(page.find("alert(1)") != std::string::npos);  // visible as text
  BOOST_TEST(page.find('\x01') == std::string::npos);
  BOOST_TEST(page.find('\x1b') == std::string::npos);
  BOOST_TEST(page.size() < 400'000u);
  for (const char* view : {"map", "lines", "neurons", "graph", "rollout"}) {
    BOOST_TEST_CONTEXT(view) {
      const std::string file = svg_file(attention_drawing(maps, {.view = view}));
      BOOST_TEST(file.find("<script") == std::string::npos);
      BOOST_TEST(file.find("<img") == std::string::npos);
      BOOST_TEST(count(file, "</svg>") == 1u);
      BOOST_TEST(file.find('\x1b') == std::string::npos);
      BOOST_TEST(file.find("&lt;script&gt;") != std::string::npos);
    }
  }
}

BOOST_AUTO_TEST_CASE(neuron_products_sum_to_the_score) {
  const AttentionMaps maps = random_maps(1, 2, 4, tokens(3));
  const LayerWeights& layer = maps.layers[0];
  const std::string drawn = neurons_view(maps, layer, 1, 2).body;
  for (std::int64_t j = 0; j < 3; ++j) {
    double sum = 0;
    for (std::int64_t c = 0; c < 4; ++c)
      sum += double{layer.record.query(2, 1)[c]} * double{layer.record.key(j, 1)[c]};
    char text[32];
    std::snprintf(text, sizeof text, ">%.3f</text>", sum);
    BOOST_TEST(drawn.find(text) != std::string::npos, text << " is missing");
  }
  BOOST_TEST(drawn.find("query: token2") != std::string::npos);
}

// Each key has a line with its name, its sum and the weight that the query gives to it.
BOOST_AUTO_TEST_CASE(neurons_view_has_the_weights_of_its_query_and_head) {
  AttentionMaps maps = random_maps(1, 2, 4, tokens(3));
  LayerWeights& layer = maps.layers[0];
  layer.record.reads[0].row(2)[1] = 0;
  const std::string drawn = neurons_view(maps, layer, 1, 2).body;
  std::size_t at = drawn.find(">weight</text>");
  for (std::int64_t j = 0; j < 3; ++j) {
    at = drawn.find(">token" + std::to_string(j) + "</text>", at);
    BOOST_REQUIRE(at != std::string::npos);
    char text[32];
    std::snprintf(text, sizeof text, ">%.3f</text>", double{layer.record.of(0, 1).row(2)[j]});
    const std::string line = drawn.substr(at, drawn.find('\n', at) - at);
    BOOST_TEST(line.ends_with(j == 1 ? ">not read</text>" : text), line);
  }
}

// The script reads numbers of two digits in base 64 (RFC 4648): weights from 0 to 1, queries and keys from the
// largest magnitude's negative to the largest magnitude.
BOOST_AUTO_TEST_CASE(data_of_the_viewer_are_the_weights_queries_and_keys) {
  AttentionMaps maps = random_maps(2, 2, 4, tokens(3));
  for (real& v : maps.layers[1].record.q.values()) v *= 3;
  for (std::int64_t i = 0; i < 3; ++i) maps.layers[1].record.q.row(i)[0] = 8;  // only of queries
  const std::string page = viewer(maps), mark = "id=\"weights\">";
  const std::size_t begin = page.find(mark) + mark.size();
  const nlohmann::json data =
      nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin));
  const auto decoded = [](const std::string& text, double low, double high) {
    const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::vector<double> all;
    for (std::size_t i = 0; i < text.size(); i += 2)
      all.push_back(low +
                    (high - low) *
                        static_cast<double>(64 * digits.find(text[i]) + digits.find(text[i + 1])) /
                        4095);
    return all;
  };
  for (std::size_t l = 0; l < 2; ++l) {
    const LayerWeights& layer = maps.layers[l];
    BOOST_TEST(data["layers"][l]["name"] == layer.name);
    for (std::int64_t h = 0; h < 2; ++h) {
      const nlohmann::json& one = data["layers"][l]["heads"][h];
      const double a = one["a"], b = one["b"];
      const std::vector<double> w = decoded(one["w"], 0, 1), q = decoded(one["q"], -a, a),
                                k = decoded(one["k"], -b, b);
      BOOST_REQUIRE((w.size() == 9 && q.size() == 12 && k.size() == 12));
      for (std::int64_t i = 0; i < 3; ++i) {
        for (std::int64_t j = 0; j < 3; ++j)
          BOOST_TEST(std::abs(w[3 * i + j] - layer.heads[h].weights.row(i)[j]) < 1.3e-4);
        for (std::int64_t c = 0; c < 4; ++c) {
          BOOST_TEST(std::abs(q[4 * i + c] - layer.record.query(i, h)[c]) < 2.6e-4 * a);
          BOOST_TEST(std::abs(k[4 * i + c] - layer.record.key(i, h)[c]) < 2.6e-4 * b);
        }
      }
    }
  }
}

// A decoder that reads "<s>", "a" and "dog" predicts "a", "dog" and the end.
BOOST_AUTO_TEST_CASE(queries_of_a_decoder_are_named_after_the_tokens_read) {
  AttentionMaps maps = random_maps(1, 1, 4, tokens(3));
  maps.target = {"<s>", "a", "dog"};
  LayerWeights& layer = maps.layers[0];
  layer.self = false;
  layer.queries_are_target = true;
  layer.heads[0].weights = Array({{0.2F, 0.5F, 0.3F}, {0, 1, 0}, {0.25F, 0.5F, 0.25F}});
  const std::string map = attention_drawing(maps).body;
  maps.grid = PatchGrid{{1, 3, 1, {0, 128, 255}}, 1, 3, 1, 0};
  const std::string images = attention_drawing(maps).body;
  for (const std::string& body : {map, images}) {
    for (const char* name : {">&lt;s&gt;</text>", ">a</text>", ">dog</text>"})
      BOOST_TEST(count(body, name) == 1u, name);
  }
  BOOST_TEST(count(images, "(end)") == 0u);
  BOOST_TEST(count(images, ">maximum 0.5</text>") == 2u);  // each image has its own
  BOOST_TEST(count(images, ">maximum 1</text>") == 1u);
  BOOST_TEST(count(images, ">weight of a cell of the image</text>") == 1u);
  BOOST_TEST(count(map, ">rows: queries (tokens read); columns: keys</text>") == 1u);
  BOOST_TEST(count(map, ">weight of a key</text>") == 1u);
  layer.queries_are_target = false;
  maps.grid.reset();
  BOOST_TEST(count(attention_drawing(maps).body, ">rows: queries; columns: keys</text>") == 1u);
}

BOOST_AUTO_TEST_CASE(graph_contains_the_weights_above_the_threshold) {
  AttentionMaps maps = random_maps(2, 1, 4, tokens(3));
  for (LayerWeights& layer : maps.layers)
    layer.heads[0].weights = Array({{1, 0, 0}, {0.3F, 0.7F, 0}, {0, 0, 1}});
  const auto edges = [](const Drawing& map) { return count(map.body, "L"); };
  BOOST_TEST(edges(graph_view(maps, false, 0.1)) == 8u);
  BOOST_TEST(edges(graph_view(maps, false, 0.5)) == 6u);
  BOOST_TEST(graph_view(maps, true, 0.1).width == 0);
  // An edge leads from key 0, at height 32, to query 1 below it. No edge has the reverse direction.
  const std::string body = graph_view(maps, false, 0.1).body;
  BOOST_TEST(std::regex_search(body, std::regex("M[0-9.]+ 32L[0-9.]+ 48")));
  BOOST_TEST(!std::regex_search(body, std::regex("M[0-9.]+ 48L[0-9.]+ 32")));
  maps.source_rollout = rollout(maps, false);
  // Row 1 of ((A + I) / 2)² is (0.15 + 0.15 · 0.85, 0.85²).
  BOOST_TEST(edges(rollout_view(maps, false, 0.28)) == 3u);
  BOOST_TEST(edges(rollout_view(maps, false, 0.27)) == 4u);
  BOOST_TEST(edges(lines_view(maps, maps.layers[0], maps.layers[0].heads[0].weights)) == 4u);
}

// The row of an output token, computed backwards: half of each layer's share stays with the token,
// half goes to the tokens that it attends to.
BOOST_AUTO_TEST_CASE(rollout_follows_the_weights_from_the_last_layer_to_the_first) {
  constexpr std::int64_t n = 5;
  AttentionMaps maps = random_maps(3, 2, 4, tokens(n));
  const auto check = [&](const Array& all) {
    BOOST_REQUIRE((all.shape() == Shape{n, n}));
    for (std::int64_t token = 0; token < n; ++token) {
      std::vector<double> share(n, 0);
      share[token] = 1;
      for (std::size_t l = maps.layers.size(); l-- > 0;) {
        std::vector<double> below(n, 0);
        for (std::int64_t i = 0; i < n; ++i) {
          below[i] += share[i] / 2;
          for (const HeadWeights& head : maps.layers[l].heads)
            for (std::int64_t j = 0; j < n; ++j)
              below[j] += share[i] / 2 * double{head.weights.row(i)[j]} / 2;
        }
        share = below;
      }
      for (std::int64_t j = 0; j < n; ++j)
        BOOST_TEST(std::abs(all.row(token)[j] - share[j]) < 1e-6);
    }
  };
  check(rollout(maps, false));
  for (LayerWeights& layer : maps.layers) layer.queries_are_target = layer.keys_are_target = true;
  check(rollout(maps, true));
}

BOOST_AUTO_TEST_CASE(rows_of_a_reduced_map_sum_to_1) {
  AttentionMaps maps = random_maps(1, 1, 4, tokens(128));
  Array& p = maps.layers[0].heads[0].weights;
  for (std::int64_t i = 0; i < 128; ++i) {  // each token attends to the previous token
    std::fill_n(p.row(i), 128, real(0));
    p.row(i)[std::max<std::int64_t>(i - 1, 0)] = 1;
  }
  const HeatMap map = map_of(p);
  BOOST_TEST(map.rows == 64);
  for (std::int64_t r = 0; r < map.rows; ++r) {
    double sum = 0;
    for (std::int64_t c = 0; c < map.columns; ++c) sum += map.at(r, c);
    BOOST_TEST(std::abs(sum - 1) < 1e-6);
  }
  BOOST_TEST(map.largest == 1);  // the first block attends only to itself
  BOOST_TEST(count(lines_view(maps, maps.layers[0], p).body, "L") >= 64u);
  BOOST_TEST(count(graph_view(maps, false, 0.1).body, "L") >= 64u);
}

BOOST_AUTO_TEST_CASE(entropy_and_distance_of_signed_weights_are_omitted) {
  AttentionMaps maps = random_maps(1, 1, 4, tokens(3));
  maps.layers[0].heads[0].weights = Array({{2, -1, 0}, {-0.5F, 0.5F, 1}, {0, 0, 1}});
  maps.layers[0].heads[0].distance = -3;
  BOOST_TEST(attention_page(maps, {"", {}}).find("entropy 1.00, distance -3.0") !=
             std::string::npos);
  maps.nonnegative = false;
  const std::string page = attention_page(maps, {"", {}});
  BOOST_TEST(page.find("distance -3.0") == std::string::npos);
  BOOST_TEST(page.find("weights may be negative or above 1") != std::string::npos);
  const nlohmann::json head = json_of(maps)["layers"][0]["heads"][0];
  BOOST_TEST(!head.contains("entropy"));
  BOOST_TEST(!head.contains("distance"));
  // In the small map, a negative weight is drawn as 0.
  const auto image = [](const std::string& text) {
    const std::size_t at = text.find("data:image/png");
    return text.substr(at, text.find('"', at) - at);
  };
  AttentionMaps clipped = maps;
  clipped.layers[0].heads[0].weights = Array({{2, 0, 0}, {0, 0.5F, 1}, {0, 0, 1}});
  BOOST_TEST(image(page) == image(attention_page(clipped, {"", {}})));
}

BOOST_AUTO_TEST_CASE(figure_for_print_has_the_requested_width_in_millimetres) {
  const AttentionMaps maps = random_maps(1, 1, 4, tokens(5));
  const std::string file = svg_file(attention_drawing(maps, {.view = "lines"}), 84);
  std::smatch found;
  BOOST_REQUIRE(std::regex_search(
      file, found,
      std::regex(
          "^<svg [^>]*width=\"84mm\" height=\"([0-9.]+)mm\" viewBox=\"0 0 ([0-9.]+) ([0-9.]+)\"")));
  const double height = std::stod(found[1]), w = std::stod(found[2]), h = std::stod(found[3]);
  BOOST_TEST(std::abs(height / 84 - h / w) < 1e-3);
  // Many print programs do not support CSS variables.
  BOOST_TEST(file.find("var(") == std::string::npos);
  BOOST_TEST(file.find("fill:#0b5fa5") != std::string::npos);
  BOOST_TEST(file.find("prefers-color-scheme") == std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
