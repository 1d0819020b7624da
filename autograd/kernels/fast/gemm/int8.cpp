#include "autograd/kernels/fast/gemm/int8.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#define HWY_WANT_AVX3_DL  // AVX-512 with instructions for sums of int8 products
#include "autograd/kernels/fast/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/fast/gemm/int8.cpp"
#include "hwy/foreach_target.h"
// These headers must follow foreach_target:
#include "autograd/kernels/fast/simd/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
HEED_BEGIN
namespace kernels::HWY_NAMESPACE {
#if HEED_SIMD && HWY_ARCH_X86 && !defined(HEED_DOUBLE)

using IntTag = hn::RebindToSigned<Tag>;
using Ints = hn::Vec<IntTag>;

// One instruction adds to each 32-bit lane the products of `group` adjacent numbers of A and B:
// four unsigned bytes of A and four signed bytes of B, or two 16-bit numbers of each. The unsigned
// bytes are numbers of A raised by 128; a sum then begins with −128 times the sum of the row of B.
#if HWY_TARGET <= HWY_AVX3_DL
using Number = std::uint8_t;  // a number of A
constexpr std::int64_t group = 4;
constexpr std::int32_t raised = 128;
/// This is assembly, because Highway 1.0 compiles this target without avx512vnni, although it
/// selects the target only on processors that have avx512vnni.
HWY_INLINE Ints add_products(Ints sum, Ints a, const std::int8_t* b) {
  const Ints four = hn::BitCast(IntTag(), hn::LoadU(hn::Repartition<std::int8_t, IntTag>(), b));
  asm("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(four.raw));
  return sum;
}
#else
using Number = std::int16_t;
constexpr std::int64_t group = 2;
constexpr std::int32_t raised = 0;
HWY_INLINE Ints add_products(Ints sum, Ints a, const std::int8_t* b) {
  const hn::RepartitionToNarrow<IntTag> pairs;
  Ints unused = hn::Zero(IntTag());
  return hn::ReorderWidenMulAccumulate(
      IntTag(), hn::BitCast(pairs, a),
      hn::PromoteTo(pairs, hn::LoadU(hn::Rebind<std::int8_t, decltype(pairs)>(), b)), sum, unused);
}
#endif

// Tiles as in packed.cpp, but a sum covers all of k, because a panel of bytes is a quarter as
// large.
constexpr std::int64_t panel_width = 2 * lanes;
constexpr int tall = HWY_TARGET == HWY_AVX2 ? 6 : 12;
constexpr std::int64_t block_rows = 21 * 12;

std::int64_t groups_of(std::int64_t k) { return (k + group - 1) / group; }

void lay_out(const std::int8_t* q, const float* scales, Int8Weights::Layout& into) {
  const std::int64_t n = into.n, k = into.k,
                     all = (n + panel_width - 1) / panel_width * panel_width;
  into.panels.assign(static_cast<std::size_t>(all * groups_of(k) * group), 0);
  into.starts.assign(static_cast<std::size_t>(all), 0);
  into.scales.assign(static_cast<std::size_t>(all), 0);
  std::copy_n(scales, n, into.scales.data());
  for (std::int64_t row = 0; row < n; ++row, q += k) {
    std::int8_t* const to = into.panels.data() +
                            row / panel_width * panel_width * groups_of(k) * group +
                            row % panel_width * group;
    std::int32_t sum = 0;
    for (std::int64_t p = 0; p < k; ++p) {
      to[p / group * panel_width * group + p % group] = q[p];
      sum += q[p];
    }
    into.starts[static_cast<std::size_t>(row)] = -raised * sum;
  }
}

/// Quantises a row of A and returns its scale. q must have room for k numbers, rounded up to whole
/// vectors.
HWY_INLINE float quantise_row(const real* x, std::int64_t k, Number* q) {
  const Ints magnitude = hn::Set(IntTag(), std::numeric_limits<std::int32_t>::max());
  // The bits of magnitudes, compared as integers, are ordered by value; ∞ and then NaN are largest.
  Ints largest = hn::Zero(IntTag());
  each(k, [&](std::int64_t i, auto io) HWY_ATTR {
    largest = hn::Max(largest, hn::And(magnitude, hn::BitCast(IntTag(), io.load(x + i))));
  });
  const float scale =
      scale_for(static_cast<std::uint32_t>(hn::GetLane(hn::MaxOfLanes(IntTag(), largest))));
  const Vector inverse = set(scale > 0 ? 1 / scale : 0);
  each(k, [&](std::int64_t i, auto io) HWY_ATTR {
    const Ints nearest = hn::NearestInt(hn::Mul(io.load(x + i), inverse));
    const hn::Rebind<Number, IntTag> numbers;
    hn::StoreU(hn::DemoteTo(numbers, hn::Add(nearest, hn::Set(IntTag(), raised))), numbers, q + i);
  });
  return scale;
}

/// Quantised rows of A, a panel of B, and the destination of their products.
struct Block {
  const Number* a;
  std::int64_t lda;
  const float* a_scales;
  const std::int8_t* panel;
  std::int64_t groups;
  const std::int32_t* starts;
  const float* b_scales;
  real* c;
  std::int64_t ldc, width;

  HWY_INLINE Block below(std::int64_t rows) const {
    Block it = *this;
    it.a += rows * lda, it.a_scales += rows, it.c += rows * ldc;
    return it;
  }
};

/// Computes the first `rows` rows of a block.
template <int rows>
HWY_INLINE void tile(const Block& it) {
  Ints left[rows], right[rows];
  const Ints start0 = hn::LoadU(IntTag(), it.starts),
             start1 = hn::LoadU(IntTag(), it.starts + lanes);
#pragma GCC unroll 12
  for (int r = 0; r < rows; ++r) left[r] = start0, right[r] = start1;
  const std::int8_t* b = it.panel;
  for (std::int64_t g = 0; g < it.groups; ++g, b += panel_width * group) {
#pragma GCC unroll 12
    for (int r = 0; r < rows; ++r) {
      std::int32_t together;
      std::memcpy(&together, it.a + r * it.lda + g * group, sizeof(together));
      const Ints a = hn::Set(IntTag(), together);
      left[r] = add_products(left[r], a, b);
      right[r] = add_products(right[r], a, b + lanes * group);
    }
  }
  const Vector scale0 = hn::LoadU(Tag(), it.b_scales),
               scale1 = hn::LoadU(Tag(), it.b_scales + lanes);
#pragma GCC unroll 12
  for (int r = 0; r < rows; ++r) {
    HWY_ALIGN real part[panel_width];
    const bool whole = it.width == panel_width;
    real* const c = it.c + r * it.ldc;
    const Vector row_scale = set(it.a_scales[r]);
    hn::StoreU(hn::Mul(hn::Mul(hn::ConvertTo(Tag(), left[r]), scale0), row_scale), Tag(),
               whole ? c : part);
    hn::StoreU(hn::Mul(hn::Mul(hn::ConvertTo(Tag(), right[r]), scale1), row_scale), Tag(),
               (whole ? c : part) + lanes);
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

void multiply_int8(const real* a, const Int8Weights::Layout& b, std::int64_t m, real* c) {
  const std::int64_t lda = (b.k + lanes - 1) / lanes * lanes, groups = groups_of(b.k),
                     buffered = std::min(block_rows, m);
  Int8Weights::Layout::Values<Number> rows(static_cast<std::size_t>(buffered * lda));
  Int8Weights::Layout::Values<float> scales(static_cast<std::size_t>(buffered));
  for (std::int64_t top = 0; top < m; top += block_rows) {
    const std::int64_t rows_in_block = std::min(block_rows, m - top);
    for (std::int64_t r = 0; r < rows_in_block; ++r)
      scales[static_cast<std::size_t>(r)] =
          quantise_row(a + (top + r) * b.k, b.k, rows.data() + r * lda);
    for (std::int64_t column = 0; column < b.n; column += panel_width) {
      Block block{rows.data(),
                  lda,
                  scales.data(),
                  b.panels.data() + column * groups * group,
                  groups,
                  b.starts.data() + column,
                  b.scales.data() + column,
                  c + top * b.n + column,
                  b.n,
                  std::min(panel_width, b.n - column)};
      std::int64_t i = 0;
      for (; i + tall <= rows_in_block; i += tall, block = block.below(tall)) tile<tall>(block);
      some_rows<tall - 1>(rows_in_block - i, block);
    }
  }
}

#else
void lay_out(const std::int8_t* q, const float* scales, Int8Weights::Layout& into) {
  into.panels.assign(q, q + into.n * into.k);
  into.scales.assign(scales, scales + into.n);
}
void multiply_int8(const real* a, const Int8Weights::Layout& b, std::int64_t m, real* c) {
  plain::multiply_int8(a, b.panels.data(), b.scales.data(), m, b.n, b.k, c);
}
#endif
}  // namespace kernels::HWY_NAMESPACE
HEED_END
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
HEED_BEGIN
namespace kernels {

HWY_EXPORT(lay_out);
HWY_EXPORT(multiply_int8);

float scale_for(std::uint32_t magnitude_bits) {
  constexpr std::uint32_t beyond = 0x7f000000;  // 2^127
  constexpr std::uint32_t dropped = 0x7f;       // the last 7 of 24 significant bits
  if (magnitude_bits >= beyond) return std::numeric_limits<float>::quiet_NaN();
  const float scale = std::bit_cast<float>(magnitude_bits) / 127;
  if (scale < std::numeric_limits<float>::min()) return 0;
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(scale) + dropped) & ~dropped);
}

void quantise_rows(const real* x, std::int64_t rows, std::int64_t cols, std::int8_t* q,
                   float* scales) {
  for (std::int64_t r = 0; r < rows; ++r, x += cols, q += cols) {
    std::uint32_t largest = 0;
    for (std::int64_t i = 0; i < cols; ++i)
      largest = std::max(largest, std::bit_cast<std::uint32_t>(std::abs(static_cast<float>(x[i]))));
    const float scale = scales[r] = scale_for(largest);
    if (!(scale > 0)) {
      std::fill_n(q, cols, std::int8_t{0});
      continue;
    }
    const float inverse = 1 / scale;
    for (std::int64_t i = 0; i < cols; ++i)
      q[i] = static_cast<std::int8_t>(std::nearbyint(static_cast<float>(x[i]) * inverse));
  }
}

void dequantise_rows(const std::int8_t* q, const float* scales, std::int64_t rows,
                     std::int64_t cols, real* x) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t i = 0; i < cols; ++i) *x++ = real(scales[r] * static_cast<float>(*q++));
  }
}

