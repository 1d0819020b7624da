#include "train/views/draw/column.h"

#include <fmt/format.h>

#include <algorithm>

#include "autograd/io/utf8.h"
#include "train/views/draw/svg.h"

namespace heed {

namespace {

constexpr std::string_view style =
    R"(<style>.name{font-size:12px}.more{fill:var(--quiet)}.box .more{fill:var(--ink)}
.line{fill:none;stroke:var(--quiet)}.tip{marker-end:url(#tip)}.tie{stroke-dasharray:3 3}#tip{fill:var(--quiet)}</style>
<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z"/></marker>
)";

}  // namespace

void Column::line(const std::string& path, std::string_view kind) {
  body += fmt::format("<path class=\"{}\" d=\"{}\"/>\n", kind, path);
}

void Column::text(double at_x, double y, std::string_view kind, const std::string& text,
                  std::string_view anchor) {
  body += svg("<text class=\"{}\" x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>\n", kind, at_x, y,
              anchor, xml_text(text));
}

void Column::caption(const std::string& line, std::string_view kind) {
  text(x, top - 4, kind, line);
  top -= 15;
}

void Column::rise(const std::string& label, double by, bool tip) {
  line(svg("M{} {}V{}", x, top, top - by), tip ? "line tip" : "line");
  if (!label.empty()) text(x + 6, top - by / 2 + 3, "more", label, "start");
  top -= by;
}

void Column::box_at(const Box& box, double at_x, double bottom, double wide) {
  const double high = box.height(), y = bottom - high;
  body +=
      svg("<g class=\"box\"><title>{}</title>\n<rect class=\"heat l{}\" x=\"{}\" y=\"{}\" "
          "width=\"{}\" height=\"{}\" rx=\"4\"/>\n",
          xml_text(box.tooltip.empty() ? box.name : box.tooltip), box.tint, at_x - wide / 2, y,
          wide, high);
  text(at_x, y + 15, "name", box.name);
  for (std::size_t i = 0; i < box.lines.size(); ++i)
    text(at_x, y + 28 + 12 * static_cast<double>(i), "more", box.lines[i]);
  body += "</g>\n";
  if (box.reads_side_box) readers.emplace_back(at_x - wide / 2, y + high / 2);
}

void Column::boxes(const std::vector<Box>& boxes) {
  double high = 0;
  for (const Box& one : boxes) high = std::max(high, one.height());
  const double from = top, sum = from - high - 46;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    const double middle = static_cast<double>(boxes.size() - 1) / 2,
                 at_x = x + (box_width + gap) * (static_cast<double>(i) - middle);
    line(svg("M{} {}H{}V{}", x, from, at_x, from - 20));
    box_at(boxes[i], at_x, from - 20);
    const double up = from - 20 - boxes[i].height();
    line(at_x == x ? svg("M{} {}V{}", x, up, sum + 8)
                   : svg("M{} {}V{}H{}", at_x, up, sum, x + (at_x < x ? -8 : 8)));
  }
  top = sum + 8;
  plus();
}

void Column::plus() {
  body += svg("<circle class=\"line\" cx=\"{}\" cy=\"{}\" r=\"8\"/>\n", x, top - 8);
  line(svg("M{} {}h8m-4 -4v8", x - 4, top - 8), "line");
  top -= 16;
}

void Column::add_from(double from) {
  rise();
  line(svg("M{} {}H{}V{}H{}", x, from, x + side * (width / 2 + 16), top - 8, x + side * 8));
  plus();
}

void Column::add_side_box(const Box& box) {
  constexpr double wide = 124;
  const double bottom = top - 24 + box.height() / 2;
  rise("", 16 + std::max(bottom - beside + 6, 0.0));
  beside = top - 8 - box.height() / 2;
  const double at_x = x + side * (half() + 38);
  box_at(box, at_x, top - 8 + box.height() / 2, wide);
  line(svg("M{} {}H{}", at_x - side * wide / 2, top - 8, x + side * 8));
  plus();
}

void Column::feed_from_side(const Box& box) {
  rise("", std::max(top - beside + 6, 0.0), false);
  const double edge = top - box.height();
  box_at(box, x + side * (half() + 38), top, 124);
  line(svg("M{} {}V{}", x + side * (half() - 12), edge, edge - 22));
  rise("", box.height(), false);
}

void Column::frame(const std::vector<std::string>& beside, const std::function<void()>& draw) {
  const double from = top;
  const std::size_t at = body.size();
  draw();
  rise("", 10, false);
  body.insert(at, svg("<g class=\"blocks\"><rect class=\"frame\" x=\"{}\" y=\"{}\" "
                      "width=\"{}\" height=\"{}\" rx=\"8\"/>\n",
                      x - half(), top, 2 * half(), from - top));
  for (std::size_t i = 0; i < beside.size(); ++i)
    text(x + side * (half() + 8), (from + top) / 2 + 13 * static_cast<double>(i),
         i == 0 ? "name" : "more", beside[i], side < 0 ? "end" : "start");
  body += "</g>\n";
}

void Column::tie(double from, double to) {
  const double edge = x + side * box_width / 2;
  line(svg("M{} {}H{}V{}H{}", edge, from, outside(), to, edge), "line tie");
}

std::string columns_file(const std::vector<Column>& columns, const std::vector<std::string>& head) {
  constexpr double margin = 12;
  double left = 0, right = 0, top = 0;
  std::string lines, bodies;
  for (const Column& column : columns) {
    left = std::min({left, column.x - column.half(), column.outside()});
    right = std::max({right, column.x + column.half(), column.outside()});
    top = std::min(top, column.top);
    bodies += column.body;
  }
  for (std::size_t i = 0; i < head.size(); ++i) {
    lines += svg("<text class=\"{}\" x=\"{}\" y=\"{}\">{}</text>\n", i == 0 ? "name" : "more",
                 margin, 20 + 15 * i, xml_text(head[i]));
    right =
        std::max(right, left + (i == 0 ? 7 : 6) * static_cast<double>(character_count(head[i])));
  }
  const double above = 20 + 15 * static_cast<double>(head.size());
  return svg_file({right - left + 2 * margin, above - top + margin,
                   svg("{}{}<g transform=\"translate({} {})\">\n{}</g>\n", style, lines,
                       margin - left, above - top, bodies)});
}

}  // namespace heed
