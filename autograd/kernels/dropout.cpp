#include "autograd/kernels/plain_steps.h"

HEED_BEGIN
namespace kernels {

void dropout(const RandomKey& key, std::int64_t first, real p, const real* x, real* y,
             std::int64_t n) {
  plain::dropout(key, first, p, x, y, n);
}
void dropout_add(const RandomKey& key, std::int64_t first, real p, const real* x, const real* r,
                 real* y, std::int64_t n) {
  plain::dropout_add(key, first, p, x, r, y, n);
}

}  // namespace kernels
HEED_END
