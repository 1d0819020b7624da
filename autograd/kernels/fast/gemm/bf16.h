#pragma once
/// Matrix products of operands rounded to bfloat16 (8 bits of exponent, 7 of fraction) with sums in
/// float: about twice as fast as products in float. They require a processor with bf16 instructions
/// and the library oneDNN, which computes the products and is loaded on first use.
#include <cstdint>
#include <string>

#include "autograd/base/scoped_value.h"
#include "autograd/kernels/gemm.h"

HEED_BEGIN
namespace kernels {

/// The reason why this program cannot use bf16 on this machine; empty if it can.
const std::string& bf16_obstacle();

/// While an instance is alive, and if `enabled` and bf16 is available, gemm on this thread uses
/// bf16 where that is faster: for large products with alpha 1 and beta 0 or 1.
class Bf16Scope {
 public:
  explicit Bf16Scope(bool enabled);

 private:
  ScopedValue<bool> scope_;
};

/// True if gemm currently uses bf16 on this thread for a product with these arguments.
bool supports_bf16(std::int64_t m, std::int64_t n, std::int64_t k, real alpha, real beta);
/// C = op(A) op(B) or, if `accumulate`, C += op(A) op(B); shapes and strides as in gemm.
void gemm_bf16(Trans trans_a, Trans trans_b, std::int64_t m, std::int64_t n, std::int64_t k,
               const real* a, std::int64_t lda, const real* b, std::int64_t ldb, bool accumulate,
               real* c, std::int64_t ldc);

/// y[i] contains the bits of x[i] rounded to bfloat16 (nearest, ties to even); NaN remains NaN.
void to_bf16(const float* x, std::uint16_t* y, std::int64_t n);
namespace plain {
void to_bf16(const float* x, std::uint16_t* y, std::int64_t n);
}

}  // namespace kernels
HEED_END
