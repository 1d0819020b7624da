#include "autograd/kernels/reduce.h"

#include "autograd/kernels/plain.h"

HEED_BEGIN
namespace kernels {

real sum(const real* x, std::int64_t n) { return plain::sum(x, n); }
double sum_squares(const real* x, std::int64_t n) { return plain::sum_squares(x, n); }
real dot(const real* x, const real* y, std::int64_t n) { return plain::dot(x, y, n); }
void add_column_sums(const real* x, std::int64_t rows, std::int64_t cols, real* y) {
  plain::add_column_sums(x, rows, cols, y);
}
void tree_sum(const real* const* x, std::int64_t count, real* y, std::int64_t n) {
  plain::tree_sum(x, count, y, n);
}

}  // namespace kernels
HEED_END
