#include "train/views/report/attention/maps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "autograd/base/error.h"
#include "autograd/io/message_text.h"
#include "data/inputs/input_info.h"
#include "nn/layers/patterns.h"
#include "nn/options.h"
#include "train/decode/model_input.h"

HEED_BEGIN

namespace {

constexpr std::string_view output_weight = ".out_proj.weight";
constexpr std::string_view cross = ".multihead_attn";

/// The names of the self-attention or of the cross-attention layers.
std::vector<std::string> layers_with(std::vector<std::string> names, bool self) {
  std::erase_if(names, [&](const std::string& name) { return name.ends_with(cross) == self; });
  return names;
}

HeadWeights head_of(std::int64_t number, const Array& weights, bool self) {
  HeadWeights head{number, weights, 0, 0};
  for (std::int64_t i = 0; i < weights.rows(); ++i) {
    for (std::int64_t j = 0; j < weights.cols(); ++j) {
      const double p = weights.row(i)[j];
      if (p > 0) head.entropy -= p * std::log(p);
      head.distance += p * static_cast<double>(std::abs(i - j));
    }
  }
  const auto rows = static_cast<double>(std::max<std::int64_t>(weights.rows(), 1));
  head.entropy = std::max(head.entropy, 0.0) / rows;
  head.distance = self ? head.distance / rows : 0;
  return head;
}

std::vector<LayerWeights> layers_of(const std::vector<AttentionRecord>& records,
                                    const std::vector<std::string>& all, bool has_source) {
  const std::vector<std::string> self_layers = layers_with(all, true),
                                 cross_layers = layers_with(all, false);
  std::size_t next_self = 0, next_cross = 0;
  std::vector<LayerWeights> layers;
  for (const AttentionRecord& record : records) {
    std::size_t& next = record.self ? next_self : next_cross;
    const std::vector<std::string>& names = record.self ? self_layers : cross_layers;
    if (next == names.size())
      throw Error(Exit::failed, "the model ran attention more times than it has attention layers");
    LayerWeights layer{names[next++], record.self, false, false, {}, record};
    layer.queries_are_target = !has_source || !layer.name.starts_with("encoder.");
    layer.keys_are_target = record.self && layer.queries_are_target;
    for (std::int64_t head = 0; head < record.heads; ++head)
      layer.heads.push_back(head_of(head, record.of(0, head), record.self));
    layers.push_back(std::move(layer));
  }
  return layers;
}

std::vector<std::string> token_names(const Side& side, const Tokenizer& tokenizer) {
  std::vector<std::string> names;
  for (const std::int32_t id : side.ids) names.push_back(shown(tokenizer.piece(id)));
  return names;
}

/// The names of encoder rows: "class" for a class token; names by the kind of input, such as "2,3"
/// for the patch in row 2 and column 3 of an image; or numbers from 1.
std::vector<std::string> row_names(std::int64_t rows, const Config& config,
                                   const std::optional<PatchGrid>& grid) {
  const auto name = info_of(config.data.input).row_name;
  std::vector<std::string> names;
  if (has_class_row(config)) names.emplace_back("class");
  for (std::int64_t row = 0; std::ssize(names) < rows; ++row)
    names.push_back(name != nullptr ? name(config.data, row, grid ? grid->columns : 1)
                                    : std::to_string(row + 1));
  return names;
}

/// The number of rows of a source in the encoder's layers.
std::int64_t encoder_rows(const Side& side, const Config& config) {
  const ModelOptions& model = config.model;
  if (model.front_end.kind == FrontEndKind::linear) return side.rows();
  if (model.grid_width == 0) return rows_after(model.front_end, side.rows());
  return rows_after(model.front_end, model.grid_height) *
         rows_after(model.front_end, model.grid_width);
}

/// Throws Error(failed) unless each layer has one name per query and one per key, as the drawings
/// require.
void require_names(const AttentionMaps& maps) {
  for (const LayerWeights& layer : maps.layers) {
    const Array& weights = layer.heads.front().weights;
    if (weights.rows() != std::ssize(maps.queries(layer)) ||
        weights.cols() != std::ssize(maps.keys(layer)))
      throw Error(Exit::failed, "{} has weights of shape {}, but {} queries and {} keys have names",
                  layer.name, weights.shape(), maps.queries(layer).size(), maps.keys(layer).size());
  }
}

}  // namespace

std::optional<PatchGrid> grid_of(const Side& side, const Config& config) {
  const ImageOptions& o = config.data.image;
  const std::int64_t patches = patches_of(o), columns = o.width / o.patch,
                     first = side.rows() - patches;
  if (info_of(config.data.input).grid == nullptr) return std::nullopt;
  const FrontEndOptions& front_end = config.model->front_end;
  const bool conv = front_end.kind == FrontEndKind::conv;
  PatchGrid grid{{o.height, o.width, o.channels, {}},
                 rows_after(front_end, o.height / o.patch),
                 rows_after(front_end, columns),
                 conv ? o.patch << front_end.layers : o.patch,
                 first};
  grid.image.values.resize(static_cast<std::size_t>(o.height * o.width * o.channels));
  const float* value = side.features.data() + first * side.width;
  for (std::int64_t patch = 0; patch < patches; ++patch) {
    const std::int64_t top = patch / columns * o.patch, left = patch % columns * o.patch;
    for (std::int64_t k = 0; k < side.width; ++k, ++value) {
      const std::int64_t pixel = k / o.channels, y = top + pixel / o.patch,
                         x = left + pixel % o.patch;
      const double v = 255 * (*value * o.deviation + o.mean);
      grid.image.values[(y * o.width + x) * o.channels + k % o.channels] =
          static_cast<std::uint8_t>(std::clamp(std::lround(v), 0L, 255L));
    }
  }
  return grid;
}

