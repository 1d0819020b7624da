#include "train/exchange/model_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nn/layers/activations.h"
#include "nn/layers/positions.h"
#include "nn/options.h"

HEED_BEGIN

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

void PartList::rows(const std::string& foreign, const std::string& own, std::int64_t first,
                    std::int64_t count, bool pairs, std::int64_t width) {
  MappedTensor part{.foreign = foreign + is_.weight,
                    .own = own + "weight",
                    .first = first,
                    .rows = count,
                    .transposed = is_.transposed};
  if (pairs) {
    part.group = o_.d_model / o_.heads;
    part.split = is_.adjacent_pairs ? 2 : part.group / 2;
  }
  add(part);
  if (!o_.bias && !is_.zero_biases) return;
  part.foreign = foreign + is_.bias;
  part.own = own + "bias";
  part.transposed = false;
  if (!o_.bias) part = {.foreign = part.foreign, .constant = Array::zeros({width})};
  add(part);
}

void PartList::linear(const std::string& foreign, const std::string& own, std::int64_t rows) {
  this->rows(foreign, own + ".", 0, 0, false, rows);
}

void PartList::norm(const std::string& foreign, const std::string& own) {
  add({.foreign = foreign + is_.norm_weight, .own = own + ".weight"});
  if (o_.norm_kind != NormKind::rms)
    add({.foreign = foreign + is_.norm_bias, .own = own + ".bias"});
}

void PartList::attention(const std::string& foreign, const std::string& own,
                         const AttentionNames& names, bool self) {
  const std::int64_t d = o_.d_model, e = source_.kv_width();
  const std::string in = own + ".in_proj_";
  const bool pairs = self && is_.reorder_pairs && o_.positions == PositionKind::rotary;
  if (names.k.empty()) {
    rows(foreign + names.q, in, 0, 0, false, d + 2 * e);
  } else {
    rows(foreign + names.q, in, 0, d, pairs, d);
    rows(foreign + names.k, in, d, names.v.empty() ? 2 * e : e, pairs, e);
    if (!names.v.empty()) rows(foreign + names.v, in, d + e, e, false, e);
  }
  linear(foreign + names.out, own + ".out_proj", d);
}

void PartList::block(const std::string& foreign, const std::string& own, const BlockNames& names) {
  const bool cross = !names.cross.q.empty();
  norm(foreign + names.norm1, own + "norm1");
  attention(foreign, own + "self_attn", names.self, true);
  if (cross) {
    norm(foreign + names.cross_norm, own + "norm2");
    attention(foreign, own + "multihead_attn", names.cross, false);
  }
  const char* const last = o_.block == BlockForm::parallel ? "norm1" : cross ? "norm3" : "norm2";
  if (!names.last_norm.empty()) norm(foreign + names.last_norm, own + last);
  if (gate_of(o_.activation)) {
    rows(foreign + names.gate, own + "linear1.", 0, o_.d_ff, false, o_.d_ff);
    rows(foreign + names.linear1, own + "linear1.", o_.d_ff, o_.d_ff, false, o_.d_ff);
  } else {
    linear(foreign + names.linear1, own + "linear1", o_.d_ff);
  }
  linear(foreign + names.linear2, own + "linear2", o_.d_model);
}

void PartList::blocks(const std::string& prefix, const std::string& stack, std::int64_t depth,
                      const BlockNames& names) {
  for (std::int64_t i = 0; i < depth; ++i)
    block(fmt::format(fmt::runtime(prefix), i), fmt::format("{}.layers.{}.", stack, i), names);
}

void PartList::positions(const std::string& foreign, const std::string& own, std::int64_t rows,
                         std::vector<std::int64_t> shape) {
  MappedTensor part{.foreign = foreign, .shape = std::move(shape)};
  if (o_.positions == PositionKind::learned) {
    part.own = own;
    if (!part.shape.empty()) part.rows = rows;  // heed's table may be longer
  } else if (o_.positions == PositionKind::sinusoidal) {
    part.constant = sinusoids(0, rows, o_.d_model);
  } else {
    part.constant = Array::zeros({rows, o_.d_model});
  }
  add(part);
}

void PartList::output_bias(const std::string& foreign, std::vector<std::int64_t> shape) {
  MappedTensor part{.foreign = foreign, .shape = std::move(shape)};
  if (source_.output_bias())
    part.own = "output.bias";
  else
    part.constant = Array::zeros({source_.vocabulary.target});
  add(part);
}

HEED_END
