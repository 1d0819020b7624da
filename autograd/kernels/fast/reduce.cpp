#include "autograd/kernels/fast/reduce.h"

#include <bit>

#include "autograd/kernels/fast/plain.h"
#include "autograd/kernels/fast/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/fast/reduce.cpp"
#include "hwy/foreach_target.h"
// These headers must follow foreach_target:
#include "autograd/kernels/fast/simd/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
HEED_BEGIN
namespace kernels::HWY_NAMESPACE {
#if HEED_SIMD

real sum(const real* x, std::int64_t n) {
  return static_cast<real>(
      wide_sum(n, [=](std::int64_t i, auto io) HWY_ATTR { return io.load(x + i); }));
}

double sum_squares(const real* x, std::int64_t n) {
  return wide_sum(n, [=](std::int64_t i, auto io) HWY_ATTR {
    const Wide v = io.load(x + i);
    return hn::Mul(v, v);
  });
}

real dot(const real* x, const real* y, std::int64_t n) {
  return static_cast<real>(wide_sum(n, [=](std::int64_t i, auto io) HWY_ATTR {
    return hn::Mul(io.load(x + i), io.load(y + i));
  }));
}

std::int64_t first_above(const real* x, std::int64_t from, real bound, std::int64_t n) {
  const Vector limit = set(bound);
  const auto above = [=](std::int64_t i)
                         HWY_ATTR { return hn::Gt(hn::LoadU(Tag(), x + i), limit); };
  std::int64_t i = from;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {  // usually skips nearly all logits of a row
    const Mask any = hn::Or(hn::Or(above(i), above(i + lanes)),
                            hn::Or(above(i + 2 * lanes), above(i + 3 * lanes)));
    if (!hn::AllFalse(Tag(), any)) break;
  }
  while (i < n && !(x[i] > bound)) ++i;
  return i;
}

/// Adds eight rows of x at a time, so that y is read and written only once per eight rows.
void add_column_sums(const real* x, std::int64_t rows, std::int64_t cols, real* y) {
  std::int64_t r = 0;
  for (; r + 8 <= rows; r += 8, x += 8 * cols) {
    each(cols, [=](std::int64_t c, auto io) HWY_ATTR {
      const real* p = x + c;
      const auto pair = [&](std::int64_t k) HWY_ATTR {
        return hn::Add(io.load(p + k * cols), io.load(p + (k + 1) * cols));
      };
      const Vector low = hn::Add(pair(0), pair(2)), high = hn::Add(pair(4), pair(6));
      io.store(hn::Add(io.load(y + c), hn::Add(low, high)), y + c);
    });
  }
  for (; r < rows; ++r, x += cols) {
    each(cols, [=](std::int64_t c, auto io)
                   HWY_ATTR { io.store(hn::Add(io.load(y + c), io.load(x + c)), y + c); });
  }
}

constexpr std::int64_t tree_block = 512;

/// Writes values [at, at + n) of x_0 + … + x_(count-1) to y[0, n), n ≤ tree_block; returns false,
/// and writes nothing, if all arrays are null.
bool tree_sum_block(const real* const* x, std::int64_t count, std::int64_t at, real* y,
                    std::int64_t n) {
  if (count == 1) {
    if (x[0] && x[0] + at != y) std::copy_n(x[0] + at, n, y);
    return x[0] != nullptr;
  }
  const auto left =
      static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(count - 1)));
  real buffer[tree_block];
  const real *a = y, *b = buffer;
  if (count == 2 && x[0] && x[1]) {
    a = x[0] + at;
    b = x[1] + at;
  } else {
    const bool has_left = tree_sum_block(x, left, at, y, n);
    if (!has_left) return tree_sum_block(x + left, count - left, at, y, n);
    if (!tree_sum_block(x + left, count - left, at, buffer, n)) return true;
  }
  each(n, [=](std::int64_t i, auto io)
              HWY_ATTR { io.store(hn::Add(io.load(a + i), io.load(b + i)), y + i); });
  return true;
}

void tree_sum(const real* const* x, std::int64_t count, real* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += tree_block) {
    const std::int64_t block = std::min(n - i, tree_block);
    if (count == 0 || !tree_sum_block(x, count, i, y + i, block))
      std::fill_n(y + i, block, real(0));
  }
}

#endif
}  // namespace kernels::HWY_NAMESPACE
HEED_END
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
HEED_BEGIN
namespace kernels {

HWY_EXPORT(sum);
HWY_EXPORT(sum_squares);
HWY_EXPORT(dot);
HWY_EXPORT(first_above);
HWY_EXPORT(add_column_sums);
HWY_EXPORT(tree_sum);

real sum(const real* x, std::int64_t n) { return HWY_DYNAMIC_DISPATCH(sum)(x, n); }
double sum_squares(const real* x, std::int64_t n) {
  return HWY_DYNAMIC_DISPATCH(sum_squares)(x, n);
}
real dot(const real* x, const real* y, std::int64_t n) {
  return HWY_DYNAMIC_DISPATCH(dot)(x, y, n);
}
std::int64_t first_above(const real* x, std::int64_t from, real bound, std::int64_t n) {
  return HWY_DYNAMIC_DISPATCH(first_above)(x, from, bound, n);
}
void add_column_sums(const real* x, std::int64_t rows, std::int64_t cols, real* y) {
  HWY_DYNAMIC_DISPATCH(add_column_sums)(x, rows, cols, y);
}
const char* vector_name() {
  const std::int64_t usable = hwy::SupportedTargets() & HWY_TARGETS;
  return hwy::TargetName(usable & -usable);  // the lowest bit is the best target
}
void tree_sum(const real* const* x, std::int64_t count, real* y, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(tree_sum)(x, count, y, n);
}

}  // namespace kernels
HEED_END
#endif
