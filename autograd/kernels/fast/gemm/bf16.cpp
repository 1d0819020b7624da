#include "autograd/kernels/fast/gemm/bf16.h"

#include <bit>

#include "autograd/kernels/fast/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/fast/gemm/bf16.cpp"
#include "hwy/foreach_target.h"
// These headers must follow foreach_target:
#include "autograd/kernels/fast/simd/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
HEED_BEGIN
namespace kernels::HWY_NAMESPACE {
#if HEED_SIMD

void to_bf16(const float* x, std::uint16_t* y, std::int64_t n) {
  using Floats = hn::ScalableTag<float>;
  using Bits = hn::RebindToUnsigned<Floats>;
  using Halves = hn::Rebind<std::uint16_t, Floats>;
  constexpr Floats floats;
  constexpr Bits bits;
  const auto width = static_cast<std::int64_t>(hn::MaxLanes(floats));
  std::int64_t i = 0;
  for (; i + width <= n; i += width) {
    const auto upper =
        hn::ShiftRight<16>(hn::BitCast(bits, round_to_bf16(hn::LoadU(floats, x + i))));
    const auto narrow =
        hn::DemoteTo(Halves(), hn::BitCast(hn::RebindToSigned<Bits>(), upper));  // all < 2^16
    hn::StoreU(narrow, Halves(), y + i);
  }
  plain::to_bf16(x + i, y + i, n - i);
}

#endif
}  // namespace kernels::HWY_NAMESPACE
HEED_END
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
HEED_BEGIN
namespace kernels {

HWY_EXPORT(to_bf16);

void to_bf16(const float* x, std::uint16_t* y, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(to_bf16)(x, y, n);
}

namespace plain {
void to_bf16(const float* x, std::uint16_t* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const auto u = std::bit_cast<std::uint32_t>(x[i]);
    const std::uint32_t rounded = x[i] != x[i] ? u | 0x400000 : u + 0x7FFF + (u >> 16 & 1);
    y[i] = static_cast<std::uint16_t>(rounded >> 16);
  }
}
}  // namespace plain

}  // namespace kernels
HEED_END
#endif
