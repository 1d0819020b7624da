// SVG and HTML: escaping, numbers, Base64 and heat maps.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "autograd/io/formats/base64.h"
#include "train/views/draw/heat_map.h"
#include "train/views/draw/svg.h"
#include "train/views/draw/token_graph.h"

using namespace heed;

BOOST_AUTO_TEST_SUITE(draw)

BOOST_AUTO_TEST_CASE(xml_text_escapes_markup_and_replaces_invalid_characters) {
  BOOST_TEST(xml_text("a < b & \"c\" > d") == "a &lt; b &amp; &quot;c&quot; &gt; d");
  BOOST_TEST(xml_text("Grüße, 世界\n") == "Grüße, 世界\n");
  BOOST_TEST(xml_text(std::string("\0\x01\x1b", 3)) == "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  BOOST_TEST(xml_text("\xff\xc3") == "\xEF\xBF\xBD\xEF\xBF\xBD");  // invalid UTF-8
  BOOST_TEST(html_page("<script>", "", "").find("<title>&lt;script&gt;</title>") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(svg_numbers_have_at_most_two_decimal_places) {
  BOOST_TEST(svg_number(1) == "1");
  BOOST_TEST(svg_number(-0.001) == "0");
  BOOST_TEST(svg_number(2.5) == "2.5");
  BOOST_TEST(svg_number(1.0 / 3) == "0.33");
  BOOST_TEST(svg_number(100) == "100");
}

BOOST_AUTO_TEST_CASE(base64_encodes_the_examples_of_rfc_4648) {
  BOOST_TEST(base64("") == "");
  BOOST_TEST(base64("f") == "Zg==");
  BOOST_TEST(base64("fo") == "Zm8=");
  BOOST_TEST(base64("foobar") == "Zm9vYmFy");
  BOOST_TEST(base64(std::string("\0\xff", 2)) == "AP8=");
}

BOOST_AUTO_TEST_CASE(cells_of_one_level_form_one_path) {
  const HeatMap map{2, 3, {1, 1, 0, 0, 0.5F, 0.01F}, 1};
  BOOST_TEST(heat_cells(map, 10, 5) ==
             "<path class=\"heat l6\" shape-rendering=\"crispEdges\" d=\"M10 5h10v5h-10z\"/>\n"
             "<path class=\"heat l12\" shape-rendering=\"crispEdges\" d=\"M0 0h20v5h-20z\"/>\n");
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  BOOST_TEST(heat_cells({1, 2, {nan, 0}, 1}, 1, 1) == "");
  BOOST_TEST(heat_cells({1, 1, {0}, 0}, 1, 1) == "");
  BOOST_TEST(heat_cells({0, 0, {}, 1}, 1, 1) == "");
}

BOOST_AUTO_TEST_CASE(large_map_is_reduced_to_means_of_blocks) {
  HeatMap map{5, 4, {}, 1};
  for (int i = 0; i < 20; ++i) map.values.push_back(static_cast<float>(i));
  const HeatMap same = reduced(map, 5);
  BOOST_TEST(same.values == map.values, boost::test_tools::per_element());
  const HeatMap small = reduced(map, 2);
  BOOST_TEST(small.rows == 2);
  BOOST_TEST(small.columns == 2);
  // Each block consists of rows 0 and 1 or rows 2 to 4, and of columns 0 and 1 or columns 2 and 3.
  const std::vector<float> expected{2.5F, 4.5F, 12.5F, 14.5F};
  BOOST_TEST(small.values == expected, boost::test_tools::per_element());
  BOOST_TEST(small.largest == 14.5F);
}

// Widths of DejaVu Sans at 10 pixels: "<" and ">" 8.38, "s" 5.21, "W" 9.89, "i" 2.78; a pictograph
// is wider.
BOOST_AUTO_TEST_CASE(length_of_a_label_is_an_upper_bound_of_its_width) {
  for (const auto& [text, width] :
       {std::pair("<s>", 21.97), {"WWWW", 39.56}, {"@", 10.0}, {"世界", 20.0}, {"🙂", 12.4}})
    BOOST_TEST(label_length(text) >= width, text);
  BOOST_TEST(label_length("iiii") < 20);  // less than for wide letters
  const std::vector<std::string> labels{"a", std::string(70, 'W'), "b"};
  BOOST_TEST(label_length(labels) == label_length(std::string(60, 'W') + "…"));
}

BOOST_AUTO_TEST_CASE(labelled_map_has_labels_tooltips_axes_and_a_scale) {
  const std::vector<std::string> rows{
      "<s>", "decoder.layers.10.multihead_attn, a name of seventy characters, the rest"},
      columns{"x", "&"};
  const Drawing map = labelled_map({2, 2, {1, 0, 0.08F, 1.96F}, 2.5F}, rows, columns,
                                   {"the <rows>", "the columns", "weight"});
  BOOST_TEST(map.width > 28);
  BOOST_TEST(map.height > 28);
  BOOST_TEST(map.body.find("&lt;s&gt;</text>") != std::string::npos);
  BOOST_TEST(
      map.body.find("decoder.layers.10.multihead_attn, a name of seventy characte…</text>") !=
      std::string::npos);
  BOOST_TEST(map.body.find("<title>&lt;s&gt; → x: 1.000</title>") != std::string::npos);
  BOOST_TEST(map.body.find("→ &amp;: 1.960</title>") != std::string::npos);
  BOOST_TEST(map.body.find("0.080") == std::string::npos);  // too small for a tooltip
  BOOST_TEST(map.body.find(">rows: the &lt;rows&gt;; columns: the columns<") != std::string::npos);
  const std::size_t scale =
      map.body.find("<text y=\"9\">0</text>");  // 12 cells between 0 and the maximum
  BOOST_REQUIRE(scale != std::string::npos);
  for (int level = 1; level <= 12; ++level)
    BOOST_TEST(map.body.find("heat l" + std::to_string(level) + "\"", scale) != std::string::npos);
  BOOST_TEST(map.body.find(">2.5</text>", scale) != std::string::npos);
  BOOST_TEST(map.body.find(">weight</text>", scale) != std::string::npos);
}

// Cells of 40 pixels have room for six digits; 40 rows have cells of 14 pixels, with room for two.
BOOST_AUTO_TEST_CASE(cells_contain_their_text_where_it_fits) {
  const std::vector<std::string> two{"a", "b"};
  const std::string small = labelled_map({2, 2, {1, 0.5F, 0, 1}, 1}, two, two,
                                         {"", "", "", {"123456", "1234567", "", "8"}})
                                .body;
  BOOST_TEST(
      small.find(
          "<text class=\"over-heat\" x=\"20\" y=\"23.5\" text-anchor=\"middle\">123456</text>") !=
      std::string::npos);
  BOOST_TEST(small.find("1234567") == std::string::npos);
  BOOST_TEST(
      small.find("<text class=\"over-heat\" x=\"60\" y=\"63.5\" text-anchor=\"middle\">8</text>") !=
      std::string::npos);
  const std::vector<std::string> many(40, "x");
  MapText text{"", "", "", std::vector<std::string>(1600, "777")};
  text.cells[0] = "66";
  const Drawing large = labelled_map({40, 40, std::vector<float>(1600, 0.5F), 1}, many, many, text);
  BOOST_TEST(large.body.find("<text x=\"7\" y=\"10.5\" text-anchor=\"middle\">66</text>") !=
             std::string::npos);
  BOOST_TEST(large.body.find(">777<") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(labelled_map_with_equal_values_has_a_tooltip_for_the_largest) {
  const std::vector<std::string> row{"r"}, columns{"a", "b", "c", "d", "e", "f"};
  const Drawing map =
      labelled_map({1, 6, {0.1F, 0.1F, 0.1F, 0.1F, 0.1F, 0.5F}, 1}, row, columns, {});
  for (const char* const tooltip : {"a: 0.100", "b: 0.100", "c: 0.100", "f: 0.500"})
    BOOST_TEST(map.body.find(std::string("r → ") + tooltip) != std::string::npos, tooltip);
  BOOST_TEST(map.body.find("r → d") == std::string::npos);
}

// Rows are named from top to bottom, columns from left to right; cells are 14 pixels wide.
BOOST_AUTO_TEST_CASE(names_of_rows_and_columns_are_beside_their_cells) {
  const std::vector<std::string> rows{"one", "two", "three"}, columns{"x", "y"};
  const std::string body =
      labelled_map({3, 2, {1, 0, 0, 1, 1, 0}, 1}, rows, columns, {"", "", ""}).body;
  const auto before = [&](const std::string& name, const std::string& key) {
    const std::size_t end = body.find(">" + name + "</text>");
    BOOST_REQUIRE(end != std::string::npos);
    return std::stod(body.substr(body.rfind(key, end) + key.size()));
  };
  const std::string y = " y=\"", x = "translate(";
  BOOST_TEST(before("two", y) - before("one", y) == 14);
  BOOST_TEST(before("three", y) - before("two", y) == 14);
  BOOST_TEST(before("y", x) - before("x", x) == 14);
  // The cell of row two and column y.
  BOOST_TEST(
      body.find("<rect class=\"cell\" x=\"14\" y=\"14\" width=\"14\" height=\"14\"><title>two → y: "
                "1.000</title>") != std::string::npos);
}

// Rows are 16 pixels high, below a heading of 24. Columns are 140 pixels apart if there are two.
BOOST_AUTO_TEST_CASE(edges_of_a_graph_join_the_rows_and_columns_of_their_matrix) {
  const std::vector<std::string> from{"a", "b"}, to{"x", "y", "z"};
  const std::vector<GraphColumn> columns{{"first", from}, {"second", to}};
  const std::vector<HeatMap> edges{{2, 3, {0.5F, 0, 0.09F, 0, 0.72F, 2}, 1}};
  const Drawing graph = token_graph(columns, edges, 0.1);
  const auto paths = [](const std::string& body) {
    std::vector<std::string> all;
    for (std::size_t at = 0; (at = body.find("class=\"edge\"", at)) != std::string::npos; ++at)
      all.push_back(body.substr(at + 13, body.find("/>", at) - at - 13));
    return all;
  };
  const double left =
      label_length("b") + 6;  // the names of the nodes, which are wider than half the title
  const auto edge = [&](const char* opacity, int row, int column) {
    return svg("stroke-opacity=\"{}\" d=\"M{} {}L{} {}\"", opacity, left, 32.0 + 16 * row,
               left + 140, 32.0 + 16 * column);
  };
  const std::vector<std::string> expected{edge("0.5", 0, 0), edge("0.7", 1, 1), edge("1", 1, 2)};
  BOOST_TEST(paths(graph.body) == expected, boost::test_tools::per_element());
  // Only nodes of the first and the last column have names.
  const std::vector<GraphColumn> three{{"first", from}, {"middle", to}, {"last", from}};
  const std::vector<HeatMap> two{edges[0], {3, 2, {0, 0, 0, 0, 1, 0}, 1}};
  const std::string body = token_graph(three, two, 0.1).body;
  BOOST_TEST(body.find(">middle</text>") != std::string::npos);
  BOOST_TEST(body.find(">x</text>") == std::string::npos);
  const std::size_t first = body.find("text-anchor=\"end\">b</text>");
  BOOST_REQUIRE(first != std::string::npos);
  BOOST_TEST(body.find(">b</text>", first + 20) != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
