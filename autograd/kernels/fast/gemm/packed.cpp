#include "autograd/kernels/fast/gemm/packed.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "autograd/kernels/fast/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/fast/gemm/packed.cpp"
#include "hwy/foreach_target.h"
// These headers must follow foreach_target:
#include "autograd/kernels/fast/simd/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
HEED_BEGIN
namespace kernels::HWY_NAMESPACE {
#if HEED_SIMD

// A tile of C remains in registers throughout the loop over the depth of a block: `tall` rows of
// two vectors, with room for two vectors of B and one value of A (Goto and van de Geijn 2008,
// "Anatomy of High-Performance Matrix Multiplication", section 6).
constexpr std::int64_t panel_width = 2 * lanes;
constexpr int tall = HWY_TARGET == HWY_AVX2 ? 6 : 12;  // there are 16 or 32 registers
// A block of A remains in the L2 cache, and a panel of B of the same depth in the L1 cache.
constexpr std::int64_t block_rows = 21 * 12, block_depth = 256;

std::int64_t packed_size(std::int64_t n, std::int64_t k) {
  return (n + panel_width - 1) / panel_width * panel_width * k;
}

void pack(const real* b, std::int64_t n, std::int64_t k, real* panels) {
  constexpr std::int64_t line = 16;  // columns of b at a time: a cache line of floats
  for (std::int64_t row = 0; row < n; row += panel_width, panels += panel_width * k) {
    for (std::int64_t from = 0; from < k; from += line) {
      for (std::int64_t j = 0; j < panel_width; ++j) {
        for (std::int64_t p = from; p < std::min(from + line, k); ++p)
          panels[p * panel_width + j] = row + j < n ? b[(row + j) * k + p] : real(0);
      }
    }
  }
}

/// One step of C (+)= A Bᵀ: a block of A times the part of a panel of B with the same depth.
struct Block {
  const real* a;
  std::int64_t lda;
  const real* panel;
  std::int64_t depth;
  real* c;
  std::int64_t ldc, width;
  bool add;

