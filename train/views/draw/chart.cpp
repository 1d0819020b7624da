#include "train/views/draw/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

#include "autograd/io/message_text.h"

namespace heed {

namespace {

constexpr double left = 56, top = 26, plot_width = 400, plot_height = 190, right = 14, below = 40;

/// Maps an interval of values to [0, 1], linearly or logarithmically.
class Scale {
 public:
  Scale(std::vector<double> values, bool log, std::optional<double> low, std::optional<double> high)
      : log_(log) {
    std::erase_if(values, [&](double v) { return !std::isfinite(v) || (log && v <= 0); });
    empty_ = values.empty();
    if (empty_) values = {1};
    low_ = low.value_or(std::ranges::min(values));
    high_ = high.value_or(std::ranges::max(values));
    if (high_ <= low_) {  // widens an interval without extent
      const double half = log ? low_ / 2 : std::max(std::abs(low_) / 2, 0.5);
      high_ += half;
      low_ -= low || log ? 0 : half;
    }
  }
  bool empty() const { return empty_; }
  /// 0 at the low bound, 1 at the high bound; on a logarithmic scale, NaN for values that are not
  /// positive.
  double at(double value) const {
    if (!log_) return (value - low_) / (high_ - low_);
    return value > 0 ? std::log(value / low_) / std::log(high_ / low_) : std::nan("");
  }
  /// Round numbers within the bounds; at most `wanted` + 1 if they are evenly spaced.
  std::vector<double> ticks(int wanted) const {
    const std::vector<double> all = log_ ? log_ticks() : even_ticks(wanted);
    // A logarithmic scale too narrow for three logarithmic ticks has evenly spaced ticks instead.
    return log_ && all.size() < 3 ? even_ticks(wanted) : all;
  }

 private:
  std::vector<double> even_ticks(int wanted) const {
    const double rough = (high_ - low_) / wanted,
                 power = std::pow(10, std::floor(std::log10(rough)));
    double step = 10 * power;
    for (const double nice : {5.0, 2.0, 1.0})
      if (nice * power >= rough) step = nice * power;
    std::vector<double> all;
    for (double k = std::ceil(low_ / step - 1e-9); k * step <= high_ + 1e-9 * step; ++k)
      all.push_back(k * step + 0.0);  // turns −0 into 0
    return all;
  }
  std::vector<double> log_ticks() const {
    // A wide scale has ticks only at powers of ten, others also at 2 and 5 times a power of ten.
    const bool wide = high_ / low_ > 1000;
    std::vector<double> all;
    const int first = static_cast<int>(std::floor(std::log10(low_))),
              last = static_cast<int>(std::ceil(std::log10(high_))), skip = 1 + (last - first) / 9;
    for (int power = first; power <= last; power += wide ? skip : 1) {
      for (const double digit : {1.0, 2.0, 5.0}) {
        const double value = digit * std::pow(10, power);
        if ((digit > 1 && wide) || value < low_ * (1 - 1e-9) || value > high_ * (1 + 1e-9))
          continue;
        all.push_back(value);
      }
    }
    return all;
  }

