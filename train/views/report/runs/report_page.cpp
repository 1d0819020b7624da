#include "train/views/report/runs/report_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>

#include "autograd/base/error.h"
#include "autograd/io/formats/base64.h"
#include "autograd/io/message_text.h"
#include "train/config/fields.h"
#include "train/metrics/words.h"
#include "train/tasks/evaluation.h"
#include "train/views/draw/heat_map.h"
#include "train/views/report/runs/bootstrap.h"
#include "train/views/report/runs/output_charts.h"

namespace heed {

namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string section(const std::string& title, const std::string& body) {
  return body.empty() ? "" : fmt::format("<h2>{}</h2>\n{}\n", xml_text(title), body);
}

/// A table whose cells contain HTML; the first row is the head.
std::string html_table(const Rows& rows) {
  std::string text;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    text += "<tr>";
    for (const std::string& cell : rows[i])
      text += fmt::format("<{0}>{1}</{0}>", i == 0 ? "th" : "td", cell);
    text += "</tr>\n";
  }
  return fmt::format("<div class=\"wide\"><table>\n{}</table></div>\n", text);
}

/// The text of a cell, cut to 400 characters.
std::string cell_text(const std::string& text) { return xml_text(excerpt(text, 400)); }

Rows escaped(Rows rows) {
  for (auto& row : rows)
    for (std::string& cell : row) cell = cell_text(cell);
  return rows;
}

std::string paragraph(const std::string& text) {
  return fmt::format("<p>{}</p>\n", xml_text(text));
}

std::string list(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += fmt::format("<li>{}</li>\n", xml_text(line));
  return text.empty() ? "" : fmt::format("<ul>\n{}</ul>\n", text);
}

/// A value rounded for display; the element's attributes contain the exact value.
std::string data_element(Metric metric, double value) {
  const std::string exact = nlohmann::json(value).dump();  // spelled as in metrics.jsonl
  return fmt::format("<data value=\"{}\" title=\"{}\">{}</data>", exact, exact,
                     xml_text(text_of(metric, value)));
}

/// Unknown for a run that ended before its first training record.
std::optional<double> tokens_per_second(const History& h) {
  if (h.target_tokens == 0 || !(h.seconds > 0)) return std::nullopt;
  return static_cast<double>(h.target_tokens) / h.seconds;
}

std::string short_name(const History& h) {
  const std::filesystem::path path(h.result.folder);
  return excerpt((path.filename().empty() ? path.parent_path() : path).filename().string(), 40);
}

/// A report of runs, grouped by Comparison.
class Report {
 public:
  Report(const std::vector<History>& histories, const ReportExtras& extras)
      : histories_(histories),
        extras_(extras),
        results_(results_of(histories)),
        comparison_(results_),
        notes_(extras.notes) {
    for (const History& h : histories_) {
      samples_.push_back(statistics_of(reported_metric(), h.outputs, h.result.config.decode.bleu));
      // Outputs that do not reproduce the run's metrics belong to other weights or data.
      const std::optional<double> value = figure(h.result, reported_metric());
      if (samples_.back() && !(value && is_same(score_of_all(*samples_.back()), *value))) {
        samples_.back().reset();
        if (value)
          notes_.push_back(
              fmt::format("interval and paired test of {}: its outputs.jsonl does not "
                          "match the metrics in its metrics.jsonl",
                          h.result.folder));
      }
      scores_.push_back(samples_.back() ? resampled(*samples_.back()) : std::vector<double>{});
    }
  }

  /// The charts of the loss and of the reported metric.
  std::vector<Drawing> main_charts() const {
    std::vector<Chart> charts{
        chart_of("negative log-likelihood per token, nats", {"train.nll", "valid.loss"})};
    if (first().result.config.train.label_smoothing > 0)
      charts[0].x_label = "step (both losses are without label smoothing)";
    add_best(charts[0], Metric::loss);
    if (const Metric metric = reported_metric(); metric != Metric::loss) {
      const MetricInfo& info = info_of(metric);
      charts.push_back(chart_of(std::string(info.label), {fmt::format("valid.{}", info.name)}));
      add_best(charts[1], metric);
    }
    return drawn_if_any(charts);
  }

