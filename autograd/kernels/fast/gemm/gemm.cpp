#include "autograd/kernels/gemm.h"

#include <cblas.h>

#include <algorithm>
#include <limits>
#include <string>

#include "autograd/base/shape.h"
#include "autograd/kernels/fast/gemm/bf16.h"
#include "autograd/kernels/fast/gemm/blas_kernel.h"
#include "autograd/kernels/fast/gemm/blas_memory.h"
#include "autograd/kernels/fast/gemm/packed.h"
#include "autograd/kernels/fast/gemm/product.h"
#include "autograd/kernels/fast/gemm/product_log.h"

HEED_BEGIN
namespace kernels {

namespace {

/// Work is parallelised above the ops, by shards; BLAS runs on the calling thread. OpenBLAS's
/// number of threads is a setting of each thread if it is built with OpenMP, and of the process
/// otherwise.
bool use_one_thread() {
  warn_about_blas_kernel();
  if (openblas_get_parallel() == OPENBLAS_OPENMP) {
    openblas_set_num_threads(1);
  } else {
    static const bool once = (openblas_set_num_threads(1), true);
    (void)once;
  }
  return true;
}

CBLAS_TRANSPOSE flag(Trans t) { return t == Trans::yes ? CblasTrans : CblasNoTrans; }

void scale(std::int64_t m, std::int64_t n, real beta, real* c, std::int64_t ldc) {
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j)
      c[i * ldc + j] = beta == 0 ? real(0) : beta * c[i * ldc + j];
  }
}

}  // namespace

void gemm(Trans trans_a, Trans trans_b, std::int64_t m, std::int64_t n, std::int64_t k, real alpha,
          const real* a, std::int64_t lda, const real* b, std::int64_t ldb, real beta, real* c,
          std::int64_t ldc) {
  thread_local const bool ready = use_one_thread();
  (void)ready;
  if (m == 0 || n == 0) return;
  if (k == 0) return scale(m, n, beta, c, ldc);
  const bool bf16 = supports_bf16(m, n, k, alpha, beta);
  const bool packable = !bf16 && trans_a == Trans::no && trans_b == Trans::yes && alpha == 1 &&
                        beta == 0 && lda == k && ldb == k && ldc == n;
  const PackedMatrix* const packed = packable ? find_packed(b, n, k) : nullptr;
  if (ProductLog::active != nullptr) {
    ProductLog::active->add({trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc});
  }
  if (bf16) {
    return gemm_bf16(bf16_unit(), trans_a, trans_b, m, n, k, a, lda, b, ldb, beta == 1, c, ldc);
  }
  if (packed != nullptr) return packed->multiply(a, m, c);
  if (has_product(m, n, k))
    return multiply(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  // BLAS uses blasint for sizes and requires row strides of at least 1.
  if (std::max({m, n, k, lda, ldb, ldc}) > std::numeric_limits<blasint>::max())
    fail("[gemm] too many rows or columns for BLAS: {} x {} times {} x {}", m, k, k, n);
  const auto distance = [](std::int64_t ld) {
    return static_cast<blasint>(std::max<std::int64_t>(ld, 1));
  };
#ifdef HEED_DOUBLE
  const auto product = cblas_dgemm;
#else
  const auto product = cblas_sgemm;
#endif
  const BlasBuffer buffer;
  product(CblasRowMajor, flag(trans_a), flag(trans_b), static_cast<blasint>(m),
          static_cast<blasint>(n), static_cast<blasint>(k), alpha, a, distance(lda), b,
          distance(ldb), beta, c, distance(ldc));
}

const char* blas_name() {
  static const std::string name = openblas_get_config();  // copied from a static buffer
  return name.c_str();
}

}  // namespace kernels
HEED_END
