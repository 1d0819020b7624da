#include <fmt/format.h>

#include "data/tokenizers/tokenizer.h"
#include "nn/layers/activations.h"
#include "nn/layers/positions.h"
#include "nn/options.h"
#include "train/exchange/huggingface_class.h"

HEED_BEGIN

namespace {

/// Output logits are products with the unscaled embeddings, so scaled embeddings are a second
/// matrix.
void add_tied_output(MappedTensors& parts, Json& config, const ModelSource& source,
                     const std::string& table) {
  const double factor = source.embedding_factor();
  parts.push_back({.foreign = table, .own = "embedding.weight", .factor = factor});
  if (factor != 1) parts.push_back({.foreign = "lm_head.weight", .own = "embedding.weight"});
  config["tie_word_embeddings"] = factor == 1;
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
  add_tied_output(out.parts, out.config, source, "transformer.wte.weight");
  out.parts.push_back(
      position_table(source, "transformer.wpe.weight", "positions.weight", o.context));
  for (std::int64_t i = 0; i < o.decoder_layers; ++i) {
    const std::string own = fmt::format("decoder.layers.{}.", i),
                      foreign = fmt::format("transformer.h.{}.", i);
    add_norm(out.parts, source, foreign + "ln_1", own + "norm1");
    out.parts.push_back({.foreign = foreign + "attn.c_attn.weight",
                         .own = own + "self_attn.in_proj_weight",
                         .transposed = true});
    out.parts.push_back(
        {.foreign = foreign + "attn.c_attn.bias", .own = own + "self_attn.in_proj_bias"});
    add_linear(out.parts, foreign + "attn.c_proj", own + "self_attn.out_proj", true);
    add_norm(out.parts, source, foreign + "ln_2", own + "norm2");
    add_linear(out.parts, foreign + "mlp.c_fc", own + "linear1", true);
    add_linear(out.parts, foreign + "mlp.c_proj", own + "linear2", true);
  }
  add_norm(out.parts, source, "transformer.ln_f", "decoder.norm");
  return out;
}

/// Llama (Touvron et al. 2023), with biases.
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
                     {"attention_bias", true},
                     {"mlp_bias", true},
                     {"attention_dropout", o.dropout.attention}});
  out.generation_config["max_length"] = o.context;
  add_tied_output(out.parts, out.config, source, "model.embed_tokens.weight");
  for (std::int64_t i = 0; i < o.decoder_layers; ++i) {
    const std::string own = fmt::format("decoder.layers.{}.", i),
                      foreign = fmt::format("model.layers.{}.", i);
    add_norm(out.parts, source, foreign + "input_layernorm", own + "norm1");
    add_attention(out.parts, source, foreign + "self_attn", own + "self_attn", "o_proj");
    add_norm(out.parts, source, foreign + "post_attention_layernorm", own + "norm2");
    for (const char* const kind : {"weight", "bias"}) {  // the gate is the first half of linear1
      const std::string linear1 = fmt::format("{}linear1.{}", own, kind);
      out.parts.push_back({.foreign = fmt::format("{}mlp.gate_proj.{}", foreign, kind),
                           .own = linear1,
                           .rows = o.d_ff});
      out.parts.push_back({.foreign = fmt::format("{}mlp.up_proj.{}", foreign, kind),
                           .own = linear1,
                           .first = o.d_ff,
                           .rows = o.d_ff});
    }
    add_linear(out.parts, foreign + "mlp.down_proj", own + "linear2");
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
                                  {"model.memory", {0}}})});
  classes.push_back({"LlamaForCausalLM", Architecture::decoder, llama,
                     with_common({{"model.positions", {"rotary"}},
                                  {"model.rotary_pairs", {"halves"}},
                                  {"model.norm", {"pre"}},
                                  {"model.final_norm", {true}},
                                  {"model.norm_kind", {"rms"}},
                                  {"model.activation", {"swiglu", "geglu"}},
                                  {"model.memory", {0}}})});
}

HEED_END
