#pragma once
/// Matrix products, always on the calling thread. Only fast/gemm/ and autograd/plain.cpp
/// call BLAS.
#include <cstdint>

#include "autograd/base/real.h"

HEED_BEGIN
namespace kernels {

enum class Trans : bool { no, yes };

/// C = alpha op(A) op(B) + beta C, all row-major; op(A) is m x k, op(B) is k x n, C is m x n.
/// lda, ldb, ldc are the strides of the stored rows. With beta = 0, C is never read.
/// heed computes large products itself (fast/gemm/product.h) and leaves small ones to BLAS.
/// In a Bf16Scope (bf16.h), the operands of large products are rounded to bfloat16; in a
/// PackedScope (packed.h), weights are packed once, optionally in int8 (int8.h). A ProductLog
/// (product_log.h) counts the FLOPs of the products.
void gemm(Trans trans_a, Trans trans_b, std::int64_t m, std::int64_t n, std::int64_t k, real alpha,
          const real* a, std::int64_t lda, const real* b, std::int64_t ldb, real beta, real* c,
          std::int64_t ldc);

/// The name, version and kernel of the BLAS library: "OpenBLAS 0.3.21 ... SkylakeX".
const char* blas_name();

}  // namespace kernels
HEED_END
