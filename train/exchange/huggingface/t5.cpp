#include <fmt/format.h>

#include "autograd/base/error.h"
#include "autograd/io/message_text.h"
#include "nn/layers/activations.h"
#include "nn/options.h"
#include "train/exchange/huggingface/model_class.h"

HEED_BEGIN

namespace {

/// The values of feed_forward_proj. transformers reads "gated-gelu" as the tanh formula.
const NamePairs t5_activations{{"geglu_tanh", "gated-gelu"},
                               {"geglu_tanh", "gated-gelu_new"},
                               {"geglu", "gated-gelu_python"},
                               {"swiglu", "gated-silu"},
                               {"relu", "relu"},
                               {"gelu", "gelu"},
                               {"gelu_tanh", "gelu_pytorch_tanh"},
                               {"silu", "silu"},
                               {"sigmoid", "sigmoid"},
                               {"tanh", "tanh"}};

/// The names in a block, whose sublayers are numbered.
BlockNames t5_block(bool decoder, bool gated) {
  const auto attention = [](const std::string& layer) {
    return AttentionNames{layer + ".q", layer + ".k", layer + ".v", layer + ".o"};
  };
  const std::string last = decoder ? "layer.2." : "layer.1.", dense = last + "DenseReluDense.";
  BlockNames names{.norm1 = "layer.0.layer_norm",
                   .self = attention("layer.0.SelfAttention"),
                   .last_norm = last + "layer_norm",
                   .gate = dense + "wi_0",
                   .linear1 = dense + (gated ? "wi_1" : "wi"),
                   .linear2 = dense + "wo"};
  if (decoder) {
    names.cross_norm = "layer.1.layer_norm";
    names.cross = attention("layer.1.EncDecAttention");
  }
  return names;
}

PartList t5_parts(const ModelSource& source) {
  const ModelOptions& o = source.model;
  PartList list(source);
  const char* const embeddings = "embedding.weight";
  list.add({.foreign = "shared.weight", .own = embeddings, .factor = source.embedding_factor()});
  list.add({.foreign = "lm_head.weight", .own = output_is_tied(o) ? embeddings : "output.weight"});
  for (const std::string stack : {"encoder", "decoder"}) {
    const bool decoder = stack == "decoder";
    list.add({.foreign = stack + ".block.0.layer.0.SelfAttention.relative_attention_bias.weight",
              .own = decoder ? "target_positions.weight" : "source_positions.weight"});
    list.blocks(stack + ".block.{}.", stack, decoder ? o.decoder_layers : o.encoder_layers,
                t5_block(decoder, gate_of(o.activation).has_value()));
    list.norm(stack + ".final_layer_norm", stack + ".norm");
  }
  return list;
}

void complete_t5(const ModelSource& source, HuggingFaceModel& model) {
  complete_pairs(source, model);
  model.config["d_kv"] = source.model.d_model / source.model.heads;
  model.generation_config["max_new_tokens"] = source.config.decode.max_length;
}

/// The library computes these keys from feed_forward_proj, unless the file has them.
void require_computed(const nlohmann::json& foreign, const std::string& where) {
  const nlohmann::json& given = foreign["feed_forward_proj"];
  std::string name = given.is_string() ? given.get<std::string>() : "";
  const bool gated = name.starts_with("gated-");
  if (gated) name.erase(0, 6);
  if (gated && name == "gelu") name = "gelu_new";
  for (const auto& [key, value] :
       {std::pair<const char*, nlohmann::json>("dense_act_fn", name), {"is_gated_act", gated}})
    if (foreign.contains(key) && foreign[key] != value)
      throw Error(Exit::bad_input, "{}: \"{}\" is {}, but feed_forward_proj is {}", where, key,
                  shown(foreign[key].dump(), 60), shown(given.dump(), 60));
}

void adapt_t5(nlohmann::json& foreign, nlohmann::json&, const std::string& where) {
  require_computed(foreign, where);
  // Files of transformers 5 say with this key that the output matrix is separate.
  if (foreign.value("scale_decoder_outputs", nlohmann::json()) == false)
    foreign["tie_word_embeddings"] = false;
  nlohmann::json& layers = foreign["num_decoder_layers"];
  if (layers.is_null()) layers = foreign["num_layers"];
}

/// T5 v1.1 (Raffel et al. 2020; Shazeer 2020, "GLU variants improve Transformer"), whose output matrix is
/// not that of the embeddings.
ModelClass t5_class() {
  return {
      .name = "T5ForConditionalGeneration",
      .type = "t5",
      .architecture = Architecture::encoder_decoder,
      .requirements = with_common({{"data.input", {"text"}},
                                   {"tokenizer.shared", {true}},
                                   {"model.tie_embeddings", {true}},
                                   {"model.positions", {"relative_t5"}},
                                   {"model.attention.scale", {"none"}},
                                   {"model.norm", {"pre"}},
                                   {"model.final_norm", {true}},
                                   {"model.norm_kind", {"rms"}},
                                   {"model.bias", {false}},
                                   {"model.attention.kv_heads", {0}}}),
      .keys = {{"d_model", "model.d_model", 512},
               {"d_kv", "", 64},
               {"d_ff", "model.d_ff", 2048},
               {"num_layers", "model.layers.encoder", 6},
               {"num_decoder_layers", "model.layers.decoder"},
               {"num_heads", "model.heads", 8},
               {"relative_attention_num_buckets", "model.t5_buckets", 32},
               {"relative_attention_max_distance", "model.t5_distance", 128},
               {"feed_forward_proj", "model.activation", "relu", &t5_activations},
               {"layer_norm_epsilon", "model.norm_eps", 1e-6},
               {"dropout_rate", "model.dropout.activation", 0.1},
               {"dropout_rate", "model.dropout.attention", 0.1},
               {"dropout_rate", "model.dropout.residual", 0.1},
               {"decoder_start_token_id", "", 0},
               {"eos_token_id", "", 1},
               {"is_encoder_decoder", "", true},
               {"tie_word_embeddings", "", true},
               {"vocab_size", "", 32128}},
      .constants = {{"is_encoder_decoder", true},
                    {"scale_decoder_outputs", false},
                    {"tie_word_embeddings", false}},
      .parts = t5_parts,
      .complete = complete_t5,
      .obstacle = output_bias_obstacle,
      .prefix = "",
      .own = {{"task", "seq2seq"}, {"model", {{"tie_output", false}, {"scale_embeddings", false}}}},
      .without_effect =
          "dense_act_fn is_gated_act n_positions initializer_factor "
          "classifier_dropout output_past bos_token_id num_hidden_layers hidden_size "
          "num_attention_heads head_dim is_decoder",
      .extra = {{"*coder.embed_tokens.weight", "shared.weight"},
                {"decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight", ""}},
      .adapt = adapt_t5};
}

}  // namespace

void add_t5_classes(std::vector<ModelClass>& classes) { classes.push_back(t5_class()); }

HEED_END