  HWY_INLINE Block below(std::int64_t rows) const {
    return {a + rows * lda, lda, panel, depth, c + rows * ldc, ldc, width, add};
  }
};

/// Computes the first `rows` rows of a block.
template <int rows>
HWY_INLINE void tile(const Block& it) {
  const bool whole = it.width == panel_width;
  Vector left[rows], right[rows];
  // If the block is narrower than a panel: one row of the block of C, padded to a whole panel.
  HWY_ALIGN real part[panel_width] = {};
#pragma GCC unroll 12
  for (int r = 0; r < rows; ++r) {
    const real* const c = it.c + r * it.ldc;
    if (it.add && !whole) std::copy_n(c, it.width, part);
    left[r] = it.add ? hn::LoadU(Tag(), whole ? c : part) : set(0);
    right[r] = it.add ? hn::LoadU(Tag(), (whole ? c : part) + lanes) : set(0);
  }
  const real* b = it.panel;
  for (std::int64_t p = 0; p < it.depth; ++p, b += panel_width) {
    const Vector b0 = hn::LoadU(Tag(), b), b1 = hn::LoadU(Tag(), b + lanes);
#pragma GCC unroll 12
    for (int r = 0; r < rows; ++r) {
      const Vector a = set(it.a[r * it.lda + p]);
      left[r] = hn::MulAdd(a, b0, left[r]);
      right[r] = hn::MulAdd(a, b1, right[r]);
    }
  }
#pragma GCC unroll 12
  for (int r = 0; r < rows; ++r) {
    real* const c = it.c + r * it.ldc;
    hn::StoreU(left[r], Tag(), whole ? c : part);
    hn::StoreU(right[r], Tag(), (whole ? c : part) + lanes);
    if (!whole) std::copy_n(part, it.width, c);
  }
}

/// tile<rows>, where the number of rows is known only at run time.
template <int max_rows>
HWY_INLINE void some_rows(std::int64_t rows, const Block& it) {
  if constexpr (max_rows > 0) {
    if (rows == max_rows) return tile<max_rows>(it);
    some_rows<max_rows - 1>(rows, it);
  }
}

void multiply_packed(const real* a, const real* panels, std::int64_t m, std::int64_t n,
                     std::int64_t k, real* c) {
  for (std::int64_t top = 0; top < m; top += block_rows) {
    const std::int64_t rows = std::min(block_rows, m - top);
    for (std::int64_t from = 0; from < k; from += block_depth) {
      const std::int64_t depth = std::min(block_depth, k - from);
      for (std::int64_t column = 0; column < n; column += panel_width) {
        Block block{a + top * k + from,   k, panels + column * k + from * panel_width, depth,
                    c + top * n + column, n, std::min(panel_width, n - column),        from > 0};
        std::int64_t i = 0;
        for (; i + tall <= rows; i += tall, block = block.below(tall)) tile<tall>(block);
        some_rows<tall - 1>(rows - i, block);
      }
    }
  }
}

#else
std::int64_t packed_size(std::int64_t, std::int64_t) { return 0; }
void pack(const real*, std::int64_t, std::int64_t, real*) {}
void multiply_packed(const real*, const real*, std::int64_t, std::int64_t, std::int64_t, real*) {}
#endif
}  // namespace kernels::HWY_NAMESPACE
HEED_END
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
HEED_BEGIN
namespace kernels {

HWY_EXPORT(packed_size);
HWY_EXPORT(pack);
HWY_EXPORT(multiply_packed);

namespace {

thread_local PackedWeights* weights_here = nullptr;

}  // namespace

void PackedWeights::add(const Array& matrix) { matrices_[matrix.data()] = matrix; }

PackedMatrix::PackedMatrix(const real* b, std::int64_t n_, std::int64_t k_, bool as_int8)
    : n(n_), k(k_) {
  if (as_int8) {
    int8 = Int8Weights(b, n, k);
  } else {
    panels = Array({packed_size(n, k)});
    pack(b, n, k, panels.data());
  }
}

void PackedMatrix::multiply(const real* a, std::int64_t m, real* c) const {
  panels.defined() ? multiply_packed(a, panels.data(), m, n, k, c) : int8.multiply(a, m, c);
}

const PackedMatrix* PackedWeights::find(const real* rows, std::int64_t n, std::int64_t k) {
  const auto after = matrices_.upper_bound(rows);
  if (k <= 0 || after == matrices_.begin()) return nullptr;
  const Array& matrix = std::prev(after)->second;
  const std::int64_t offset = rows - matrix.data();
  if (matrix.cols() != k || offset % k != 0 || offset / k + n > matrix.rows()) return nullptr;
  const bool as_int8 = int8_ && k <= max_int8_row;
  if (!as_int8 && packed_size(n, k) == 0) return nullptr;
  Packed* packed = nullptr;
  {
    const std::scoped_lock lock(mutex_);
    packed = &packed_[{rows, n}];
  }
  std::call_once(packed->once, [&] { packed->matrix = PackedMatrix(rows, n, k, as_int8); });
  return &packed->matrix;
}

PackedScope::PackedScope(PackedWeights& weights) : before_(weights_here) {
  weights_here = &weights;
}
PackedScope::~PackedScope() { weights_here = before_; }

const PackedMatrix* find_packed(const real* b, std::int64_t n, std::int64_t k) {
  return weights_here == nullptr ? nullptr : weights_here->find(b, n, k);
}

std::int64_t packed_size(std::int64_t n, std::int64_t k) {
  return HWY_DYNAMIC_DISPATCH(packed_size)(n, k);
}
void pack(const real* b, std::int64_t n, std::int64_t k, real* panels) {
  HWY_DYNAMIC_DISPATCH(pack)(b, n, k, panels);
}
void multiply_packed(const real* a, const real* panels, std::int64_t m, std::int64_t n,
                     std::int64_t k, real* c) {
  HWY_DYNAMIC_DISPATCH(multiply_packed)(a, panels, m, n, k, c);
}

namespace plain {
void multiply(const real* a, const real* b, std::int64_t m, std::int64_t n, std::int64_t k,
              real* c) {
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      real sum = 0;
      for (std::int64_t p = 0; p < k; ++p) sum = std::fma(a[i * k + p], b[j * k + p], sum);
      c[i * n + j] = sum;
    }
  }
}
}  // namespace plain

}  // namespace kernels
HEED_END
#endif
