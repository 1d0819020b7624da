#pragma once
/// The graphs of ONNX that compute what a run's model computes.
#include <deque>
#include <functional>
#include <string>

#include "nn/models/architecture.h"
#include "train/config/config.h"
#include "train/exchange/onnx/builder.h"

HEED_BEGIN

/// A file of an export: its name without suffix, as clients expect it, and its graph.
struct OnnxPart {
  std::string name;
  OnnxBuilder graph;

  OnnxPart(std::string file, OnnxWeights& weights) : name(std::move(file)), graph(weights) {}
};

/// The files of a model. `weights`: the tensors of Model::state(), which must exist until the files are
/// written; int8 matrices are dequantised in the graph. Language models, labels: model. Encoder and
/// decoder: encoder_model, decoder_model_merged. Throws Error(usage) that lists the keys whose values
/// cannot be expressed, and Error(failed) if a tensor is in no graph.
std::deque<OnnxPart> onnx_parts(const Config& config, OnnxWeights& weights);

/// Calls visit(name, graph) for each file of a model with the weights `state`: in float32, or in int8 as
/// after `heed quantize`. Throws the errors of onnx_parts and QuantisedWeights.
void for_each_onnx_file(const Config& config, std::span<const NamedTensor> state, bool int8,
                        const std::function<void(const std::string&, const OnnxGraph&)>& visit);

/// Throws Error(usage) as onnx_parts does, without weights.
void require_onnx(const Config& config);

HEED_END
