#pragma once
/// Elements of SVG files and HTML pages.
#include <fmt/format.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heed {

/// Text for an element or an attribute: markup is escaped; invalid UTF-8 and characters below
/// U+0020, except tab and newline, become U+FFFD.
std::string xml_text(std::string_view text);

/// A number with up to two decimal places, without trailing zeros.
std::string svg_number(double value);
/// fmt::format, with every double as svg_number.
inline std::string svg_argument(double value) { return svg_number(value); }
template <class T>
const T& svg_argument(const T& value) {
  return value;
}
template <class... Args>
std::string svg(fmt::format_string<decltype(svg_argument(std::declval<const Args&>()))...> format,
                const Args&... args) {
  return fmt::format(format, svg_argument(args)...);
}

/// An upper bound of the length of a label in the usual fonts, in pixels.
double label_length(std::string_view text);
/// Maximum number of characters of the labels of rows, columns and nodes; longer labels are cut
/// (excerpt).
inline constexpr std::size_t max_label = 60;
/// The length of the longest of these labels.
double label_length(std::span<const std::string> labels);

/// The style of all drawings. Colours follow the reader's choice of light or dark mode. Magnitudes
/// are shown by the opacity of a colour, so that colour-blind readers can distinguish them.
///   .heat         filled areas; .l1 to .l12: their levels of opacity
///   .cold .heat   filled areas in a second colour, for values below 0
///   .frame        outlines; .grid: lines behind a chart; .edge, .node: parts of graphs
///   .s0 to .s7    colours of .line, .band, .bar and .dot; .faint: pale; .second: dashed
std::string_view drawing_style();

inline constexpr int palette_size = 8;  ///< number of colours .s0, .s1, …

/// SVG elements and the size of the area that they fill, in pixels.
struct Drawing {
  double width = 0, height = 0;
  std::string body;
};

/// Arranges drawings in rows, with `columns` drawings in each.
Drawing arranged(const std::vector<Drawing>& drawings, std::size_t columns);

/// A drawing with the colours of the light mode in place of CSS variables, which many print
/// programs do not support.
std::string in_light_colours(std::string svg);

/// A drawing as an SVG file; with `millimetres` > 0, in the light colours.
std::string svg_file(const Drawing& drawing, double millimetres = 0);

/// A self-contained HTML page. `title` is escaped. `style` (CSS) is added after drawing_style(),
/// `head` to the head element.
std::string html_page(std::string_view title, std::string_view style, std::string_view body,
                      std::string_view head = "");

/// A drawing as an element of a page or of another drawing, clipped to its size, which is in pixels
/// or, if `millimetres` > 0, scaled to that width on paper.
std::string svg_element(const Drawing& drawing, double millimetres = 0);

}  // namespace heed