  std::string page() const {
    const std::string title =
        histories_.size() == 1
            ? fmt::format("Report of {}", first().result.config.name)
            : fmt::format("Report of {} runs of {}", histories_.size(), first().result.config.name);
    std::string body = fmt::format("<h1>{}</h1>\n", xml_text(title));
    body += verdict_lines() + section("Results", results()) + section("Curves", curves()) +
            section("Outputs", outputs()) + section("Labels", labels()) +
            section("Sample", extras_.sample) + section("Attention", extras_.attention) +
            section("Model", preformatted(extras_.model)) +
            section("Time by op", preformatted(extras_.profile)) + section("Settings", settings()) +
            section("Machine, program and data", machine()) + section("Incidents", incidents()) +
            section("Not shown", list(notes_));
    const std::string refresh =
        extras_.refresh > 0
            ? fmt::format("<meta http-equiv=\"refresh\" content=\"{}\">\n", extras_.refresh)
            : "";
    return html_page(title, style, body, refresh);
  }

 private:
  static constexpr std::string_view style =
      "table{border-collapse:collapse;font-size:13px}th,td{text-align:left;vertical-align:top;"
      "padding:3px 12px 3px 0;border-bottom:1px solid var(--line)}th{color:var(--quiet);"
      "font-weight:normal;overflow-wrap:normal}\n.wide{overflow-x:auto}.charts{display:flex;flex-"
      "wrap:wrap;align-items:flex-start;gap:8px}.charts>svg{max-width:100%;height:auto}\n"
      "pre{font-size:12px;overflow-x:auto}.sample{white-space:pre-wrap}\n"
      ".verdict{font-size:17px}.quiet{color:var(--quiet)}\n"
      "summary{cursor:pointer}.shots{display:flex;flex-wrap:wrap;gap:12px;font-size:12px}\n"
      ".shots "
      "img{image-rendering:pixelated;display:block}td{max-width:34em;overflow-wrap:break-word}"
      "\ndata{white-space:nowrap}\n";

  static std::vector<RunResult> results_of(const std::vector<History>& histories) {
    std::vector<RunResult> results;
    for (const History& h : histories) results.push_back(h.result);
    return results;
  }
  static bool is_same(double a, double b) {
    return std::abs(a - b) <= 1e-9 * std::max({1.0, std::abs(a), std::abs(b)});
  }
  static double score_of_all(const SampleStatistics& s) {
    std::vector<std::uint32_t> all(s.samples);
    std::iota(all.begin(), all.end(), 0U);
    return s.of(all);
  }
  static std::string preformatted(const std::string& text) {
    return text.empty() ? "" : fmt::format("<pre>{}</pre>\n", xml_text(text));
  }

  const History& first() const { return histories_.front(); }
  std::size_t number_of(const RunResult* run) const {
    return static_cast<std::size_t>(run - results_.data());
  }
  const History& history_of(const RunResult* run) const { return histories_[number_of(run)]; }
  /// The metric of the verdict lines, intervals, paired tests and charts: the first run's
  /// train.best. If that is the loss, the first of BLEU, exact match and accuracy for which the
  /// first run has values or, if it has none, the loss.
  Metric reported_metric() const {
    const Metric main = comparison_.main();
    if (main != Metric::loss) return main;
    for (const Metric metric : {Metric::bleu, Metric::exact_match, Metric::accuracy})
      if (figure(first().result, metric)) return metric;
    return main;
  }

  // ---- results ----------------------------------------------------------------------------------

  std::string interval_text(std::size_t run) const {
    if (scores_[run].empty()) return "";
    const Interval i = interval_of(scores_[run]);
    return fmt::format("{} to {}", text_of(reported_metric(), i.low),
                       text_of(reported_metric(), i.high));
  }

