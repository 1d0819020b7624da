#pragma once
/// Matrix products of operands rounded to bfloat16 (8 bits of exponent, 7 of fraction) with sums in
/// float. They are faster than products in float on processors with instructions for them.
#include <cstdint>
#include <string>
#include <string_view>

#include "autograd/base/scoped_value.h"
#include "autograd/kernels/gemm.h"

HEED_BEGIN
namespace kernels {

/// The reason why this program cannot use bf16 on this machine; empty if it can.
const std::string& bf16_obstacle();

/// The instructions that multiply numbers in bf16. They sum in different orders, so their results
/// differ in the last bits.
enum class Bf16Unit {
  fma,    ///< fused multiply-adds of the rounded operands in float, as fast as products in float
  pairs,  ///< AVX-512's dot products of pairs
  tiles   ///< the matrix unit (AMX)
};
/// Whether this processor has the unit.
bool has_bf16_unit(Bf16Unit unit);
/// The unit that gemm uses, which depends on the processor alone: the fastest one. Intel's
/// processors execute half as many dot products of pairs as fused multiply-adds and therefore do not
/// use them; AMD's execute as many.
Bf16Unit bf16_unit();
std::string_view name_of(Bf16Unit unit);

/// While an instance is alive, and if `enabled` and bf16 is available, gemm on this thread uses
/// bf16 for large products with alpha 1 and beta 0 or 1.
class Bf16Scope {
 public:
  explicit Bf16Scope(bool enabled);

 private:
  ScopedValue<bool> scope_;
};

/// True if gemm currently uses bf16 on this thread for a product with these arguments.
bool supports_bf16(std::int64_t m, std::int64_t n, std::int64_t k, real alpha, real beta);
/// C = op(A) op(B) or, if `add`, C += op(A) op(B) where the processor has the unit. Shapes and
/// strides are as in gemm.
void gemm_bf16(Bf16Unit unit, Trans trans_a, Trans trans_b, std::int64_t m, std::int64_t n,
               std::int64_t k, const real* a, std::int64_t lda, const real* b, std::int64_t ldb,
               bool add, real* c, std::int64_t ldc);

/// y[i] contains the bits of x[i] rounded to bfloat16 (nearest, ties to even); NaN remains NaN.
void to_bf16(const float* x, std::uint16_t* y, std::int64_t n);
namespace plain {
void to_bf16(const float* x, std::uint16_t* y, std::int64_t n);
}

}  // namespace kernels
HEED_END
