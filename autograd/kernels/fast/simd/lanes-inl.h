/// Vectors of `real` for the kernels: loads and stores at the ends of arrays, and sums in double.
/// Included once for each instruction set (see hwy/foreach_target.h), hence the unusual guard.
#if defined(HEED_KERNELS_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_LANES_INL_H_
#undef HEED_KERNELS_LANES_INL_H_
#else
#define HEED_KERNELS_LANES_INL_H_
#endif

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "autograd/base/real.h"
#include "hwy/highway.h"

/// 1 if the target has vector instructions with fused multiply-add, which exp and related functions
/// need to be accurate to the last digits: AVX2 and later on x86, NEON on Arm. On other targets,
/// the reference implementations are the kernels, and gemm uses BLAS instead of packed.cpp.
#undef HEED_SIMD
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128 || (HWY_ARCH_X86 && HWY_TARGET > HWY_AVX2)
#define HEED_SIMD 0
#else
#define HEED_SIMD 1
#endif

#if HEED_SIMD
HWY_BEFORE_NAMESPACE();
HEED_BEGIN
namespace kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<real>;
using Vector = hn::Vec<Tag>;
using Mask = hn::Mask<Tag>;
constexpr std::int64_t lanes = static_cast<std::int64_t>(hn::MaxLanes(Tag()));

/// Vectors of double. If `real` is float, each holds as many values as half a Vector.
using WideTag = hn::ScalableTag<double>;
using Wide = hn::Vec<WideTag>;
constexpr std::int64_t wide_lanes = static_cast<std::int64_t>(hn::MaxLanes(WideTag()));
using NarrowTag = hn::Rebind<real, WideTag>;

HWY_INLINE Vector set(real x) { return hn::Set(Tag(), x); }
HWY_INLINE Wide set_wide(double x) { return hn::Set(WideTag(), x); }
#ifdef HEED_DOUBLE
HWY_INLINE Wide widen(hn::Vec<NarrowTag> v) { return v; }
HWY_INLINE hn::Vec<NarrowTag> narrow(Wide v) { return v; }
#else
HWY_INLINE Wide widen(hn::Vec<NarrowTag> v) { return hn::PromoteTo(WideTag(), v); }
HWY_INLINE hn::Vec<NarrowTag> narrow(Wide v) { return hn::DemoteTo(NarrowTag(), v); }
#endif

/// Floats rounded to bf16 (nearest, ties to even): their lower 16 bits are 0. NaN remains NaN.
template <class V>
HWY_INLINE V round_to_bf16(V v) {
  const hn::DFromV<V> floats;
  const hn::RebindToUnsigned<hn::DFromV<V>> bits;
  const auto u = hn::BitCast(bits, v);
  const auto odd = hn::And(hn::ShiftRight<16>(u), hn::Set(bits, 1));
  const auto rounded = hn::Add(u, hn::Add(odd, hn::Set(bits, 0x7FFF)));
  const auto quiet = hn::Or(u, hn::Set(bits, 0x400000));
  const auto chosen = hn::IfThenElse(hn::RebindMask(bits, hn::IsNaN(v)), quiet, rounded);
  return hn::BitCast(floats, hn::And(chosen, hn::Set(bits, 0xFFFF0000)));
}

/// Access to a whole vector (Whole) and to the partial one at the end of a loop (Part): lanes
/// beyond the end are read as 0 (or as `rest`) and never written.
template <class D>
struct Whole {
  using T = hn::TFromD<D>;
  using V = hn::Vec<D>;
  HWY_INLINE V load(const T* p) const { return hn::LoadU(D(), p); }
  HWY_INLINE V load_or(const T* p, T) const { return hn::LoadU(D(), p); }
  HWY_INLINE void store(V v, T* p) const { hn::StoreU(v, D(), p); }
};
template <class D>
struct Part {
  using T = hn::TFromD<D>;
  using V = hn::Vec<D>;
  std::size_t n;
  HWY_INLINE explicit Part(std::int64_t count) : n(static_cast<std::size_t>(count)) {}
  HWY_INLINE hn::Mask<D> mask() const { return hn::FirstN(D(), n); }
#if HWY_ARCH_X86  // masked instructions access no memory beyond the mask
  HWY_INLINE V load(const T* p) const { return hn::MaskedLoad(mask(), D(), p); }
  HWY_INLINE void store(V v, T* p) const { hn::BlendedStore(v, mask(), D(), p); }
#else
  HWY_INLINE V load(const T* p) const {
    HWY_ALIGN T buffer[hn::MaxLanes(D())] = {};
    std::memcpy(buffer, p, n * sizeof(T));
    return hn::Load(D(), buffer);
  }
  HWY_INLINE void store(V v, T* p) const {
    HWY_ALIGN T buffer[hn::MaxLanes(D())];
    hn::Store(v, D(), buffer);
    std::memcpy(p, buffer, n * sizeof(T));
  }
#endif
  HWY_INLINE V load_or(const T* p, T rest) const {
    return hn::IfThenElse(mask(), load(p), hn::Set(D(), rest));
  }
};

