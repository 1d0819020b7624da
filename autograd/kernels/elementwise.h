#pragma once
/// Loops over n values. Input and output may be the same array. The reference implementations
/// (`plain::`) define what each kernel computes; the tests compare the kernels with them.
#include <cstdint>

#include "autograd/base/real.h"
#include "autograd/kernels/unary_functions.h"

HEED_BEGIN
namespace kernels {

// These do not depend on real, so they are declared in heed itself.
using heed::unary_needs_x;
using heed::unary_needs_y;
using heed::UnaryFunction;

void add(const real* a, const real* b, real* y, std::int64_t n);  ///< y = a + b
void sub(const real* a, const real* b, real* y, std::int64_t n);  ///< y = a - b
void mul(const real* a, const real* b, real* y, std::int64_t n);  ///< y = a b
void div(const real* a, const real* b, real* y, std::int64_t n);  ///< y = a / b
void scale(real alpha, const real* x, real* y, std::int64_t n);   ///< y = alpha x
void axpy(real alpha, const real* x, real* y, std::int64_t n);    ///< y += alpha x

/// y = f(x), within 4 units in the last place in float, denormals and ±inf included. f(NaN) is NaN,
/// as are log and sqrt of negative values; log(0) is -inf.
void unary(UnaryFunction f, const real* x, real* y, std::int64_t n);
/// dx = dy f'(x). x and y are the input and output of f. x is read only if unary_needs_x(f), y only
/// if unary_needs_y(f); otherwise they may be null. f' is only as accurate as its operands: near
/// the limits of tanh, 1 − y² has few correct digits.
void unary_grad(UnaryFunction f, const real* x, const real* y, const real* dy, real* dx,
                std::int64_t n);

/// y[r, c] = x[r, c] + bias[c]; y may be x.
void add_bias(const real* x, const real* bias, real* y, std::int64_t rows, std::int64_t cols);

}  // namespace kernels
HEED_END
