#pragma once
/// The concatenated parameters of a model, in pieces.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "autograd/tensor.h"

HEED_BEGIN

/// A range of one parameter's values, small enough to fit in cache: the unit in which gradients are
/// summed and values are updated.
struct Piece {
  std::size_t parameter;
  std::int64_t begin, end;  ///< range of indices in the parameter
  std::int64_t place;       ///< index of its first value among the values of all parameters

  std::int64_t size() const { return end - begin; }
};

/// A half-open range [begin, end) of value indices.
struct ValueRange {
  std::int64_t begin = 0, end = 0;

  std::int64_t size() const { return end - begin; }
  ValueRange intersection(ValueRange other) const {
    const std::int64_t from = std::max(begin, other.begin);
    return {from, std::max(from, std::min(end, other.end))};
  }
};

inline constexpr std::int64_t piece_values = 1 << 14;

inline std::vector<Piece> pieces_of(const std::vector<NamedTensor>& parameters) {
  std::vector<Piece> pieces;
  std::int64_t place = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::int64_t n = parameters[i].tensor.size();
    for (std::int64_t begin = 0; begin < n; begin += piece_values)
      pieces.push_back({i, begin, std::min(begin + piece_values, n), place + begin});
    place += n;
  }
  return pieces;
}

HEED_END