  bool log_ = false, empty_ = false;
  double low_ = 0, high_ = 1;
};

/// The label of a tick: "0", "0.05", "20k", "3M", "1e-07".
std::string tick_text(double value) {
  const double size = std::abs(value);
  if (size >= 1e6 && size < 1e12) return fmt::format("{:.4g}M", value / 1e6);
  if (size >= 1e4 && size < 1e6) return fmt::format("{:.4g}k", value / 1e3);
  return fmt::format("{:.4g}", value);
}

std::string colour_class(int colour, bool line) {
  return fmt::format("s{}{}", colour % palette_size,
                     line && colour / palette_size % 2 == 1 ? " second" : "");
}

/// The scales of a chart's two axes and their mapping to pixels.
struct Plot {
  Scale x, y;
  double px(double value) const { return plot_width * x.at(value); }
  double py(double value) const { return plot_height * (1 - y.at(value)); }
};

std::vector<double> values_of(const Chart& chart, bool of_x) {
  std::vector<double> all;
  for (const Line& line : chart.lines)
    for (const Point& p : line.points) all.push_back(of_x ? p.x : p.y);
  for (const Band& band : chart.bands) {
    for (const auto* points : {&band.low, &band.high})
      for (const Point& p : *points) all.push_back(of_x ? p.x : p.y);
  }
  for (const Bar& bar : chart.bars) {
    for (const double v : of_x ? std::array{bar.left, bar.right} : std::array{0.0, bar.y})
      all.push_back(v);
  }
  for (const Dot& dot : chart.dots) all.push_back(of_x ? dot.at.x : dot.at.y);
  return all;
}

/// The points of a line to draw, in pixels: of successive points in the same column of pixels, at
/// most four. A point that is not finite marks a break.
std::vector<Point> visible(const std::vector<Point>& points, const Plot& plot) {
  std::vector<Point> all, column;
  const auto end_column = [&] {
    if (column.size() > 4) {
      const auto [low, high] = std::ranges::minmax_element(column, {}, &Point::y);
      all.insert(all.end(), {column.front(), *std::min(low, high), *std::max(low, high)});
      all.push_back(column.back());
    } else {
      all.insert(all.end(), column.begin(), column.end());
    }
    column.clear();
  };
  for (const Point& p : points) {
    const Point at{plot.px(p.x), plot.py(p.y)};
    const bool finite = std::isfinite(at.x) && std::isfinite(at.y);
    if (!column.empty() && (!finite || std::floor(at.x) != std::floor(column.front().x)))
      end_column();
    finite ? column.push_back(at) : all.push_back(at);
  }
  end_column();
  return all;
}

/// A path through points in pixels, rounded to a tenth of a pixel. A point without neighbours
/// becomes a short dash, so that it is visible.
std::string path_of(const std::vector<Point>& points) {
  std::string text;
  std::size_t joined = 0;  // number of points of the current piece
  const auto end_piece = [&] {
    if (joined == 1) text += "m-3 0h6";
    joined = 0;
  };
  for (const Point& p : points) {
    if (!std::isfinite(p.x) || !std::isfinite(p.y)) {
      end_piece();
      continue;
    }
    text += svg("{}{} {}", joined++ > 0 ? "L" : "M", std::round(10 * p.x) / 10,
                std::round(10 * p.y) / 10);
  }
  end_piece();
  return text;
}

std::string title_element(const std::string& text) {
  return text.empty() ? "" : fmt::format("<title>{}</title>", xml_text(text));
}

std::string axes(const Chart& chart, const Plot& plot) {
  std::string body;
  for (const double value : plot.y.ticks(5)) {
    const std::string y = svg_number(plot.py(value));
    body +=
        svg("<path class=\"grid\" d=\"M0 {}h{}\"/><text x=\"-6\" y=\"{}\" "
            "text-anchor=\"end\">{}</text>\n",
            y, plot_width, plot.py(value) + 3.5, tick_text(value));
  }
  std::vector<Tick> ticks = chart.x_ticks;
  if (ticks.empty())
    for (const double value : plot.x.ticks(6)) ticks.push_back({value, tick_text(value)});
  for (const Tick& tick : ticks) {
    const std::string x = svg_number(plot.px(tick.at));
    if (chart.x_ticks.empty()) body += svg("<path class=\"grid\" d=\"M{} 0v{}\"/>", x, plot_height);
    body += svg("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", x, plot_height + 14,
                xml_text(tick.text));
  }
  body +=
      svg("<rect class=\"frame\" width=\"{}\" height=\"{}\"/>\n"
          "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n"
          "<text class=\"title\" x=\"0\" y=\"-9\">{}</text>\n",
          plot_width, plot_height, plot_width / 2, plot_height + 29, xml_text(chart.x_label),
          xml_text(chart.title));
  if (!chart.y_label.empty()) {
    body +=
        svg("<text transform=\"translate({} {}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
            -left + 11, plot_height / 2, xml_text(chart.y_label));
  }
  return body;
}

/// Whether two lines differ by less than half a pixel, so that one would hide the other.
bool coincide(const Line& a, const Line& b, const Plot& plot) {
  return !a.points.empty() &&
         std::ranges::equal(a.points, b.points, [&](const Point& p, const Point& q) {
           const double by = plot.py(p.y) - plot.py(q.y);
           return p.x == q.x && (std::abs(by) < 0.5 || (std::isnan(by) && p.y == q.y));
         });
}

/// The dashes of line i if it coincides with others, so that the colours of all alternate along the
/// path; otherwise "".
std::string dashes(const std::vector<Line>& lines, std::size_t i, const Plot& plot) {
  constexpr int dash = 8;
  std::ptrdiff_t before = 0, all = 0;
  for (std::size_t k = 0; k < lines.size(); ++k) {
    if (k != i && !coincide(lines[k], lines[i], plot)) continue;
    before += k < i ? 1 : 0;
    ++all;
  }
  if (all == 1) return "";
  return fmt::format(" style=\"stroke-dasharray:{} {};stroke-dashoffset:{}\"", dash,
                     dash * (all - 1), -dash * before);
}

std::string marks(const Chart& chart, const Plot& plot) {
  std::string body;
  for (const Band& band : chart.bands) {
    std::vector<Point> outline = visible(band.high, plot), back = visible(band.low, plot);
    outline.insert(outline.end(), back.rbegin(), back.rend());
    std::erase_if(outline, [](const Point& p) { return !std::isfinite(p.x + p.y); });
    if (!outline.empty())
      body += fmt::format("<path class=\"band {}\" d=\"{}z\"/>\n", colour_class(band.colour, false),
                          path_of(outline));
  }
  for (const Bar& bar : chart.bars) {
    const double from = plot.px(bar.left), to = plot.px(bar.right), zero = plot.py(0),
                 height = zero - plot.py(bar.y);
    if (!std::isfinite(height)) continue;
    body += svg("<rect class=\"bar {}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\">{}</rect>\n",
                colour_class(bar.colour, false), from, std::min(zero, zero - height), to - from,
                std::abs(height), title_element(bar.text));
  }
  for (std::size_t i = 0; i < chart.lines.size(); ++i) {
    const Line& line = chart.lines[i];
    const std::string path = path_of(visible(line.points, plot));
    if (!path.empty())
      body += fmt::format("<path class=\"line {}{}\"{} d=\"{}\">{}</path>\n",
                          colour_class(line.colour, true), line.faint ? " faint" : "",
                          dashes(chart.lines, i, plot), path, title_element(line.name));
  }
  return body;
}

/// Dots are not clipped, so that a dot on the frame is drawn whole.
std::string dots_of(const Chart& chart, const Plot& plot) {
  std::string body;
  for (const Dot& dot : chart.dots) {
    const double x = plot.px(dot.at.x), y = plot.py(dot.at.y);
    if (std::isfinite(x) && std::isfinite(y))
      body += svg("<circle class=\"dot {}\" cx=\"{}\" cy=\"{}\" r=\"3.5\">{}</circle>\n",
                  colour_class(dot.colour, false), x, y, title_element(dot.text));
  }
  return body;
}

/// The words of a text in lines up to this length; a word of more than 64 characters is cut.
std::vector<std::string> in_lines(const std::string& text, double longest) {
  std::vector<std::string> lines;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    word = excerpt(word, 64);
    if (lines.empty() || label_length(lines.back() + " " + word) > longest)
      lines.push_back(std::move(word));
    else
      lines.back() += " " + word;
  }
  return lines;
}

/// The legend below the plot, in which long names take several lines. Sets `height` to its height.
std::string legend_of(const Chart& chart, double& height) {
  constexpr std::size_t max_characters = 256;
  constexpr double row = 15, sample = 18, space = 12;
  std::string body;
  double x = 0, y = plot_height + below;
  const auto next_row = [&] {
    x = 0;
    y += row;
  };
  const auto add = [&](int colour, bool faint, bool as_line, const std::string& name) {
    const std::vector<std::string> lines =
        in_lines(excerpt(name, max_characters), plot_width + right - sample - 4);
    double length = sample + 4 + space;
    for (const std::string& line : lines)
      length = std::max(length, sample + 4 + label_length(line) + space);
    if (x > 0 && (lines.size() > 1 || x + length > plot_width + right)) next_row();
    body += svg("<g transform=\"translate({} {})\"><path class=\"{} {}{}\" d=\"{}\"/>", x, y,
                as_line ? "line" : "bar", colour_class(colour, as_line), faint ? " faint" : "",
                as_line ? "M0 0h18" : "M4 -5h10v10h-10z");
    for (std::size_t i = 0; i < lines.size(); ++i)
      body += svg("<text x=\"{}\" y=\"{}\">{}</text>", sample + 4,
                  3.5 + row * static_cast<double>(i), xml_text(lines[i]));
    body += "</g>\n";
    x += length;
    if (lines.size() > 1) y += row * static_cast<double>(lines.size() - 1);
    if (lines.size() > 1) x = plot_width + right;  // the next name begins a row
  };
  for (const Line& line : chart.lines)
    if (!line.name.empty()) add(line.colour, line.faint, true, line.name);
  for (const auto& [colour, name] : chart.legend) add(colour, false, false, name);
  height = body.empty() ? 0 : y + row - plot_height - below;
  return body;
}

}  // namespace

Drawing drawn(const Chart& chart) {
  const Plot plot{{values_of(chart, true), chart.log_x, {}, {}},
                  {values_of(chart, false), chart.log_y, chart.y_low, chart.y_high}};
  double legend_height = 0;
  const std::string legend = legend_of(chart, legend_height);
  std::string body = svg("<g transform=\"translate({} {})\">\n", left, top);
  if (plot.x.empty() || plot.y.empty()) {
    body +=
        svg("<rect class=\"frame\" width=\"{}\" height=\"{}\"/><text class=\"title\" x=\"0\" "
            "y=\"-9\">{}</text><text x=\"{}\" y=\"{}\" text-anchor=\"middle\">no values</text>\n",
            plot_width, plot_height, xml_text(chart.title), plot_width / 2, plot_height / 2);
  } else {
    // Bands, bars and lines are clipped at the frame.
    body += axes(chart, plot) + svg_element({plot_width, plot_height, marks(chart, plot)}) +
            dots_of(chart, plot) + legend;
  }
  return {left + plot_width + right, top + plot_height + below + legend_height, body + "</g>\n"};
}

}  // namespace heed
