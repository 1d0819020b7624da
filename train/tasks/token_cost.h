#pragma once
/// The cost of one source token and of one target token.
#include "data/batches/batch.h"
#include "nn/models/model.h"
#include "train/tasks/task.h"

HEED_BEGIN

/// Model FLOPs (autograd/kernels/fast/gemm/product_log.h) of a forward pass with loss per source token
/// and per target token; 0 for a side that the task does not have. They are counted by running the
/// model on one token of each side, or on the shortest source that it accepts (a whole image, or
/// the rows that a convolutional front end reduces to one). Batches are cut into shards of similar
/// cost, so this cost affects the exact (bitwise) results of a run. The additional cost of
/// attention in longer sequences is ignored.
TokenCost token_cost(const Task& task, const Model& model);

HEED_END
