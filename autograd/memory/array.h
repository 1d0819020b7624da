#pragma once
/// A dense row-major N-d array of reals. Copying an Array shares its values; `clone` copies them.
/// Reshaping and slicing rows copy nothing: they share as well.
#include <span>
#include <utility>
#include <vector>

#include "autograd/base/real.h"
#include "autograd/base/shape.h"
#include "autograd/memory/arena.h"

HEED_BEGIN

class Array {
 public:
  Array() = default;                   ///< undefined: has no values; `defined()` is false
  explicit Array(const Shape& shape);  ///< values not initialised
  Array(const Shape& shape, std::span<const real> values);
  Array(const Array& other);
  Array(Array&& other) noexcept;
  Array& operator=(Array other) noexcept;
  ~Array();

  static Array zeros(const Shape& shape) { return full(shape, 0); }
  static Array full(const Shape& shape, real value);
  static Array scalar(real value) { return full({}, value); }

  bool defined() const { return block_ != nullptr; }
  const Shape& shape() const { return shape_; }
  std::int64_t size() const { return defined() ? shape_.size() : 0; }
  std::int64_t rows() const { return shape_.rows(); }  ///< all axes but the last, as one
  std::int64_t cols() const { return shape_.cols(); }  ///< the last axis
  const real* data() const { return data_; }
  real* data() { return data_; }
  std::span<const real> values() const& { return {data_, static_cast<std::size_t>(size())}; }
  std::span<real> values() & { return {data_, static_cast<std::size_t>(size())}; }
  std::span<const real> values() && = delete;  // the values would be destroyed
  std::span<const real> values() const&& = delete;
  const real* row(std::int64_t i) const { return data_ + i * cols(); }
  real* row(std::int64_t i) { return data_ + i * cols(); }
  real item() const;  ///< the value of an array of size 1

  /// The same values under another shape of equal size.
  Array reshaped(const Shape& shape) const;
  /// Entries [begin, end) of the first axis, sharing the values.
  Array sliced(std::int64_t begin, std::int64_t end) const;
  Array clone() const;
  /// True if no other array shares the values, so they may be written to.
  bool unique() const;

 private:
  Shape shape_;
  Block* block_ = nullptr;
  real* data_ = nullptr;
};

HEED_END
