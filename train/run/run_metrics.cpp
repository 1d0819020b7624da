#include "train/run/run_metrics.h"

#include <algorithm>
#include <string>

namespace heed {

namespace {

void add_scalars(const nlohmann::json& object, const std::string& group,
                 std::vector<TaggedScalar>& scalars) {
  for (const auto& [name, value] : object.items()) {
    if (value.is_number()) scalars.push_back({group + "/" + name, value.get<double>()});
    if (value.is_object()) add_scalars(value, group + "." + name, scalars);
  }
}

/// The text as a code block in Markdown.
std::string as_code(const std::string& text) {
  std::string code;
  for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end) {
    end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    code += "    " + text.substr(begin, end - begin);
  }
  return code;
}

}  // namespace

std::vector<TaggedScalar> scalars_of(const nlohmann::json& record) {
  std::vector<TaggedScalar> scalars;
  nlohmann::json values = record;
  values.erase("step");
  add_scalars(values, record.at("kind"), scalars);
  return scalars;
}

RunMetrics::RunMetrics(const RunFolder& run, const Config& config, std::int64_t step)
    : lines_(run.metrics()) {
  if (!config.train.tensorboard) return;
  events_.emplace(run.path / "tensorboard", step + 1);
  events_->text(step, "config", as_code(write_yaml(config)));
}

void RunMetrics::append(const nlohmann::json& record) {
  lines_.append(record);
  if (events_) events_->scalars(record.at("step"), scalars_of(record));
}

void RunMetrics::sync() {
  lines_.sync();
  if (events_) events_->sync();
}

}  // namespace heed
