#include "autograd/kernels/fast/gemm/product.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "autograd/kernels/fast/gemm/blocks.h"
#include "autograd/memory/block.h"

#include "autograd/kernels/fast/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/fast/gemm/product.cpp"
#include "hwy/foreach_target.h"
// These headers must follow foreach_target:
#include "autograd/kernels/fast/gemm/tiles-inl.h"
#include "autograd/kernels/fast/simd/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
HEED_BEGIN
namespace kernels::HWY_NAMESPACE {
#if HEED_SIMD

// ---- panels of B ---------------------------------------------------------------------------

constexpr std::int64_t line = 64 / sizeof(real);  // a cache line

/// Rows r, r + square, r + 2 square, … of b, `square` values of each, as the blocks of 16 bytes of
/// a vector.
constexpr std::int64_t square = 16 / sizeof(real);
template <class D>
HWY_INLINE hn::Vec<D> load_rows(D, const real* b, std::int64_t ldb) {
  constexpr auto size = static_cast<std::int64_t>(hn::MaxLanes(D()));
  if constexpr (size == square) {
    return hn::LoadU(D(), b);
  } else {
    constexpr hn::Half<D> half;
    return hn::Combine(D(), load_rows(half, b + size / 2 * ldb, ldb), load_rows(half, b, ldb));
  }
}

/// Transposes `square` columns of `lanes` rows of b: writes a vector for each column.
HWY_INLINE void transpose(const real* b, std::int64_t ldb, real* panel) {
  const Vector v0 = load_rows(Tag(), b, ldb), v1 = load_rows(Tag(), b + ldb, ldb);
#ifdef HEED_DOUBLE
  hn::StoreU(hn::InterleaveLower(Tag(), v0, v1), Tag(), panel);
  hn::StoreU(hn::InterleaveUpper(Tag(), v0, v1), Tag(), panel + panel_width);
#else
  const hn::RepartitionToWide<hn::RebindToUnsigned<Tag>> pairs;
  const Vector v2 = load_rows(Tag(), b + 2 * ldb, ldb), v3 = load_rows(Tag(), b + 3 * ldb, ldb);
  const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(Tag(), v0, v1)),
             low23 = hn::BitCast(pairs, hn::InterleaveLower(Tag(), v2, v3)),
             high01 = hn::BitCast(pairs, hn::InterleaveUpper(Tag(), v0, v1)),
             high23 = hn::BitCast(pairs, hn::InterleaveUpper(Tag(), v2, v3));
  const auto store = [&](auto column, std::int64_t i) HWY_ATTR {
    hn::StoreU(hn::BitCast(Tag(), column), Tag(), panel + i * panel_width);
  };
  store(hn::InterleaveLower(pairs, low01, low23), 0);
  store(hn::InterleaveUpper(pairs, low01, low23), 1);
  store(hn::InterleaveLower(pairs, high01, high23), 2);
  store(hn::InterleaveUpper(pairs, high01, high23), 3);
#endif
}

/// Packs the first `depth` rows of `width` columns of B into a panel. Zeros fill the rest of the
/// panel.
void pack_columns(const real* b, std::int64_t ldb, std::int64_t width, std::int64_t depth,
                  real* panel) {
  const auto pack = [&](const auto& left, const auto& right) HWY_ATTR {
    for (std::int64_t p = 0; p < depth; ++p, b += ldb, panel += panel_width) {
      hn::StoreU(left.load(b), Tag(), panel);
      hn::StoreU(right.load(b + lanes), Tag(), panel + lanes);
    }
  };
  if (width == panel_width) return pack(Whole<Tag>(), Whole<Tag>());
  pack(Part<Tag>(std::min(width, lanes)), Part<Tag>(std::max<std::int64_t>(width - lanes, 0)));
}

/// Packs columns of Bᵀ, which are rows of B, in the same way.
void pack_rows_of_b(const real* b, std::int64_t ldb, std::int64_t width, std::int64_t depth,
                    real* panel) {
  std::int64_t p = 0;
  if (width == panel_width) {
    for (; p + line <= depth; p += line) {
      for (std::int64_t j = 0; j < panel_width; j += lanes) {
        for (std::int64_t q = p; q < p + line; q += square)
          transpose(b + j * ldb + q, ldb, panel + q * panel_width + j);
      }
    }
  } else {
    std::fill_n(panel, depth * panel_width, real(0));
  }
  for (std::int64_t j = 0; j < width; ++j) {
    for (std::int64_t q = p; q < depth; ++q) panel[q * panel_width + j] = b[j * ldb + q];
  }
}

