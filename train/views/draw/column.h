#pragma once
/// Block diagrams: stacked boxes with arrows between them.
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace heed {

struct Box {
  std::string name;
  std::vector<std::string> lines = {};  ///< lines of text below the name
  std::string tooltip = {};
  int tint = 1;                 ///< opacity level of the fill (drawing_style)
  bool reads_side_box = false;  ///< whether an arrow from outside the column leads to the box

  double height() const { return 20 + 12 * static_cast<double>(lines.size()); }
};

/// A column of boxes, drawn upwards from y = 0.
struct Column {
  static constexpr double box_width = 190, gap = 12;

  double x;           ///< x coordinate of the centre
  double side;        ///< side of the boxes beside the column: −1 left, 1 right
  double width;       ///< width of the widest row of boxes
  double top = 0;     ///< y coordinate of the top of the elements drawn so far
  double beside = 0;  ///< y coordinate of the top of the last box that add_side_box drew
  std::string body = {};
  /// The midpoints of the left edges of boxes with reads_side_box.
  std::vector<std::pair<double, double>> readers = {};

  /// The width of `n` boxes side by side.
  static double width_of(int n) { return n * box_width + (n - 1) * gap; }
  double half() const { return width / 2 + 32; }  ///< half the width of a frame
  double outside() const { return x + side * (half() + 112); }

  /// Draws an SVG path: plain ("line"), with an arrowhead ("line tip") or dashed ("line tie").
  void line(const std::string& path, std::string_view kind = "line tip");
  void text(double at_x, double y, std::string_view kind, const std::string& text,
            std::string_view anchor = "middle");
  /// A line of text below the next element.
  void caption(const std::string& line, std::string_view kind = "name");
  /// An upward line of length `by` with a label; with `tip`, an arrow.
  void rise(const std::string& label = "", double by = 16, bool tip = true);
  void box(const Box& box) { box_at(box, x, top), top -= box.height(); }
  /// Boxes side by side with the same input; their outputs are added.
  void boxes(const std::vector<Box>& boxes);
  /// A residual connection from y = `from` to an addition above the current top.
  void add_from(double from);
  /// A box beside the column; its output is added to that of the column.
  void add_side_box(const Box& box);
  /// A box beside the column; its output is an input of the frame above.
  void feed_from_side(const Box& box);
  /// A frame around the elements that `draw` adds, with lines of text beside it.
  void frame(const std::vector<std::string>& beside, const std::function<void()>& draw);
  /// A dashed line from y = `from` to y = `to`, outside all frames, that joins two boxes with the
  /// same matrix.
  void tie(double from, double to);

 private:
  void box_at(const Box& box, double at_x, double bottom, double wide = box_width);
  void plus();
};

/// The columns as an SVG file, with lines of text above them.
std::string columns_file(const std::vector<Column>& columns, const std::vector<std::string>& head);

}  // namespace heed
