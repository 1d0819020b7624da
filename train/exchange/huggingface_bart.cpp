#include <fmt/format.h>

#include "data/tokenizers/tokenizer.h"
#include "nn/layers/activations.h"
#include "nn/layers/positions.h"
#include "nn/options.h"
#include "train/exchange/huggingface_class.h"

HEED_BEGIN

namespace {

/// A stack of an encoder-decoder model in the naming of BART (Lewis et al. 2020).
void add_bart_stack(MappedTensors& parts, const ModelSource& source, bool decoder) {
  const ModelOptions& o = source.model;
  const std::string stack = decoder ? "decoder" : "encoder", table = "embed_positions.weight";
  parts.push_back(position_table(source, "model." + stack + "." + table,
                                 decoder ? "target_positions.weight" : "source_positions.weight",
                                 o.max_positions));
  for (std::int64_t i = 0; i < (decoder ? o.decoder_layers : o.encoder_layers); ++i) {
    const std::string own = fmt::format("{}.layers.{}.", stack, i), foreign = "model." + own;
    add_attention(parts, source, foreign + "self_attn", own + "self_attn", {});
    add_norm(parts, source, foreign + "self_attn_layer_norm", own + "norm1");
    if (decoder) {
      add_attention(parts, source, foreign + "encoder_attn", own + "multihead_attn", {});
      add_norm(parts, source, foreign + "encoder_attn_layer_norm", own + "norm2");
    }
    add_linear(parts, source, foreign + "fc1", own + "linear1", o.d_ff);
    add_linear(parts, source, foreign + "fc2", own + "linear2", o.d_model);
    add_norm(parts, source, foreign + "final_layer_norm", own + (decoder ? "norm3" : "norm2"));
  }
  if (o.final_norm) add_norm(parts, source, "model." + stack + ".layer_norm", stack + ".norm");
}

HuggingFaceModel encoder_decoder(const ModelSource& source, const char* architecture,
                                 const char* type) {
  const ModelOptions& o = source.model;
  HuggingFaceModel out{
      architecture, common_config(source, architecture, type), common_generation(source), {}};
  out.config.update({{"is_encoder_decoder", true},
                     {"decoder_start_token_id", source.ids.bos},
                     {"forced_eos_token_id", nullptr},
                     {"d_model", o.d_model},
                     {"encoder_layers", o.encoder_layers},
                     {"decoder_layers", o.decoder_layers},
                     {"encoder_attention_heads", o.heads},
                     {"decoder_attention_heads", o.heads},
                     {"encoder_ffn_dim", o.d_ff},
                     {"decoder_ffn_dim", o.d_ff},
                     {"activation_function", activation_name(o)},
                     {"max_position_embeddings", o.max_positions},
                     {"scale_embedding", o.scale_embeddings},
                     {"dropout", o.dropout.residual},
                     {"attention_dropout", o.dropout.attention},
                     {"activation_dropout", o.dropout.activation},
                     {"tie_word_embeddings", true}});
  out.generation_config.update(
      {{"max_new_tokens", std::min(source.config.decode.max_length, o.max_positions)},
       {"decoder_start_token_id", source.ids.bos},
       {"forced_eos_token_id", nullptr},
       {"encoder_no_repeat_ngram_size", 0}});
  out.parts.push_back({.foreign = "model.shared.weight", .own = "embedding.weight"});
  MappedTensor bias{.foreign = "final_logits_bias", .shape = {1, source.vocabulary.target}};
  if (source.output_bias())
    bias.own = "output.bias";
  else
    bias.constant = Array::zeros({source.vocabulary.target});
  out.parts.push_back(bias);
  for (const bool decoder : {false, true}) add_bart_stack(out.parts, source, decoder);
  return out;
}

/// Marian (Junczys-Dowmunt et al. 2018), the Transformer of Vaswani et al. 2017: post-norm.
HuggingFaceModel marian(const ModelSource& source) {
  HuggingFaceModel out = encoder_decoder(source, "MarianMTModel", "marian");
  out.config.update({{"decoder_vocab_size", source.vocabulary.target},
                     {"share_encoder_decoder_embeddings", true}});
  return out;
}

/// Blenderbot (Roller et al. 2021): pre-norm.
HuggingFaceModel blenderbot(const ModelSource& source) {
  return encoder_decoder(source, "BlenderbotForConditionalGeneration", "blenderbot");
}

}  // namespace

void add_bart_classes(std::vector<ModelClass>& classes) {
  classes.push_back({"MarianMTModel", Architecture::encoder_decoder, marian,
                     with_common({{"data.input", {"text"}},
                                  {"tokenizer.shared", {true}},
                                  {"model.tie_embeddings", {true}},
                                  {"model.tie_output", {true}},
                                  {"model.positions", {"sinusoidal", "learned", "none"}},
                                  {"model.norm", {"post"}},
                                  {"model.final_norm", {false}},
                                  {"model.norm_kind", {"layer"}},
                                  {"model.norm_eps", {1e-5}},
                                  {"model.activation", ungated_activations()},
                                  {"model.attention.kv_heads", {0}}})});
  classes.push_back({"BlenderbotForConditionalGeneration", Architecture::encoder_decoder,
                     blenderbot,
                     with_common({{"data.input", {"text"}},
                                  {"tokenizer.shared", {true}},
                                  {"model.tie_embeddings", {true}},
                                  {"model.tie_output", {true}},
                                  {"model.positions", {"learned", "sinusoidal", "none"}},
                                  {"model.norm", {"pre"}},
                                  {"model.final_norm", {true}},
                                  {"model.norm_kind", {"layer"}},
                                  {"model.norm_eps", {1e-5}},
                                  {"model.activation", ungated_activations()},
                                  {"model.attention.kv_heads", {0}}})});
}

HEED_END