std::int64_t packed_size(std::int64_t n, std::int64_t k) { return round_up(n, panel_width) * k; }

void pack(const real* b, std::int64_t n, std::int64_t k, real* panels) {
  for (std::int64_t row = 0; row < n; row += panel_width)
    pack_rows_of_b(b + row * k, k, std::min(panel_width, n - row), k, panels + row * k);
}

// ---- products ------------------------------------------------------------------------------

/// A tile of op(A), as `tile` reads it.
struct Rows {
  const real* at;
  std::int64_t row_stride, column_stride;
};

/// A stride that is not a power of two. At multiples of 4 KiB, all rows of a tile would fall into
/// the same set of the L1 cache and evict one another.
constexpr std::int64_t copied_stride = chain_length + line;

/// Copies rows of a block of A, of which a is the first value.
void copy_rows(const real* a, std::int64_t lda, std::int64_t rows, std::int64_t depth, real* to) {
  for (std::int64_t row = 0; row < rows; ++row)
    std::copy_n(a + row * lda, depth, to + row * copied_stride);
}

/// Packs rows of a block of Aᵀ: the values of a column of a tile become adjacent; in A they are in
/// different pages of memory from those of the next column. All tiles read a few columns before the
/// next columns, so that each cache line of A is fetched once.
void pack_rows(const real* a, std::int64_t lda, std::int64_t rows, std::int64_t depth, real* to) {
  for (std::int64_t first = 0; first < depth; first += line) {
    for (std::int64_t row = 0; row < rows; row += tall) {
      const std::int64_t height = std::min<std::int64_t>(tall, rows - row);
      real* const tile = to + row * copied_stride;
      for (std::int64_t p = first; p < std::min(depth, first + line); ++p) {
        const real* const from = a + p * lda + row;
        if (height == tall) {
          std::copy_n(from, tall, tile + p * tall);
        } else {
          std::copy_n(from, height, tile + p * tall);
        }
      }
    }
  }
}

/// Rounds n values to bf16; n is a multiple of `lanes`.
void round_values([[maybe_unused]] real* x, [[maybe_unused]] std::int64_t n) {
#ifndef HEED_DOUBLE
  for (real* const end = x + n; x < end; x += lanes)
    hn::StoreU(round_to_bf16(hn::LoadU(Tag(), x)), Tag(), x);
#endif
}

void multiply(Trans trans_a, Trans trans_b, std::int64_t m, std::int64_t n, std::int64_t k,
              real alpha, const real* a, std::int64_t lda, const real* b, std::int64_t ldb,
              bool add, bool round, real* c, std::int64_t ldc) {
  // With chain_length values each, the columns of a block of B fill 512 KB. Four tiles of Aᵀ read whole
  // cache lines.
  constexpr BlockSizes size{88 * tall, 16 * line, 4 * tall, tall, panel_width};
  using Buffer = std::vector<real, BlockAllocator<real>>;
  thread_local Buffer rows_of_a(static_cast<std::size_t>(size.rows * copied_stride)),
      columns_of_b(static_cast<std::size_t>(size.columns * chain_length));
  const bool across = trans_a == Trans::yes;
  const auto a_at = [&](const Blocks& at, std::int64_t row) {
    return across ? a + at.from * lda + at.top + row : a + (at.top + row) * lda + at.from;
  };
  // Few columns do not repay a copy of A.
  constexpr std::int64_t enough = 256;
  const bool copies = n >= enough || round;
  const auto pack_a = [&](const Blocks& at, std::int64_t row, std::int64_t rows) {
    if (!copies) return;
    real* const to = rows_of_a.data() + row * copied_stride;
    (across ? pack_rows : copy_rows)(a_at(at, row), lda, rows, at.depth, to);
    if (round) round_values(to, round_up(rows, tall) * copied_stride);
  };
  const auto rows_at = [&](const Blocks& at, std::int64_t row) {
    if (!copies) return across ? Rows{a_at(at, row), 1, lda} : Rows{a_at(at, row), lda, 1};
    const real* const copy = rows_of_a.data() + row * copied_stride;
    return across ? Rows{copy, 1, tall} : Rows{copy, copied_stride, 1};
  };
  const auto pack_b = [&](const Blocks& at, std::int64_t columns) {
    for (std::int64_t column = 0; column < columns; column += panel_width) {
      const std::int64_t j = at.left + column, width = std::min(panel_width, columns - column);
      real* const panel = columns_of_b.data() + column * at.depth;
      if (trans_b == Trans::no) {
        pack_columns(b + at.from * ldb + j, ldb, width, at.depth, panel);
      } else {
        pack_rows_of_b(b + j * ldb + at.from, ldb, width, at.depth, panel);
      }
      if (round) round_values(panel, at.depth * panel_width);
    }
  };
  each_tile_of_product(
      size, m, n, k, pack_a, pack_b,
      [&](const Blocks& at, std::int64_t row, std::int64_t rows, std::int64_t column,
          std::int64_t columns) HWY_ATTR {
        const Rows left = rows_at(at, row);
        some_rows<tall>(std::min<std::int64_t>(tall, rows),
                        RealBlock<real>{left.at, left.row_stride, left.column_stride, 0,
                                        columns_of_b.data() + column * at.depth, at.depth, alpha,
                                        c + (at.top + row) * ldc + at.left + column, ldc,
                                        std::min(panel_width, columns), add || at.from > 0});
      });
}

