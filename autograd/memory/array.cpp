#include "autograd/memory/array.h"

#include <algorithm>
#include <cstring>

HEED_BEGIN

Array::Array(const Shape& shape)
    : shape_(shape),
      block_(arena_allocate(static_cast<std::size_t>(shape.size()) * sizeof(real))),
      data_(static_cast<real*>(block_->memory())) {}

Array::Array(const Shape& shape, std::span<const real> values) : Array(shape) {
  if (static_cast<std::int64_t>(values.size()) != shape.size()) {
    fail("[array] expected {} values for shape {}, got {}", shape.size(), shape, values.size());
  }
  std::copy(values.begin(), values.end(), data_);
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
    arena_release(block_);
  }
}

Array Array::full(const Shape& shape, real value) {
  Array filled(shape);
  std::fill_n(filled.data_, shape.size(), value);
  return filled;
}

real Array::item() const {
  if (size() != 1) fail("[item] expected one value, got shape {}", shape_);
  return *data_;
}

Array Array::reshaped(const Shape& shape) const {
  if (shape.size() != size())
    fail("[reshape] {} has {} values, {} has {}", shape_, size(), shape, shape.size());
  Array view(*this);
  view.shape_ = shape;
  return view;
}

Array Array::sliced(std::int64_t begin, std::int64_t end) const {
  if (shape_.rank() == 0 || begin < 0 || end < begin || end > shape_[0]) {
    fail("[slice] rows {} to {} do not lie within {}", begin, end, shape_);
  }
  Array view(*this);
  view.shape_ = shape_.with(0, end - begin);
  if (shape_[0] > 0) view.data_ += begin * (shape_.size() / shape_[0]);
  return view;
}

Array Array::clone() const {
  if (!defined()) return {};
  return Array(shape_, values());
}

bool Array::unique() const {
  return block_ != nullptr && block_->references.load(std::memory_order_acquire) == 1;
}

HEED_END
