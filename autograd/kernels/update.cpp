#include "autograd/kernels/plain_steps.h"

HEED_BEGIN
namespace kernels {

void adam(const AdamStep& step, const real* g, real* w, real* m, real* v, std::int64_t n) {
  plain::adam(step, g, w, m, v, n);
}
void sgd(real lr, real momentum, real decay, real grad_scale, const real* g, real* w, real* b,
         std::int64_t n) {
  plain::sgd(lr, momentum, decay, grad_scale, g, w, b, n);
}

}  // namespace kernels
HEED_END
