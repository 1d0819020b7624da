#pragma once
/// The small JSON files beside the graphs of ONNX, which transformers.js reads
/// (huggingface.co/docs/transformers.js).
#include "train/exchange/huggingface/model.h"

HEED_BEGIN

/// The model of a run without tensors: that of its class (huggingface_model) or, if no class computes
/// what the model computes, one with the entries that transformers.js needs to run the graphs.
HuggingFaceModel onnx_config(const Config& config, const VocabularySizes& vocabulary,
                             const SpecialIds& ids = {});

HEED_END
