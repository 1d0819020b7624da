#pragma once
/// What a token of each side costs.
#include "data/batches/batch.h"
#include "nn/models/model.h"

HEED_BEGIN

/// Model FLOPs (autograd/kernels/gemm/product_log.h) of a forward pass with loss over one source
/// token alone, and over one target token alone, counted by running both. For cutting a batch into
/// shards that take equally long, so it fixes the bits of a result. What attention adds for longer
/// sequences is left out.
TokenCost token_cost(const Model& model);

HEED_END
