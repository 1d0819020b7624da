#include "train/tasks/token_cost.h"

#include <algorithm>

#include "autograd/kernels/fast/gemm/product_log.h"
#include "nn/options.h"
#include "train/decode/model_input.h"

HEED_BEGIN

TokenCost token_cost(const Task& task, const Model& model) {
  const auto flops = [&](std::int64_t source_length, std::int64_t target_length) {
    const Batch batch =
        task.random_batch(1, source_length, target_length, {}, [](std::int64_t) { return 0; });
    const NoGrad no_grad;
    Pass pass;
    kernels::ProductFlops counted;
    const kernels::ProductLog log(counted);
    model.loss(model_input(batch), {}, pass);
    const std::int64_t rows = batch.source.rows() + batch.target.rows();
    return counted.model / static_cast<double>(std::max<std::int64_t>(rows, 1));
  };
  const Architecture architecture = task.info().architecture;
  // A convolutional front end reduces this number of input rows to one.
  const FrontEndOptions& front_end = task.config().model->front_end;
  const std::int64_t rows_per_token =
      front_end.kind == FrontEndKind::conv ? std::int64_t{1} << front_end.layers : 1;
  return {.source = has_encoder(architecture) ? flops(rows_per_token, 0) : 0,
          .target = has_decoder(architecture) ? flops(0, 1) : 0};
}

HEED_END
