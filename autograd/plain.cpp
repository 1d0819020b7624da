/// The simple form of three things that the rest of autograd only declares: memory, kernels and the
/// hook of the tape. A program links this file or memory/arena.cpp, kernels/fast/ and
/// tape/hook.cpp.
#include <cblas.h>

#include <algorithm>
#include <new>

#include "autograd/kernels/gemm.h"
#include "autograd/kernels/plain.h"
#include "autograd/memory/block.h"
#include "autograd/tensor.h"

HEED_BEGIN

// ---- memory from the system ----------------------------------------------------------------

Block* allocate_block(std::size_t bytes) {
  void* const memory =
      ::operator new (sizeof(Block) + bytes, std::align_val_t{alignof(Block)}, std::nothrow);
  if (memory == nullptr) throw Error(Exit::io, "out of memory: {} bytes", bytes);
  return new (memory) Block;
}

void release_block(Block* block) noexcept {
  ::operator delete (block, std::align_val_t{alignof(Block)});
}

// ---- a tape without extensions -------------------------------------------------------------

TapeHook* const tape_hook = nullptr;

// ---- kernels: the reference implementations, and matrix products by BLAS --------------------

namespace kernels {

void add(const real* a, const real* b, real* y, std::int64_t n) { plain::add(a, b, y, n); }
void sub(const real* a, const real* b, real* y, std::int64_t n) { plain::sub(a, b, y, n); }
void mul(const real* a, const real* b, real* y, std::int64_t n) { plain::mul(a, b, y, n); }
void div(const real* a, const real* b, real* y, std::int64_t n) { plain::div(a, b, y, n); }
void scale(real alpha, const real* x, real* y, std::int64_t n) { plain::scale(alpha, x, y, n); }
void axpy(real alpha, const real* x, real* y, std::int64_t n) { plain::axpy(alpha, x, y, n); }
void unary(UnaryFunction f, const real* x, real* y, std::int64_t n) { plain::unary(f, x, y, n); }
void unary_grad(UnaryFunction f, const real* x, const real* y, const real* dy, real* dx,
                std::int64_t n) {
  plain::unary_grad(f, x, y, dy, dx, n);
}
void add_bias(const real* x, const real* bias, real* y, std::int64_t rows, std::int64_t cols) {
  plain::add_bias(x, bias, y, rows, cols);
}

real softmax_row(const real* x, real* y, std::int64_t n) { return plain::softmax_row(x, y, n); }
real log_sum_exp_row(const real* x, std::int64_t n) { return plain::log_sum_exp_row(x, n); }
void softmax_row_grad(const real* y, const real* dy, real* dx, std::int64_t n) {
  plain::softmax_row_grad(y, dy, dx, n);
}
void layer_norm(const real* x, const real* gain, const real* bias, real eps, real* y, real* mean,
                real* rstd, std::int64_t rows, std::int64_t cols) {
  plain::layer_norm(x, gain, bias, eps, y, mean, rstd, rows, cols);
}
void layer_norm_grad(const real* x, const real* gain, const real* mean, const real* rstd,
                     const real* dy, real* dx, real* dgain, real* dbias, std::int64_t rows,
                     std::int64_t cols) {
  plain::layer_norm_grad(x, gain, mean, rstd, dy, dx, dgain, dbias, rows, cols);
}
RowLoss cross_entropy_row(real* logits, std::int64_t n, std::int32_t target, real smoothing,
                          real scale, bool with_grad) {
  return plain::cross_entropy_row(logits, n, target, smoothing, scale, with_grad);
}

real sum(const real* x, std::int64_t n) { return plain::sum(x, n); }
void add_column_sums(const real* x, std::int64_t rows, std::int64_t cols, real* y) {
  plain::add_column_sums(x, rows, cols, y);
}

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
