#include "train/exchange/huggingface/folder.h"

#include "autograd/base/error.h"
#include "data/tokenizers/imported.h"
#include "nn/options.h"
#include "train/config/tasks.h"
#include "train/exchange/model_card.h"
#include "train/exchange/tokenizer_json.h"
#include "train/tasks/data.h"

HEED_BEGIN

namespace {

namespace fs = std::filesystem;

HuggingFaceModel model_of(const ExportedModel& exported) {
  return huggingface_model(exported.config, sizes_of(exported.tokenizers),
                           exported.tokenizers.target->special_ids());
}

using SmallFiles = std::vector<std::pair<std::string, std::string>>;

std::string text_of(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

/// The names of a classifier's labels: id2label and label2id of config.json.
void add_labels(nlohmann::ordered_json& config, const Tokenizer& labels) {
  for (std::int32_t id = 0; id < labels.size(); ++id) {
    config["id2label"][std::to_string(id)] = labels.piece(id);
    config["label2id"][labels.piece(id)] = id;
  }
}

/// Pixels from 0 to 255 become those of Images.
nlohmann::ordered_json image_processor(const ImageOptions& o) {
  const nlohmann::ordered_json size{{"height", o.height}, {"width", o.width}};
  const auto channels = static_cast<std::size_t>(o.channels);
  return {{"image_processor_type", "ViTImageProcessor"},
          {"do_convert_rgb", o.channels == 3},
          {"do_resize", !o.crop},
          {"size", size},
          {"resample", 2},
          {"do_center_crop", o.crop},
          {"crop_size", size},
          {"do_rescale", true},
          {"rescale_factor", 1.0 / 255},
          {"do_normalize", true},
          {"image_mean", std::vector<double>(channels, o.mean)},
          {"image_std", std::vector<double>(channels, o.deviation)}};
}

/// The files of Marian's tokenizer, of which the library has no other form.
void add_marian_tokenizer(SmallFiles& files, const Tokenizers& both) {
  nlohmann::ordered_json vocabulary;
  for (std::int32_t id = 0; id < both.source->size(); ++id) vocabulary[both.source->piece(id)] = id;
  files.emplace_back("source.spm", both.source->content());
  files.emplace_back("target.spm", both.target->content());
  files.emplace_back("vocab.json", text_of(vocabulary));
  nlohmann::ordered_json config = tokenizer_config_json(*both.source, 0);
  config["tokenizer_class"] = "MarianTokenizer";
  config["pad_token"] = config["bos_token"];
  config.erase("bos_token");
  config["separate_vocabs"] = false;
  files.emplace_back("tokenizer_config.json", text_of(config));
}

/// The tokenizer of the texts that the model reads, or else of those that it writes.
void add_tokenizers(SmallFiles& files, const ExportedModel& exported) {
  const Config& config = exported.config;
  const Architecture architecture = info_of(config.task).architecture;
  const bool text = config.data.input == InputKind::text, writes = has_decoder(architecture);
  const auto add = [&](const Tokenizer& tokenizer, const std::string& folder,
                       const TokenizerJsonOptions& options) {
    files.emplace_back(folder + "tokenizer.json",
                       tokenizer.kind() == TokenizerKind::imported
                           ? json_of_imported(tokenizer.content())
                           : text_of(tokenizer_json(tokenizer, options)));
    files.emplace_back(
        folder + "tokenizer_config.json",
        text_of(tokenizer_config_json(tokenizer, architecture == Architecture::decoder
                                                     ? config.model->context
                                                     : config.model->max_positions)));
  };
  if (exported.tokenizers.same_ids && exported.tokenizers.source != exported.tokenizers.target)
    return add_marian_tokenizer(files, exported.tokenizers);
  if (text) {
    const bool tags = config.task == TaskKind::tag;
    add(*exported.tokenizers.source, "",
        {.start_token = !writes && !tags,
         .end_token = has_encoder(architecture) && !tags,
         .lowercase = config.data.lowercase});
  }
  if (!writes || (text && exported.tokenizers.shared())) return;
  add(*exported.tokenizers.target, text ? "target/" : "", {.lowercase = config.data.lowercase});
}

void write_folder(const ExportedModel& exported, const fs::path& folder) {
  const HuggingFaceModel model = model_of(exported);
  const ForeignTensors tensors(model.parts, exported.state);
  write_small_files(exported, model, folder);
  write_safetensors(folder / "model.safetensors", tensors.views(), {{"format", "pt"}});
}

std::vector<std::string> check_folder(const ExportedModel& exported, const fs::path& folder) {
  const HuggingFaceModel model = model_of(exported);
  const SafetensorsFile file = SafetensorsFile::read(folder / "model.safetensors");
  return differing_tensors(ForeignTensors(model.parts, exported.state).views(), file.tensors());
}

}  // namespace

SmallFiles small_files(const ExportedModel& exported, HuggingFaceModel model) {
  const Config& config = exported.config;
  const Architecture architecture = info_of(config.task).architecture;
  if (architecture == Architecture::encoder || architecture == Architecture::encoder_of_sequences)
    add_labels(model.config, *exported.tokenizers.target);
  SmallFiles files{{"config.json", text_of(model.config)}};
  if (!model.generation_config.is_null())
    files.emplace_back("generation_config.json", text_of(model.generation_config));
  if (config.data.input == InputKind::image)
    files.emplace_back("preprocessor_config.json", text_of(image_processor(config.data.image)));
  add_tokenizers(files, exported);
  return files;
}

void write_small_files(const ExportedModel& exported, const HuggingFaceModel& model,
                       const fs::path& folder) {
  for (const auto& [name, text] : small_files(exported, model)) {
    create_folders((folder / name).parent_path());
    write_file_durably(folder / name, text);
  }
  write_file_durably(folder / "README.md",
                     model_card(exported.run, exported.config, model.architecture, exported.weights,
                                exported.chosen_by_run));
}

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
      "python3 -c \"import sys, transformers as t; c = t.AutoConfig.from_pretrained(sys.argv[1]); "
      "getattr(t, c.architectures[0]).from_pretrained(sys.argv[1])\" {}"};
}

HEED_END
