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
  /// All zero. `with_sign`: whether values may be negative.
  Moment(MomentKind kind, bool with_sign, const Shape& shape);

  /// A block of float8 has an exponent besides its values.
  static constexpr double bytes_per_value(MomentKind kind) {
    return kind == MomentKind::float32 ? 4
           : kind == MomentKind::bf16  ? 2
                                       : 1 + 1.0 / kernels::block_values;
  }

  /// The values; with MomentKind::float32 in the array in use, otherwise in a copy.
  Array values() const;
  /// Copies the values from an array of the same shape. Values of values() do not change.
  void set(const Array& values);

  /// Number of values in a buffer; a multiple of the length of a block.
  static constexpr std::int64_t chunk_values = 1024;
  /// The values [begin, end), at most chunk_values: in the array in use, or read into `buffer`.
  /// `begin` must be a multiple of kernels::block_values, and so must `end`, unless it is the end.
  real* read(std::int64_t begin, std::int64_t end, real* buffer);
  /// Stores values that read() has returned and that have changed since. `key` selects the random
  /// numbers of the rounding; any number, such as that of the step, selects others.
  void write(std::int64_t begin, std::int64_t end, real* values, std::uint32_t key);

 private:
  /// Copies the values [begin, end) of a kind other than float32, and zeros up to a whole block.
  void decode(std::int64_t begin, std::int64_t end, float* values) const;

  MomentKind kind_;
  bool with_sign_;
  Shape shape_;
  Array array_;  ///< float32
  template <class T>
  using Codes = std::vector<T, BlockAllocator<T>>;
  Codes<std::uint16_t> halves_;            ///< bf16
  Codes<std::uint8_t> bytes_, exponents_;  ///< float8 (autograd/kernels/fast/compact.h)
};

HEED_END
