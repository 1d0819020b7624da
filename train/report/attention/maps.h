#pragma once
/// Where a model attends: the weights of every layer and head for one line of input.
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "autograd/attention_log.h"
#include "data/sources/picture.h"
#include "train/tasks/task.h"

HEED_BEGIN

/// One head of one layer.
struct HeadWeights {
  std::int64_t number = 0;  ///< within its layer
  Array weights;            ///< P [queries, keys]
  double entropy = 0;       ///< mean over queries of −Σ P log P, in nats
  double distance = 0;      ///< self-attention: mean over queries of Σ P |i − j|, in rows
};

struct LayerWeights {
  std::string name;  ///< as in the names of the weights: "encoder.layers.0.self_attn"
  bool self = true;  ///< keys and queries are the same rows
  bool queries_are_target = false, keys_are_target = false;  ///< rows of the target, or the source
  std::vector<HeadWeights> heads;
  AttentionRecord record;  ///< of all heads
};

/// A picture whose cells are rows of the encoder: its patches, or what a front end makes of them.
struct PatchGrid {
  Picture picture;
  std::int64_t rows = 0, columns = 0;  ///< cells
  std::int64_t side =
      0;  ///< of a cell, in pixels; those at the right and bottom may extend beyond the picture
  std::int64_t first = 0;  ///< row of the first cell; a class row comes before it
};

struct AttentionMaps {
  std::vector<std::string> source, target;  ///< a name for each row that the layers see
  std::vector<LayerWeights> layers;         ///< in the order of the model
  std::optional<PatchGrid> grid;            ///< if the source is a picture
  Array source_rollout, target_rollout;     ///< rollout() of all layers, or undefined
  /// Whether weights are at least 0; those of model.attention.map: sum may have both signs, and then
  /// entropy and distance mean nothing.
  bool nonnegative = true;

  std::vector<std::string> const& queries(const LayerWeights& layer) const {
    return layer.queries_are_target ? target : source;
  }
  std::vector<std::string> const& keys(const LayerWeights& layer) const {
    return layer.keys_are_target ? target : source;
  }
};

/// The picture from which the rows of a source were cut, as the model sees it; unset if the source is
/// not one.
std::optional<PatchGrid> grid_of(const Side& side, const Config& config);

/// The names of the model's layers that compute attention weights, in the order of its parameters. Throws
/// Error(usage) if it has none, or attends within windows of a picture (Swin).
std::vector<std::string> attention_layers(const Model& model, const Config& config);

/// Whether the name contains these parts of a name, such as "layers.1" (which is not in "layers.10").
bool has_parts(std::string_view name, std::string_view parts);

/// Runs the model, without dropout, on a batch of one sequence (Task::batch_of_line). `run`, if given, runs
/// it instead. Throws as attention_layers does.
AttentionMaps attention_maps(const LoadedModel& trained, const Config& config, const Batch& batch,
                             const std::function<void()>& run = {});

/// How much of each row of the source or target reaches each other row through the self-attention of
/// all layers of a stack, the mean over heads: Π (A + I) / 2, with rows that sum to 1. [rows, rows]
/// Source: attention rollout, Abnar and Zuidema 2020. Undefined without self-attention on that side.
Array rollout(const AttentionMaps& maps, bool target);

nlohmann::json json_of(const AttentionMaps& maps);

HEED_END
