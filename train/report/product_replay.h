#pragma once
/// The matrix products of a shard, executed again with nothing between them: the time a step would
/// take if it consisted of its products alone.
#include <cstdint>
#include <span>
#include <vector>

#include "autograd/kernels/gemm/product_log.h"
#include "autograd/named_tensor.h"

HEED_BEGIN

/// The same products in the same order, on operands laid out in memory as the shard's were:
/// products that share memory in the shard share it here, and weights are read in place. So a
/// product that finds its operands in a cache during a step finds them there here as well, or the
/// step waited for them in an op that is omitted here. Hence the replay cannot take longer than the
/// step.
class ProductReplay {
 public:
  /// Some operands hold arbitrary values: infinities and NaN take no longer than others, and
  /// subnormal numbers count as zero.
  ProductReplay(const std::vector<kernels::Product>& products,
                std::span<const NamedTensor> weights);

  /// Executes the products on the calling thread. It reuses the memory that the shard has freed.
  void run() const;
  /// Number of values of all operands except weights.
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
