#include <fmt/format.h>

#include "autograd/base/error.h"
#include "nn/options.h"
#include "train/exchange/export.h"
#include "train/exchange/huggingface.h"
#include "train/exchange/model_card.h"
#include "train/exchange/tokenizer_json.h"
#include "train/tasks/data.h"

HEED_BEGIN

namespace {

namespace fs = std::filesystem;

HuggingFaceModel described(const ExportedModel& exported) {
  return huggingface_model(exported.config, sizes_of(exported.tokenizers));
}

void write_json(const fs::path& path, const nlohmann::ordered_json& json) {
  write_file_durably(
      path, json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

void write_folder(const ExportedModel& exported, const fs::path& folder) {
  const HuggingFaceModel model = described(exported);
  const ForeignTensors tensors(model.parts, exported.state);
  const Config& config = exported.config;
  const bool pairs = has_encoder(info_of(config.task).architecture);
  write_json(folder / "config.json", model.config);
  write_json(folder / "generation_config.json", model.generation_config);
  write_json(folder / "tokenizer.json",
             tokenizer_json(*exported.tokenizers.source,
                            {.end_token = pairs, .lowercase = config.data.lowercase}));
  write_json(folder / "tokenizer_config.json",
             tokenizer_config_json(pairs ? config.model->max_positions : config.model->context));
  write_safetensors(folder / "model.safetensors", tensors.views(), {{"format", "pt"}});
  write_file_durably(folder / "README.md", model_card(exported.run, config, model.architecture,
                                                      exported.weights, exported.chosen_by_run));
}

std::vector<std::string> check_folder(const ExportedModel& exported, const fs::path& folder) {
  const HuggingFaceModel model = described(exported);
  return ForeignTensors(model.parts, exported.state)
      .differences(SafetensorsFile::read(folder / "model.safetensors"));
}

}  // namespace

ExportFormat huggingface_format() {
  return {
      "huggingface",
      "a folder for the Python library transformers (GPT-2, Llama, Marian, Blenderbot)",
      "",
      false,
      {"float32"},
      write_folder,
      check_folder,
      has_model_card,
      "python3 -c \"import sys, transformers as t; t.AutoTokenizer.from_pretrained(sys.argv[1]); "
      "t.AutoModel.from_pretrained(sys.argv[1])\" {}"};
}

HEED_END
