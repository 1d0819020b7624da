#pragma once
/// Parts of SVG and HTML pages.
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// Text for an element or an attribute: markup is escaped, and what XML cannot hold (control
/// characters, broken UTF-8) becomes U+FFFD.
std::string xml_text(std::string_view text);

/// A length: at most two digits after the point, and none that are zero.
std::string svg_number(double value);

/// About the length of a label, in pixels.
double label_length(std::string_view text);

/// The style that all drawings share. Colours follow the reader's choice of light or dark. Values
/// are shown by one colour of varying opacity, which readers who are colour-blind can tell apart.
///   .heat       filled areas; .heat.l1 to .heat.l12: the opacity of a level
///   .cold .heat the same in a second colour, for values below 0
///   .frame      outlines; .grid: lines behind a chart; text: labels; .edge, .node: of graphs
///   .s0 to .s7  a colour for the marks .line, .band, .bar and .dot within; .faint: less of it
std::string_view drawing_style();

inline constexpr int palette_size = 8;

/// SVG elements and the size of the area that they fill, in pixels.
struct Drawing {
  double width = 0, height = 0;
  std::string body;
};

/// Drawings side by side, in rows of `columns`.
Drawing arranged(const std::vector<Drawing>& drawings, std::size_t columns);

/// A drawing as a file of its own: `body` is drawn on width × height pixels, or, with `millimetres`, to
/// that width on paper.
std::string svg_file(double width, double height, std::string_view body, double millimetres = 0);
inline std::string svg_file(const Drawing& d, double millimetres = 0) {
  return svg_file(d.width, d.height, d.body, millimetres);
}

/// A self-contained HTML page. `style` is added to that of drawings, `head` to the page's head.
std::string html_page(std::string_view title, std::string_view style, std::string_view body,
                      std::string_view head = "");

/// A drawing within a page, or within another drawing. What lies outside of its size is not shown.
std::string svg_element(double width, double height, std::string_view body);
inline std::string svg_element(const Drawing& d) { return svg_element(d.width, d.height, d.body); }

}  // namespace heed
