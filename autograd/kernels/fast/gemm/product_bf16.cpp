#include "autograd/kernels/fast/gemm/product_bf16.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <hwy/base.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "autograd/kernels/fast/gemm/blocks.h"
#include "autograd/memory/block.h"

// GCC 12 warns of the undefined vectors that its own intrinsics pass (GCC bug 105593).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

HEED_BEGIN
namespace kernels {

namespace {

/// The registers that describe extended features (leaf 7 of CPUID).
struct Features {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  explicit Features(unsigned subleaf) { __get_cpuid_count(7, subleaf, &eax, &ebx, &ecx, &edx); }
};

bool has_pairs() {
  constexpr unsigned avx512_bf16 = 5;
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && (Features(1).eax >> avx512_bf16 & 1) != 0;
}

bool has_tiles() {
  constexpr unsigned amx_bf16 = 22, amx_tile = 24;
  const unsigned features = Features(0).edx;
  if (!has_pairs() || (features >> amx_bf16 & features >> amx_tile & 1) == 0) return false;
  constexpr long request_permission = 0x1023, tile_data = 18;  // asm/prctl.h of Linux 5.16
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

}  // namespace

bool has_bf16_instructions(Bf16Unit unit) {
  static const bool pairs = has_pairs();
  if (unit == Bf16Unit::pairs) return pairs;
  static const bool tiles = has_tiles();
  return tiles;
}

HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512vl,avx512bf16,amx-tile,amx-bf16")

namespace {

constexpr std::int64_t lanes = 16;        // pairs in a vector; rows of an AMX tile
constexpr std::int64_t step = 2 * lanes;  // numbers in a vector
constexpr std::int64_t panel_width = 2 * lanes;

using Pairs = std::uint32_t;

/// Rows of op(A) or columns of op(B), of k numbers each. Either the numbers of a line are adjacent in
/// memory and lines begin `stride` numbers apart, or lines are adjacent and their numbers are
/// `stride` apart.
struct Lines {
  const float* first;
  std::int64_t stride;
  bool adjacent_numbers;

