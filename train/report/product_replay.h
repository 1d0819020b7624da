#pragma once
/// The matrix products of a shard, executed again with nothing between them: the time that a step
/// would take if it consisted of its products alone.
#include <cstdint>
#include <span>
#include <vector>

#include "autograd/kernels/gemm/product_log.h"
#include "autograd/named_tensor.h"

HEED_BEGIN

/// The same products in the same order, on operands that lie in memory as the shard's did: where two
/// products of the shard use the same memory, so do they here, and each weight is read where it is.
/// So whatever finds its operands in a cache during a step finds them there now, or would have
/// waited for them in an op that is left out; and the rest of the step is left out. This is why the
/// replay cannot take longer than the step.
class ProductReplay {
 public:
  /// Not all operands have values that mean anything: infinities and NaN take no longer than others.
  ProductReplay(std::vector<kernels::Product> products, std::span<const NamedTensor> weights);

  /// Executes the products on the calling thread. The memory is that which the shard has given back.
  void run() const;
  /// Values of all operands but the weights.
  std::int64_t values() const { return values_; }

 private:
  /// An operand in the memory of run(), or a weight.
  struct Operand {
    const real* weight = nullptr;
    std::int64_t offset = 0;
  };
  struct Step {
    kernels::Product product;
    Operand a, b, c;
  };
  std::vector<Step> steps_;
  std::int64_t values_ = 0;
};

HEED_END
