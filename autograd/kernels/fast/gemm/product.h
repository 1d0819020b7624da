#pragma once
/// heed's own matrix products, for processors with vectorised fused multiply-add. Each value of
/// C is the sum of chains of chain_length fused multiply-adds, in the order of k:
///   C[i, j] = beta C[i, j] + alpha s₀ + alpha s₁ + …,   sₜ = Σ A[i, p] B[p, j],
/// where sₜ has the t-th chain_length indices p, and alpha sₜ is added with one rounding. The bits of
/// a value depend only on row i of A and column j of B, not on the other sizes, the vector width or
/// the processor; those of BLAS depend on all of them. BLAS computes products that are too small
/// to repay the packing of B.
/// Order of the loops and sources: blocks.h.
#include <cstdint>

#include "autograd/kernels/gemm.h"

HEED_BEGIN
namespace kernels {

/// The number of multiply-adds in a chain.
constexpr std::int64_t chain_length = 512;

/// The smallest multiple of `unit` that is at least n.
constexpr std::int64_t round_up(std::int64_t n, std::int64_t unit) {
  return (n + unit - 1) / unit * unit;
}

/// Whether multiply computes a product of these sizes. Always false on processors without vectorised
/// fused multiply-add; otherwise it depends on the sizes alone.
bool has_product(std::int64_t m, std::int64_t n, std::int64_t k);
/// gemm (kernels/gemm.h) for such products: m, n and k are positive.
void multiply(Trans trans_a, Trans trans_b, std::int64_t m, std::int64_t n, std::int64_t k,
              real alpha, const real* a, std::int64_t lda, const real* b, std::int64_t ldb,
              real beta, real* c, std::int64_t ldc);
/// The same product of operands rounded to bf16, with alpha 1 and beta 1 (`add`) or 0; m, n and k need
/// not be large. Not in the float64 build.
void multiply_rounded(Trans trans_a, Trans trans_b, std::int64_t m, std::int64_t n, std::int64_t k,
                      const real* a, std::int64_t lda, const real* b, std::int64_t ldb, bool add,
                      real* c, std::int64_t ldc);
/// The number of values in the packed layout of B [n, k], including zeros that fill the last panel,
/// or 0 if this processor has no packed layout.
std::int64_t packed_size(std::int64_t n, std::int64_t k);
/// B as consecutive panels of w rows, where w depends on the vector width: panel p contains, for
/// each of the k columns of B, that column's values in rows [p w, (p + 1) w).
void pack(const real* b, std::int64_t n, std::int64_t k, real* panels);

namespace plain {
/// The reference: a loop that computes the same bits.
void multiply(Trans trans_a, Trans trans_b, std::int64_t m, std::int64_t n, std::int64_t k,
              real alpha, const real* a, std::int64_t lda, const real* b, std::int64_t ldb,
              real beta, real* c, std::int64_t ldc);
}  // namespace plain

}  // namespace kernels
HEED_END