Int8Weights::Int8Weights(const real* b, std::int64_t n, std::int64_t k) {
  Layout::Values<std::int8_t> q(static_cast<std::size_t>(n * k));
  Layout::Values<float> scales(static_cast<std::size_t>(n));
  quantise_rows(b, n, k, q.data(), scales.data());
  layout_.n = n;
  layout_.k = k;
  HWY_DYNAMIC_DISPATCH(lay_out)(q.data(), scales.data(), layout_);
}

void Int8Weights::multiply(const real* a, std::int64_t m, real* c) const {
  HWY_DYNAMIC_DISPATCH(multiply_int8)(a, layout_, m, c);
}

namespace plain {
void multiply_int8(const real* a, const std::int8_t* b, const float* scales, std::int64_t m,
                   std::int64_t n, std::int64_t k, real* c) {
  std::vector<std::int8_t> row(static_cast<std::size_t>(k));
  for (std::int64_t i = 0; i < m; ++i) {
    float row_scale = 0;
    quantise_rows(a + i * k, 1, k, row.data(), &row_scale);
    for (std::int64_t j = 0; j < n; ++j) {
      std::int32_t sum = 0;
      for (std::int64_t p = 0; p < k; ++p) sum += row[p] * b[j * k + p];
      c[i * n + j] = real(static_cast<float>(sum) * scales[j] * row_scale);
    }
  }
}
}  // namespace plain

}  // namespace kernels
HEED_END
#endif