  const float* at(std::int64_t line, std::int64_t number) const {
    return adjacent_numbers ? first + line * stride + number : first + number * stride + line;
  }
};

__mmask16 first_lanes(std::int64_t n) {
  return static_cast<__mmask16>((1U << std::clamp<std::int64_t>(n, 0, lanes)) - 1);
}

/// The numbers of `low`, then those of `high`, rounded to bf16.
__m512i rounded(__m512 low, __m512 high) {
  return __builtin_bit_cast(__m512i, _mm512_cvtne2ps_pbh(high, low));
}

/// Vector i contains the pairs of line i.
void read_lines(const float* x, std::int64_t stride, std::int64_t lines, std::int64_t depth,
                __m512i (&v)[lanes]) {
  const __mmask16 low = first_lanes(depth), high = first_lanes(depth - lanes);
  for (std::int64_t i = 0; i < lanes; ++i, x += stride) {
    v[i] = i < lines
               ? rounded(_mm512_maskz_loadu_ps(low, x), _mm512_maskz_loadu_ps(high, x + lanes))
               : _mm512_setzero_si512();
  }
}

/// Vector i contains pair i of each line.
void read_pairs(const float* x, std::int64_t stride, std::int64_t lines, std::int64_t depth,
                __m512i (&v)[lanes]) {
  const __mmask16 mask = first_lanes(lines);
  // Number j of the even row is followed by number j of the odd row.
  const __m512i even_then_odd = _mm512_add_epi32(
      _mm512_set1_epi32(lanes << 16),
      _mm512_mullo_epi32(_mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                         _mm512_set1_epi32(0x10001)));
  for (std::int64_t i = 0; i < lanes; ++i, x += 2 * stride) {
    const __m512 even = _mm512_maskz_loadu_ps(2 * i < depth ? mask : __mmask16{}, x),
                 odd = _mm512_maskz_loadu_ps(2 * i + 1 < depth ? mask : __mmask16{}, x + stride);
    v[i] = _mm512_permutexvar_epi16(even_then_odd, rounded(even, odd));
  }
}

/// Transposes a matrix of 16 by 16 pairs.
void transpose(__m512i (&v)[lanes]) {
  __m512i t[lanes];
  for (int i = 0; i < 16; i += 4) {  // transposes the blocks of 4 by 4 pairs
    const __m512i low01 = _mm512_unpacklo_epi32(v[i], v[i + 1]),
                  high01 = _mm512_unpackhi_epi32(v[i], v[i + 1]),
                  low23 = _mm512_unpacklo_epi32(v[i + 2], v[i + 3]),
                  high23 = _mm512_unpackhi_epi32(v[i + 2], v[i + 3]);
    t[i] = _mm512_unpacklo_epi64(low01, low23);
    t[i + 1] = _mm512_unpackhi_epi64(low01, low23);
    t[i + 2] = _mm512_unpacklo_epi64(high01, high23);
    t[i + 3] = _mm512_unpackhi_epi64(high01, high23);
  }
  constexpr int even = 0x88, odd = 0xDD;  // blocks 0 and 2, or 1 and 3, of both operands
  for (int i = 0; i < 4; ++i) {           // transposes the 4 by 4 blocks themselves
    const __m512i even01 = _mm512_shuffle_i32x4(t[i], t[i + 4], even),
                  odd01 = _mm512_shuffle_i32x4(t[i], t[i + 4], odd),
                  even23 = _mm512_shuffle_i32x4(t[i + 8], t[i + 12], even),
                  odd23 = _mm512_shuffle_i32x4(t[i + 8], t[i + 12], odd);
    v[i] = _mm512_shuffle_i32x4(even01, even23, even);
    v[i + 4] = _mm512_shuffle_i32x4(odd01, odd23, even);
    v[i + 8] = _mm512_shuffle_i32x4(even01, even23, odd);
    v[i + 12] = _mm512_shuffle_i32x4(odd01, odd23, odd);
  }
}

/// The packed layout: groups of `group` lines; in a group, blocks of 16 pairs of each line; in a
/// block, 16 pairs of the first line, of the second line and so on, or, if `by_pair`, the first pair
/// of each line, the second pair of each line and so on. Zeros fill the last group and block.
template <std::int64_t group, bool by_pair>
void pack(const Lines& x, std::int64_t lines, std::int64_t depth, Pairs* to) {
  const std::int64_t pairs = round_up(depth, step) / 2;
  const auto pack_block = [&](std::int64_t line, std::int64_t number) {
    __m512i v[lanes];
    (x.adjacent_numbers ? read_lines : read_pairs)(
        x.at(line, number), x.stride, std::min(group, lines - line), depth - number, v);
    if (x.adjacent_numbers == by_pair) transpose(v);
    Pairs* const block = to + line * pairs + number / 2 * group;
    for (std::int64_t i = 0; i < group; ++i) _mm512_storeu_si512(block + i * lanes, v[i]);
  };
  if (x.adjacent_numbers) {
    for (std::int64_t line = 0; line < lines; line += group)
      for (std::int64_t number = 0; number < depth; number += step) pack_block(line, number);
  } else {
    for (std::int64_t number = 0; number < depth; number += step)
      for (std::int64_t line = 0; line < lines; line += group) pack_block(line, number);
  }
}

/// A part of C, of which one call computes at most Unit::rows rows and panel_width columns.
struct Part {
  float* c;
  std::int64_t ldc, rows, columns;
  bool add;
  bool stream;  ///< write past the caches (streams_result)

  /// Stores columns [first, first + 16) of a row, of which those below `columns` exist.
  void store(std::int64_t row, std::int64_t first, __m512 values) const {
    float* const at = c + row * ldc + first;
    if (stream && first + lanes <= columns) return _mm512_stream_ps(at, values);
    _mm512_mask_storeu_ps(at, first_lanes(columns - first), values);
  }
  __m512 load(std::int64_t row, std::int64_t first) const {
    return _mm512_maskz_loadu_ps(first_lanes(columns - first), c + row * ldc + first);
  }
};

/// Dot products of pairs: sums of 12 rows and 32 columns remain in registers.
struct DotProducts {
  static constexpr std::int64_t group = 12, rows = 12;

