#include "train/views/draw/svg.h"

#include <fmt/format.h>

#include <algorithm>

#include "autograd/io/message_text.h"
#include "autograd/io/utf8.h"

namespace heed {

std::string xml_text(std::string_view text) {
  constexpr std::string_view replacement = "\xEF\xBF\xBD";
  std::string escaped;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t n = utf8_length(text, at);
    const char c = text[at];
    if (n == 0 || (n == 1 && static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t')) {
      escaped += replacement;
    } else if (c == '&') {
      escaped += "&amp;";
    } else if (c == '<') {
      escaped += "&lt;";
    } else if (c == '>') {
      escaped += "&gt;";
    } else if (c == '"') {
      escaped += "&quot;";
    } else {
      escaped += text.substr(at, n);
    }
    at += std::max<std::size_t>(n, 1);
  }
  return escaped;
}

std::string svg_number(double value) {
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text == "-0" ? "0" : text;
}

namespace {

/// The width of a character in DejaVu Sans, a wide system font, at 10 pixels, rounded up.
double character_width(char32_t c) {
  constexpr std::string_view narrow = " !'(),-./:;I[\\]`fijlrt|", widest = "%@MWm",
                             wide = "#&+<=>^~w";
  if (c >= 128) return c >= 0x1F000 ? 13 : 10;  // pictographs from U+1F000
  const char ascii = static_cast<char>(c);
  if (narrow.find(ascii) != std::string_view::npos) return 4.1;
  if (widest.find(ascii) != std::string_view::npos) return 10;
  return (c >= 'A' && c <= 'Z') || wide.find(ascii) != std::string_view::npos ? 8.4 : 6.4;
}

}  // namespace

double label_length(std::string_view text) {
  double length = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t n = utf8_length(text, at);
    length += character_width(n == 0 ? U'?' : utf8_decode(text, at, n));
    at += std::max<std::size_t>(n, 1);
  }
  return length;
}

double label_length(std::span<const std::string> labels) {
  double length = 0;
  for (const std::string& label : labels)
    length = std::max(length, label_length(excerpt(label, max_label)));
  return length;
}

std::string_view drawing_style() {
  return R"(:root{color-scheme:light dark;--ink:#1f2328;--quiet:#6a737d;--line:#c9ced6;--back:#fff;--heat:#0b5fa5;--cold:#b35900}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ee;--quiet:#9aa4b0;--line:#3d444d;--back:#0f1216;--heat:#5cb3ff;--cold:#ffa657}svg .s0{color:#3d8fe8}svg .s1{color:#ff8a3d}svg .s2{color:#2dc79b}svg .s5{color:#a3dcff}svg .s6{color:#d8c832}}
text{font:10px system-ui,sans-serif;fill:var(--ink)}
.heat{fill:var(--heat)}.cold .heat{fill:var(--cold)}.edge{fill:none;stroke:var(--heat)}.node{fill:var(--ink)}
.frame{fill:none;stroke:var(--line)}.cell{fill:transparent}
.l1{fill-opacity:.08}.l2{fill-opacity:.16}.l3{fill-opacity:.24}.l4{fill-opacity:.33}.l5{fill-opacity:.41}
.l6{fill-opacity:.5}.l7{fill-opacity:.58}.l8{fill-opacity:.66}.l9{fill-opacity:.75}.l10{fill-opacity:.83}
.l11{fill-opacity:.91}.l12{fill-opacity:1}.over-heat{fill:var(--back)}
.s0{color:#0072b2}.s1{color:#d55e00}.s2{color:#009e73}.s3{color:#cc79a7}.s4{color:#e69f00}.s5{color:#56b4e9}.s6{color:#7b6c00}.s7{color:#6a737d}
.line{fill:none;stroke:currentColor;stroke-width:1.5;stroke-linejoin:round}.band{fill:currentColor;fill-opacity:.18}
.bar{fill:currentColor}.dot{fill:var(--back);stroke:currentColor;stroke-width:2}.faint{stroke-opacity:.45}
.grid{stroke:var(--line);stroke-width:.5;fill:none}.second{stroke-dasharray:5 3}.title{font-weight:600;font-size:12px}
)";
}

std::string in_light_colours(std::string svg) {
  if (const std::size_t dark = svg.find("@media(prefers-color-scheme"); dark != std::string::npos)
    svg.erase(dark, svg.find('\n', dark) + 1 - dark);
  std::string_view colours = drawing_style().substr(0, drawing_style().find('}'));
  for (std::size_t name; (name = colours.find("--")) != std::string_view::npos;) {
    colours.remove_prefix(name);
    const std::size_t colon = colours.find(':');
    const std::string use = fmt::format("var({})", colours.substr(0, colon));
    const std::string_view value = colours.substr(colon + 1, colours.find(';') - colon - 1);
    for (std::size_t at = 0; (at = svg.find(use, at)) != std::string::npos;)
      svg.replace(at, use.size(), value);
    colours.remove_prefix(colon);
  }
  return svg;
}

Drawing arranged(const std::vector<Drawing>& drawings, std::size_t columns) {
  Drawing all;
  for (std::size_t begin = 0; begin < drawings.size(); begin += columns) {
    double x = 0, height = 0;
    for (std::size_t i = begin; i < std::min(begin + columns, drawings.size()); ++i) {
      all.body +=
          svg("<g transform=\"translate({} {})\">\n{}</g>\n", x, all.height, drawings[i].body);
      x += drawings[i].width;
      height = std::max(height, drawings[i].height);
    }
    all.width = std::max(all.width, x);
    all.height += height;
  }
  return all;
}

std::string svg_element(const Drawing& d, double millimetres) {
  const bool paper = millimetres > 0;
  const std::string_view unit = paper ? "mm" : "";
  return svg(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}{}\" height=\"{}{}\" viewBox=\"0 0 {} "
      "{}\">\n{}</svg>\n",
      paper ? millimetres : d.width, unit, paper ? millimetres * d.height / d.width : d.height,
      unit, d.width, d.height, d.body);
}

std::string svg_file(const Drawing& d, double millimetres) {
  const std::string head = fmt::format(
      "<style>{}</style>\n<rect width=\"100%\" height=\"100%\" fill=\"var(--back)\"/>\n",
      drawing_style());
  const std::string file = svg_element({d.width, d.height, head + d.body}, millimetres);
  return millimetres > 0 ? in_light_colours(file) : file;
}

std::string html_page(std::string_view title, std::string_view style, std::string_view body,
                      std::string_view head) {
  return fmt::format(R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
{}<title>{}</title>
<style>
{}body{{margin:2em auto;max-width:72em;padding:0 1em;font:15px/1.5 system-ui,sans-serif;overflow-wrap:anywhere;background:var(--back);color:var(--ink)}}
{}</style>
</head>
<body>
{}</body>
</html>
)",
                     head, xml_text(title), drawing_style(), style, body);
}

}  // namespace heed
