#include "optim/moments.h"

#include <algorithm>
#include <array>

HEED_BEGIN

namespace {

using Chunk = std::array<float, Moment::chunk_values>;

std::int64_t padded(std::int64_t n) {
  return (n + kernels::block_values - 1) / kernels::block_values * kernels::block_values;
}

/// The memory for a buffer's values as floats: the buffer itself in the float build, otherwise
/// `chunk`.
[[maybe_unused]] float* floats_in(float* buffer, Chunk&) { return buffer; }
[[maybe_unused]] float* floats_in(double*, Chunk& chunk) { return chunk.data(); }

/// A hash (the finalizer of MurmurHash3, Appleby 2011).
std::uint32_t mixed(std::uint32_t h) {
  h = (h ^ h >> 16) * 0x85EBCA6Bu;
  h = (h ^ h >> 13) * 0xC2B2AE35u;
  return h ^ h >> 16;
}

}  // namespace

Moment::Moment(MomentKind kind, bool with_sign, const Shape& shape, std::int64_t first)
    : kind_(kind), with_sign_(with_sign), first_(first), shape_(shape) {
  const auto n = static_cast<std::size_t>(padded(shape.size()));
  switch (kind) {
    case MomentKind::float32:
      array_ = Array::zeros(shape);
      break;
    case MomentKind::bf16:
      halves_.resize(n);
      break;
    case MomentKind::float8:
      bytes_.resize(n);
      exponents_.resize(n / static_cast<std::size_t>(kernels::block_values));
      break;
  }
}

void Moment::decode(std::int64_t begin, std::int64_t end, float* values) const {
  if (kind_ == MomentKind::bf16) {
    kernels::load_bf16(halves_.data() + begin, values, padded(end - begin));
  } else {
    kernels::load_blocks(with_sign_, bytes_.data() + begin,
                         exponents_.data() + begin / kernels::block_values, values,
                         padded(end - begin));
  }
}

real* Moment::read(std::int64_t begin, std::int64_t end, real* buffer) {
  if (kind_ == MomentKind::float32) return array_.data() + begin;
  Chunk chunk;
  float* const values = floats_in(buffer, chunk);
  decode(begin, end, values);
  if (values == chunk.data()) std::copy_n(values, end - begin, buffer);
  return buffer;
}

void Moment::write(std::int64_t begin, std::int64_t end, real* values, std::uint32_t key) {
  if (kind_ == MomentKind::float32) return;
  Chunk chunk;
  float* const all = floats_in(values, chunk);
  const std::int64_t n = end - begin;
  if (all == chunk.data())
    std::transform(values, values + n, all, [](real x) { return static_cast<float>(x); });
  std::fill(all + n, all + padded(n), 0.0F);
  const kernels::Rounding rounding{mixed(2 * key + (with_sign_ ? 1 : 0)),
                                   static_cast<std::uint32_t>(first_ + begin)};
  if (kind_ == MomentKind::bf16) {
    kernels::store_bf16(all, halves_.data() + begin, padded(n), rounding);
  } else {
    kernels::store_blocks(with_sign_, all, bytes_.data() + begin,
                          exponents_.data() + begin / kernels::block_values, padded(n), rounding);
  }
}

Array Moment::values() const {
  if (kind_ == MomentKind::float32) return array_;
  Array all(shape_);
  Chunk chunk;
  for (std::int64_t i = 0; i < all.size(); i += chunk_values) {
    const std::int64_t to = std::min(i + chunk_values, all.size());
    decode(i, to, chunk.data());
    std::copy_n(chunk.data(), to - i, all.data() + i);
  }
  return all;
}

void Moment::set(const Array& values) {
  if (kind_ == MomentKind::float32) {
    if (values.data() != array_.data()) std::copy_n(values.data(), values.size(), array_.data());
    return;
  }
  std::array<real, chunk_values> chunk;
  for (std::int64_t i = 0; i < values.size(); i += chunk_values) {
    const std::int64_t to = std::min(i + chunk_values, values.size());
    std::copy_n(values.data() + i, to - i, chunk.data());
    write(i, to, chunk.data(), 0);
  }
}

HEED_END
