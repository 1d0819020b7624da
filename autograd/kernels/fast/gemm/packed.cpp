#include "autograd/kernels/fast/gemm/packed.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <numeric>

#include "autograd/kernels/fast/gemm/bf16.h"

#define HWY_WANT_AVX3_DL  // AVX-512 with instructions for sums of int8 products
#include "autograd/kernels/fast/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/fast/gemm/packed.cpp"
#include "hwy/foreach_target.h"
// These headers must follow foreach_target:
#include "autograd/kernels/fast/gemm/tiles-inl.h"
#include "autograd/kernels/fast/simd/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
HEED_BEGIN
namespace kernels::HWY_NAMESPACE {
#if HEED_SIMD

/// Lays out B [n, k] in panels of panel_width rows: for each group of `group` columns, these columns
/// of the first row, of the second, …. Zeros fill the last panel and the last group.
template <std::int64_t group, class T>
void pack_panels(const T* b, std::int64_t n, std::int64_t k, T* panels) {
  constexpr std::int64_t line = 64 / sizeof(T);  // columns of b at a time: a cache line
  const std::int64_t depth = round_up(k, group);
  for (std::int64_t row = 0; row < n; row += panel_width, panels += panel_width * depth) {
    for (std::int64_t from = 0; from < depth; from += line) {
      for (std::int64_t j = 0; j < panel_width; ++j) {
        for (std::int64_t p = from; p < std::min(from + line, depth); ++p)
          panels[(p / group * panel_width + j) * group + p % group] =
              row + j < n && p < k ? b[(row + j) * k + p] : T(0);
      }
    }
  }
}

/// Multiplies `rows` rows of A by the panels of B that are columns [begin, end) of C:
/// block_of(column, width) describes the product with the panel of which `width` rows are columns
/// of C, from `column` on.
template <class BlockOf>
HWY_INLINE void each_panel(std::int64_t rows, std::int64_t begin, std::int64_t end,
                           const BlockOf& block_of) {
  for (std::int64_t column = begin; column < end; column += panel_width)
    each_tile(rows, block_of(column, std::min(panel_width, end - column)));
}

/// Calls part(begin, end) for ranges of whole panels that make up the n columns of C: one for each
/// thread of the team, fewer if the product is so small that a thread would start too late to help.
template <class Part>
void each_part(Team* team, std::int64_t m, std::int64_t n, std::int64_t k, const Part& part) {
  constexpr std::int64_t min_products = std::int64_t{1} << 18;
  const std::int64_t panels = (n + panel_width - 1) / panel_width,
                     parts = team == nullptr
                                 ? 1
                                 : std::min({team->threads(), panels,
                                             std::max<std::int64_t>(m * n * k / min_products, 1)});
  if (parts == 1) return part(0, n);
  team->run(parts, [&](std::int64_t i) {
    part(panels * i / parts * panel_width, std::min(n, panels * (i + 1) / parts * panel_width));
  });
}

// ---- real numbers and bf16 -----------------------------------------------------------------

#ifndef HEED_DOUBLE
void pack_bf16(const std::uint16_t* b, std::int64_t n, std::int64_t k, std::uint16_t* panels) {
  pack_panels<1>(b, n, k, panels);
}
#endif

template <class T>
HWY_INLINE void multiply_panels(const real* a, const T* panels, std::int64_t m, std::int64_t n,
                                std::int64_t k, real* c, Team* team) {
  each_part(team, m, n, k, [&](std::int64_t begin, std::int64_t end) HWY_ATTR {
    const auto block_of = [&](std::int64_t top, std::int64_t from, std::int64_t column,
                              std::int64_t width) HWY_ATTR {
      const real* const rows = a + top * k + from;
      return RealBlock<T>{rows,
                          k,
                          1,
                          tall * k,
                          panels + column * k + from * panel_width,
                          std::min(chain_length, k - from),
                          1,
                          c + top * n + column,
                          n,
                          width,
                          from > 0};
    };
    if (m <= tall) {  // each panel is read only once: in the order of memory
      for (std::int64_t column = begin; column < end; column += panel_width) {
        for (std::int64_t from = 0; from < k; from += chain_length)
          each_tile(m, block_of(0, from, column, std::min(panel_width, end - column)));
      }
      return;
    }
    for (std::int64_t top = 0; top < m; top += block_rows) {
      for (std::int64_t from = 0; from < k; from += chain_length) {
        each_panel(std::min(block_rows, m - top), begin, end,
                   [&](std::int64_t column, std::int64_t width)
                       HWY_ATTR { return block_of(top, from, column, width); });
      }
    }
  });
}

void multiply_packed(const real* a, const real* panels, std::int64_t m, std::int64_t n,
                     std::int64_t k, real* c, Team* team) {
  multiply_panels(a, panels, m, n, k, c, team);
}
#ifndef HEED_DOUBLE
void multiply_bf16(const real* a, const std::uint16_t* panels, std::int64_t m, std::int64_t n,
                   std::int64_t k, real* c, Team* team) {
  multiply_panels(a, panels, m, n, k, c, team);
}
#endif

#else
void multiply_packed(const real*, const real*, std::int64_t, std::int64_t, std::int64_t, real*,
                     Team*) {}
void pack_bf16(const std::uint16_t*, std::int64_t, std::int64_t, std::uint16_t*) {}
void multiply_bf16(const real*, const std::uint16_t*, std::int64_t, std::int64_t, std::int64_t,
                   real*, Team*) {}
#endif

// ---- int8 ----------------------------------------------------------------------------------

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

void lay_out(const std::int8_t* q, const float* scales, Int8Weights& into) {
  const std::int64_t n = into.n, k = into.k, all = round_up(n, panel_width);
  into.panels.resize(static_cast<std::size_t>(all * round_up(k, group)));
  pack_panels<group>(q, n, k, into.panels.data());
  into.starts.assign(static_cast<std::size_t>(all), 0);
  into.scales.assign(static_cast<std::size_t>(all), 0);
  std::copy_n(scales, n, into.scales.data());
  for (std::int64_t row = 0; row < n; ++row, q += k)
    into.starts[static_cast<std::size_t>(row)] = -raised * std::accumulate(q, q + k, 0);
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

/// Quantised rows of A, a panel of B, and the destination of their products. A sum covers all of k,
/// because a panel of bytes is a quarter as large as one of floats.
struct Int8Block {
  const Number* a;
  std::int64_t lda;
  const float* a_scales;
  const std::int8_t* panel;
  std::int64_t groups;
  const std::int32_t* starts;
  const float* b_scales;
  real* c;
  std::int64_t ldc, width;

  HWY_INLINE Int8Block below() const {
    Int8Block it = *this;
    it.a += tall * lda, it.a_scales += tall, it.c += tall * ldc;
    return it;
  }
};

/// Computes the first `rows` rows of a block.
template <int rows>
HWY_INLINE void tile(const Int8Block& it) {
  Ints left[rows], right[rows];
  const Ints start0 = hn::LoadU(IntTag(), it.starts),
             start1 = hn::LoadU(IntTag(), it.starts + lanes);
#pragma GCC unroll 12
  for (int r = 0; r < rows; ++r) left[r] = start0, right[r] = start1;
  const std::int8_t* b = it.panel;
  for (std::int64_t g = 0; g < it.groups; ++g, b += panel_width * group) {
    fetch_ahead<rows, group>(b);
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
    const Vector row_scale = set(it.a_scales[r]);
    const auto scaled = [&](Ints sum, Vector scale) HWY_ATTR {
      return hn::Mul(hn::Mul(hn::ConvertTo(Tag(), sum), scale), row_scale);
    };
    store_row(scaled(left[r], scale0), scaled(right[r], scale1), it.c + r * it.ldc, it.width);
  }
}

void multiply_int8(const real* a, const Int8Weights& b, std::int64_t m, real* c, Team* team) {
  const std::int64_t lda = round_up(b.k, lanes), depth = round_up(b.k, group),
                     buffered = std::min(block_rows, m);
  Int8Weights::Values<Number> numbers(static_cast<std::size_t>(buffered * lda));
  Int8Weights::Values<float> scales(static_cast<std::size_t>(buffered));
  for (std::int64_t top = 0; top < m; top += block_rows) {
    const std::int64_t rows = std::min(block_rows, m - top);
    for (std::int64_t r = 0; r < rows; ++r)
      scales[static_cast<std::size_t>(r)] =
          quantise_row(a + (top + r) * b.k, b.k, numbers.data() + r * lda);
    const auto block_of = [&](std::int64_t column, std::int64_t width) HWY_ATTR {
      return Int8Block{numbers.data(),
                       lda,
                       scales.data(),
                       b.panels.data() + column * depth,
                       depth / group,
                       b.starts.data() + column,
                       b.scales.data() + column,
                       c + top * b.n + column,
                       b.n,
                       width};
    };
    each_part(team, rows, b.n, b.k, [&](std::int64_t begin, std::int64_t end) HWY_ATTR {
      each_panel(rows, begin, end, block_of);
    });
  }
}

#else
void lay_out(const std::int8_t* q, const float* scales, Int8Weights& into) {
  into.panels.assign(q, q + into.n * into.k);
  into.scales.assign(scales, scales + into.n);
}
void multiply_int8(const real* a, const Int8Weights& b, std::int64_t m, real* c, Team*) {
  plain::multiply_int8(a, b.panels.data(), b.scales.data(), m, b.n, b.k, c);
}
#endif
}  // namespace kernels::HWY_NAMESPACE
HEED_END
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
HEED_BEGIN
namespace kernels {

HWY_EXPORT(multiply_packed);
#ifndef HEED_DOUBLE
HWY_EXPORT(pack_bf16);
HWY_EXPORT(multiply_bf16);
#endif
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

Int8Weights::Int8Weights(const real* b, std::int64_t n_, std::int64_t k_) : n(n_), k(k_) {
  Values<std::int8_t> q(static_cast<std::size_t>(n * k));
  Values<float> row_scales(static_cast<std::size_t>(n));
  quantise_rows(b, n, k, q.data(), row_scales.data());
  HWY_DYNAMIC_DISPATCH(lay_out)(q.data(), row_scales.data(), *this);
}

void Int8Weights::multiply(const real* a, std::int64_t m, real* c, Team* team) const {
  HWY_DYNAMIC_DISPATCH(multiply_int8)(a, *this, m, c, team);
}

namespace {

thread_local PackedWeights* weights_here = nullptr;
thread_local Team* team_here = nullptr;

}  // namespace

void PackedWeights::add(const Array& matrix) { matrices_[matrix.data()] = matrix; }

PackedMatrix::PackedMatrix(const real* b, std::int64_t n_, std::int64_t k_, PackedType type)
    : n(n_), k(k_) {
  if (type == PackedType::int8) {
    int8 = Int8Weights(b, n, k);
    return;
  }
#ifndef HEED_DOUBLE
  if (type == PackedType::bf16) {
    decltype(bf16) rounded(static_cast<std::size_t>(n * k));
    to_bf16(b, rounded.data(), n * k);
    bf16.resize(static_cast<std::size_t>(packed_size(n, k)));
    HWY_DYNAMIC_DISPATCH(pack_bf16)(rounded.data(), n, k, bf16.data());
    return;
  }
#endif
  panels = Array({packed_size(n, k)});
  pack(b, n, k, panels.data());
}

void PackedMatrix::multiply(const real* a, std::int64_t m, real* c) const {
  if (panels.defined()) return multiply_packed(a, panels.data(), m, n, k, c, team_here);
#ifndef HEED_DOUBLE
  if (!bf16.empty())
    return HWY_DYNAMIC_DISPATCH(multiply_bf16)(a, bf16.data(), m, n, k, c, team_here);
#endif
  int8.multiply(a, m, c, team_here);
}

const PackedMatrix* PackedWeights::find(const real* rows, std::int64_t n, std::int64_t k) {
  const auto after = matrices_.upper_bound(rows);
  if (k <= 0 || after == matrices_.begin()) return nullptr;
  const Array& matrix = std::prev(after)->second;
  const std::int64_t offset = rows - matrix.data();
  if (matrix.cols() != k || offset % k != 0 || offset / k + n > matrix.rows()) return nullptr;
  const PackedType type = type_ == PackedType::int8 && k > max_int8_row ? PackedType::real : type_;
  if (type != PackedType::int8 && packed_size(n, k) == 0) return nullptr;
  Packed* packed = nullptr;
  {
    const std::scoped_lock lock(mutex_);
    packed = &packed_[{rows, n}];
  }
  std::call_once(packed->once, [&] { packed->matrix = PackedMatrix(rows, n, k, type); });
  return &packed->matrix;
}

PackedScope::PackedScope(PackedWeights& weights, Team* team)
    : scope_(weights_here, &weights), team_(team_here, team) {}

const PackedMatrix* find_packed(const real* b, std::int64_t n, std::int64_t k) {
  return weights_here == nullptr ? nullptr : weights_here->find(b, n, k);
}

void multiply_packed(const real* a, const real* panels, std::int64_t m, std::int64_t n,
                     std::int64_t k, real* c, Team* team) {
  HWY_DYNAMIC_DISPATCH(multiply_packed)(a, panels, m, n, k, c, team);
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