std::vector<std::string> attention_layers(const Model& model, const Config& config) {
  if (config.model->kind == ModelKind::swin)
    throw Error(Exit::usage,
                "a Swin Transformer attends within windows, which cannot be shown row by row");
  std::vector<std::string> names;
  for (const NamedTensor& p : model.parameters()) {
    if (p.name.ends_with(output_weight))
      names.push_back(p.name.substr(0, p.name.size() - output_weight.size()));
  }
  if (!info_of(config.model->attention.pattern).scores) names = layers_with(names, false);
  if (names.empty())
    throw Error(Exit::usage,
                "the model has no attention weights: model.mixer is not attention, or "
                "model.attention.pattern is linear, and linear attention computes no weights");
  return names;
}

bool has_parts(std::string_view name, std::string_view parts) {
  return ("." + std::string(name) + ".").find("." + std::string(parts) + ".") != std::string::npos;
}

AttentionMaps attention_maps(const LoadedModel& trained, const Config& config, const Batch& batch,
                             const std::function<void()>& run) {
  const std::vector<std::string> names = attention_layers(trained.model, config);
  std::vector<AttentionRecord> records;
  {
    const AttentionLog log(records);
    if (run) {
      run();
    } else {
      const NoGrad no_grad;
      Pass pass;
      static_cast<void>(trained.model.deferred_logits(model_input(batch), pass));
    }
  }
  AttentionMaps maps;
  const bool has_source = !batch.source.offsets.empty();
  maps.nonnegative = config.model->attention.map != ScoreMap::sum;
  maps.layers = layers_of(records, names, has_source);
  if (has_source) {
    maps.grid = grid_of(batch.source, config);
    maps.source = batch.source.width > 0
                      ? row_names(encoder_rows(batch.source, config), config, maps.grid)
                      : token_names(batch.source, *trained.tokenizers.source);
  }
  maps.target = token_names(batch.target, *trained.tokenizers.target);
  require_names(maps);
  maps.source_rollout = rollout(maps, false);
  maps.target_rollout = rollout(maps, true);
  return maps;
}

Array mean_of_heads(const LayerWeights& layer) {
  Array mean = Array::zeros(layer.heads.front().weights.shape());
  for (const HeadWeights& one : layer.heads) {
    for (std::int64_t i = 0; i < mean.size(); ++i)
      mean.data()[i] += one.weights.data()[i] / static_cast<real>(layer.heads.size());
  }
  return mean;
}

Array rollout(const AttentionMaps& maps, bool target) {
  Array all;
  for (const LayerWeights& layer : maps.layers) {
    if (!layer.self || layer.queries_are_target != target) continue;
    Array step = mean_of_heads(layer);
    const std::int64_t n = step.rows();
    for (real& v : step.values()) v /= 2;
    for (std::int64_t i = 0; i < n; ++i) step.row(i)[i] += real(0.5);
    if (!all.defined()) {
      all = step;
      continue;
    }
    Array next = Array::zeros({n, n});  // product of the matrices up to this layer
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t k = 0; k < n; ++k)
        for (std::int64_t j = 0; j < n; ++j) next.row(i)[j] += step.row(i)[k] * all.row(k)[j];
    }
    all = next;
  }
  return all;
}

nlohmann::json json_of(const AttentionMaps& maps) {
  nlohmann::json record{{"layers", nlohmann::json::array()}};
  if (!maps.source.empty()) record["source"] = maps.source;
  if (!maps.target.empty()) record["target"] = maps.target;
  for (const LayerWeights& layer : maps.layers) {
    nlohmann::json entry{{"name", layer.name},
                         {"queries", layer.queries_are_target ? "target" : "source"},
                         {"keys", layer.keys_are_target ? "target" : "source"},
                         {"heads", nlohmann::json::array()}};
    for (const HeadWeights& head : layer.heads) {
      nlohmann::json rows = nlohmann::json::array();
      for (std::int64_t i = 0; i < head.weights.rows(); ++i)
        rows.push_back(
            std::vector<real>(head.weights.row(i), head.weights.row(i) + head.weights.cols()));
      nlohmann::json one{{"head", head.number}, {"weights", rows}};
      if (maps.nonnegative) one["entropy"] = head.entropy;
      if (maps.nonnegative && layer.self) one["distance"] = head.distance;
      entry["heads"].push_back(std::move(one));
    }
    record["layers"].push_back(std::move(entry));
  }
  return record;
}

HEED_END