  std::string verdict_line(const RunGroup& group) const {
    const auto judged = std::ranges::find_if(group.runs, [&](const RunResult* run) {
      return figure(*run, reported_metric()).has_value();
    });
    const RunResult* const shown = judged != group.runs.end() ? *judged : group.runs.front();
    const History& h = history_of(shown);
    std::vector<std::string> parts;
    const Spread spread = comparison_.spread(group, reported_metric());
    if (spread.count > 0) {
      std::string text = fmt::format("{} {}", info_of(reported_metric()).label,
                                     data_element(reported_metric(), spread.mean));
      if (spread.count > 1)
        text += fmt::format(" ± {} ({} runs)",
                            xml_text(text_of(reported_metric(), spread.deviation)), spread.count);
      const std::string interval = interval_text(number_of(shown));
      if (spread.count == 1 && !interval.empty())
        text += fmt::format(" <span class=\"quiet\">(95 % interval {})</span>", xml_text(interval));
      parts.push_back(text + " on " + xml_text(h.result.where));
      if (reported_metric() == Metric::bleu && h.result.record.contains("bleu_signature"))
        parts.push_back(
            fmt::format("<span class=\"quiet\">{}</span>",
                        xml_text(h.result.record["bleu_signature"].get<std::string>())));
    } else {
      parts.push_back(fmt::format("step {}: no metrics yet", h.step));
    }
    double seconds = 0, speed = 0, known = 0;  // the means are those of the group
    for (const RunResult* run : group.runs) {
      const History& one = history_of(run);
      seconds += one.seconds / static_cast<double>(group.runs.size());
      speed += tokens_per_second(one).value_or(0);
      known += tokens_per_second(one) ? 1 : 0;
    }
    parts.push_back(seconds < 60 ? fmt::format("{:.1f} seconds", seconds)
                                 : fmt::format("{:.1f} minutes", seconds / 60));
    if (known > 0) parts.push_back(fmt::format("{:.0f} {}/s", speed / known, unit()));
    const std::string name = comparison_.groups().size() > 1
                                 ? fmt::format("<b>{}</b>: ", cell_text(comparison_.label(group)))
                                 : "";
    return fmt::format("<p class=\"verdict\">{}{}</p>\n", name, fmt::join(parts, " · "));
  }

  /// What the rates count.
  std::string unit() const {
    const std::string_view predictions =
        predictions_of(info_of(results_.front().config.task).architecture);
    return predictions == "tokens" ? "target tokens" : std::string(predictions);
  }

  std::string verdict_lines() const {
    std::string text;
    for (const RunGroup& group : comparison_.groups()) text += verdict_line(group);
    return text;
  }

  std::string results() const {
    std::string body = html_table(run_rows());
    if (comparison_.groups().size() > 1 || comparison_.groups().size() < histories_.size()) {
      body += "<h3>Results by setting</h3>\n" + html_table(escaped(comparison_.rows())) +
              list(comparison_.verdicts());
    }
    return body + paired_tests();
  }

  Rows run_rows() const {
    std::vector<std::string> head{"run", "seed"};
    for (const std::string& key : comparison_.keys()) head.push_back(xml_text(key));
    head.insert(head.end(), {"data", "step"});
    for (const Metric metric : comparison_.metrics()) head.emplace_back(info_of(metric).label);
    const bool intervals =
        std::ranges::any_of(scores_, [](const auto& scores) { return !scores.empty(); });
    if (intervals)
      head.push_back(fmt::format("95 % interval of {}", info_of(reported_metric()).label));
    head.insert(head.end(), {"minutes", unit() + "/s"});
    Rows rows{head};
    for (std::size_t i = 0; i < histories_.size(); ++i) {
      const History& h = histories_[i];
      std::vector<std::string> row{xml_text(h.result.folder),
                                   fmt::format("{}", h.result.config.seed)};
      for (const std::string& key : comparison_.keys())
        row.push_back(xml_text(excerpt(setting(h.result, key), 60)));
      row.push_back(xml_text(h.result.where));
      row.push_back(fmt::format("{}", h.step));
      for (const Metric metric : comparison_.metrics()) {
        const std::optional<double> value = figure(h.result, metric);
        row.push_back(value ? data_element(metric, *value) : "-");
      }
      if (intervals) row.push_back(xml_text(interval_text(i)));
      row.push_back(fmt::format("{:.1f}", h.seconds / 60));
      const std::optional<double> speed = tokens_per_second(h);
      row.push_back(speed ? fmt::format("{:.0f}", *speed) : "-");
      rows.push_back(std::move(row));
    }
    return rows;
  }

  /// Whether run i and the first run can be compared sample by sample: both have resampled scores,
  /// for the same targets.
  bool can_pair(std::size_t i) const {
    if (scores_[0].empty() || scores_[i].empty()) return false;
    return std::ranges::equal(histories_[0].outputs, histories_[i].outputs, {},
                              &SampleOutput::target, &SampleOutput::target);
  }

