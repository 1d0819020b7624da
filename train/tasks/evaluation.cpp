#include "train/tasks/evaluation.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "autograd/tape/finite_check.h"

namespace heed {

bool is_better(Metric metric, double value, std::optional<double> best) {
  if (!std::isfinite(value) || !best) return std::isfinite(value);
  return info_of(metric).higher_is_better ? value > *best : value < *best;
}

std::string text_of(Metric metric, double value) {
  const MetricInfo& info = info_of(metric);
  return fmt::format("{:.{}f}{}", unsigned_nan(info.percent ? 100 * value : value), info.digits,
                     info.percent ? " %" : "");
}

double Evaluation::value(Metric metric) const {
  return figure(metric).value_or(std::numeric_limits<double>::quiet_NaN());
}

nlohmann::json Evaluation::json() const {
  nlohmann::json j{{"sentences", sentences}, {"tokens", tokens}};
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (values_[i]) j[std::string(metric_table[i].name)] = *values_[i];
  }
  if (notes.is_object()) j.update(notes);
  return j;
}

std::string Evaluation::text() const {
  std::string text;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const MetricInfo& metric = metric_table[i];
    if (!values_[i] || metric.detail) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : "  ", metric.label,
                        text_of(static_cast<Metric>(i), *values_[i]));
  }
  return text;
}

}  // namespace heed