  static void multiply(const Pairs* a, const Pairs* b, std::int64_t pairs, const Part& part) {
    __m512 left[rows], right[rows];
    for (int r = 0; r < rows; ++r) left[r] = right[r] = _mm512_setzero_ps();
    const Pairs* b1 = b + pairs * lanes;
    for (std::int64_t p = 0; p < pairs; p += lanes, a += (rows - 1) * lanes) {
      for (std::int64_t q = 0; q < lanes; ++q, ++a, b += lanes, b1 += lanes) {
        const auto l = __builtin_bit_cast(__m512bh, _mm512_loadu_si512(b)),
                   r = __builtin_bit_cast(__m512bh, _mm512_loadu_si512(b1));
#pragma GCC unroll 12
        for (int row = 0; row < rows; ++row) {
          const auto pair =
              __builtin_bit_cast(__m512bh, _mm512_set1_epi32(static_cast<int>(a[row * lanes])));
          left[row] = _mm512_dpbf16_ps(left[row], pair, l);
          right[row] = _mm512_dpbf16_ps(right[row], pair, r);
        }
      }
    }
#pragma GCC unroll 12
    for (int row = 0; row < rows; ++row) {
      if (row >= part.rows) break;
      if (part.add) {
        left[row] = _mm512_add_ps(part.load(row, 0), left[row]);
        right[row] = _mm512_add_ps(part.load(row, lanes), right[row]);
      }
      part.store(row, 0, left[row]);
      part.store(row, lanes, right[row]);
    }
  }
};

/// AMX: four tiles of sums for two tiles of A and two of B.
struct Tiles {
  static constexpr std::int64_t group = lanes, rows = 2 * lanes;

