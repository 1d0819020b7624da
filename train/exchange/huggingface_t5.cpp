#include <fmt/format.h>

#include "nn/layers/activations.h"
#include "nn/options.h"
#include "train/exchange/huggingface_class.h"

HEED_BEGIN

namespace {

/// The value of feed_forward_proj. transformers reads "gated-gelu" as the tanh formula.
std::string feed_forward_name(const ModelOptions& o) {
  if (o.activation == Activation::geglu) return "gated-gelu_python";
  if (o.activation == Activation::geglu_tanh) return "gated-gelu";
  return (gate_of(o.activation) ? "gated-" : "") + activation_name(o);
}

void add_t5_stack(MappedTensors& parts, const ModelSource& source, bool decoder) {
  const ModelOptions& o = source.model;
  const std::string stack = decoder ? "decoder" : "encoder";
  const AttentionNames names{".q", ".k", ".v", ".o"};
  parts.push_back(
      {.foreign = stack + ".block.0.layer.0.SelfAttention.relative_attention_bias.weight",
       .own = decoder ? "target_positions.weight" : "source_positions.weight"});
  for (std::int64_t i = 0; i < (decoder ? o.decoder_layers : o.encoder_layers); ++i) {
    const std::string own = fmt::format("{}.layers.{}.", stack, i);
    int sublayers = 0;
    const auto next = [&] {
      const std::string layer = fmt::format("{}.block.{}.layer.{}.", stack, i, sublayers++);
      add_norm(parts, source, layer + "layer_norm", fmt::format("{}norm{}", own, sublayers));
      return layer;
    };
    add_attention(parts, source, next() + "SelfAttention", own + "self_attn", names,
                  NoBias::absent);
    if (decoder)
      add_attention(parts, source, next() + "EncDecAttention", own + "multihead_attn", names,
                    NoBias::absent);
    const std::string dense = next() + "DenseReluDense.";
    if (gate_of(o.activation))
      add_gated(parts, source, dense + "wi_0", dense + "wi_1", own + "linear1", NoBias::absent);
    else
      add_linear(parts, source, dense + "wi", own + "linear1", o.d_ff, NoBias::absent);
    add_linear(parts, source, dense + "wo", own + "linear2", o.d_model, NoBias::absent);
  }
  add_norm(parts, source, stack + ".final_layer_norm", stack + ".norm");
}

/// T5 v1.1 (Raffel et al. 2020; Shazeer 2020, "GLU variants improve Transformer").
HuggingFaceModel t5(const ModelSource& source) {
  const ModelOptions& o = source.model;
  HuggingFaceModel out{"T5ForConditionalGeneration",
                       common_config(source, "T5ForConditionalGeneration", "t5"),
                       common_generation(source),
                       {}};
  out.config.update({{"is_encoder_decoder", true},
                     {"decoder_start_token_id", source.ids.bos},
                     {"d_model", o.d_model},
                     {"d_kv", o.d_model / o.heads},
                     {"d_ff", o.d_ff},
                     {"num_layers", o.encoder_layers},
                     {"num_decoder_layers", o.decoder_layers},
                     {"num_heads", o.heads},
                     {"relative_attention_num_buckets", o.t5_buckets},
                     {"relative_attention_max_distance", o.t5_distance},
                     {"feed_forward_proj", feed_forward_name(o)},
                     {"layer_norm_epsilon", o.norm_eps},
                     {"dropout_rate", o.dropout.residual},
                     {"scale_decoder_outputs", false},
                     {"tie_word_embeddings", false}});
  out.generation_config.update({{"max_new_tokens", source.config.decode.max_length},
                                {"decoder_start_token_id", source.ids.bos},
                                {"forced_eos_token_id", nullptr}});
  const char* const embeddings = "embedding.weight";
  out.parts.push_back(
      {.foreign = "shared.weight", .own = embeddings, .factor = source.embedding_factor()});
  out.parts.push_back(
      {.foreign = "lm_head.weight", .own = output_is_tied(o) ? embeddings : "output.weight"});
  for (const bool decoder : {false, true}) add_t5_stack(out.parts, source, decoder);
  return out;
}

}  // namespace

void add_t5_classes(std::vector<ModelClass>& classes) {
  classes.push_back({"T5ForConditionalGeneration", Architecture::encoder_decoder, t5,
                     with_common({{"data.input", {"text"}},
                                  {"tokenizer.shared", {true}},
                                  {"model.tie_embeddings", {true}},
                                  {"model.positions", {"relative_t5"}},
                                  {"model.attention.scale", {"none"}},
                                  {"model.norm", {"pre"}},
                                  {"model.final_norm", {true}},
                                  {"model.norm_kind", {"rms"}},
                                  {"model.bias", {false}},
                                  {"model.attention.kv_heads", {0}}}),
                     output_bias_obstacle});
}

HEED_END
