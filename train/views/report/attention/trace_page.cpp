#include "train/views/report/attention/trace_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "autograd/io/message_text.h"
#include "autograd/io/utf8.h"
#include "train/views/draw/svg.h"
#include "train/views/report/attention/views.h"

HEED_BEGIN

namespace {

constexpr std::int64_t max_rows = 24, max_page_columns = 20;
constexpr std::int64_t max_weights = 512;
constexpr std::size_t text_width = 100, max_name = 12;

/// The rows or columns to show, about `max_shown` of them; −1 marks a gap.
std::vector<std::int64_t> chosen(std::int64_t n, std::int64_t max_shown) {
  std::vector<std::int64_t> all;
  const std::int64_t head =
      n <= max_shown ? n : std::max<std::int64_t>(max_shown - max_shown / 3, 1);
  for (std::int64_t i = 0; i < head; ++i) all.push_back(i);
  if (head == n) return all;
  all.push_back(-1);
  for (std::int64_t i = n - std::max<std::int64_t>(max_shown / 3, 1); i < n; ++i) all.push_back(i);
  return all;
}

/// The width of a text in a terminal, in columns; East Asian characters and pictographs occupy two.
std::size_t width_of(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t n = utf8_length(text, at);
    const char32_t c = n == 0 ? U'?' : utf8_decode(text, at, n);
    const bool wide = (c >= 0x1100 && c < 0x1160) || (c >= 0x2E80 && c < 0xA4D0) ||
                      (c >= 0xAC00 && c < 0xD7A4) || (c >= 0xF900 && c < 0xFB00) ||
                      (c >= 0xFE30 && c < 0xFE70) || (c >= 0xFF00 && c < 0xFF61) ||
                      (c >= 0x1F300 && c < 0x1FB00) || (c >= 0x20000 && c < 0x3FFFE);
    width += wide ? 2 : 1;
    at += std::max<std::size_t>(n, 1);
  }
  return width;
}
std::string padded(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, width_of(text)), ' ') + text;
}

/// The display form of a step: names, and numbers scaled by a power of ten if very large or small.
struct Shown {
  const TraceStep& step;
  double largest = 0;
  int exponent = 0;

  explicit Shown(const TraceStep& s) : step(s) {
    for (const double v : s.matrix.values)
      if (std::isfinite(v)) largest = std::max(largest, std::abs(v));
    if (largest > 0 && (largest < 0.05 || largest >= 1000))
      exponent = static_cast<int>(std::floor(std::log10(largest)));
  }
  bool weights() const {
    return step.formula.empty() && step.symbol.find('_') != std::string::npos &&
           std::ssize(step.matrix.values) > max_weights;
  }
  std::string title() const {
    return step.formula.empty() ? step.symbol
           : step.formula.find('=') != std::string::npos
               ? step.formula
               : fmt::format("{} = {}", step.symbol, step.formula);
  }
  std::string shape() const {
    return fmt::format("[{} × {}]", step.matrix.rows, step.matrix.columns);
  }
  std::string factor() const {
    return exponent == 0 ? "" : fmt::format("(in units of 1e{})", exponent);
  }
  std::string cell(std::int64_t r, std::int64_t c) const {
    if (r < 0 || c < 0) return "…";
    const double v = step.matrix(r, c);
    if (std::isinf(v)) return "·";
    const std::string text = fmt::format("{:.3f}", v * std::pow(10, -exponent));
    return text == "-0.000" ? "0.000" : text;
  }
  static std::string name(const std::vector<std::string>& names, std::int64_t i) {
    if (i < 0) return "…";
    return names.empty() ? fmt::format("{}", i) : excerpt(label_of(names[i]), max_name);
  }
  std::string row(std::int64_t r) const { return name(step.rows, r); }
  std::string column(std::int64_t c) const { return name(step.columns, c); }
  /// A note about omitted rows and columns, or empty.
  std::string left_out(std::int64_t rows, std::int64_t columns) const {
    std::string text;
    if (columns < step.matrix.columns)
      text = fmt::format("{} of {} columns shown", columns, step.matrix.columns);
    if (rows < step.matrix.rows)
      text +=
          fmt::format("{}{} of {} rows shown", text.empty() ? "" : ", ", rows, step.matrix.rows);
    return text;
  }
};

/// The number of shown rows or columns.
std::int64_t count_of(const std::vector<std::int64_t>& some) {
  return std::ssize(some) - std::ranges::count(some, -1);
}

std::string matrix_text(const Shown& s) {
  const Matrix& m = s.step.matrix;
  const std::vector<std::int64_t> rows = chosen(m.rows, max_rows);
  std::size_t left = 0, width = 1;
  for (const std::int64_t r : rows) left = std::max(left, width_of(s.row(r)));
  for (std::int64_t c = 0; c < m.columns; ++c) {
    width = std::max(width, width_of(s.column(c)));
    for (const std::int64_t r : rows) width = std::max(width, width_of(s.cell(r, c)));
  }
  const auto fit = static_cast<std::int64_t>((text_width - left - 2) / (width + 2));
  const std::vector<std::int64_t> columns =
      chosen(m.columns, m.columns <= fit ? fit : std::max<std::int64_t>(fit - 1, 2));
  std::string text = std::string(left + 2, ' ');
  const auto wide = [&](std::int64_t c) { return c < 0 ? 3 : width + 2; };
  for (const std::int64_t c : columns) text += padded(s.column(c), wide(c));
  text += "\n";
  for (const std::int64_t r : rows) {
    text += "  " + padded(s.row(r), left);
    for (const std::int64_t c : columns) text += padded(s.cell(r, c), wide(c));
    text += "\n";
  }
  const std::string hidden = s.left_out(count_of(rows), count_of(columns));
  return hidden.empty() ? text : text + "  (" + hidden + "; --json prints all)\n";
}