  Tiles() {
    struct alignas(64) Configuration {
      std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
      std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    };
    static const Configuration configuration;
    _tile_loadconfig(&configuration);
  }
  ~Tiles() { _tile_release(); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;

  static void multiply(const Pairs* a, const Pairs* b, std::int64_t pairs, const Part& part) {
    if (part.rows >= rows && part.columns >= panel_width && !part.stream)
      return multiply_whole(a, b, pairs, part.c, part.ldc, part.add);
    alignas(64) float whole[rows * panel_width];
    const std::int64_t height = std::min(part.rows, rows);
    for (std::int64_t r = 0; part.add && r < height; ++r) {
      _mm512_store_ps(whole + r * panel_width, part.load(r, 0));
      _mm512_store_ps(whole + r * panel_width + lanes, part.load(r, lanes));
    }
    multiply_whole(a, b, pairs, whole, panel_width, part.add);
    for (std::int64_t r = 0; r < height; ++r) {
      part.store(r, 0, _mm512_load_ps(whole + r * panel_width));
      part.store(r, lanes, _mm512_load_ps(whole + r * panel_width + lanes));
    }
  }

 private:
  static void multiply_whole(const Pairs* a, const Pairs* b, std::int64_t pairs, float* c,
                             std::int64_t ldc, bool add) {
    // The compiler does not know which memory the instructions for tiles read.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    const std::int64_t row = ldc * static_cast<std::int64_t>(sizeof(float));
    float* const below = c + lanes * ldc;
    if (add) {
      _tile_loadd(0, c, row);
      _tile_loadd(1, c + lanes, row);
      _tile_loadd(2, below, row);
      _tile_loadd(3, below + lanes, row);
    } else {
      _tile_zero(0);
      _tile_zero(1);
      _tile_zero(2);
      _tile_zero(3);
    }
    const Pairs *const a1 = a + pairs * lanes, *const b1 = b + pairs * lanes;
    constexpr int line = 64;
    for (std::int64_t p = 0; p < pairs * lanes; p += lanes * lanes) {
      _tile_loadd(4, a + p, line);
      _tile_loadd(6, b + p, line);
      _tile_dpbf16ps(0, 4, 6);
      _tile_loadd(7, b1 + p, line);
      _tile_dpbf16ps(1, 4, 7);
      _tile_loadd(5, a1 + p, line);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, c, row);
    _tile_stored(1, c + lanes, row);
    _tile_stored(2, below, row);
    _tile_stored(3, below + lanes, row);
  }
};

/// Whether a product that overwrites C is to write it past the caches, which saves reading the lines
/// of C first: if A is transposed, C is the gradient of weights, which the optimizer reads much
/// later. Only if C is larger than an L2 cache, aligned to 64 bytes and the sum of one chain.
bool streams_result(bool transposed_a, std::int64_t m, std::int64_t n, std::int64_t k,
                    const float* c, std::int64_t ldc) {
  constexpr std::size_t line = 64;
  constexpr std::int64_t enough = std::int64_t{1} << 19;
  return transposed_a && k <= chain_length && m * n >= enough &&
         static_cast<std::size_t>(ldc) * sizeof(float) % line == 0 &&
         reinterpret_cast<std::uintptr_t>(c) % line == 0;
}

template <class Unit>
void multiply(const Lines& a, const Lines& b, std::int64_t m, std::int64_t n, std::int64_t k,
              bool add, float* c, std::int64_t ldc) {
  // With chain_length numbers each, the rows of a block of A fill 2 MB, and the columns of a block of B
  // fill 1 MB.
  constexpr BlockSizes size{2016, 1024, Unit::rows, Unit::rows, panel_width};
  using Buffer = std::vector<Pairs, BlockAllocator<Pairs>>;
  constexpr std::int64_t most_pairs = chain_length / 2;
  thread_local Buffer rows_of_a(static_cast<std::size_t>(size.rows * most_pairs)),
      columns_of_b(static_cast<std::size_t>(size.columns * most_pairs));
  [[maybe_unused]] const Unit unit;
  const bool stream = !add && streams_result(!a.adjacent_numbers, m, n, k, c, ldc);
  const auto pairs = [](const Blocks& at) { return round_up(at.depth, step) / 2; };
  each_tile_of_product(
      size, m, n, k,
      [&](const Blocks& at, std::int64_t row, std::int64_t rows) {
        pack<Unit::group, false>({a.at(at.top + row, at.from), a.stride, a.adjacent_numbers}, rows,
                                 at.depth, rows_of_a.data() + row * pairs(at));
      },
      [&](const Blocks& at, std::int64_t columns) {
        pack<lanes, true>({b.at(at.left, at.from), b.stride, b.adjacent_numbers}, columns, at.depth,
                          columns_of_b.data());
      },
      [&](const Blocks& at, std::int64_t row, std::int64_t rows, std::int64_t column,
          std::int64_t columns) {
        Unit::multiply(rows_of_a.data() + row * pairs(at), columns_of_b.data() + column * pairs(at),
                       pairs(at),
                       {c + (at.top + row) * ldc + at.left + column, ldc, rows, columns,
                        add || at.from > 0, stream});
      });
  if (stream) _mm_sfence();
}

}  // namespace

void multiply_bf16(Bf16Unit unit, Trans trans_a, Trans trans_b, std::int64_t m, std::int64_t n,
                   std::int64_t k, const float* a, std::int64_t lda, const float* b,
                   std::int64_t ldb, bool add, float* c, std::int64_t ldc) {
  (unit == Bf16Unit::tiles ? multiply<Tiles>
                           : multiply<DotProducts>)({a, lda, trans_a == Trans::no},
                                                    {b, ldb, trans_b == Trans::yes}, m, n, k, add,
                                                    c, ldc);
}

HWY_POP_ATTRIBUTES

}  // namespace kernels
HEED_END

#else

HEED_BEGIN
namespace kernels {
bool has_bf16_instructions(Bf16Unit) { return false; }
void multiply_bf16(Bf16Unit, Trans, Trans, std::int64_t, std::int64_t, std::int64_t, const float*,
                   std::int64_t, const float*, std::int64_t, bool, float*, std::int64_t) {}
}  // namespace kernels
HEED_END

#endif