  std::string paired_tests() const {
    Rows rows{{"run", fmt::format("{} of the first run", info_of(reported_metric()).label),
               fmt::format("{} of this run", info_of(reported_metric()).label), "p"}};
    for (std::size_t i = 1; i < histories_.size(); ++i) {
      if (!can_pair(i)) continue;
      const double base = score_of_all(*samples_[0]), score = score_of_all(*samples_[i]);
      rows.push_back({xml_text(histories_[i].result.folder), data_element(reported_metric(), base),
                      data_element(reported_metric(), score),
                      fmt::format("{:.3f}", p_value(scores_[0], scores_[i], score - base))});
    }
    if (rows.size() == 1) return "";
    return "<h3>Paired bootstrap</h3>\n" +
           paragraph(
               "p: the probability of a difference at least this large if both models were equally "
               "good, estimated on 1,000 bootstrap samples of the test set. It does not account "
               "for the variation between seeds.") +
           html_table(rows);
  }

  // ---- curves -----------------------------------------------------------------------------------

  /// Adds the mean of a group's curves at their common steps, and the band between the minimum and
  /// the maximum.
  void add_curve(Chart& chart, std::size_t number, const std::string& curve,
                 const std::string& label, bool faint) const {
    const RunGroup& group = comparison_.groups()[number];
    std::map<double, std::vector<double>> at;
    for (const RunResult* run : group.runs) {
      if (const Curve* const run_curve = history_of(run).find(curve))
        for (const Point& p : run_curve->points) at[p.x].push_back(p.y);
    }
    const int colour = static_cast<int>(number);
    Line line{label, colour, faint, {}};
    Band band{colour, {}, {}};
    for (const auto& [step, values] : at) {
      if (values.size() < group.runs.size()) continue;
      double mean = 0;
      for (const double v : values) mean += v / static_cast<double>(values.size());
      line.points.push_back({step, mean});  // one non-finite value makes the mean non-finite
      if (!std::isfinite(mean)) continue;
      const auto [low, high] = std::ranges::minmax(values);
      band.low.push_back({step, low});
      band.high.push_back({step, high});
    }
    if (std::ranges::none_of(line.points, [](const Point& p) { return std::isfinite(p.y); }))
      return;
    chart.lines.push_back(std::move(line));
    if (group.runs.size() > 1) chart.bands.push_back(std::move(band));
  }

  /// The name of a curve in a legend: that of its group or, of a single group, `kind`.
  std::string curve_label(std::size_t group, const std::string& kind) const {
    return comparison_.groups().size() == 1 ? kind : comparison_.label(comparison_.groups()[group]);
  }

  /// Marks the best validation of each group that has only one run.
  void add_best(Chart& chart, Metric metric) const {
    for (std::size_t g = 0; g < comparison_.groups().size(); ++g) {
      const RunGroup& group = comparison_.groups()[g];
      const Curve* const curve =
          history_of(group.runs.front()).find(fmt::format("valid.{}", info_of(metric).name));
      if (group.runs.size() > 1 || curve == nullptr) continue;
      std::optional<Point> best;
      for (const Point& p : curve->points)
        if (is_better(metric, p.y, best ? std::optional(best->y) : std::nullopt)) best = p;
      if (best) {
        chart.dots.push_back(
            {static_cast<int>(g), *best, fmt::format("best, step {}: {}", best->x, best->y)});
      }
    }
  }

  /// The curves with these names. If the chart has training and validation, training is pale, and
  /// the legend lists each of several groups once.
  Chart chart_of(const std::string& title, const std::vector<std::string>& names) const {
    const bool both = names.size() > 1, several = comparison_.groups().size() > 1;
    Chart chart{.title = title, .x_label = "step"};
    for (const std::string& name : names) {
      const bool training = name.starts_with("train.");
      const std::string kind = !both ? "" : training ? "training" : "validation";
      for (std::size_t g = 0; g < comparison_.groups().size(); ++g)
        add_curve(chart, g, name, curve_label(g, kind), training && both);
    }
    if (!both || !several) return chart;
    chart.title += " (pale: training)";
    for (Line& line : chart.lines) {
      const auto validation = [&](const Line& other) {
        return !other.faint && other.colour == line.colour;
      };
      if (line.faint && std::ranges::any_of(chart.lines, validation)) line.name.clear();
    }
    return chart;
  }

