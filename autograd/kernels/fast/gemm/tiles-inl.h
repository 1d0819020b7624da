/// The frame of matrix products, whatever the type of the numbers: C is computed in tiles that
/// remain in registers, from panels of B in the order in which a tile reads them (Goto and van de
/// Geijn 2008, "Anatomy of High-Performance Matrix Multiplication", sections 4 to 6). Included once
/// for each instruction set, hence the unusual guard.
#if defined(HEED_KERNELS_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_TILES_INL_H_
#undef HEED_KERNELS_TILES_INL_H_
#else
#define HEED_KERNELS_TILES_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "autograd/kernels/fast/gemm/product.h"
#include "autograd/kernels/fast/simd/lanes-inl.h"

#if HEED_SIMD
HWY_BEFORE_NAMESPACE();
HEED_BEGIN
namespace kernels::HWY_NAMESPACE {

// A tile has `tall` rows of two vectors; two vectors of B and one value of A fit in the other
// registers, of which there are 16 or 32 in all.
constexpr std::int64_t panel_width = 2 * lanes;
constexpr int tall = HWY_TARGET == HWY_AVX2 ? 6 : 12;
// The rows of packed products that meet each panel.
constexpr std::int64_t block_rows = std::int64_t{22} * tall;

HWY_INLINE void prefetch_into_l2(const void* address) {
  constexpr int reading = 0, l2 = 2;
  __builtin_prefetch(address, reading, l2);
}

/// Prefetches what a tile of few rows reads next from memory, which limits its speed.
template <int rows, std::int64_t group, class T>
HWY_INLINE void fetch_ahead(const T* panel) {
  constexpr std::int64_t ahead = 4096 / sizeof(T), line = 64 / sizeof(T);
  if constexpr (rows <= 2) {
    for (std::int64_t i = 0; i < group * panel_width; i += line)
      __builtin_prefetch(panel + ahead + i);
  }
}

/// Stores a row of a tile in a row of C that has `width` columns in this panel.
HWY_INLINE void store_row(Vector left, Vector right, real* c, std::int64_t width) {
  HWY_ALIGN real part[panel_width];
  real* const to = width == panel_width ? c : part;
  hn::StoreU(left, Tag(), to);
  hn::StoreU(right, Tag(), to + lanes);
  if (width != panel_width) std::copy_n(part, width, c);
}

/// tile<rows>(block), where the number of rows is known only at run time.
template <int max_rows, class Block>
HWY_INLINE void some_rows(std::int64_t rows, const Block& block) {
  if constexpr (max_rows > 0) {
    if (rows == max_rows) return tile<max_rows>(block);
    some_rows<max_rows - 1>(rows, block);
  }
}

/// Multiplies `rows` rows of A by one panel of B: `block` describes the product from its first tile
/// on, block.below() from the next tile on.
template <class Block>
HWY_INLINE void each_tile(std::int64_t rows, Block block) {
  for (; rows >= tall; rows -= tall, block = block.below()) tile<tall>(block);
  some_rows<tall - 1>(rows, block);
}

/// One step of C = A B or C += A B: some columns of A times the part of a panel of B with the same
/// depth. T: the type of the panel's numbers.
template <class T>
struct RealBlock {
  const real* a;
  std::int64_t row_stride, column_stride, tile_stride;  // of A
  const T* panel;
  std::int64_t depth;
  real alpha;
  real* c;
  std::int64_t ldc, width;
  bool add;

  HWY_INLINE RealBlock below() const {
    RealBlock it = *this;
    it.a += tile_stride, it.c += tall * ldc;
    return it;
  }
};

HWY_INLINE Vector load_weights(const real* panel) { return hn::LoadU(Tag(), panel); }
#ifndef HEED_DOUBLE
/// A bf16 number has the upper 16 bits of the float with the same value.
HWY_INLINE Vector load_weights(const std::uint16_t* panel) {
  const hn::RebindToUnsigned<Tag> bits;
  const hn::Rebind<std::uint16_t, Tag> halves;
  return hn::BitCast(Tag(), hn::ShiftLeft<16>(hn::PromoteTo(bits, hn::LoadU(halves, panel))));
}
#endif

/// A column of A in a tile. Each pointer serves three rows, whose addresses are then operands of
/// the instructions; an address for each row would not fit in the registers.
template <int rows>
struct Column {
  static constexpr int groups = (rows + 2) / 3;
  const real* group[groups];
  std::int64_t row_stride;

  HWY_INLINE Column(const real* a, std::int64_t stride) : row_stride(stride) {
#pragma GCC unroll 4
    for (int g = 0; g < groups; ++g) group[g] = a + 3 * g * stride;
  }
  HWY_INLINE real operator[](int row) const { return group[row / 3][row % 3 * row_stride]; }
  HWY_INLINE void advance(std::int64_t column_stride) {
#pragma GCC unroll 4
    for (int g = 0; g < groups; ++g) group[g] += column_stride;
  }
};

/// Adds a column of A times a row of B to the sums of a tile.
template <int rows, class T>
HWY_INLINE void add_products(const Column<rows>& a, const T* b, Vector (&left)[rows],
                             Vector (&right)[rows]) {
  fetch_ahead<rows, 1>(b);
  const Vector b0 = load_weights(b), b1 = load_weights(b + lanes);
#pragma GCC unroll 12
  for (int r = 0; r < rows; ++r) {
    const Vector value = set(a[r]);
    left[r] = hn::MulAdd(value, b0, left[r]);
    right[r] = hn::MulAdd(value, b1, right[r]);
  }
}

/// Computes the first `rows` rows of a block. C is read and written at the end, when its
/// prefetched lines have arrived.
template <int rows, class T>
HWY_INLINE void tile(const RealBlock<T>& it) {
  Vector left[rows], right[rows];
#pragma GCC unroll 12
  for (int r = 0; r < rows; ++r) {
    left[r] = right[r] = set(0);
    prefetch_into_l2(it.c + r * it.ldc);
    prefetch_into_l2(it.c + r * it.ldc + lanes);
  }
  Column<rows> a(it.a, it.row_stride);
  const T* b = it.panel;
  for (std::int64_t p = 0; p < it.depth; ++p, b += panel_width) {
    add_products<rows>(a, b, left, right);
    a.advance(it.column_stride);
  }
  const bool whole = it.width == panel_width;
  HWY_ALIGN real padded[panel_width] = {};  // a row of C that is narrower than a panel
  const Vector alpha = set(it.alpha);
#pragma GCC unroll 12
  for (int r = 0; r < rows; ++r) {
    real* const c = it.c + r * it.ldc;
    if (it.add) {
      if (!whole) std::copy_n(c, it.width, padded);
      const real* const before = whole ? c : padded;
      left[r] = hn::MulAdd(alpha, left[r], hn::LoadU(Tag(), before));
      right[r] = hn::MulAdd(alpha, right[r], hn::LoadU(Tag(), before + lanes));
    } else {
      left[r] = hn::Mul(alpha, left[r]);
      right[r] = hn::Mul(alpha, right[r]);
    }
    store_row(left[r], right[r], c, it.width);
  }
}

}  // namespace kernels::HWY_NAMESPACE
HEED_END
HWY_AFTER_NAMESPACE();
#endif  // HEED_SIMD
#endif  // guard