/// Divides n values into vectors and calls body(i, io) for each, where i is the index of its first
/// value; io.load(x + i) and io.store(v, y + i) load and store it.
template <class Body>
HWY_INLINE void each(std::int64_t n, const Body& body) {
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) body(i, Whole<Tag>());
  if (i < n) body(i, Part<Tag>(n - i));
}

/// As Whole and Part, but for processing in double: `load` converts values of type `real` to a
/// Wide, and `store` converts a Wide to `real`.
struct WideWhole {
  HWY_INLINE Wide load(const real* p) const { return widen(Whole<NarrowTag>().load(p)); }
  HWY_INLINE Wide keep(Wide v) const { return v; }
  HWY_INLINE void store(Wide v, real* p) const { Whole<NarrowTag>().store(narrow(v), p); }
  HWY_INLINE Wide load_double(const double* p) const { return Whole<WideTag>().load(p); }
  HWY_INLINE void store_double(Wide v, double* p) const { Whole<WideTag>().store(v, p); }
};
struct WidePart {
  std::int64_t n;
  HWY_INLINE Wide load(const real* p) const { return widen(Part<NarrowTag>(n).load(p)); }
  /// v with zeros beyond the end.
  HWY_INLINE Wide keep(Wide v) const { return hn::IfThenElseZero(Part<WideTag>(n).mask(), v); }
  HWY_INLINE void store(Wide v, real* p) const { Part<NarrowTag>(n).store(narrow(v), p); }
  HWY_INLINE Wide load_double(const double* p) const { return Part<WideTag>(n).load(p); }
  HWY_INLINE void store_double(Wide v, double* p) const { Part<WideTag>(n).store(v, p); }
};
template <class Body>
HWY_INLINE void each_wide(std::int64_t n, const Body& body) {
  std::int64_t i = 0;
  for (; i + wide_lanes <= n; i += wide_lanes) body(i, WideWhole());
  if (i < n) body(i, WidePart{n - i});
}

/// Several sums of n terms at once, in double: term(i, io, v) sets v[t] to the vector of the terms
/// of sum t that begins with term i. Each sum consists of 32 partial sums; partial sum j contains
/// the terms j, j + 32, j + 64, …. The partial sums are added pairwise, the second half to the
/// first, so the order is the same for every vector width.
template <int terms, class Term>
HWY_INLINE std::array<double, terms> wide_sums(std::int64_t n, const Term& term) {
  constexpr std::int64_t count = 32 / wide_lanes;  // number of vectors: 4, 8 or 16
  Wide sums[terms][count], v[terms];
  for (auto& parts : sums) {
#pragma GCC unroll 16
    for (std::int64_t k = 0; k < count; ++k) parts[k] = hn::Zero(WideTag());
  }
  std::int64_t i = 0;
  for (; i + 32 <= n; i += 32) {
#pragma GCC unroll 16
    for (std::int64_t k = 0; k < count; ++k) {
      term(i + k * wide_lanes, WideWhole(), v);
#pragma GCC unroll 4
      for (int t = 0; t < terms; ++t) sums[t][k] = hn::Add(sums[t][k], v[t]);
    }
  }
#pragma GCC unroll 16
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int64_t at = i + k * wide_lanes;
    if (at >= n) break;
    const WidePart io{std::min(n - at, wide_lanes)};
    term(at, io, v);
#pragma GCC unroll 4
    for (int t = 0; t < terms; ++t) sums[t][k] = hn::Add(sums[t][k], io.keep(v[t]));
  }
  std::array<double, terms> totals;
  for (int t = 0; t < terms; ++t) {
#pragma GCC unroll 4
    for (std::int64_t half = count / 2; half > 0; half /= 2) {
#pragma GCC unroll 8
      for (std::int64_t k = 0; k < half; ++k) sums[t][k] = hn::Add(sums[t][k], sums[t][k + half]);
    }
    HWY_ALIGN double last[wide_lanes];
    hn::Store(sums[t][0], WideTag(), last);
    for (std::int64_t half = wide_lanes / 2; half > 0; half /= 2) {
      for (std::int64_t k = 0; k < half; ++k) last[k] += last[k + half];
    }
    totals[static_cast<std::size_t>(t)] = last[0];
  }
  return totals;
}
/// The sum of n terms, in the order of wide_sums: term(i, io) returns the vector that begins with
/// term i.
template <class Term>
HWY_INLINE double wide_sum(std::int64_t n, const Term& term) {
  return wide_sums<1>(
      n, [&](std::int64_t i, auto io, Wide(&v)[1]) HWY_ATTR { v[0] = term(i, io); })[0];
}

}  // namespace kernels::HWY_NAMESPACE
HEED_END
HWY_AFTER_NAMESPACE();
#else
HEED_BEGIN
namespace kernels {
namespace plain {}
namespace HWY_NAMESPACE {
using namespace plain;  // kernels that have no version for this target
}
}  // namespace kernels
HEED_END
#endif  // HEED_SIMD
#endif  // guard
