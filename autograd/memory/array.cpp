#include "autograd/memory/array.h"

#include <algorithm>
#include <cstdint>
#include <utility>

HEED_BEGIN

Array::Array(const Shape& shape)
    : shape_(shape),
      block_(allocate_block(static_cast<std::size_t>(shape.size()) * sizeof(real))),
      data_(static_cast<real*>(block_->memory())) {}

Array::Array(const Shape& shape, std::span<const real> values) : Array(shape) {
  if (static_cast<std::int64_t>(values.size()) != shape.size()) {
    fail("[array] expected {} values for shape {}, got {}", shape.size(), shape, values.size());
  }
  std::copy(values.begin(), values.end(), data_);
}

Array::Array(std::initializer_list<List> rows)
    : Array({static_cast<std::int64_t>(rows.size()),
             rows.size() == 0 ? 0 : static_cast<std::int64_t>(rows.begin()->size())}) {
  real* to = data_;
  for (const List& row : rows) {
    if (static_cast<std::int64_t>(row.size()) != cols())
      fail("[array] expected rows of {} values, got a row of {}", cols(), row.size());
    to = std::copy(row.begin(), row.end(), to);
  }
}

Array Array::of(List values) {
  return Array({static_cast<std::int64_t>(values.size())},
               std::span(values.begin(), values.size()));
}

Array::Array(const Array& other) : shape_(other.shape_), block_(other.block_), data_(other.data_) {
  if (block_ != nullptr) block_->references.fetch_add(1, std::memory_order_relaxed);
}

Array::Array(Array&& other) noexcept
    : shape_(std::exchange(other.shape_, Shape())),
      block_(std::exchange(other.block_, nullptr)),
      data_(std::exchange(other.data_, nullptr)) {}

Array& Array::operator=(Array other) noexcept {
  std::swap(shape_, other.shape_);
  std::swap(block_, other.block_);
  std::swap(data_, other.data_);
  return *this;
}

Array::~Array() {
  if (block_ != nullptr && block_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    release_block(block_);
  }
}

Array Array::full(const Shape& shape, real value) {
  Array filled(shape);
  std::fill_n(filled.data_, shape.size(), value);
  return filled;
}

real Array::item() const {
  if (!defined()) fail("[item] expected one value, got an undefined array");
  if (size() != 1) fail("[item] expected one value, got shape {}", shape_);
  return *data_;
}

const real& Array::at(std::initializer_list<std::int64_t> index) const {
  if (!defined()) fail("[at] an undefined array has no values");
  if (static_cast<int>(index.size()) != shape_.rank())
    fail("[at] expected one index per axis of shape {}, got {}", shape_, index.size());
  std::int64_t flat = 0;
  int axis = 0;
  for (const std::int64_t i : index) {
    const std::int64_t n = shape_[axis];
    if (i < -n || i >= n)
      fail("[at] index {} is out of range for axis {} of shape {}", i, axis, shape_);
    flat = flat * n + (i < 0 ? i + n : i);
    ++axis;
  }
  return data_[flat];
}

real& Array::at(std::initializer_list<std::int64_t> index) {
  return const_cast<real&>(std::as_const(*this).at(index));
}

Array Array::reshaped(const Shape& shape) const {
  if (shape.size() != size())
    fail("[reshape] {} has {} values, but {} has {}", shape_, size(), shape, shape.size());
  Array view(*this);
  view.shape_ = shape;
  return view;
}

Array Array::sliced(std::int64_t begin, std::int64_t end) const {
  if (shape_.rank() == 0 || begin < 0 || end < begin || end > shape_[0]) {
    fail("[slice] rows [{}, {}) are out of range for shape {}", begin, end, shape_);
  }
  Array view(*this);
  view.shape_ = shape_.with(0, end - begin);
  // Without entries there are no values, and the division would be by 0.
  if (shape_[0] > 0) view.data_ += begin * (shape_.size() / shape_[0]);
  return view;
}

Array Array::clone() const {
  if (!defined()) return {};
  return Array(shape_, values());
}

std::int64_t Array::owners() const {
  return block_ == nullptr ? 0 : block_->references.load(std::memory_order_acquire);
}

std::uint32_t Array::version() const {
  return block_ == nullptr ? 0 : block_->version.load(std::memory_order_relaxed);
}

void Array::mark_written() {
  if (block_ != nullptr) block_->version.fetch_add(1, std::memory_order_relaxed);
}

HEED_END
