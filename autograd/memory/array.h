#pragma once
/// A dense row-major N-d array of reals. Copying an Array shares its values, as do reshaping it and
/// slicing its rows: writing through one copy changes all, as with a PyTorch tensor. `clone` copies
/// the values.
#include <initializer_list>
#include <iosfwd>
#include <span>

#include "autograd/base/real.h"
#include "autograd/base/shape.h"
#include "autograd/memory/block.h"

HEED_BEGIN

class Array {
 public:
  Array() = default;                   ///< undefined: has no values; `defined()` is false
  explicit Array(const Shape& shape);  ///< values not initialised
  Array(const Shape& shape, std::span<const real> values);
  using List = std::initializer_list<real>;
  /// A matrix from its rows: Array({{1, 2}, {3, 4}}). But {2, 3} in Array({2, 3}) is a shape; `of`
  /// makes an array from one list.
  explicit Array(std::initializer_list<List> rows);
  Array(const Array& other);
  Array(Array&& other) noexcept;
  Array& operator=(Array other) noexcept;
  ~Array();

  static Array zeros(const Shape& shape) { return full(shape, 0); }
  static Array full(const Shape& shape, real value);
  static Array scalar(real value) { return full({}, value); }
  static Array of(List values);  ///< an array of rank 1

  bool defined() const { return block_ != nullptr; }
  const Shape& shape() const { return shape_; }
  std::int64_t size() const { return defined() ? shape_.size() : 0; }
  std::int64_t rows() const { return shape_.rows(); }  ///< product of all extents but the last
  std::int64_t cols() const { return shape_.cols(); }  ///< the last extent
  const real* data() const { return data_; }
  real* data() { return data_; }
  std::span<const real> values() const& { return {data_, static_cast<std::size_t>(size())}; }
  std::span<real> values() & { return {data_, static_cast<std::size_t>(size())}; }
  std::span<const real> values() && = delete;  // the temporary's values may be destroyed
  std::span<const real> values() const&& = delete;
  const real* row(std::int64_t i) const { return data_ + i * cols(); }
  real* row(std::int64_t i) { return data_ + i * cols(); }
  real item() const;  ///< the value of an array of size 1
  /// The value at an index, x.at({i, j}); negative indices count from the end.
  const real& at(std::initializer_list<std::int64_t> index) const;
  real& at(std::initializer_list<std::int64_t> index);

  /// The same values with another shape of equal size.
  Array reshaped(const Shape& shape) const;
  /// Entries [begin, end) of the first axis, sharing the values.
  Array sliced(std::int64_t begin, std::int64_t end) const;
  Array clone() const;
  /// True if no other array shares the values, so they may be written to.
  bool unique() const { return owners() == 1; }
  std::int64_t owners() const;  ///< number of arrays that share the values; 0 if undefined
  bool shares(const Array& other) const { return defined() && block_ == other.block_; }

  /// Increases with each call of mark_written for the shared values. tape/hook.cpp compares versions to
  /// detect values that were changed between forward and backward.
  std::uint32_t version() const;
  void mark_written();

 private:
  Shape shape_;
  Block* block_ = nullptr;
  real* data_ = nullptr;
};

/// "[2, 3] [[1, 2, 3], [4, 5, 6]]": shape and values; of an axis with more than 7 entries, only the
/// first and last three.
std::ostream& operator<<(std::ostream& out, const Array& x);

HEED_END