  /// Drawings side by side, where the page has room.
  static std::string charts(const std::vector<Drawing>& drawings) {
    std::string body;
    for (const Drawing& drawing : drawings) body += svg_element(drawing);
    return body.empty() ? "" : fmt::format("<div class=\"charts\">\n{}</div>\n", body);
  }

  static std::vector<Drawing> drawn_if_any(const std::vector<Chart>& charts) {
    std::vector<Drawing> all;
    for (const Chart& chart : charts)
      if (!chart.lines.empty()) all.push_back(drawn(chart));
    return all;
  }

  std::string curves() const {
    std::vector<Chart> further{chart_of("learning rate", {"train.lr"}),
                               chart_of("norm of the gradient", {"train.gradient_norm"}),
                               layer_norms(),
                               chart_of(unit() + " per second", {"train.tokens_per_s"})};
    further[1].log_y = true;
    std::vector<Drawing> all = main_charts();
    std::ranges::move(drawn_if_any(further), std::back_inserter(all));
    return charts(all);
  }

  Chart layer_norms() const {
    const std::string prefix = "train.gradient_norms.";
    Chart chart{.title = fmt::format("norm of the gradient by layer{}",
                                     histories_.size() > 1 ? ", first run" : ""),
                .x_label = "step",
                .log_y = true};
    for (const Curve& curve : first().curves) {
      if (!curve.name.starts_with(prefix)) continue;
      chart.lines.push_back({curve.name.substr(prefix.size()), static_cast<int>(chart.lines.size()),
                             false, curve.points});
    }
    return chart;
  }

  // ---- outputs and labels -----------------------------------------------------------------------

  std::string outputs() const {
    if (first().outputs.empty()) return "";
    const SampleScore kind = score_kind(first().result.config, first().outputs);
    std::string body;
    if (kind != SampleScore::probability && samples_[0]) {
      std::vector<LengthSeries> series;
      for (std::size_t i = 0; i < histories_.size() && i < max_beside; ++i) {
        if (can_pair(i))
          series.push_back({histories_.size() > 1 ? short_name(histories_[i]) : "", &*samples_[i]});
      }
      body += charts({drawn(score_by_length(reported_metric(), first().outputs, series))});
    }
    return body + examples(kind);
  }

  static constexpr std::size_t max_beside = 4;  // maximum number of runs side by side

  std::string examples(SampleScore kind) const {
    std::vector<const History*> runs{&first()};
    for (std::size_t i = 1; i < histories_.size() && runs.size() < max_beside; ++i)
      if (can_pair(i)) runs.push_back(&histories_[i]);
    std::string body;
    for (const auto& [title, chosen] : chosen_samples(kind, first().outputs)) {
      Rows rows{{"source", "target"}};
      for (const History* run : runs) {
        rows[0].push_back(runs.size() == 1 ? "output" : xml_text(short_name(*run)));
        rows[0].emplace_back(name_of(kind));
      }
      for (const std::size_t sample : chosen) {
        const SampleOutput& shared = first().outputs[sample];
        rows.push_back({cell_text(shared.source), cell_text(shared.target)});
        for (const History* run : runs) {
          const SampleOutput& output = run->outputs[sample];
          rows.back().push_back(cell_text(output.output));
          rows.back().push_back(score_text(kind, output));
        }
      }
      body += fmt::format("<details{}><summary>{}</summary>\n{}</details>\n",
                          body.empty() ? " open" : "", title, html_table(rows));
    }
    return body;
  }

  std::string labels() const {
    const auto& outputs = first().outputs;
    const nlohmann::json& record = first().result.record;
    const std::vector<std::string> labels = shown_labels(record);
    std::string table;
    std::vector<Drawing> drawings;
    if (!labels.empty()) {
      table = paragraph(fmt::format("{}, on {}: the most frequent {} of {} labels.",
                                    first().result.folder, first().result.where, labels.size(),
                                    record["classes"].size())) +
              html_table(escaped(label_rows(record, labels)));
      drawings.push_back(confusion_map(record, labels));
    }
    if (!outputs.empty() && outputs.front().probability)
      drawings.push_back(drawn(calibration(outputs)));
    return table + charts(drawings) + worst_images();
  }

