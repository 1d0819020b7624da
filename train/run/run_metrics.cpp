#include "train/run/run_metrics.h"

#include <fmt/format.h>

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

std::string repair_metrics(const RunFolder& run, std::int64_t step, bool validation_due) {
  // The resumed run writes the records after the checkpoint and the final metrics again.
  const auto keep = [&](const nlohmann::json& r) {
    const std::string kind = r.value("kind", "");
    const auto at = r.value("step", std::int64_t{0});
    return at <= step && !(validation_due && at == step && kind == "valid") && kind != "weights" &&
           kind != "test" && kind != "final-valid";
  };
  const std::int64_t damaged_line = repair_jsonl(run.metrics(), keep);
  if (damaged_line == 0) return "";
  return fmt::format(
      "{}: line {} is damaged; the file now ends before this line, and the whole file was copied "
      "to metrics.jsonl.damaged",
      run.metrics().string(), damaged_line);
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