bool has_product(std::int64_t m, std::int64_t n, std::int64_t k) {
  constexpr std::int64_t enough = std::int64_t{1} << 20;
  return m >= 4 && n >= 128 && m * n * k >= enough;
}

#else
bool has_product(std::int64_t, std::int64_t, std::int64_t) { return false; }
void multiply(Trans, Trans, std::int64_t, std::int64_t, std::int64_t, real, const real*,
              std::int64_t, const real*, std::int64_t, bool, bool, real*, std::int64_t) {}
std::int64_t packed_size(std::int64_t, std::int64_t) { return 0; }
void pack(const real*, std::int64_t, std::int64_t, real*) {}
#endif
}  // namespace kernels::HWY_NAMESPACE
HEED_END
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
HEED_BEGIN
namespace kernels {

HWY_EXPORT(has_product);
HWY_EXPORT(multiply);
HWY_EXPORT(packed_size);
HWY_EXPORT(pack);

bool has_product(std::int64_t m, std::int64_t n, std::int64_t k) {
  return HWY_DYNAMIC_DISPATCH(has_product)(m, n, k);
}

void multiply(Trans trans_a, Trans trans_b, std::int64_t m, std::int64_t n, std::int64_t k,
              real alpha, const real* a, std::int64_t lda, const real* b, std::int64_t ldb,
              real beta, real* c, std::int64_t ldc) {
  if (beta != 0 && beta != 1) {
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) c[i * ldc + j] *= beta;
    }
  }
  HWY_DYNAMIC_DISPATCH(multiply)
  (trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta != 0, false, c, ldc);
}

void multiply_rounded(Trans trans_a, Trans trans_b, std::int64_t m, std::int64_t n, std::int64_t k,
                      const real* a, std::int64_t lda, const real* b, std::int64_t ldb, bool add,
                      real* c, std::int64_t ldc) {
  HWY_DYNAMIC_DISPATCH(multiply)
  (trans_a, trans_b, m, n, k, 1, a, lda, b, ldb, add, true, c, ldc);
}

std::int64_t packed_size(std::int64_t n, std::int64_t k) {
  return HWY_DYNAMIC_DISPATCH(packed_size)(n, k);
}
void pack(const real* b, std::int64_t n, std::int64_t k, real* panels) {
  HWY_DYNAMIC_DISPATCH(pack)(b, n, k, panels);
}

namespace plain {
void multiply(Trans trans_a, Trans trans_b, std::int64_t m, std::int64_t n, std::int64_t k,
              real alpha, const real* a, std::int64_t lda, const real* b, std::int64_t ldb,
              real beta, real* c, std::int64_t ldc) {
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      real value = beta == 0 ? real(0) : beta * c[i * ldc + j];
      for (std::int64_t from = 0; from < k; from += chain_length) {
        real chain = 0;
        for (std::int64_t p = from; p < std::min(k, from + chain_length); ++p) {
          chain = std::fma(trans_a == Trans::no ? a[i * lda + p] : a[p * lda + i],
                           trans_b == Trans::no ? b[p * ldb + j] : b[j * ldb + p], chain);
        }
        value = beta == 0 && from == 0 ? alpha * chain : std::fma(alpha, chain, value);
      }
      c[i * ldc + j] = value;
    }
  }
}
}  // namespace plain

}  // namespace kernels
HEED_END
#endif
