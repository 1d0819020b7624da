#include "autograd/kernels/elementwise.h"

#include "autograd/kernels/plain.h"

HEED_BEGIN
namespace kernels {

bool map_needs_x(Map f) {
  return f == Map::log || f == Map::gelu || f == Map::gelu_tanh || f == Map::silu;
}
bool map_needs_y(Map f) {
  return f == Map::exp || f == Map::sqrt || f == Map::tanh || f == Map::relu || f == Map::sigmoid;
}
void add(const real* a, const real* b, real* y, std::int64_t n) { plain::add(a, b, y, n); }
void sub(const real* a, const real* b, real* y, std::int64_t n) { plain::sub(a, b, y, n); }
void mul(const real* a, const real* b, real* y, std::int64_t n) { plain::mul(a, b, y, n); }
void div(const real* a, const real* b, real* y, std::int64_t n) { plain::div(a, b, y, n); }
void scale(real alpha, const real* x, real* y, std::int64_t n) { plain::scale(alpha, x, y, n); }
void axpy(real alpha, const real* x, real* y, std::int64_t n) { plain::axpy(alpha, x, y, n); }
void map(Map f, const real* x, real* y, std::int64_t n) { plain::map(f, x, y, n); }
void map_grad(Map f, const real* x, const real* y, const real* dy, real* dx, std::int64_t n) {
  plain::map_grad(f, x, y, dy, dx, n);
}
void add_bias(const real* x, const real* bias, real* y, std::int64_t rows, std::int64_t cols) {
  plain::add_bias(x, bias, y, rows, cols);
}
void add_bias_map(Map f, const real* x, const real* bias, real* h, real* y, std::int64_t rows,
                  std::int64_t cols) {
  plain::add_bias_map(f, x, bias, h, y, rows, cols);
}

}  // namespace kernels
HEED_END
