#include "train/tasks/evaluation.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "autograd/finite_check.h"

namespace heed {

bool is_better(Metric metric, double value, std::optional<double> best) {
  if (!std::isfinite(value) || !best) return std::isfinite(value);
  return info_of(metric).higher_is_better ? value > *best : value < *best;
}

double Evaluation::value(Metric metric) const {
  return figure(metric).value_or(std::numeric_limits<double>::quiet_NaN());
}

nlohmann::json Evaluation::json() const {
  nlohmann::json j{{"sentences", sentences}, {"tokens", tokens}};
  for (std::size_t i = 0; i < figures_.size(); ++i) {
    if (figures_[i]) j[std::string(metric_table[i].name)] = *figures_[i];
  }
  if (notes.is_object()) j.update(notes);
  return j;
}

std::string Evaluation::text() const {
  std::string text;
  for (std::size_t i = 0; i < figures_.size(); ++i) {
    const MetricInfo& metric = metric_table[i];
    if (!figures_[i] || metric.detail) continue;
    text += fmt::format("{}{} {:.{}f}{}", text.empty() ? "" : "  ", metric.label,
                        unsigned_nan(metric.percent ? 100 * *figures_[i] : *figures_[i]),
                        metric.digits, metric.percent ? " %" : "");
  }
  return text;
}

}  // namespace heed
