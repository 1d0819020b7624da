#pragma once
/// Executes the matrix products of a shard again, without other ops between them, to measure the
/// time of the products alone.
#include <cstdint>
#include <span>
#include <vector>

#include "autograd/kernels/fast/gemm/product_log.h"
#include "autograd/tensor.h"

HEED_BEGIN

/// The products of a shard in the same order, on operands with the same memory layout: products
/// that share memory in the shard share it in the replay, and weights are read in place. Operands
/// that are in a cache during a step are therefore also in a cache during the replay, unless an
/// omitted op loaded them; but then the step had to wait for them, too. Hence the replay cannot
/// take longer than the step.
class ProductReplay {
 public:
  /// Operands other than weights contain arbitrary values, which do not affect the time: infinities
  /// and NaN are as fast as finite numbers, and subnormal numbers, which would be slow on x86-64,
  /// are treated as zero there.
  ProductReplay(const std::vector<kernels::Product>& products,
                std::span<const NamedTensor> weights);

  /// Executes the products on the calling thread, in an array allocated for this call.
  void run() const;
  /// Number of values in the array that contains all operands except weights.
  std::int64_t values() const { return values_; }

 private:
  /// A weight or, if `weight` is null, the values from `offset` onwards in the array that run()
  /// allocates.
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
