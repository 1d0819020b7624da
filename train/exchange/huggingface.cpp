#include "train/exchange/huggingface.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "autograd/base/error.h"
#include "data/tokenizers/tokenizer.h"
#include "nn/layers/activations.h"
#include "nn/layers/positions.h"
#include "nn/options.h"
#include "train/config/tasks.h"

HEED_BEGIN

namespace {

using Json = nlohmann::ordered_json;
using MappedTensors = std::vector<MappedTensor>;

/// heed's names of activations and those of transformers.activations.ACT2FN.
constexpr std::pair<std::string_view, std::string_view> activation_names[] = {
    {"relu", "relu"},   {"gelu", "gelu"},       {"gelu_tanh", "gelu_pytorch_tanh"},
    {"silu", "silu"},   {"sigmoid", "sigmoid"}, {"tanh", "tanh"},
    {"swiglu", "silu"}, {"geglu", "gelu"}};

std::string activation_name(const ModelOptions& o) {
  const std::string_view own = name_of(o.activation);
  const auto found = std::ranges::find(activation_names, own,
                                       &std::pair<std::string_view, std::string_view>::first);
  return std::string(found->second);
}

/// A model and what its parts are computed from.
struct Source {
  const Config& config;
  const ModelOptions& model;
  VocabularySizes vocabulary;

