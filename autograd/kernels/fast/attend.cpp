#include "autograd/kernels/fast/attend.h"

#include <hwy/cache_control.h>

#include <algorithm>

#include "autograd/kernels/fast/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "autograd/kernels/fast/attend.cpp"
#include "hwy/foreach_target.h"
// These headers must follow foreach_target:
#include "autograd/kernels/fast/simd/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
HEED_BEGIN
namespace kernels::HWY_NAMESPACE {
#if HEED_SIMD

/// ⟨x, y⟩ over the columns of one head, summed in `real` as in gemm.
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

/// Prefetches a row of keys and values: rows may be anywhere in memory, so the processor cannot
/// predict the address of the next one.
HWY_INLINE void fetch(const real* row, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += std::int64_t{64 / sizeof(real)}) hwy::Prefetch(row + i);
}

/// Calls body(h, first column of its key head) for each query head h.
template <class Body>
HWY_INLINE void each_head(const HeadLayout& layout, const Body& body) {
  const std::int64_t size = layout.size, group = layout.heads / layout.key_heads;
  if (group == 1) {
    for (std::int64_t h = 0; h < layout.heads; ++h) body(h, h * size);
    return;
  }
  for (std::int64_t k = 0; k < layout.key_heads; ++k) {
    for (std::int64_t h = k * group; h < (k + 1) * group; ++h) body(h, k * size);
  }
}

/// The loop over cached rows is the outer one, so that each row is read only once.
void attend_scores(const real* q, const real* const* rows, std::int64_t n, HeadLayout layout,
                   real scale, real* scores) {
  const std::int64_t size = layout.size;
  for (std::int64_t t = 0; t < n; ++t) {
    fetch(rows[std::min(t + 2, n - 1)], 2 * layout.key_heads * size);
    const real* const keys = rows[t];
    each_head(layout, [=](std::int64_t h, std::int64_t column) HWY_ATTR {
      scores[h * n + t] = scale * inner(q + h * size, keys + column, size);
    });
  }
}

void attend_mix(const real* weights, const real* const* rows, std::int64_t n, HeadLayout layout,
                real* out) {
  const std::int64_t size = layout.size;
  std::fill_n(out, layout.heads * size, real(0));
  for (std::int64_t t = 0; t < n; ++t) {
    const real* const values = rows[t] + layout.key_heads * size;
    each_head(layout, [=](std::int64_t h, std::int64_t column) HWY_ATTR {
      const Vector w = set(weights[h * n + t]);
      const real* const value = values + column;
      real* const into = out + h * size;
      each(size, [=](std::int64_t i, auto io) HWY_ATTR {
        io.store(hn::MulAdd(w, io.load(value + i), io.load(into + i)), into + i);
      });
    });
  }
}

#endif
}  // namespace kernels::HWY_NAMESPACE
HEED_END
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
HEED_BEGIN
namespace kernels {

HWY_EXPORT(attend_scores);
HWY_EXPORT(attend_mix);

void attend_scores(const real* q, const real* const* rows, std::int64_t n, HeadLayout layout,
                   real scale, real* scores) {
  HWY_DYNAMIC_DISPATCH(attend_scores)(q, rows, n, layout, scale, scores);
}
void attend_mix(const real* weights, const real* const* rows, std::int64_t n, HeadLayout layout,
                real* out) {
  HWY_DYNAMIC_DISPATCH(attend_mix)(weights, rows, n, layout, out);
}

}  // namespace kernels
HEED_END
#endif
