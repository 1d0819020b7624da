#pragma once
/// The graph of a Swin Transformer's encoder (nn/models/swin.h).
#include "train/exchange/onnx/builder.h"

HEED_BEGIN

/// Patches [batch, patches, input width] → [batch, patches of the last stage, width]
OnnxValue onnx_swin(OnnxBuilder& b, const ModelOptions& options, const OnnxValue& patches);

HEED_END
