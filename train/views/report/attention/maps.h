#pragma once
/// Attention maps: the weights of every layer and head for one line of input.
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "autograd/ops/more/attention/attention_log.h"
#include "data/sources/image.h"
#include "train/tasks/task.h"

HEED_BEGIN

/// One head of one layer.
struct HeadWeights {
  std::int64_t number = 0;  ///< index within its layer
  Array weights;            ///< P [queries, keys]
  double entropy = 0;       ///< mean over queries of −Σ P log P, in nats
  double distance = 0;      ///< self-attention: mean over queries of Σ P |i − j|, in rows
};

struct LayerWeights {
  std::string name;  ///< prefix of the parameters' names: "encoder.layers.0.self_attn"
  bool self = true;  ///< whether keys and queries are the same rows
  /// Whether the queries, and whether the keys, are rows of the target instead of the source.
  bool queries_are_target = false, keys_are_target = false;
  std::vector<HeadWeights> heads;
  AttentionRecord record;  ///< intermediate results of all heads
};

/// An image divided into cells, one for each encoder row except that of a class token: patches, or
/// the outputs of a convolutional front end.
struct PatchGrid {
  Image image;
  std::int64_t rows = 0, columns = 0;  ///< number of cells in each direction
  /// Side of a cell in pixels; cells at the right and bottom may extend beyond the image.
  std::int64_t side = 0;
  std::int64_t first = 0;  ///< encoder row of the first cell; 1 if a class token precedes it
};

struct AttentionMaps {
  std::vector<std::string> source, target;  ///< names of the rows
  std::vector<LayerWeights> layers;         ///< layers in the order of the model
  std::optional<PatchGrid> grid;            ///< set if the source is an image
  Array source_rollout, target_rollout;     ///< rollout() of all layers, or undefined
  /// Whether all weights are non-negative. With model.attention.map: sum, they may have both
  /// signs, and entropy and distance are meaningless.
  bool nonnegative = true;

  std::vector<std::string> const& queries(const LayerWeights& layer) const {
    return layer.queries_are_target ? target : source;
  }
  std::vector<std::string> const& keys(const LayerWeights& layer) const {
    return layer.keys_are_target ? target : source;
  }
};

/// The image of a source, reconstructed from its patches; nullopt if the source is not an image.
std::optional<PatchGrid> grid_of(const Side& side, const Config& config);

/// The names of the layers that compute attention weights, in the order of the parameters. Throws
/// Error(usage) if there are none, or if the model attends within windows of an image (Swin).
std::vector<std::string> attention_layers(const Model& model, const Config& config);

/// Whether the name contains these consecutive dot-separated parts: "encoder.layers.10" contains
/// "layers.10" but not "layers.1".
bool has_parts(std::string_view name, std::string_view parts);

/// The attention weights of the model, without dropout, for a batch of one sequence
/// (Task::batch_of_line). If `run` is set, it is called to evaluate the model. Throws the errors of
/// attention_layers.
AttentionMaps attention_maps(const LoadedModel& trained, const Config& config, const Batch& batch,
                             const std::function<void()>& run = {});

/// The mean of P over the heads of a layer.
Array mean_of_heads(const LayerWeights& layer);

/// Attention rollout (Abnar and Zuidema 2020): the share of each input row of a stack in each
/// output row, [rows, rows]. It is the product of (A + I) / 2 over all layers, where A is the mean
/// self-attention of a layer's heads, with later layers on the left; the rows of the product sum to
/// 1 if those of every A do. Undefined if the source (with `target`, the target) has no
/// self-attention.
Array rollout(const AttentionMaps& maps, bool target);

nlohmann::json json_of(const AttentionMaps& maps);

HEED_END
