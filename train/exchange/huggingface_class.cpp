#include "train/exchange/huggingface_class.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nn/layers/activations.h"
#include "nn/layers/positions.h"
#include "nn/options.h"

HEED_BEGIN

namespace {

/// heed's names of activations and those of transformers.activations.ACT2FN.
constexpr std::pair<std::string_view, std::string_view> activation_names[] = {
    {"relu", "relu"},   {"gelu", "gelu"},       {"gelu_tanh", "gelu_pytorch_tanh"},
    {"silu", "silu"},   {"sigmoid", "sigmoid"}, {"tanh", "tanh"},
    {"swiglu", "silu"}, {"geglu", "gelu"},      {"geglu_tanh", "gelu_pytorch_tanh"}};

}  // namespace

double ModelSource::embedding_factor() const {
  return model.scale_embeddings ? std::sqrt(static_cast<double>(model.d_model)) : 1;
}

bool ModelSource::output_bias() const {
  if (model.output_bias != OutputBias::automatic) return model.output_bias == OutputBias::yes;
  return model.bias && !output_is_tied(model);
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
      {"model.attention.scale", {"sqrt"}},   {"model.embedding_norm", {false}}};
  for (const Requirement& each : all) {
    if (std::ranges::find(more, each.key, &Requirement::key) == more.end()) more.push_back(each);
  }
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

namespace {

/// null for a piece that the vocabulary lacks.
Json id_or_null(std::int32_t id) { return id < 0 ? Json(nullptr) : Json(id); }

/// The pieces that heed's search excludes.
Json suppressed(const SpecialIds& ids) {
  Json all = Json::array();
  for (const std::int32_t id : {ids.unk, ids.bos})
    if (id >= 0 && id != ids.eos) all.push_back(id);
  return all;
}

}  // namespace

Json common_config(const ModelSource& source, const char* architecture, const char* type) {
  return {{"architectures", {architecture}},
          {"model_type", type},
          {"dtype", "float32"},
          {"torch_dtype", "float32"},
          {"vocab_size", source.vocabulary.target},
          {"bos_token_id", id_or_null(source.ids.bos)},
          {"eos_token_id", id_or_null(source.ids.eos)},
          {"pad_token_id", id_or_null(source.ids.eos)},  // masks say which tokens are read
          {"use_cache", true}};
}

Json common_generation(const ModelSource& source) {
  return {{"bos_token_id", id_or_null(source.ids.bos)},
          {"eos_token_id", id_or_null(source.ids.eos)},
          {"pad_token_id", id_or_null(source.ids.eos)},
          {"suppress_tokens", suppressed(source.ids)},
          {"do_sample", false},
          {"num_beams", 1},
          {"repetition_penalty", source.config.decode.repetition_penalty},
          {"min_new_tokens", source.config.decode.min_length}};
}

std::string output_bias_obstacle(const ModelSource& source) {
  return source.output_bias() ? "the output projection has a bias (train with model.output_bias: "
                                "false, or with tie_embeddings: true)"
                              : "";
}

void add_linear(MappedTensors& parts, const ModelSource& source, const LinearPart& part,
                NoBias no_bias) {
  parts.push_back({.foreign = part.foreign + ".weight",
                   .own = part.weight,
                   .first = part.first,
                   .rows = part.first == 0 && !part.partial ? 0 : part.rows,
                   .group = part.group,
                   .split = part.split,
                   .transposed = part.transposed});
  if (!source.model.bias && no_bias == NoBias::absent) return;
  MappedTensor bias{.foreign = part.foreign + ".bias"};
  if (source.model.bias) {
    bias.own = part.bias;
    bias.first = part.first;
    bias.rows = parts.back().rows;
    bias.group = part.group;
    bias.split = part.split;
  } else {
    bias.constant = Array::zeros({part.rows});
  }
  parts.push_back(bias);
}

void add_linear(MappedTensors& parts, const ModelSource& source, const std::string& foreign,
                const std::string& own, std::int64_t rows, NoBias no_bias) {
  add_linear(parts, source, {foreign, own + ".weight", own + ".bias", 0, rows}, no_bias);
}

void add_norm(MappedTensors& parts, const ModelSource& source, const std::string& foreign,
              const std::string& own) {
  parts.push_back({.foreign = foreign + ".weight", .own = own + ".weight"});
  if (source.model.norm_kind != NormKind::rms)
    parts.push_back({.foreign = foreign + ".bias", .own = own + ".bias"});
}

void add_attention(MappedTensors& parts, const ModelSource& source, const std::string& foreign,
                   const std::string& own, const AttentionNames& names, NoBias no_bias) {
  const std::int64_t d = source.model.d_model, e = source.kv_width();
  const std::tuple<const std::string&, std::int64_t, std::int64_t> projections[] = {
      {names.q, 0, d}, {names.k, d, e}, {names.v, d + e, e}};
  for (const auto& [name, first, rows] : projections)
    add_linear(parts, source,
               {foreign + name, own + ".in_proj_weight", own + ".in_proj_bias", first, rows, true},
               no_bias);
  add_linear(parts, source, foreign + names.out, own + ".out_proj", d, no_bias);
}

void add_gated(MappedTensors& parts, const ModelSource& source, const std::string& gate,
               const std::string& values, const std::string& own, NoBias no_bias) {
  const std::int64_t rows = source.model.d_ff;
  for (const bool first : {true, false})
    add_linear(
        parts, source,
        {first ? gate : values, own + ".weight", own + ".bias", first ? 0 : rows, rows, true},
        no_bias);
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
