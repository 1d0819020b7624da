#include "autograd/kernels/fast/elementwise.h"

#include "autograd/kernels/fast/plain.h"
#include "autograd/kernels/fast/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/fast/elementwise.cpp"
#include "hwy/foreach_target.h"
// These headers must follow foreach_target:
#include "autograd/kernels/fast/simd/unary_functions-inl.h"

HWY_BEFORE_NAMESPACE();
HEED_BEGIN
namespace kernels::HWY_NAMESPACE {
#if HEED_SIMD

void add(const real* a, const real* b, real* y, std::int64_t n) {
  each(n, [=](std::int64_t i, auto io)
              HWY_ATTR { io.store(hn::Add(io.load(a + i), io.load(b + i)), y + i); });
}
void sub(const real* a, const real* b, real* y, std::int64_t n) {
  each(n, [=](std::int64_t i, auto io)
              HWY_ATTR { io.store(hn::Sub(io.load(a + i), io.load(b + i)), y + i); });
}
void mul(const real* a, const real* b, real* y, std::int64_t n) {
  each(n, [=](std::int64_t i, auto io)
              HWY_ATTR { io.store(hn::Mul(io.load(a + i), io.load(b + i)), y + i); });
}
void div(const real* a, const real* b, real* y, std::int64_t n) {
  each(n, [=](std::int64_t i, auto io)
              HWY_ATTR { io.store(hn::Div(io.load(a + i), io.load(b + i)), y + i); });
}
void scale(real alpha, const real* x, real* y, std::int64_t n) {
  each(n, [=](std::int64_t i, auto io)
              HWY_ATTR { io.store(hn::Mul(set(alpha), io.load(x + i)), y + i); });
}
void axpy(real alpha, const real* x, real* y, std::int64_t n) {
  each(n, [=](std::int64_t i, auto io) HWY_ATTR {
    io.store(hn::MulAdd(set(alpha), io.load(x + i), io.load(y + i)), y + i);
  });
}

void unary(UnaryFunction f, const real* x, real* y, std::int64_t n) {
  with_unary_function(f, [=](auto fn) HWY_ATTR {
    each(n, [=](std::int64_t i, auto io) HWY_ATTR { io.store(fn.value(io.load(x + i)), y + i); });
  });
}

void unary_grad(UnaryFunction f, const real* x, const real* y, const real* dy, real* dx,
                std::int64_t n) {
  with_unary_function(f, [=](auto fn) HWY_ATTR {
    each(n, [=](std::int64_t i, auto io) HWY_ATTR {
      Vector xi = zero(), yi = zero();
      if constexpr (unary_needs_x(fn.function)) xi = io.load(x + i);
      if constexpr (unary_needs_y(fn.function)) yi = io.load(y + i);
      io.store(fn.gradient(xi, yi, io.load(dy + i)), dx + i);
    });
  });
}

void add_bias_unary(UnaryFunction f, const real* x, const real* bias, real* h, real* y,
                    std::int64_t rows, std::int64_t cols) {
  with_unary_function(f, [=](auto fn) HWY_ATTR {
    for (std::int64_t start = 0; start < rows * cols; start += cols) {
      each(cols, [=](std::int64_t c, auto io) HWY_ATTR {
        const Vector sum = hn::Add(io.load(x + start + c), io.load(bias + c));
        if (h) io.store(sum, h + start + c);
        io.store(fn.value(sum), y + start + c);
      });
    }
  });
}

#endif
}  // namespace kernels::HWY_NAMESPACE
HEED_END
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
HEED_BEGIN
namespace kernels {

HWY_EXPORT(add);
HWY_EXPORT(sub);
HWY_EXPORT(mul);
HWY_EXPORT(div);
HWY_EXPORT(scale);
HWY_EXPORT(axpy);
HWY_EXPORT(unary);
HWY_EXPORT(unary_grad);
HWY_EXPORT(add_bias_unary);

void add(const real* a, const real* b, real* y, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(add)(a, b, y, n);
}
void sub(const real* a, const real* b, real* y, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(sub)(a, b, y, n);
}
void mul(const real* a, const real* b, real* y, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(mul)(a, b, y, n);
}
void div(const real* a, const real* b, real* y, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(div)(a, b, y, n);
}
void scale(real alpha, const real* x, real* y, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(scale)(alpha, x, y, n);
}
void axpy(real alpha, const real* x, real* y, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(axpy)(alpha, x, y, n);
}
void unary(UnaryFunction f, const real* x, real* y, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(unary)(f, x, y, n);
}
void unary_grad(UnaryFunction f, const real* x, const real* y, const real* dy, real* dx,
                std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(unary_grad)(f, x, y, dy, dx, n);
}
void add_bias(const real* x, const real* bias, real* y, std::int64_t rows, std::int64_t cols) {
  for (std::int64_t r = 0; r < rows; ++r) add(x + r * cols, bias, y + r * cols, cols);
}
void add_bias_unary(UnaryFunction f, const real* x, const real* bias, real* h, real* y,
                    std::int64_t rows, std::int64_t cols) {
  HWY_DYNAMIC_DISPATCH(add_bias_unary)(f, x, bias, h, y, rows, cols);
}

}  // namespace kernels
HEED_END
#endif
