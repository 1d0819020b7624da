#include <fmt/format.h>

#include "data/tokenizers/tokenizer.h"
#include "nn/layers/activations.h"
#include "nn/layers/positions.h"
#include "nn/options.h"
#include "train/exchange/huggingface_class.h"

HEED_BEGIN

namespace {

/// The embeddings and the output matrix. Output logits are products with the unscaled embeddings,
/// so scaled embeddings are a second matrix.
void add_output(MappedTensors& parts, Json& config, const ModelSource& source,
                const std::string& table) {
  const double factor = source.embedding_factor();
  const bool tied = output_is_tied(source.model);
  parts.push_back({.foreign = table, .own = "embedding.weight", .factor = factor});
  if (!tied || factor != 1)
    parts.push_back(
        {.foreign = "lm_head.weight", .own = tied ? "embedding.weight" : "output.weight"});
  config["tie_word_embeddings"] = tied && factor == 1;
}

/// GPT-2 (Radford et al. 2019). Its linear layers store [in, out].
HuggingFaceModel gpt2(const ModelSource& source) {
  const ModelOptions& o = source.model;
  HuggingFaceModel out{"GPT2LMHeadModel",
                       common_config(source, "GPT2LMHeadModel", "gpt2"),
                       common_generation(source),
                       {}};
  out.config.update({{"n_positions", o.context},
                     {"n_embd", o.d_model},
                     {"n_layer", o.decoder_layers},
                     {"n_head", o.heads},
                     {"n_inner", o.d_ff},
                     {"activation_function", activation_name(o)},
                     {"layer_norm_epsilon", o.norm_eps},
                     {"resid_pdrop", o.dropout.residual},
                     {"embd_pdrop", o.dropout.residual},
                     {"attn_pdrop", o.dropout.attention}});
  out.generation_config["max_length"] = o.context;
  add_output(out.parts, out.config, source, "transformer.wte.weight");
  out.parts.push_back(
      position_table(source, "transformer.wpe.weight", "positions.weight", o.context));
  for (std::int64_t i = 0; i < o.decoder_layers; ++i) {
    const std::string own = fmt::format("decoder.layers.{}.", i),
                      foreign = fmt::format("transformer.h.{}.", i);
    add_norm(out.parts, source, foreign + "ln_1", own + "norm1");
    const std::string attention = own + "self_attn.";
    const LinearPart layers[] = {
        {foreign + "attn.c_attn", attention + "in_proj_weight", attention + "in_proj_bias", 0,
         3 * o.d_model},
        {foreign + "attn.c_proj", attention + "out_proj.weight", attention + "out_proj.bias", 0,
         o.d_model},
        {foreign + "mlp.c_fc", own + "linear1.weight", own + "linear1.bias", 0, o.d_ff},
        {foreign + "mlp.c_proj", own + "linear2.weight", own + "linear2.bias", 0, o.d_model}};
    for (LinearPart layer : layers) {
      layer.transposed = true;
      add_linear(out.parts, source, layer);
    }
    add_norm(out.parts, source, foreign + "ln_2", own + "norm2");
  }
  add_norm(out.parts, source, "transformer.ln_f", "decoder.norm");
  return out;
}

/// Llama (Touvron et al. 2023).
HuggingFaceModel llama(const ModelSource& source) {
  const ModelOptions& o = source.model;
  HuggingFaceModel out{"LlamaForCausalLM",
                       common_config(source, "LlamaForCausalLM", "llama"),
                       common_generation(source),
                       {}};
  out.config.update({{"hidden_size", o.d_model},
                     {"intermediate_size", o.d_ff},
                     {"num_hidden_layers", o.decoder_layers},
                     {"num_attention_heads", o.heads},
                     {"num_key_value_heads", source.kv_heads()},
                     {"head_dim", o.d_model / o.heads},
                     {"hidden_act", activation_name(o)},
                     {"max_position_embeddings", o.context},
                     {"rms_norm_eps", o.norm_eps},
                     {"rope_theta", o.rotary_base},
                     {"rope_parameters", {{"rope_theta", o.rotary_base}, {"rope_type", "default"}}},
                     {"attention_bias", o.bias},
                     {"mlp_bias", o.bias},
                     {"attention_dropout", o.dropout.attention}});
  out.generation_config["max_length"] = o.context;
  add_output(out.parts, out.config, source, "model.embed_tokens.weight");
  for (std::int64_t i = 0; i < o.decoder_layers; ++i) {
    const std::string own = fmt::format("decoder.layers.{}.", i),
                      foreign = fmt::format("model.layers.{}.", i);
    add_norm(out.parts, source, foreign + "input_layernorm", own + "norm1");
    add_attention(out.parts, source, foreign + "self_attn", own + "self_attn", {.out = ".o_proj"},
                  NoBias::absent);
    add_norm(out.parts, source, foreign + "post_attention_layernorm", own + "norm2");
    add_gated(out.parts, source, foreign + "mlp.gate_proj", foreign + "mlp.up_proj",
              own + "linear1", NoBias::absent);
    add_linear(out.parts, source, foreign + "mlp.down_proj", own + "linear2", o.d_model,
               NoBias::absent);
  }
  add_norm(out.parts, source, "model.norm", "decoder.norm");
  return out;
}

}  // namespace

void add_gpt_classes(std::vector<ModelClass>& classes) {
  classes.push_back({"GPT2LMHeadModel", Architecture::decoder, gpt2,
                     with_common({{"model.positions", {"learned", "sinusoidal", "none"}},
                                  {"model.norm", {"pre"}},
                                  {"model.final_norm", {true}},
                                  {"model.norm_kind", {"layer"}},
                                  {"model.activation", ungated_activations()},
                                  {"model.attention.kv_heads", {0}},
                                  {"model.memory", {0}}}),
                     output_bias_obstacle});
  classes.push_back({"LlamaForCausalLM", Architecture::decoder, llama,
                     with_common({{"model.positions", {"rotary"}},
                                  {"model.rotary_pairs", {"halves"}},
                                  {"model.norm", {"pre"}},
                                  {"model.final_norm", {true}},
                                  {"model.norm_kind", {"rms"}},
                                  {"model.activation", {"swiglu", "geglu", "geglu_tanh"}},
                                  {"model.memory", {0}}}),
                     output_bias_obstacle});
}

HEED_END
