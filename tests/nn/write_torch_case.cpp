// write_torch_case FOLDER VARIANT writes the input of tests/golden/load_into_torch.py:
// FOLDER/model.safetensors contains the weights of a model as in a checkpoint, and
// FOLDER/case.safetensors contains token ids and the model's logits for them. Without arguments,
// the program prints the names of the variants.
#include <fmt/format.h>

#include <iostream>
#include <map>
#include <string>

#include "nn/layers/activations.h"
#include "nn/layers/positions.h"
#include "nn/options.h"
#include "nn/weights.h"
#include "tests/nn/random_weights.h"

using namespace heed;

namespace {

struct Variant {
  ModelOptions model;
  std::int64_t source_vocabulary = 31, target_vocabulary = 31;
};

std::map<std::string, Variant> variants() {
  ModelOptions o;
  o.d_model = 24;
  o.heads = 3;
  o.d_ff = 40;
  o.encoder_layers = 2;
  o.decoder_layers = 3;
  o.max_positions = 20;
  std::map<std::string, Variant> all;
  all["tied-pre"] = {o};
  o.norm = NormPlace::post;
  all["tied-post"] = {o};
  o.activation = Activation::gelu;
  o.tie_embeddings = false;
  all["untied-post-gelu"] = {o, 31, 37};
  o.final_norm = false;
  all["untied-post-gelu-no-final-norm"] = {o, 31, 37};
  o.final_norm = true;
  o.norm = NormPlace::pre;
  o.activation = Activation::silu;
  o.norm_eps = 1e-3;
  o.scale_embeddings = false;
  all["untied-pre-silu-unscaled"] = {o, 31, 37};
  o.positions = PositionKind::learned;
  o.tie_embeddings = true;
  o.activation = Activation::gelu_tanh;
  all["tied-pre-learned"] = {o};
  o.positions = PositionKind::none;
  o.heads = 1;
  all["tied-pre-one-head-no-positions"] = {o};
  return all;
}

TensorMetadata metadata_of(const ModelOptions& o) {
  const std::map<Activation, std::string> activations{{Activation::relu, "relu"},
                                                      {Activation::gelu, "gelu"},
                                                      {Activation::gelu_tanh, "gelu_tanh"},
                                                      {Activation::silu, "silu"}};
  const std::map<PositionKind, std::string> positions{{PositionKind::sinusoidal, "sinusoidal"},
                                                      {PositionKind::learned, "learned"},
                                                      {PositionKind::none, "none"}};
  return {{"d_model", std::to_string(o.d_model)},
          {"heads", std::to_string(o.heads)},
          {"d_ff", std::to_string(o.d_ff)},
          {"encoder_layers", std::to_string(o.encoder_layers)},
          {"decoder_layers", std::to_string(o.decoder_layers)},
          {"activation", activations.at(o.activation)},
          {"norm", o.norm == NormPlace::pre ? "pre" : "post"},
          {"final_norm", o.final_norm ? "true" : "false"},
          {"norm_eps", fmt::format("{}", o.norm_eps)},
          {"positions", positions.at(o.positions)},
          {"max_positions", std::to_string(o.max_positions)},
          {"tie_embeddings", o.tie_embeddings ? "true" : "false"},
          {"scale_embeddings", o.scale_embeddings ? "true" : "false"}};
}

TensorView ids_view(const std::string& name, const std::vector<std::int32_t>& ids) {
  return {name, DType::i32, {static_cast<std::int64_t>(ids.size())}, std::as_bytes(std::span(ids))};
}

void write(const std::filesystem::path& folder, const Variant& variant) {
  const std::unique_ptr<Generative> model =
      make_seq2seq(variant.model, variant.source_vocabulary, variant.target_vocabulary,
                   variant.source_vocabulary == variant.target_vocabulary, 1);
  randomise(model->parameters());
  write_safetensors(folder / "model.safetensors", tensor_views(model->parameters()),
                    {{"format", "pt"}});

  const std::vector<std::int32_t> source_offsets = offsets_of({5, 1, 9, 3}),
                                  target_offsets = offsets_of({2, 7, 1, 12});
  const std::vector<std::int32_t> source = random_ids(source_offsets.back(), 31, 1),
                                  target_in = random_ids(target_offsets.back(), 31, 2);
  Pass pass;
  const Array logits =
      model->logits({{source, source_offsets}, {target_in, target_offsets}}, pass).value();
  const std::vector<TensorView> views{
      ids_view("source", source),
      ids_view("source_offsets", source_offsets),
      ids_view("target_in", target_in),
      ids_view("target_offsets", target_offsets),
      {"logits", DType::f32, {logits.rows(), logits.cols()}, std::as_bytes(logits.values())}};
  write_safetensors(folder / "case.safetensors", views, metadata_of(variant.model));
}

}  // namespace

int main(int count, char** arguments) {
  const std::map<std::string, Variant> all = variants();
  if (count == 1) {
    for (const auto& [name, variant] : all) std::cout << name << '\n';
    return 0;
  }
  if (count != 3 || all.count(arguments[2]) == 0) {
    std::cerr << "usage: write_torch_case [FOLDER VARIANT]\n";
    return 2;
  }
  write(arguments[1], all.at(arguments[2]));
  return 0;
}
