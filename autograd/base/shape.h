#pragma once
/// The shape of a dense row-major array: up to eight extents, each at least 0.
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>

#include "autograd/base/error.h"

namespace heed {

/// Throws Error(failed). Messages usually have the form "[op] expected …, got …".
template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(Exit::failed, fmt::format(format, std::forward<Args>(args)...));
}

class Shape {
 public:
  static constexpr int max_rank = 8;

  Shape() = default;  ///< rank 0: a scalar, of size 1
  Shape(std::initializer_list<std::int64_t> extents)
      : Shape(std::span(extents.begin(), extents.size())) {}
  explicit Shape(std::span<const std::int64_t> extents) {
    for (const std::int64_t n : extents) push_back(n);
  }

  int rank() const { return rank_; }
  /// Product of the extents; 1 for rank 0.
  std::int64_t size() const { return size_; }
  /// Product of the extents of axes [begin, end), both counted from the front.
  std::int64_t size(int begin, int end) const {
    std::int64_t n = 1;
    for (int i = begin; i < end; ++i) n *= extents_[i];
    return n;
  }
  /// Extent of an axis; negative axes count from the end.
  std::int64_t operator[](int axis) const { return extents_[normalize(axis)]; }
  /// The array viewed as a matrix [rows, cols]: cols is the last extent (1 for a scalar), rows the
  /// product of all others.
  std::int64_t cols() const { return rank_ == 0 ? 1 : extents_[rank_ - 1]; }
  std::int64_t rows() const { return size(0, rank_ - 1); }

  /// Maps an axis in [-rank, rank) to [0, rank); throws for any other axis.
  int normalize(int axis) const {
    if (axis < -rank_ || axis >= rank_) fail("[shape] axis {} does not exist in {}", axis, str());
    return axis < 0 ? axis + rank_ : axis;
  }
  void push_back(std::int64_t n) {
    if (rank_ == max_rank) fail("[shape] expected at most {} axes", max_rank);
    if (n < 0) fail("[shape] expected extents of at least 0, got {}", n);
    // The size in bytes must not overflow either, with some room.
    if (n > 0 && nonzero_extents_size_ > std::numeric_limits<std::int64_t>::max() / 16 / n) {
      fail("[shape] {} x {} has too many elements", str(), n);
    }
    extents_[rank_++] = n;
    size_ *= n;
    nonzero_extents_size_ *= std::max<std::int64_t>(n, 1);
  }
  /// This shape with another extent of one axis.
  Shape with(int axis, std::int64_t n) const {
    Shape changed;
    axis = normalize(axis);
    for (int i = 0; i < rank_; ++i) changed.push_back(i == axis ? n : (*this)[i]);
    return changed;
  }

  std::span<const std::int64_t> extents() const {
    return {extents_.data(), static_cast<std::size_t>(rank_)};
  }
  bool operator==(const Shape& other) const {
    return std::ranges::equal(extents(), other.extents());
  }
  /// "[2, 3]"; "[]" for a scalar.
  std::string str() const { return fmt::format("[{}]", fmt::join(extents(), ", ")); }

 private:
  std::array<std::int64_t, max_rank> extents_{};
  std::int64_t size_ = 1;
  std::int64_t nonzero_extents_size_ = 1;  // bounds the product of any subset of the extents
  int rank_ = 0;
};

}  // namespace heed

template <>
struct fmt::formatter<heed::Shape> : fmt::formatter<std::string> {
  template <class Context>
  auto format(const heed::Shape& shape, Context& context) const {
    return fmt::formatter<std::string>::format(shape.str(), context);
  }
};