  double embedding_factor() const {
    return model.scale_embeddings ? std::sqrt(static_cast<double>(model.d_model)) : 1;
  }
  std::int64_t kv_width() const {
    const std::int64_t kv_heads =
        model.attention.kv_heads == 0 ? model.heads : model.attention.kv_heads;
    return kv_heads * (model.d_model / model.heads);
  }
};

// ---- parts -----------------------------------------------------------------------------------

/// The weight and the bias of a linear layer.
void add_linear(MappedTensors& parts, const std::string& foreign, const std::string& own,
                bool transposed = false) {
  parts.push_back(
      {.foreign = foreign + ".weight", .own = own + ".weight", .transposed = transposed});
  parts.push_back({.foreign = foreign + ".bias", .own = own + ".bias"});
}

/// The weight of a norm, and its bias if it has one.
void add_norm(MappedTensors& parts, const Source& source, const std::string& foreign,
              const std::string& own) {
  parts.push_back({.foreign = foreign + ".weight", .own = own + ".weight"});
  if (source.model.norm_kind != NormKind::rms)
    parts.push_back({.foreign = foreign + ".bias", .own = own + ".bias"});
}

/// q_proj, k_proj and v_proj, which are rows of heed's in_proj, and `out`.
void add_attention(MappedTensors& parts, const Source& source, const std::string& foreign,
                   const std::string& own, const std::string& out) {
  const std::int64_t d = source.model.d_model, e = source.kv_width();
  const std::tuple<const char*, std::int64_t, std::int64_t> projections[] = {
      {".q_proj", 0, d}, {".k_proj", d, e}, {".v_proj", d + e, e}};
  for (const auto& [name, first, rows] : projections) {
    for (const char* const kind : {"weight", "bias"})
      parts.push_back({.foreign = fmt::format("{}{}.{}", foreign, name, kind),
                       .own = fmt::format("{}.in_proj_{}", own, kind),
                       .first = first,
                       .rows = rows});
  }
  add_linear(parts, foreign + "." + out, own + ".out_proj");
}

/// The table of positions: the trained one, sinusoids, or zeros for a model without positions.
MappedTensor position_table(const Source& source, const std::string& foreign,
                            const std::string& own, std::int64_t rows) {
  const ModelOptions& o = source.model;
  MappedTensor part{.foreign = foreign};
  if (o.positions == PositionKind::learned)
    part.own = own;
  else if (o.positions == PositionKind::sinusoidal)
    part.constant = sinusoids(0, rows, o.d_model);
  else
    part.constant = Array::zeros({rows, o.d_model});
  return part;
}

// ---- classes -----------------------------------------------------------------------------------

Json common_config(const Source& source, const char* architecture, const char* type) {
  return {{"architectures", {architecture}},
          {"model_type", type},
          {"dtype", "float32"},
          {"torch_dtype", "float32"},
          {"vocab_size", source.vocabulary.target},
          {"bos_token_id", Tokenizer::bos},
          {"eos_token_id", Tokenizer::eos},
          {"pad_token_id", Tokenizer::eos},  // masks say which tokens are read
          {"use_cache", true}};
}

Json common_generation(const Source& source) {
  return {{"bos_token_id", Tokenizer::bos},
          {"eos_token_id", Tokenizer::eos},
          {"pad_token_id", Tokenizer::eos},
          {"suppress_tokens", {Tokenizer::unk, Tokenizer::bos}},
          {"do_sample", false},
          {"num_beams", 1},
          {"repetition_penalty", source.config.decode.repetition_penalty},
          {"min_new_tokens", source.config.decode.min_length}};
}

/// Output logits are products with the unscaled embeddings, so scaled embeddings are a second
/// matrix.
void add_tied_output(MappedTensors& parts, Json& config, const Source& source,
                     const std::string& table) {
  const double factor = source.embedding_factor();
  parts.push_back({.foreign = table, .own = "embedding.weight", .factor = factor});
  if (factor != 1) parts.push_back({.foreign = "lm_head.weight", .own = "embedding.weight"});
  config["tie_word_embeddings"] = factor == 1;
}

/// GPT-2 (Radford et al. 2019). Its linear layers store [in, out].
HuggingFaceModel gpt2(const Source& source) {
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
HuggingFaceModel llama(const Source& source) {
  const ModelOptions& o = source.model;
  HuggingFaceModel out{"LlamaForCausalLM",
                       common_config(source, "LlamaForCausalLM", "llama"),
                       common_generation(source),
                       {}};
  out.config.update(
      {{"hidden_size", o.d_model},
       {"intermediate_size", o.d_ff},
       {"num_hidden_layers", o.decoder_layers},
       {"num_attention_heads", o.heads},
       {"num_key_value_heads", o.attention.kv_heads == 0 ? o.heads : o.attention.kv_heads},
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

/// A stack of an encoder-decoder model in the naming of BART (Lewis et al. 2020).
void add_bart_stack(MappedTensors& parts, const Source& source, bool decoder) {
  const ModelOptions& o = source.model;
  const std::string stack = decoder ? "decoder" : "encoder", table = "embed_positions.weight";
  parts.push_back(position_table(source, "model." + stack + "." + table,
                                 decoder ? "target_positions.weight" : "source_positions.weight",
                                 o.max_positions));
  for (std::int64_t i = 0; i < (decoder ? o.decoder_layers : o.encoder_layers); ++i) {
    const std::string own = fmt::format("{}.layers.{}.", stack, i), foreign = "model." + own;
    add_attention(parts, source, foreign + "self_attn", own + "self_attn", "out_proj");
    add_norm(parts, source, foreign + "self_attn_layer_norm", own + "norm1");
    if (decoder) {
      add_attention(parts, source, foreign + "encoder_attn", own + "multihead_attn", "out_proj");
      add_norm(parts, source, foreign + "encoder_attn_layer_norm", own + "norm2");
    }
    add_linear(parts, foreign + "fc1", own + "linear1");
    add_linear(parts, foreign + "fc2", own + "linear2");
    add_norm(parts, source, foreign + "final_layer_norm", own + (decoder ? "norm3" : "norm2"));
  }
  if (o.final_norm) add_norm(parts, source, "model." + stack + ".layer_norm", stack + ".norm");
}

HuggingFaceModel encoder_decoder(const Source& source, const char* architecture, const char* type) {
  const ModelOptions& o = source.model;
  HuggingFaceModel out{
      architecture, common_config(source, architecture, type), common_generation(source), {}};
  out.config.update({{"is_encoder_decoder", true},
                     {"decoder_start_token_id", Tokenizer::bos},
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
       {"decoder_start_token_id", Tokenizer::bos},
       {"forced_eos_token_id", nullptr},
       {"encoder_no_repeat_ngram_size", 0}});
  out.parts.push_back({.foreign = "model.shared.weight", .own = "embedding.weight"});
  out.parts.push_back(
      {.foreign = "final_logits_bias", .constant = Array::zeros({1, source.vocabulary.target})});
  for (const bool decoder : {false, true}) add_bart_stack(out.parts, source, decoder);
  return out;
}

/// Marian (Junczys-Dowmunt et al. 2018), the Transformer of Vaswani et al. 2017: post-norm.
HuggingFaceModel marian(const Source& source) {
  HuggingFaceModel out = encoder_decoder(source, "MarianMTModel", "marian");
  out.config.update({{"decoder_vocab_size", source.vocabulary.target},
                     {"share_encoder_decoder_embeddings", true}});
  return out;
}

/// Blenderbot (Roller et al. 2021): pre-norm.
HuggingFaceModel blenderbot(const Source& source) {
  return encoder_decoder(source, "BlenderbotForConditionalGeneration", "blenderbot");
}

struct ModelClass {
  const char* name;
  Architecture architecture;
  HuggingFaceModel (*describe)(const Source&);
  std::vector<Requirement> requirements;
};

std::vector<nlohmann::json> ungated() {
  return {"relu", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh"};
}

const std::vector<ModelClass>& classes() {
  static const std::vector<Requirement> all{
      {"model.kind", {"transformer"}},       {"model.mixer", {"attention"}},
      {"model.block", {"serial"}},           {"model.residual", {true}},
      {"model.attention.pattern", {"full"}}, {"model.attention.map", {"softmax"}},
      {"model.attention.scale", {"sqrt"}},   {"model.tie_embeddings", {true}}};
  const auto with = [](std::vector<Requirement> more) {
    more.insert(more.begin(), all.begin(), all.end());
    return more;
  };
  static const std::vector<ModelClass> table{
      {"GPT2LMHeadModel", Architecture::decoder, gpt2,
       with({{"model.positions", {"learned", "sinusoidal", "none"}},
             {"model.norm", {"pre"}},
             {"model.final_norm", {true}},
             {"model.norm_kind", {"layer"}},
             {"model.activation", ungated()},
             {"model.attention.kv_heads", {0}},
             {"model.memory", {0}}})},
      {"LlamaForCausalLM", Architecture::decoder, llama,
       with({{"model.positions", {"rotary"}},
             {"model.rotary_pairs", {"halves"}},
             {"model.norm", {"pre"}},
             {"model.final_norm", {true}},
             {"model.norm_kind", {"rms"}},
             {"model.activation", {"swiglu", "geglu"}},
             {"model.memory", {0}}})},
      {"MarianMTModel", Architecture::encoder_decoder, marian,
       with({{"data.input", {"text"}},
             {"tokenizer.shared", {true}},
             {"model.positions", {"sinusoidal", "learned", "none"}},
             {"model.norm", {"post"}},
             {"model.final_norm", {false}},
             {"model.norm_kind", {"layer"}},
             {"model.norm_eps", {1e-5}},
             {"model.activation", ungated()},
             {"model.attention.kv_heads", {0}}})},
      {"BlenderbotForConditionalGeneration", Architecture::encoder_decoder, blenderbot,
       with({{"data.input", {"text"}},
             {"tokenizer.shared", {true}},
             {"model.positions", {"learned", "sinusoidal", "none"}},
             {"model.norm", {"pre"}},
             {"model.final_norm", {true}},
             {"model.norm_kind", {"layer"}},
             {"model.norm_eps", {1e-5}},
             {"model.activation", ungated()},
             {"model.attention.kv_heads", {0}}})}};
  return table;
}

/// "model.norm is post (it has pre)" for each requirement that the config does not meet.
std::vector<std::string> obstacles(const ModelClass& candidate, const nlohmann::json& config) {
  std::vector<std::string> found;
  for (const Requirement& need : candidate.requirements) {
    std::string pointer = "/" + need.key;
    std::ranges::replace(pointer, '.', '/');
    const nlohmann::json& value = config.at(nlohmann::json::json_pointer(pointer));
    if (std::ranges::find(need.values, value) != need.values.end()) continue;
    std::string expected;
    for (const nlohmann::json& v : need.values)
      expected +=
          (expected.empty() ? "" : " or ") + (v.is_string() ? v.get<std::string>() : v.dump());
    found.push_back(fmt::format("{} is {} (it has {})", need.key,
                                value.is_string() ? value.get<std::string>() : value.dump(),
                                expected));
  }
  return found;
}

}  // namespace

std::vector<std::pair<std::string, std::vector<Requirement>>> huggingface_requirements() {
  std::vector<std::pair<std::string, std::vector<Requirement>>> all;
  for (const ModelClass& each : classes()) all.emplace_back(each.name, each.requirements);
  return all;
}

HuggingFaceModel huggingface_model(const Config& config, const VocabularySizes& vocabulary) {
  nlohmann::json values = config_json(config);
  // As many key heads as query heads is written as 0 in the requirements.
  nlohmann::json& kv_heads = values["model"]["attention"]["kv_heads"];
  if (kv_heads == values["model"]["heads"]) kv_heads = 0;
  std::string why;
  for (const ModelClass& candidate : classes()) {
    if (candidate.architecture != info_of(config.task).architecture) continue;
    const std::vector<std::string> found = obstacles(candidate, values);
    if (found.empty()) return candidate.describe({config, *config.model, vocabulary});
    why += fmt::format("\n  {}: {}", candidate.name, fmt::join(found, "; "));
  }
  if (why.empty())
    why = fmt::format("\n  task {}: none of the classes that heed writes", name_of(config.task));
  throw Error(Exit::usage, "no class of transformers computes what this model computes:{}", why);
}

HEED_END
