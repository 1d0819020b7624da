#pragma once
/// A moment of the gradients: a number for each value of a parameter, in float32 or in fewer bytes.
#include <cstdint>
#include <vector>

#include "autograd/kernels/fast/compact.h"
#include "autograd/memory/block.h"
#include "autograd/tensor.h"
#include "optim/options.h"

HEED_BEGIN

class Moment {
 public:
  /// All zero. `with_sign`: whether values may be negative. `first`: the index of the first value in
  /// the parameter, a multiple of kernels::block_values, so that the values of a part of a parameter
  /// are rounded as they would be in the whole parameter.
  Moment(MomentKind kind, bool with_sign, const Shape& shape, std::int64_t first = 0);

  /// A block of float8 has an exponent besides its values.
  static constexpr double bytes_per_value(MomentKind kind) {
    return kind == MomentKind::float32 ? 4
           : kind == MomentKind::bf16  ? 2
                                       : 1 + 1.0 / kernels::block_values;
  }

  /// The values: the array in use if they are float32, otherwise a copy.
  Array values() const;
  /// Copies the values from an array of the same shape. Values that values() has returned are stored
  /// exactly.
  void set(const Array& values);

  /// Number of values in a buffer, a multiple of kernels::block_values.
  static constexpr std::int64_t chunk_values = 1024;
  /// Returns the values [begin, end), at most chunk_values: a pointer into the array in use if they
  /// are float32, otherwise `buffer`, which receives them. `begin` and `end` must be multiples of
  /// kernels::block_values; `end` may also be the number of values.
  real* read(std::int64_t begin, std::int64_t end, real* buffer);
  /// Stores the values that read() has returned, after the caller has changed them. Each `key`
  /// selects other random numbers for the rounding.
  void write(std::int64_t begin, std::int64_t end, real* values, std::uint32_t key);

 private:
  /// Copies the values [begin, end) of a kind other than float32, and zeros up to a whole block.
  void decode(std::int64_t begin, std::int64_t end, float* values) const;

  MomentKind kind_;
  bool with_sign_;
  std::int64_t first_;
  Shape shape_;
  Array array_;  ///< float32
  template <class T>
  using Codes = std::vector<T, BlockAllocator<T>>;
  Codes<std::uint16_t> halves_;            ///< bf16
  Codes<std::uint8_t> bytes_, exponents_;  ///< float8 (autograd/kernels/fast/compact.h)
};

HEED_END
