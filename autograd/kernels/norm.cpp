#include "autograd/kernels/plain_rows.h"

HEED_BEGIN
namespace kernels {

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

}  // namespace kernels
HEED_END
