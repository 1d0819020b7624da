#include "train/tasks/token_cost.h"

#include "autograd/kernels/gemm/product_log.h"

HEED_BEGIN

TokenCost token_cost(const Model& model) {
  const std::int32_t token[] = {0}, none[] = {0, 0}, one[] = {0, 1};
  const std::span<const std::int32_t> no_tokens;
  const auto flops = [&](const Rows& rows) {
    const NoGrad no_grad;
    Pass pass;
    kernels::ProductFlops counted;
    const kernels::ProductLog log(counted);
    model.loss(rows, rows.target_in, 0, 1, pass);
    return counted.model;
  };
  return {flops({token, one, no_tokens, none}), flops({no_tokens, none, token, one})};
}

HEED_END
