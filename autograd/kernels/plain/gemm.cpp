/// Matrix products by BLAS, for programs that link no vectorised kernels.
#include "autograd/kernels/gemm/gemm.h"

#include <cblas.h>

#include <algorithm>

HEED_BEGIN
namespace kernels {

void gemm(Trans trans_a, Trans trans_b, std::int64_t m, std::int64_t n, std::int64_t k, real alpha,
          const real* a, std::int64_t lda, const real* b, std::int64_t ldb, real beta, real* c,
          std::int64_t ldc) {
  static const bool one_thread = (openblas_set_num_threads(1), true);  // products are small
  (void)one_thread;
  if (m == 0 || n == 0) return;
  const auto flag = [](Trans t) { return t == Trans::yes ? CblasTrans : CblasNoTrans; };
  const auto size = [](std::int64_t i) { return static_cast<blasint>(i); };
  const auto stride = [](std::int64_t i) {  // BLAS requires at least 1, even for empty rows
    return static_cast<blasint>(std::max<std::int64_t>(i, 1));
  };
#ifdef HEED_DOUBLE
  const auto product = cblas_dgemm;
#else
  const auto product = cblas_sgemm;
#endif
  product(CblasRowMajor, flag(trans_a), flag(trans_b), size(m), size(n), size(k), alpha, a,
          stride(lda), b, stride(ldb), beta, c, stride(ldc));
}

}  // namespace kernels
HEED_END
