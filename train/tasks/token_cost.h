#pragma once
/// What a token of each side costs.
#include "data/batches/batch.h"
#include "nn/models/model.h"
#include "train/tasks/task.h"

HEED_BEGIN

/// Model FLOPs (autograd/kernels/gemm/product_log.h) of a forward pass with loss over one source
/// token alone, and over one target token alone, counted by running both; 0 for a side that the task
/// does not have. For cutting a batch into shards that take equally long, so it fixes the bits of a
/// result. What attention adds for longer sequences is left out.
TokenCost token_cost(const Task& task, const Model& model);

HEED_END
