#include <fmt/format.h>

#include "autograd/base/error.h"
#include "data/tokenizers/imported.h"
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
  return huggingface_model(exported.config, sizes_of(exported.tokenizers),
                           exported.tokenizers.target->special_ids());
}

void write_json(const fs::path& path, const nlohmann::ordered_json& json) {
  write_file_durably(
      path, json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

/// The names of a classifier's labels: id2label and label2id of config.json.
void add_labels(nlohmann::ordered_json& config, const Tokenizer& labels) {
  for (std::int32_t id = 0; id < labels.size(); ++id) {
    config["id2label"][std::to_string(id)] = labels.piece(id);
    config["label2id"][labels.piece(id)] = id;
  }
}

/// How pictures become numbers: (v / 255 − mean) / deviation.
nlohmann::ordered_json preprocessor(const ImageOptions& image) {
  const std::vector<double> mean(static_cast<std::size_t>(image.channels), image.mean),
      deviation(static_cast<std::size_t>(image.channels), image.deviation);
  return {{"image_processor_type", "ViTImageProcessor"},
          {"do_resize", true},
          {"size", {{"height", image.height}, {"width", image.width}}},
          {"do_rescale", true},
          {"rescale_factor", 1.0 / 255},
          {"do_normalize", true},
          {"image_mean", mean},
          {"image_std", deviation}};
}

void write_tokenizer(const ExportedModel& exported, const fs::path& folder) {
  const Config& config = exported.config;
  const Tokenizer& tokenizer = *exported.tokenizers.source;
  const Architecture architecture = info_of(config.task).architecture;
  const TokenizerJsonOptions options{
      .end_token = architecture == Architecture::encoder_decoder,
      .start_token = architecture == Architecture::encoder_of_tokens ||
                     architecture == Architecture::encoder_of_sequences,
      .lowercase = config.data.lowercase};
  if (tokenizer.kind() == TokenizerKind::imported)
    write_file_durably(folder / "tokenizer.json", json_of_imported(tokenizer.content()));
  else
    write_json(folder / "tokenizer.json", tokenizer_json(tokenizer, options));
  write_json(folder / "tokenizer_config.json",
             tokenizer_config_json(tokenizer, architecture == Architecture::decoder
                                                  ? config.model->context
                                                  : config.model->max_positions));
}

void write_folder(const ExportedModel& exported, const fs::path& folder) {
  HuggingFaceModel model = described(exported);
  const ForeignTensors tensors(model.parts, exported.state);
  const Config& config = exported.config;
  const Architecture architecture = info_of(config.task).architecture;
  if (architecture == Architecture::encoder || architecture == Architecture::encoder_of_sequences)
    add_labels(model.config, *exported.tokenizers.target);
  write_json(folder / "config.json", model.config);
  if (has_decoder(architecture))
    write_json(folder / "generation_config.json", model.generation_config);
  if (config.data.input == InputKind::text)
    write_tokenizer(exported, folder);
  else
    write_json(folder / "preprocessor_config.json", preprocessor(config.data.image));
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
      "a folder for the Python library transformers (GPT-2, Llama, Marian, Blenderbot, T5, BERT, ViT, Swin)",
      "",
      false,
      {"float32"},
      write_folder,
      check_folder,
      has_model_card,
      "python3 -c \"import sys, transformers as t; "
      "t.AutoModel.from_pretrained(sys.argv[1])\" {}"};
}

HEED_END