  std::string worst_images() const {
    if (!extras_.image) return "";
    std::string shots;
    for (const std::size_t sample : most_confident_mistakes(first().outputs, 12)) {
      const SampleOutput& mistake = first().outputs[sample];
      const std::optional<Image> image = extras_.image(mistake.source);
      shots += fmt::format(
          "<div>{}{} predicted as {}<br><span class=\"quiet\">{:.3f}</span></div>\n",
          image ? fmt::format("<img width=\"96\" height=\"96\" alt=\"\" "
                              "src=\"data:image/png;base64,{}\">",
                              base64(png_of(*image)))
                : fmt::format("{} (image not shown)<br>", xml_text(mistake.source)),
          xml_text(mistake.target), xml_text(mistake.output), mistake.probability.value_or(0));
    }
    if (shots.empty()) return "";
    return "<h3>Most confident mistakes</h3>\n" +
           fmt::format("<div class=\"shots\">\n{}</div>\n", shots);
  }

  // ---- settings and origin ----------------------------------------------------------------------

  std::string settings() const {
    Rows rows{{"key", "value", "default"}};
    const Config& config = first().result.config;
    for (const Field& field : fields()) {
      if (field.is_default(config)) continue;
      rows.push_back(
          {xml_text(field.key), cell_text(field.print(config)), cell_text(field.print(Config{}))});
    }
    return fmt::format(
        "<details><summary>Keys of {} that differ from their defaults: {}</summary>\n"
        "{}</details>\n",
        xml_text(first().result.folder), rows.size() - 1, html_table(rows));
  }

  /// A string without quotes; any other value as JSON.
  static std::string plain(const nlohmann::json& value) {
    return value.is_string() ? value.get<std::string>() : value.dump();
  }

  std::string machine() const {
    Rows rows{{"run", "command", "version", "processor", "threads", "BLAS", "started",
               "training data (SHA-256)"}};
    const auto text = [](const nlohmann::json& record, const char* key) {
      return record.contains(key) ? xml_text(plain(record[key])) : "-";
    };
    const auto checksum = [&](const nlohmann::json& data) {
      const std::string all = text(data, "train");
      return fmt::format("<span title=\"{}\">{}</span>", all, excerpt(all, 12));
    };
    for (const History& h : histories_) {
      std::vector<std::string> words;
      if (h.run.contains("command"))
        for (const nlohmann::json& word : h.run["command"]) words.push_back(plain(word));
      const std::string revision = h.run.contains("revision") ? " " + text(h.run, "revision") : "";
      rows.push_back(
          {xml_text(h.result.folder),
           fmt::format("<code>{}</code>", xml_text(fmt::format("{}", fmt::join(words, " ")))),
           text(h.run, "version") + revision, text(h.run, "cpu"), text(h.run, "threads"),
           text(h.run, "blas"), text(h.run, "started"),
           h.run.contains("data") ? checksum(h.run["data"]) : "-"});
    }
    return html_table(rows);
  }

  std::string incidents() const {
    constexpr std::size_t max_lines = 30;
    std::string body;
    for (const History& h : histories_) {
      if (h.incidents.empty()) continue;
      std::vector<std::string> lines = h.incidents;
      lines.resize(std::min(lines.size(), max_lines));
      if (h.incidents.size() > max_lines)
        lines.push_back(fmt::format("… and {} more in train.log", h.incidents.size() - max_lines));
      body += fmt::format("<h3>{}</h3>\n{}", xml_text(h.result.folder), list(lines));
    }
    return body;
  }

  const std::vector<History>& histories_;
  const ReportExtras extras_;
  std::vector<RunResult> results_;
  Comparison comparison_;
  std::vector<std::optional<SampleStatistics>> samples_;  // statistics of each run, or nullopt
  std::vector<std::vector<double>> scores_;               // resampled scores of each run, or empty
  std::vector<std::string> notes_;                        // omitted parts, with the reasons
};

}  // namespace

std::string report_page(const std::vector<History>& histories, const ReportExtras& extras) {
  return Report(histories, extras).page();
}

std::vector<Drawing> report_curves(const std::vector<History>& histories) {
  return Report(histories, {}).main_charts();
}

}  // namespace heed
