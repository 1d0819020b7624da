#pragma once
/// Models that are exported as folders of transformers, for the tests of import.
#include <functional>
#include <string>
#include <vector>

#include "autograd/io/formats/safetensors.h"
#include "nn/options.h"
#include "tests/train/support.h"
#include "train/exchange/export.h"
#include "train/exchange/huggingface/model.h"
#include "train/exchange/import.h"
#include "train/tasks/model.h"

namespace heed::test {

using Folder = std::filesystem::path;

inline const std::vector<std::string> lines{"low lower lowest", "newer new", "wide  wider",
                                            "Äh, é!"};

/// A model with initial values and a learned tokenizer, and its export.
struct Exported {
  Config config;
  Tokenizers tokenizers;
  std::unique_ptr<Model> model;

  explicit Exported(const std::string& yaml) : config(parse_config(yaml, "m.yaml")) {
    const bool text = info_of(config.task).reads != Reads::pairs;
    if (config.data.input == InputKind::image) {
      tokenizers.source = tokenizers.target =
          make_vocabulary(TokenizerKind::words, {}, {"cat", "dog", "a_cow"}, "labels");
    } else {
      Split split;
      (text ? split.target : split.source) = split.target = lines;
      tokenizers = make_tokenizers(config.tokenizer, split, 1);
    }
    model = build_model(config, {tokenizers.source->size(), tokenizers.target->size(), true});
  }
  void write(const Folder& folder) const {
    std::filesystem::create_directories(folder);
    huggingface_format().write(
        {{folder / "no run"}, config, tokenizers, model->state(), "", false, "float32", {}},
        folder);
  }
};

inline std::string image_yaml(const std::string& keys) {
  return "task: classify\n"
         "data: {input: image, image: {height: 8, width: 16, channels: 3, patch: 2, mean: 0.25, "
         "deviation: 0.125}, train: {source: a, target: b}}\ntokenizer: {kind: word}\n"
         "model: {d_model: 8, heads: 2, d_ff: 12, activation: gelu_tanh, dropout: 0.25, " +
         keys + "}\n";
}
inline const std::string vit_keys =
    "layers: 2, pool: first, positions: learned, max_positions: 33, norm_eps: 1.0e-6";
inline const std::string swin_keys = "kind: swin, pool: mean, swin: {window: 2, depths: [2, 1]}";

inline std::string model_yaml(const std::string& task, const std::string& tokenizer,
                              const std::string& keys) {
  const std::string data = task != "seq2seq" ? "{text: a}" : "{source: a, target: b}";
  return "task: " + task + "\ndata: {train: " + data + "}\ntokenizer: {" + tokenizer +
         "}\nmodel: {d_model: 8, heads: 2, d_ff: 6, layers: {encoder: 1, decoder: 2}, dropout: 0.25, " +
         keys + "}\n";
}

inline std::string bytes_of(const Folder& file) { return read_bytes(file); }

inline nlohmann::json json_of(const Folder& file) { return nlohmann::json::parse(bytes_of(file)); }

/// Changes the tensors of a file.
inline void rewrite_tensors(const Folder& weights,
                            const std::function<void(std::vector<TensorView>&)>& change) {
  const std::string bytes = bytes_of(weights);
  const SafetensorsFile file = SafetensorsFile::parse(bytes, "x");
  std::vector<TensorView> views = file.tensors();
  change(views);
  write_safetensors(weights, views);
}

inline TensorView& tensor_named(std::vector<TensorView>& views, const std::string& name) {
  return *std::ranges::find(views, name, &TensorView::name);
}

/// The first value of each pair is refused, the second one is the model's own.
inline void check_key(const std::string& yaml, const std::string& key, const nlohmann::json& value,
                      const std::string& reason) {
  const TempFolder folder;
  Exported(yaml).write(folder / "a");
  BOOST_TEST(!import_huggingface(folder / "a").architecture.empty());
  nlohmann::json config = json_of(folder / "a" / "config.json");
  if (value.is_discarded())
    config.erase(key);
  else
    config[key] = value;
  put(folder / "a" / "config.json", config.dump());
  BOOST_TEST_CONTEXT(key)
  HEED_CHECK_ERROR(Exit::bad_input, reason, import_huggingface(folder / "a"));
}

}  // namespace heed::test
