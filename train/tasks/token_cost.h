#pragma once
/// The cost of one source token and of one target token.
#include "data/batches/batch.h"
#include "nn/models/model.h"
#include "train/tasks/task.h"

HEED_BEGIN

/// Model FLOPs (autograd/kernels/gemm/product_log.h) of a forward pass with loss over one source
/// token and over one target token, counted by running both; 0 for a side that the task does not
/// have. Batches are cut into shards of similar cost, so the bits of a result depend on this cost.
/// The additional cost of attention in longer sequences is ignored.
TokenCost token_cost(const Task& task, const Model& model);

HEED_END