std::string steps_text(const std::vector<TraceStep>& steps) {
  std::string text;
  for (const TraceStep& step : steps) {
    const Shown s(step);
    text += fmt::format("\n{}  {}", s.title(), s.shape());
    for (const std::string& more : {step.about, s.factor()})
      if (!more.empty()) text += "  " + more;
    text += "\n";
    text += s.weights() ? "  (--json prints the values)\n" : matrix_text(s);
  }
  return text;
}

std::string matrix_table(const Shown& s) {
  const Matrix& m = s.step.matrix;
  const std::vector<std::int64_t> rows = chosen(m.rows, max_rows),
                                  columns = chosen(m.columns, max_page_columns);
  std::string table = "<div class=\"wide\"><table>\n<tr><th></th>";
  for (const std::int64_t c : columns) table += fmt::format("<th>{}</th>", xml_text(s.column(c)));
  table += "</tr>\n";
  for (const std::int64_t r : rows) {
    table += fmt::format("<tr><th>{}</th>", xml_text(s.row(r)));
    for (const std::int64_t c : columns) {
      const double v = r < 0 || c < 0 ? 0 : m(r, c);
      const double share = std::isfinite(v) && s.largest > 0 ? std::abs(v) / s.largest : 0;
      const auto percent = static_cast<int>(std::lround(60 * share));
      table += percent == 0 ? "<td" : fmt::format("<td style=\"--a:{}%\"", percent);
      table += fmt::format("{}>{}</td>", v < 0 && percent > 0 ? " class=\"n\"" : "", s.cell(r, c));
    }
    table += "</tr>\n";
  }
  table += "</table></div>\n";
  const std::string hidden = s.left_out(count_of(rows), count_of(columns));
  return hidden.empty() ? table : table + "<p class=\"quiet\">" + hidden + "</p>\n";
}

std::string steps_page(const std::vector<TraceStep>& steps) {
  std::string body;
  for (const TraceStep& step : steps) {
    const Shown s(step);
    body += fmt::format("<section><h3>{} <span class=\"quiet\">{}</span></h3>\n",
                        xml_text(s.title()), s.shape());
    if (!step.about.empty() || s.exponent != 0) {
      body += fmt::format("<p>{}{}{}</p>\n", xml_text(step.about),
                          !step.about.empty() && s.exponent != 0 ? " " : "", s.factor());
    }
    body += s.weights() ? "<p class=\"quiet\">--json prints the values</p>\n" : matrix_table(s);
    body += "</section>\n";
  }
  return body;
}

std::string subject(const AttentionTrace& trace) {
  return fmt::format("{}, head {} of {} (counted from 0)", trace.layer, trace.head, trace.heads);
}
std::string agreement(const AttentionTrace& trace) {
  return fmt::format(
      "Steps are computed in float64; P and O differ by at most {:.1e} from the model's values in "
      "float32.",
      trace.difference);
}
std::string of_loss(const AttentionTrace& trace) {
  const std::string smoothed =
      trace.label_smoothing > 0 ? fmt::format(", label smoothing {:g}", trace.label_smoothing) : "";
  return fmt::format("The loss of this line, without dropout: {:.6g}, the mean over {} label{}{}.",
                     trace.loss, trace.labels, trace.labels == 1 ? "" : "s", smoothed);
}

}  // namespace

std::string trace_text(const AttentionTrace& trace, const PageHead& head) {
  std::string text = fmt::format("{}\n", head.title);
  for (const auto& [name, line] : head.lines)
    text += fmt::format("{:<9}{}\n", name, shown(line, 400));
  text += fmt::format("{:<9}{}\n", "layer", subject(trace));
  for (const std::string& note : trace.notes) text += note + "\n";
  text += agreement(trace) + "\n" + steps_text(trace.forward);
  if (trace.backward.empty()) return text;
  return text + "\nBackward: " + of_loss(trace) + "\n" + steps_text(trace.backward);
}

std::string trace_page(const AttentionTrace& trace, const PageHead& head) {
  constexpr std::string_view style =
      "section{display:inline-block;vertical-align:top;max-width:100%;box-sizing:border-box;"
      "padding-right:2em}\n"
      "h3{margin:.8em 0 0;font-size:15px}p{margin:.2em 0}\n"
      "table{border-spacing:1px;font:11px "
      "ui-monospace,monospace}th{font-weight:normal;color:var(--quiet);text-align:right;padding:0 "
      ".4em;white-space:pre}\n"
      "td{text-align:right;padding:0 .3em;background:color-mix(in srgb,var(--heat) "
      "var(--a,0%),transparent)}\n"
      "td.n{background:color-mix(in srgb,var(--cold) var(--a,0%),transparent)}\n";
  std::string body = page_head(head);
  body += fmt::format(
      "<p>{}. {}</p>\n<p>Blue cells are positive, orange cells negative, shaded by "
      "magnitude within a matrix; · is −∞.</p>\n",
      xml_text(subject(trace)), agreement(trace));
  for (const std::string& note : trace.notes) body += "<p>" + xml_text(note) + "</p>\n";
  body += "<h2>Forward</h2>\n" + steps_page(trace.forward);
  if (!trace.backward.empty())
    body += "<h2>Backward</h2>\n<p>" + of_loss(trace) + "</p>\n" + steps_page(trace.backward);
  return html_page(head.title, std::string(page_style) + std::string(style), body);
}

HEED_END
