#include <deque>

#include "autograd/base/error.h"
#include "data/tokenizers/word_model.h"
#include "train/config/tasks.h"
#include "train/exchange/ctranslate2/ctranslate2.h"
#include "train/exchange/export.h"
#include "train/exchange/tokenizer_json.h"
#include "train/run/version.h"
#include "train/tasks/data.h"

HEED_BEGIN

namespace {

namespace fs = std::filesystem;

constexpr const char* ct2_origin =
    "heed_version";  // in config.json, whose other keys are CTranslate2's

/// The tensors of the file: the attributes, and the model's tensors in the precision.
class CTranslate2Tensors {
 public:
  CTranslate2Tensors(const ExportedModel& exported, const CTranslate2Model& model)
      : tensors_(model.parts, exported.state), attributes_(model.attributes) {
    for (const auto& [name, value] : attributes_) {
      std::visit(
          [&, name = name](const auto& v) {
            constexpr std::pair<std::size_t, DType> types[] = {
                {1, DType::i8}, {2, DType::i16}, {4, DType::i32}};
            DType type = DType::f32;
            if constexpr (std::is_integral_v<std::decay_t<decltype(v)>>)
              type =
                  std::ranges::find(types, sizeof v, &std::pair<std::size_t, DType>::first)->second;
            views_.push_back({name, type, {}, std::as_bytes(std::span(&v, 1))});
          },
          value);
    }
    for (const TensorView& view : tensors_.views()) {
      if (exported.precision != "int8" || !view.name.ends_with("/weight")) {
        views_.push_back(view);
        continue;
      }
      const ScaledRows& rows = rows_.emplace_back(ctranslate2_int8(view));
      views_.push_back({view.name, DType::i8, view.shape, std::as_bytes(std::span(rows.values))});
      views_.push_back({view.name + "_scale",
                        DType::f32,
                        {view.shape[0]},
                        std::as_bytes(std::span(rows.scales))});
    }
  }
  CTranslate2Tensors(const CTranslate2Tensors&) = delete;
  const std::vector<TensorView>& views() const { return views_; }

 private:
  ForeignTensors tensors_;
  decltype(CTranslate2Model::attributes) attributes_;
  std::deque<ScaledRows> rows_;
  std::vector<TensorView> views_;
};

CTranslate2Model ctranslate2_of(const ExportedModel& exported) {
  return ctranslate2_model(exported.config, sizes_of(exported.tokenizers));
}

void write_ct2_json(const fs::path& path, const nlohmann::ordered_json& json) {
  write_file_durably(path, json.dump(2) + "\n");
}

/// The pieces by id, in the spelling of tokenizer.json.
nlohmann::ordered_json vocabulary_json(const Tokenizer& tokenizer) {
  nlohmann::ordered_json pieces = nlohmann::ordered_json::array();
  const bool bytes = tokenizer.kind() == TokenizerKind::bytes;
  for (std::int32_t id = 0; id < tokenizer.size(); ++id) {
    const std::string piece = tokenizer.piece(id);
    pieces.push_back(bytes && id >= tokenizer.first_ordinary()
                         ? byte_characters()[static_cast<unsigned char>(piece[0])]
                         : piece);
  }
  return pieces;
}

void write_ctranslate2_folder(const ExportedModel& exported, const fs::path& folder) {
  CTranslate2Model model = ctranslate2_of(exported);
  const CTranslate2Tensors tensors(exported, model);
  const bool pairs = has_encoder(info_of(exported.config.task).architecture),
             shared = exported.tokenizers.shared();
  const auto tokenizer = [&](const std::string& prefix, const Tokenizer& each, bool end,
                             const std::string& vocabulary) {
    write_ct2_json(
        folder / (prefix + "tokenizer.json"),
        tokenizer_json(each, {.end_token = end, .lowercase = exported.config.data.lowercase}));
    write_ct2_json(folder / (vocabulary + ".json"), vocabulary_json(each));
  };
  if (shared) {
    tokenizer("", *exported.tokenizers.target, pairs, pairs ? "shared_vocabulary" : "vocabulary");
  } else {
    tokenizer("", *exported.tokenizers.source, true, "source_vocabulary");
    tokenizer("target_", *exported.tokenizers.target, false, "target_vocabulary");
  }
  const Tokenizer& target = *exported.tokenizers.target;
  const SpecialIds ids = target.special_ids();
  for (const auto& [key, id] :
       {std::pair("unk_token", ids.unk), std::pair("bos_token", ids.bos),
        std::pair("eos_token", ids.eos), std::pair("decoder_start_token", ids.bos)})
    if (id >= 0 && model.config.contains(key)) model.config[key] = target.piece(id);
  model.config[ct2_origin] = version;
  write_ct2_json(folder / "config.json", model.config);
  write_file_durably(folder / "model.bin", [&](FileWriter& file) {
    write_ctranslate2(file, model.specification, model.revision, tensors.views(), model.aliases);
  });
}

std::vector<std::string> check_ctranslate2_folder(const ExportedModel& exported,
                                                  const fs::path& folder) {
  const CTranslate2Model model = ctranslate2_of(exported);
  const CTranslate2Tensors tensors(exported, model);
  const CTranslate2File file = CTranslate2File::read(folder / "model.bin");
  std::vector<std::string> wrong;
  if (file.specification != model.specification || file.revision != model.revision)
    wrong.push_back("the specification");
  if (file.aliases != model.aliases) wrong.push_back("the list of aliases");
  if (file.tensors.size() != tensors.views().size()) wrong.push_back("the list of tensors");
  for (std::size_t i = 0; i < std::min(file.tensors.size(), tensors.views().size()); ++i) {
    const TensorView &view = tensors.views()[i], &read = file.tensors[i];
    if (read.name != view.name || read.dtype != view.dtype || read.shape != view.shape ||
        !std::ranges::equal(read.bytes, view.bytes))
      wrong.push_back(view.name);
  }
  return wrong;
}

bool is_ctranslate2_of_heed(const fs::path& folder) {
  return path_exists(folder / "model.bin") && path_exists(folder / "config.json") &&
         read_bytes(folder / "config.json", 1 << 20).find(ct2_origin) != std::string::npos;
}

}  // namespace

ExportFormat ctranslate2_format() {
  return {"ctranslate2",
          "a folder for CTranslate2 (encoder-decoder models and language models)",
          "",
          true,
          {"float32", "int8"},
          write_ctranslate2_folder,
          check_ctranslate2_folder,
          is_ctranslate2_of_heed,
          "python3 -c \"import sys, ctranslate2 as c; "
          "print(c.contains_model(sys.argv[1]))\" {}"};
}

HEED_END
