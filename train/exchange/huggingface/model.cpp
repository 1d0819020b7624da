#include "train/exchange/huggingface/model.h"

#include <fmt/format.h>

#include "autograd/base/error.h"
#include "nn/options.h"
#include "train/config/tasks.h"
#include "train/exchange/huggingface/model_class.h"

HEED_BEGIN

HuggingFaceModel huggingface_model(const Config& config, const VocabularySizes& vocabulary,
                                   const SpecialIds& ids) {
  const ModelSource source{config, *config.model, vocabulary, ids};
  std::string why;
  for (const ModelClass& candidate : model_classes()) {
    if (candidate.architecture != info_of(config.task).architecture) continue;
    std::vector<std::string> found = obstacles(candidate.requirements, config);
    if (found.empty() && candidate.obstacle != nullptr) found.push_back(candidate.obstacle(source));
    std::erase(found, "");
    if (found.empty()) {
      HuggingFaceModel model = described(candidate, source);
      model.parts = candidate.parts(source).parts;
      return model;
    }
    why += fmt::format("\n  {}: {}", candidate.name, fmt::join(found, "; "));
  }
  if (why.empty())
    why = fmt::format("\n  task {}: none of the classes that heed writes", name_of(config.task));
  throw Error(Exit::usage, "no class of transformers computes what this model computes:{}", why);
}

HEED_END
