#include "train/exchange/model_card.h"

#include <fmt/format.h>

#include "train/run/jsonl.h"
#include "train/run/run_record.h"
#include "train/run/version.h"

namespace heed {

namespace {

constexpr std::string_view mark = "<!-- written by heed export -->";

/// The metrics of the last record of the test data, as a table; "" if there is none.
std::string results_table(const RunFolder& run) {
  nlohmann::json last;
  for (const nlohmann::json& record : read_jsonl(run.metrics()))
    if (record.contains("kind") && record.at("kind") == "test") last = record;
  std::string rows;
  for (const auto& metric : metric_table) {
    const auto found = last.is_object() ? last.find(std::string(metric.name)) : last.end();
    if (!last.is_object() || found == last.end() || !found->is_number()) continue;
    rows += fmt::format("| {} | {:.4f} |\n", metric.label, found->get<double>());
  }
  return rows.empty() ? "This run was not evaluated on test data.\n"
                      : "| metric on the test data | value |\n|---|---:|\n" + rows;
}

/// Version, date and checksums of the data, as far as run.json has them.
std::string origin(const RunFolder& run) {
  const nlohmann::json record = read_run_json(run);
  std::string text;
  const auto add = [&](const char* label, const nlohmann::json& value) {
    if (value.is_string() && !value.get<std::string>().empty())
      text += fmt::format("- {}: {}\n", label, value.get<std::string>());
  };
  if (!record.is_object()) return text;
  add("trained with heed", record.value("version", nlohmann::json()));
  add("begun", record.value("started", nlohmann::json()));
  const nlohmann::json data = record.value("data", nlohmann::json::object());
  for (const char* const split : {"train", "valid", "test"}) {
    if (data.is_object())
      add(fmt::format("SHA-256 of the {} data as token ids", split).c_str(),
          data.value(split, nlohmann::json()));
  }
  return text;
}

}  // namespace

std::string model_card(const RunFolder& run, const Config& config, const std::string& architecture,
                       const std::string& weights, bool chosen_by_run) {
  return fmt::format(
      "---\nlibrary_name: transformers\nlicense: other\n---\n{}\n\n# {}\n\n"
      "A {} for the task {}, trained {} with heed {}. Weights: {}.\n\n"
      "## Results\n\n{}\n"
      "## Origin\n\n{}\n"
      "## Licence and terms of the data\n\n"
      "To be filled in: the licence of these weights, and the terms of the data from which they were "
      "learned.\n\n"
      "## Config\n\n```yaml\n{}```\n",
      mark, config.name, architecture, name_of(config.task),
      config.train.init_from.empty() ? "from scratch" : "from the weights of another model",
      version, weights, chosen_by_run ? results_table(run) : "These weights were not evaluated.\n",
      origin(run), write_effective_yaml(config));
}

bool is_model_card(const std::string& text) { return text.find(mark) != std::string::npos; }

bool has_model_card(const std::filesystem::path& folder) {
  const std::filesystem::path card = folder / "README.md";
  return path_exists(card) && is_model_card(read_bytes(card, 1 << 20));
}

}  // namespace heed
