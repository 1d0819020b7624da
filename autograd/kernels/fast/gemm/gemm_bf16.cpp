#include <array>

#include "autograd/base/error.h"
#include "autograd/kernels/fast/gemm/bf16.h"
#include "autograd/kernels/fast/gemm/product.h"
#include "autograd/kernels/fast/gemm/product_bf16.h"

HEED_BEGIN
namespace kernels {

namespace {

thread_local bool enabled_here = false;
/// Minimum number of multiplications; smaller products remain in float32.
constexpr std::int64_t min_work = std::int64_t{1} << 22;
constexpr std::int64_t min_extent = 16;

bool is_amd() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  return __builtin_cpu_is("amd");
#else
  return false;
#endif
}

}  // namespace

std::string_view name_of(Bf16Unit unit) {
  constexpr std::array<std::string_view, 3> names{"fused multiply-adds in float32",
                                                  "dot products of pairs (AVX-512)", "tiles (AMX)"};
  return names[static_cast<std::size_t>(unit)];
}

bool has_bf16_unit(Bf16Unit unit) {
#ifdef HEED_DOUBLE
  (void)unit;
  return false;
#else
  if (unit != Bf16Unit::fma) return has_bf16_instructions(unit);
  return has_product(128, 128, 128);  // false only for lack of instructions
#endif
}

Bf16Unit bf16_unit() {
  static const Bf16Unit fastest = has_bf16_unit(Bf16Unit::tiles)               ? Bf16Unit::tiles
                                  : is_amd() && has_bf16_unit(Bf16Unit::pairs) ? Bf16Unit::pairs
                                                                               : Bf16Unit::fma;
  return fastest;
}

const std::string& bf16_obstacle() {
#ifdef HEED_DOUBLE
  static const std::string obstacle = "this build uses float64";
#else
  static const std::string obstacle =
      has_bf16_unit(bf16_unit()) ? "" : "this processor has no vector instructions for it";
#endif
  return obstacle;
}

Bf16Scope::Bf16Scope(bool enabled) : scope_(enabled_here, enabled && bf16_obstacle().empty()) {}

bool supports_bf16(std::int64_t m, std::int64_t n, std::int64_t k, real alpha, real beta) {
  return enabled_here && alpha == 1 && (beta == 0 || beta == 1) && m >= min_extent &&
         n >= min_extent && k >= min_extent && m * n * k >= min_work;
}

#ifdef HEED_DOUBLE
void gemm_bf16(Bf16Unit, Trans, Trans, std::int64_t, std::int64_t, std::int64_t, const real*,
               std::int64_t, const real*, std::int64_t, bool, real*, std::int64_t) {
  throw Error(Exit::failed, "bf16 is not available: " + bf16_obstacle());
}
#else
void gemm_bf16(Bf16Unit unit, Trans trans_a, Trans trans_b, std::int64_t m, std::int64_t n,
               std::int64_t k, const real* a, std::int64_t lda, const real* b, std::int64_t ldb,
               bool add, real* c, std::int64_t ldc) {
  if (unit == Bf16Unit::fma)
    return multiply_rounded(trans_a, trans_b, m, n, k, a, lda, b, ldb, add, c, ldc);
  multiply_bf16(unit, trans_a, trans_b, m, n, k, a, lda, b, ldb, add, c, ldc);
}
#endif

}  // namespace kernels
HEED_END
