/// Defines the kernels by their reference implementations, for programs that link no vectorised
/// kernels. Those of fused attention and decoding are not included.
#include "autograd/kernels/plain/plain.h"
#include "autograd/kernels/plain/rows.h"
#include "autograd/kernels/plain/steps.h"

HEED_BEGIN
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
void add_bias_unary(UnaryFunction f, const real* x, const real* bias, real* h, real* y,
                    std::int64_t rows, std::int64_t cols) {
  plain::add_bias_unary(f, x, bias, h, y, rows, cols);
}

real softmax_row(const real* x, real* y, std::int64_t n) { return plain::softmax_row(x, y, n); }
real log_sum_exp_row(const real* x, std::int64_t n) { return plain::log_sum_exp_row(x, n); }
void softmax_row_grad(const real* y, const real* dy, real* dx, std::int64_t n) {
  plain::softmax_row_grad(y, dy, dx, n);
}
void log_softmax_row(const real* x, real* y, std::int64_t n) { plain::log_softmax_row(x, y, n); }
void log_softmax_row_grad(const real* y, const real* dy, real* dx, std::int64_t n) {
  plain::log_softmax_row_grad(y, dy, dx, n);
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
void rms_norm(const real* x, const real* gain, real eps, real* y, real* rrms, std::int64_t rows,
              std::int64_t cols) {
  plain::rms_norm(x, gain, eps, y, rrms, rows, cols);
}
void rms_norm_grad(const real* x, const real* gain, const real* rrms, const real* dy, real* dx,
                   real* dgain, std::int64_t rows, std::int64_t cols) {
  plain::rms_norm_grad(x, gain, rrms, dy, dx, dgain, rows, cols);
}
RowLoss cross_entropy_row(real* logits, std::int64_t n, std::int32_t target, real smoothing,
                          real scale, bool with_grad) {
  return plain::cross_entropy_row(logits, n, target, smoothing, scale, with_grad);
}
double symmetric_kl_row(real* log_p, real* log_q, std::int64_t n, real scale, bool with_grad) {
  return plain::symmetric_kl_row(log_p, log_q, n, scale, with_grad);
}

real sum(const real* x, std::int64_t n) { return plain::sum(x, n); }
double sum_squares(const real* x, std::int64_t n) { return plain::sum_squares(x, n); }
real dot(const real* x, const real* y, std::int64_t n) { return plain::dot(x, y, n); }
std::int64_t first_above(const real* x, std::int64_t from, real bound, std::int64_t n) {
  return plain::first_above(x, from, bound, n);
}
void add_column_sums(const real* x, std::int64_t rows, std::int64_t cols, real* y) {
  plain::add_column_sums(x, rows, cols, y);
}
void tree_sum(const real* const* x, std::int64_t count, real* y, std::int64_t n) {
  plain::tree_sum(x, count, y, n);
}

void dropout(const RandomKey& key, std::int64_t first, real p, const real* x, real* y,
             std::int64_t n) {
  plain::dropout(key, first, p, x, y, n);
}
real dropout_factor(real p) { return plain::dropout_factor(p); }
void dropout_add(const RandomKey& key, std::int64_t first, real p, const real* x, const real* r,
                 real* y, std::int64_t n) {
  plain::dropout_add(key, first, p, x, r, y, n);
}

bool adam(const AdamStep& step, const real* g, real* w, real* m, real* v, std::int64_t n) {
  return plain::adam(step, g, w, m, v, n);
}
bool sgd(real lr, real momentum, real decay, real grad_scale, const real* g, real* w, real* b,
         std::int64_t n) {
  return plain::sgd(lr, momentum, decay, grad_scale, g, w, b, n);
}

}  // namespace kernels
HEED_END
