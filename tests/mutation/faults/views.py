"""Faults in train/views."""
from . import fault

fault("bootstrap: the interval contains 90 % of the values", "train/views/report/runs/bootstrap.cpp",
      "values.size() / 40;",
      "values.size() / 20;",
      "train:bootstrap")

fault("rollout: the matrices are multiplied from the first layer to the last",
      "train/views/report/attention/maps.cpp",
      "step.row(i)[k] * all.row(k)[j]",
      "all.row(i)[k] * step.row(k)[j]",
      "training:attention_views")

fault("report: the confusion map is transposed", "train/views/report/runs/output_charts.cpp",
      "const double count = number_of(predicted, name);",
      "const double count = number_of(predicted_for(record, name), label);",
      "train:output_charts")

fault("chart: the axis of bars does not begin at 0", "train/views/draw/chart.cpp",
      "std::array{0.0, bar.y}",
      "std::array{bar.y, bar.y}",
      "train:chart")

fault("report: scores by length have five groups", "train/views/report/runs/output_charts.cpp",
      "(order.size() + 5) / 6",
      "(order.size() + 4) / 5",
      "train:output_charts")

fault("plots: the axes of a map are named the wrong way round", "train/views/report/plots.cpp",
      "height + 14, columns, height / 2, rows,",
      "height + 14, rows, height / 2, columns,",
      "train:plots")

fault("profile: the calls are those of all steps", "train/views/report/step_profile.cpp",
      "t.calls / std::max<std::int64_t>(added_, 1)",
      "t.calls",
      "train:counting")

fault("the report's expected calibration error weights all ten bins equally instead of by their samples", "train/views/report/runs/output_charts.cpp",
      "error += std::abs(g.right - g.probability) / static_cast<double>(outputs.size());",
      "error += std::abs(g.right - g.probability) / g.count / groups;",
      "train", "commands_tasks")

fault("the interval that a report calls 95 % leaves out 5 % of the bootstrap values at each end", "train/views/report/runs/bootstrap.cpp",
      "  const std::size_t cut = values.size() / 40;  // 2.5 % at each end\n",
      "  const std::size_t cut = values.size() / 20;  // 5 % of the values\n",
      "train:bootstrap")

fault("the p-value of the paired bootstrap compares the differences themselves, not their deviation from the mean, with the observed difference", "train/views/report/runs/bootstrap.cpp",
      """  double mean = 0;
  for (std::size_t i = 0; i < n; ++i) mean += (second[i] - first[i]) / static_cast<double>(n);
  std::size_t as_large = 0;
  for (std::size_t i = 0; i < n; ++i)
    as_large += std::abs(second[i] - first[i] - mean) >= std::abs(difference) ? 1 : 0;
""",
      """  std::size_t as_large = 0;
  for (std::size_t i = 0; i < n; ++i)
    as_large += std::abs(second[i] - first[i]) >= std::abs(difference) ? 1 : 0;
""",
      "train:bootstrap")

fault("chart: the labels of the y axis are in reverse order", "train/views/draw/chart.cpp",
      "y, plot_width, plot.py(value) + 3.5, tick_text(value));",
      "y, plot_width, plot_height - plot.py(value) + 3.5, tick_text(value));",
      "train:chart")

fault("chart: named ticks of the x axis are placed by index instead of by value", "train/views/draw/chart.cpp",
      "const std::string x = svg_number(plot.px(tick.at));",
      """const std::string x = svg_number(plot.px(
        chart.x_ticks.empty() ? tick.at : static_cast<double>(&tick - ticks.data()) + 0.5));""",
      "train:chart")

fault("chart: ticks in millions are labelled with thousands of millions", "train/views/draw/chart.cpp",
      "\"{:.4g}M\", value / 1e6)",
      "\"{:.4g}M\", value / 1e3)",
      "train:chart")

fault("chart: the legend numbers its colours instead of taking those of the lines", "train/views/draw/chart.cpp",
      "add(line.colour, line.faint, true, line.name);",
      "add(static_cast<int>(&line - chart.lines.data()), line.faint, true, line.name);",
      "train:chart")

fault("chart: the dot of the best validation is mirrored vertically", "train/views/draw/chart.cpp",
      "const double x = plot.px(dot.at.x), y = plot.py(dot.at.y);",
      "const double x = plot.px(dot.at.x), y = plot_height * plot.y.at(dot.at.y);",
      "train:chart")

fault("heat map: the names of the rows are in reverse order", "train/views/draw/heat_map.cpp",
      "top + (static_cast<double>(r) + 0.5) * cell + 3.5,",
      "top + (static_cast<double>(map.rows - 1 - r) + 0.5) * cell + 3.5,",
      "train:draw")

fault("graph of tokens: a weaker weight is drawn more strongly", "train/views/draw/token_graph.cpp",
      "static_cast<double>(level) / levels, path);",
      "static_cast<double>(levels + 1 - level) / levels, path);",
      "train:draw")

fault("plots: the chart of rotary positions ignores model.rotary_base", "train/views/report/plots.cpp",
      "for (const double base : {model.rotary_base, 100.0}) {",
      "for (const double base : {10000.0, 100.0}) {",
      "train:plots")

fault("plots: the chart of rotary positions rotates each pair by the angle of its neighbour", "train/views/report/plots.cpp",
      "std::pow(base, -2.0 * static_cast<double>(i) /",
      "std::pow(base, -2.0 * static_cast<double>(i + 1) /",
      "train:plots")

fault("plots: the biases of ALiBi have the slopes of eight heads", "train/views/report/plots.cpp",
      "Alibi::slope(h, model.heads)",
      "Alibi::slope(h, 8)",
      "train:plots")

fault("plots: the lines of T5's buckets have each other's names", "train/views/report/plots.cpp",
      "causal ? \"causal\" : \"both directions\"",
      "causal ? \"both directions\" : \"causal\"",
      "train:plots")

fault("report: the band of several seeds begins at their mean", "train/views/report/runs/report_page.cpp",
      "band.low.push_back({step, low});",
      "band.low.push_back({step, mean});",
      "train:report")

fault("report: the bins of the calibration are shifted by half a bin", "train/views/report/runs/output_charts.cpp",
      "static_cast<std::size_t>(std::max(p, 0.0) * groups)",
      "static_cast<std::size_t>(std::max(p, 0.0) * groups + 0.5)",
      "train:output_charts")

fault("report: the fractions of a confusion map are those of the labels shown", "train/views/report/runs/output_charts.cpp",
      "for (const auto& [name, count] : predicted.items()) all += number_of(predicted, name);",
      "for (const std::string& name : labels) all += number_of(predicted, name);",
      "train:output_charts")

fault("attention: the neurons view shows the weights that the keys give to the query", "train/views/report/attention/views.cpp",
      "record.of(0, head).row(query)[j]",
      "record.of(0, head).row(j)[query]",
      "training:attention_views")

fault("attention: the page encodes the low digit of a weight first, the script reads the high one", "train/views/report/attention/views.cpp",
      """    text += digits[n / 64];
    text += digits[n % 64];""",
      """    text += digits[n % 64];
    text += digits[n / 64];""",
      "training:attention_views")

fault("attention: the page encodes the keys in the range of the queries", "train/views/report/attention/views.cpp",
      "{\"k\", coded(k, -b, b)}",
      "{\"k\", coded(k, -a, a)}",
      "training:attention_views")
