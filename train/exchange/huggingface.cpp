#include "train/exchange/huggingface.h"

#include <fmt/format.h>

#include <algorithm>

#include "autograd/base/error.h"
#include "nn/options.h"
#include "train/config/tasks.h"
#include "train/exchange/huggingface_class.h"

HEED_BEGIN

namespace {

const std::vector<ModelClass>& model_classes() {
  static const std::vector<ModelClass> all = [] {
    std::vector<ModelClass> classes;
    for (const auto add :
         {add_gpt_classes, add_bart_classes, add_t5_classes, add_bert_classes, add_image_classes})
      add(classes);
    return classes;
  }();
  return all;
}

/// "model.norm is post (it has pre)" for each requirement that the config does not meet.
std::vector<std::string> obstacles(const ModelClass& candidate, const nlohmann::json& config) {
  std::vector<std::string> found;
  for (const Requirement& need : candidate.requirements) {
    std::string pointer = "/" + need.key;
    std::ranges::replace(pointer, '.', '/');
    const nlohmann::json& value = config.at(nlohmann::json::json_pointer(pointer));
    if (std::ranges::find(need.values, value) != need.values.end()) continue;
    std::string expected;
    for (const nlohmann::json& v : need.values)
      expected +=
          (expected.empty() ? "" : " or ") + (v.is_string() ? v.get<std::string>() : v.dump());
    found.push_back(fmt::format("{} is {} (it has {})", need.key,
                                value.is_string() ? value.get<std::string>() : value.dump(),
                                expected));
  }
  return found;
}

}  // namespace

std::vector<std::pair<std::string, std::vector<Requirement>>> huggingface_requirements() {
  std::vector<std::pair<std::string, std::vector<Requirement>>> all;
  for (const ModelClass& each : model_classes()) all.emplace_back(each.name, each.requirements);
  return all;
}

HuggingFaceModel huggingface_model(const Config& config, const VocabularySizes& vocabulary,
                                   const SpecialIds& ids) {
  nlohmann::json values = config_json(config);
  // As many key heads as query heads is written as 0 in the requirements.
  nlohmann::json& kv_heads = values["model"]["attention"]["kv_heads"];
  if (kv_heads == values["model"]["heads"]) kv_heads = 0;
  std::string why;
  for (const ModelClass& candidate : model_classes()) {
    if (candidate.architecture != info_of(config.task).architecture) continue;
    const ModelSource source{config, *config.model, vocabulary, ids};
    std::vector<std::string> found = obstacles(candidate, values);
    if (candidate.obstacle != nullptr) found.push_back(candidate.obstacle(source));
    std::erase(found, "");
    if (found.empty()) return candidate.describe(source);
    why += fmt::format("\n  {}: {}", candidate.name, fmt::join(found, "; "));
  }
  if (why.empty())
    why = fmt::format("\n  task {}: none of the classes that heed writes", name_of(config.task));
  throw Error(Exit::usage, "no class of transformers computes what this model computes:{}", why);
}

HEED_END
