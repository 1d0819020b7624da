#include "tests/fuzz/operands.h"

#include <array>
#include <cmath>

#include "autograd/ops/more/attention/alibi.h"
#include "autograd/ops/more/attention/causal.h"
#include "autograd/ops/more/attention/window.h"

HEED_BEGIN

namespace graphs {
namespace {

constexpr auto remarkable_extents = std::to_array<std::int64_t>({
    16,
    17,
    31,
    64,
    65,
    127,
    128,
    130,
    257,
    1025,
    INT16_MAX,
    INT32_MAX,
    std::int64_t{INT32_MAX} + 1,
    std::int64_t{UINT32_MAX} + 1,
    std::int64_t{1} << 40,
    std::int64_t{1} << 58,
    std::int64_t{1} << 59,
    (std::int64_t{1} << 59) + 1,
    std::int64_t{1} << 61,
    std::int64_t{1} << 62,
    INT64_MAX,
    -1,
    INT64_MIN,
});

constexpr auto remarkable_reals =
    std::to_array<double>({0, 0.1, 0.5, 0.99999, 1, -0.1, 2, 1e-30, 1e30, -1e30, INFINITY, NAN});

}  // namespace

Tensor Operands::tensor() {
  const unsigned char at = bytes_.byte();
  if (pool_.empty() || at % 16 == 15) return {};
  const Made& made = pool_[at % pool_.size()];
  tame_ = tame_ && made.tame;
  return made.tensor;
}

/// A byte below 16 is the extent itself, so that shapes often match.
std::int64_t Operands::extent() {
  const unsigned char byte = bytes_.byte();
  return byte < 16 ? byte : remarkable_extents[(byte - 16u) % remarkable_extents.size()];
}

Shape Operands::shape() {
  // Up to one axis more than a shape may have.
  std::vector<std::int64_t> extents(bytes_.byte() % (Shape::max_rank + 2));
  for (std::int64_t& n : extents) n = extent();
  return Shape(std::span<const std::int64_t>(extents));
}

real Operands::probability() {
  return static_cast<real>(remarkable_reals[bytes_.byte() % remarkable_reals.size()]);
}

double Operands::divisor() {
  const double n = remarkable_reals[bytes_.byte() % remarkable_reals.size()];
  if (!(n > 0.01)) wild();
  return n;
}

std::vector<std::int32_t> Operands::ids() {
  std::vector<std::int32_t> ids(bytes_.byte() % 24u);
  for (std::int32_t& id : ids) {
    const auto byte = static_cast<signed char>(bytes_.byte());
    id = byte == 127 ? INT32_MAX : byte == -128 ? INT32_MIN : byte;
  }
  return ids;
}

/// The bytes are differences of offsets, so that offsets often ascend.
std::vector<std::int32_t> Operands::offsets() {
  std::vector<std::int32_t> offsets = {0};
  for (int left = bytes_.byte() % 6; left > 0; --left) {
    const auto step = static_cast<signed char>(bytes_.byte());
    offsets.push_back(offsets.back() + step);
  }
  return offsets;
}

UnaryFunction Operands::unary_function() {
  const auto f = static_cast<UnaryFunction>(bytes_.byte() % unary_function_count);
  if (f == UnaryFunction::exp || f == UnaryFunction::log || f == UnaryFunction::sqrt) wild();
  return f;
}

AttentionOptions Operands::attention() {
  AttentionOptions options;
  options.heads = extent();
  const unsigned char kind = bytes_.byte();  // the lowest bit selects the causal pattern
  if (kind % 2 == 1) options.pattern = causal_pattern();
  if (kind / 2 % 4 == 1) options.pattern = window_pattern(extent(), kind % 2 == 1 ? 0 : extent());
  if (kind / 8 % 4 == 1) options.terms.push_back(std::make_shared<Alibi>());
  if (kind / 32 % 4 == 1) options.key_heads = extent();
  options.dropout = probability();
  options.key = key();
  return options;
}

Array Operands::mask() {
  const unsigned char kind = bytes_.byte() % 4u;
  if (kind == 0) return {};
  if (kind == 1) return causal_mask(extent());
  return tensor().value();
}

}  // namespace graphs

HEED_END
