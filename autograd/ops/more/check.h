#pragma once
/// Argument checks shared by several ops of this folder.
#include <algorithm>
#include <cstdint>
#include <span>

#include "autograd/ops/shared/check.h"

HEED_BEGIN

/// Dropout draws 16 bits for each value, so p is rounded to a multiple of 2⁻¹⁶ and must not round
/// to 1.
inline void require_probability(const char* op, real p, const char* name = "p") {
  constexpr double largest = 65535.0 / 65536.0;
  if (!(p >= 0 && p < 1)) fail("[{}] expected {} in [0, 1), got {}", op, name, p);
  if (p > largest) fail("[{}] expected {} <= 1 - 1/65536, got {}", op, name, p);
}

/// Checks the offsets of concatenated sequences: sequence i consists of rows
/// [offsets[i], offsets[i + 1]).
inline void require_offsets(const char* op, std::span<const std::int32_t> offsets,
                            std::int64_t rows) {
  if (offsets.empty() || offsets.front() != 0 || offsets.back() != rows ||
      !std::is_sorted(offsets.begin(), offsets.end()))
    fail("[{}] expected non-decreasing offsets from 0 to the number of rows ({}), got {}", op, rows,
         offsets.empty() ? "none" : fmt::format("{}", fmt::join(offsets, ", ")));
}

HEED_END
