#include "autograd/kernels/attend.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "autograd/kernels/rows.h"
#include "autograd/kernels/simd/targets.h"
#include "autograd/memory/arena.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/attend.cpp"
#include "hwy/foreach_target.h"
// After foreach_target:
#include "autograd/kernels/simd/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
HEED_BEGIN
namespace kernels::HWY_NAMESPACE {
#if HEED_SIMD

/// ⟨x, y⟩ of a head's few values, summed in `real` as gemm does.
HWY_INLINE real inner(const real* x, const real* y, std::int64_t n) {
  Vector even = set(0), odd = set(0);
  std::int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    even = hn::MulAdd(hn::LoadU(Tag(), x + i), hn::LoadU(Tag(), y + i), even);
    odd = hn::MulAdd(hn::LoadU(Tag(), x + i + lanes), hn::LoadU(Tag(), y + i + lanes), odd);
  }
  each(n - i, [&](std::int64_t k, auto io)
                  HWY_ATTR { even = hn::MulAdd(io.load(x + i + k), io.load(y + i + k), even); });
  return hn::GetLane(hn::SumOfLanes(Tag(), hn::Add(even, odd)));
}

/// Asks for a row of keys and values ahead of its use: each row lies in an array of its own, where
/// the processor cannot guess it.
HWY_INLINE void fetch(const real* row, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += std::int64_t{64 / sizeof(real)}) hwy::Prefetch(row + i);
}

/// scores[h, t] = ⟨q_h, k_t,h⟩ / √size. Row by row, so that each is read once, from one place.
void attend_scores(const real* q, const real* const* rows, std::int64_t n, std::int64_t size,
                   std::int64_t heads, real* scores) {
  const real root = real(1) / std::sqrt(static_cast<real>(size));
  for (std::int64_t t = 0; t < n; ++t) {
    fetch(rows[std::min(t + 2, n - 1)], 2 * heads * size);
    for (std::int64_t h = 0; h < heads; ++h)
      scores[h * n + t] = root * inner(q + h * size, rows[t] + h * size, size);
  }
}

/// out_h = Σ_t weights[h, t] v_t,h
void attend_mix(const real* weights, const real* const* rows, std::int64_t n, std::int64_t size,
                std::int64_t heads, real* out) {
  const std::int64_t d = heads * size;
  std::fill_n(out, d, real(0));
  for (std::int64_t t = 0; t < n; ++t) {
    for (std::int64_t h = 0; h < heads; ++h) {
      const Vector w = set(weights[h * n + t]);
      const real* const value = rows[t] + d + h * size;
      real* const into = out + h * size;
      each(size, [=](std::int64_t i, auto io) HWY_ATTR {
        io.store(hn::MulAdd(w, io.load(value + i), io.load(into + i)), into + i);
      });
    }
  }
}

#else
using plain::attend_mix;
using plain::attend_scores;
#endif
}  // namespace kernels::HWY_NAMESPACE
HEED_END
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
HEED_BEGIN
namespace kernels {

HWY_EXPORT(attend_scores);
HWY_EXPORT(attend_mix);

void attend(const real* q, std::span<const real* const> rows, std::int64_t d, std::int64_t heads,
            real* out) {
  const std::int64_t size = d / heads, n = static_cast<std::int64_t>(rows.size());
  std::vector<real, ArenaAllocator<real>> weights(static_cast<std::size_t>(heads * n));
  HWY_DYNAMIC_DISPATCH(attend_scores)(q, rows.data(), n, size, heads, weights.data());
  for (std::int64_t h = 0; h < heads; ++h)
    softmax_row(weights.data() + h * n, weights.data() + h * n, n);
  HWY_DYNAMIC_DISPATCH(attend_mix)(weights.data(), rows.data(), n, size, heads, out);
}

}  // namespace kernels
HEED_END
#endif
