#include "train/tasks/precision.h"

#include <fmt/format.h>

#include <algorithm>

#include "autograd/base/clock.h"
#include "autograd/kernels/fast/gemm/bf16.h"
#include "autograd/kernels/gemm.h"
#include "autograd/memory/array.h"

namespace heed {

ProductRates product_rates() {
  constexpr std::int64_t n = 512;
  const Array a = Array::full({n, n}, 0.5F), b = Array::full({n, n}, 2.0F);
  Array c({n, n});
  const auto rate = [&](bool bf16) {
    const kernels::Bf16Scope scope(bf16);
    double best = 0;
    for (int i = 0; i < 4; ++i) {  // the first product loads code and is not counted
      const double start = seconds_now();
      kernels::gemm(kernels::Trans::no, kernels::Trans::no, n, n, n, 1, a.data(), n, b.data(), n, 0,
                    c.data(), n);
      if (i > 0) best = std::max(best, 2e-9 * n * n * n / (seconds_now() - start));
    }
    return best;
  };
  return {rate(false), rate(true)};
}

std::string bf16_note(bool requested, std::string_view key) {
  if (!requested) return "";
  const std::string& obstacle = kernels::bf16_obstacle();
  if (obstacle.empty()) return "";
  return fmt::format("note: {} is bf16, but {}; using float32 instead", key, obstacle);
}

std::string slow_bf16_note(const ProductRates& rates) {
  if (rates.bf16 >= rates.float32) return "";
  return fmt::format(
      "note: train.precision is bf16, but products in bf16 are slower than in float32 on this "
      "processor ({:.0f} and {:.0f} GFLOP/s); compare the steps with heed bench CONFIG --precisions",
      rates.bf16, rates.float32);
}

std::string training_precision_note(Precision precision) {
  const bool bf16 = precision == Precision::bf16;
  const std::string note = bf16_note(bf16, "train.precision");
  return bf16 && note.empty() ? slow_bf16_note(product_rates()) : note;
}

}  // namespace heed
