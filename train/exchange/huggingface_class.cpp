#include "train/exchange/huggingface_class.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "data/tokenizers/tokenizer.h"
#include "nn/layers/activations.h"
#include "nn/layers/positions.h"
#include "nn/options.h"

HEED_BEGIN

namespace {

/// heed's names of activations and those of transformers.activations.ACT2FN.
constexpr std::pair<std::string_view, std::string_view> activation_names[] = {
    {"relu", "relu"},   {"gelu", "gelu"},       {"gelu_tanh", "gelu_pytorch_tanh"},
    {"silu", "silu"},   {"sigmoid", "sigmoid"}, {"tanh", "tanh"},
    {"swiglu", "silu"}, {"geglu", "gelu"}};

}  // namespace

double ModelSource::embedding_factor() const {
  return model.scale_embeddings ? std::sqrt(static_cast<double>(model.d_model)) : 1;
}

std::int64_t ModelSource::kv_heads() const {
  return model.attention.kv_heads == 0 ? model.heads : model.attention.kv_heads;
}

std::int64_t ModelSource::kv_width() const { return kv_heads() * (model.d_model / model.heads); }

std::vector<std::string> obstacles(const std::vector<Requirement>& requirements,
                                   const Config& config) {
  nlohmann::json values = config_json(config);
  // As many key heads as query heads is written as 0 in the requirements.
  nlohmann::json& kv_heads = values["model"]["attention"]["kv_heads"];
  if (kv_heads == values["model"]["heads"]) kv_heads = 0;
  std::vector<std::string> found;
  for (const Requirement& need : requirements) {
    std::string pointer = "/" + need.key;
    std::ranges::replace(pointer, '.', '/');
    const nlohmann::json& value = values.at(nlohmann::json::json_pointer(pointer));
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

std::vector<Requirement> with_common(std::vector<Requirement> more) {
  static const std::vector<Requirement> all{
      {"model.kind", {"transformer"}},       {"model.mixer", {"attention"}},
      {"model.block", {"serial"}},           {"model.residual", {true}},
      {"model.attention.pattern", {"full"}}, {"model.attention.map", {"softmax"}},
      {"model.attention.scale", {"sqrt"}},   {"model.tie_embeddings", {true}}};
  more.insert(more.begin(), all.begin(), all.end());
  return more;
}

std::vector<nlohmann::json> ungated_activations() {
  return {"relu", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh"};
}

std::string activation_name(const ModelOptions& o) {
  const std::string_view own = name_of(o.activation);
  const auto found = std::ranges::find(activation_names, own,
                                       &std::pair<std::string_view, std::string_view>::first);
  return std::string(found->second);
}

Json common_config(const ModelSource& source, const char* architecture, const char* type) {
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

Json common_generation(const ModelSource& source) {
  return {{"bos_token_id", Tokenizer::bos},
          {"eos_token_id", Tokenizer::eos},
          {"pad_token_id", Tokenizer::eos},
          {"suppress_tokens", {Tokenizer::unk, Tokenizer::bos}},
          {"do_sample", false},
          {"num_beams", 1},
          {"repetition_penalty", source.config.decode.repetition_penalty},
          {"min_new_tokens", source.config.decode.min_length}};
}

void add_linear(MappedTensors& parts, const std::string& foreign, const std::string& own,
                bool transposed) {
  parts.push_back(
      {.foreign = foreign + ".weight", .own = own + ".weight", .transposed = transposed});
  parts.push_back({.foreign = foreign + ".bias", .own = own + ".bias"});
}

void add_norm(MappedTensors& parts, const ModelSource& source, const std::string& foreign,
              const std::string& own) {
  parts.push_back({.foreign = foreign + ".weight", .own = own + ".weight"});
  if (source.model.norm_kind != NormKind::rms)
    parts.push_back({.foreign = foreign + ".bias", .own = own + ".bias"});
}

void add_attention(MappedTensors& parts, const ModelSource& source, const std::string& foreign,
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

MappedTensor position_table(const ModelSource& source, const std::string& foreign,
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

HEED_END
