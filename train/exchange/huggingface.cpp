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

}  // namespace

std::vector<std::pair<std::string, std::vector<Requirement>>> huggingface_requirements() {
  std::vector<std::pair<std::string, std::vector<Requirement>>> all;
  for (const ModelClass& each : model_classes()) all.emplace_back(each.name, each.requirements);
  return all;
}

HuggingFaceModel huggingface_model(const Config& config, const VocabularySizes& vocabulary,
                                   const SpecialIds& ids) {
  std::string why;
  for (const ModelClass& candidate : model_classes()) {
    if (candidate.architecture != info_of(config.task).architecture) continue;
    const ModelSource source{config, *config.model, vocabulary, ids};
    std::vector<std::string> found = obstacles(candidate.requirements, config);
    if (found.empty() && candidate.obstacle != nullptr) found.push_back(candidate.obstacle(source));
    std::erase(found, "");
    if (found.empty()) return candidate.describe(source);
    why += fmt::format("\n  {}: {}", candidate.name, fmt::join(found, "; "));
  }
  if (why.empty())
    why = fmt::format("\n  task {}: none of the classes that heed writes", name_of(config.task));
  throw Error(Exit::usage, "no class of transformers computes what this model computes:{}", why);
}

HEED_END
