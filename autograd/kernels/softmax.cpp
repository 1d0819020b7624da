#include "autograd/kernels/plain_rows.h"

HEED_BEGIN
namespace kernels {

real softmax_row(const real* x, real* y, std::int64_t n) { return plain::softmax_row(x, y, n); }
real log_sum_exp_row(const real* x, std::int64_t n) { return plain::log_sum_exp_row(x, n); }
void softmax_row_grad(const real* y, const real* dy, real* dx, std::int64_t n) {
  plain::softmax_row_grad(y, dy, dx, n);
}
RowLoss cross_entropy_row(real* logits, std::int64_t n, std::int32_t target, real smoothing,
                          real scale, bool with_grad) {
  return plain::cross_entropy_row(logits, n, target, smoothing, scale, with_grad);
}

}  // namespace kernels
HEED_END
