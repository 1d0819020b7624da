#pragma once
/// Rotary position embedding: rotates queries and keys by angles that depend on their positions.
#include <cstdint>
#include <span>
#include <string>

#include "autograd/base/enum_names.h"
#include "autograd/tensor.h"

namespace heed {

/// The pairs of a head's values that are rotated together: i and i + size/2 (as in GPT-NeoX),
/// or 2i and 2i + 1 (as in RoFormer). The two differ by a permutation of a head's columns.
enum class RotaryPairs { halves, adjacent };
constexpr auto names_of(RotaryPairs) { return enum_names<RotaryPairs>("halves", "adjacent"); }

}  // namespace heed

HEED_BEGIN

struct RotaryOptions {
  std::int64_t size = 0;  ///< size of a head; even
  /// Number of columns to rotate, counted from the first; a multiple of `size`. The rest is copied.
  std::int64_t columns = 0;
  RotaryPairs pairs = RotaryPairs::halves;
  double base = 10000;  ///< pair i is rotated by position · base^(−2i/size)
};

/// Rotates the heads of each row by angles proportional to the row's position:
/// [rows, d] → [rows, d]. The product of a query and a key then depends on their positions only
/// through the distance between them. positions: [rows], counted from 0.
Tensor rotary(const Tensor& x, std::span<const std::int32_t> positions,
              const RotaryOptions& options);

/// Rotates one head in float64, for programs that display the rotation; direction −1 is the
/// inverse.
void rotate_head(double* head, std::int64_t position, double direction,
                 const RotaryOptions& options);
/// "columns 2k and 2k + 1 rotated by i θ_k, θ_k = 10000^(−2k / 8)"
std::string rotation_formula(const RotaryOptions& options);

HEED_END
