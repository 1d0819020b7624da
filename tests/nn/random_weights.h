#pragma once
/// Reproducible random values, weights and token ids.
#include <algorithm>
#include <cmath>
#include <vector>

#include "autograd/base/random.h"
#include "nn/models/model.h"
#include "nn/parameters.h"

HEED_BEGIN

/// Normally distributed values with the given mean and standard deviation `scale`. Different
/// `number`s yield independent values.
inline Array normal(const Shape& shape, std::uint32_t number, double scale = 1, double mean = 0) {
  Random random({.seed = 7, .stream = Stream::check, .part = number});
  Array values(shape);
  for (real& v : values.values()) v = static_cast<real>(mean + scale * random.normal());
  return values;
}

/// Randomises all parameters, including norms and biases, whose initial ones and zeros would hide
/// errors.
inline void randomise(const Parameters& parameters, std::uint32_t number = 100) {
  for (const NamedTensor& p : parameters) {
    Tensor handle = p.tensor;
    const Shape shape = handle.shape();
    const bool gain = shape.rank() == 1 && p.name.ends_with("weight");
    const double scale = shape.rank() == 2 ? 1 / std::sqrt(static_cast<double>(shape.cols())) : 0.2;
    const Array values = normal(shape, number++, scale, gain ? 1 : 0);
    std::copy_n(values.data(), values.size(), handle.mutable_value().data());
  }
}

/// n random ids from 0 to `below` − 1.
inline std::vector<std::int32_t> random_ids(std::int64_t n, std::uint32_t below,
                                            std::uint32_t number) {
  Random random({.seed = 8, .stream = Stream::check, .part = number});
  std::vector<std::int32_t> ids(static_cast<std::size_t>(n));
  for (std::int32_t& id : ids) id = static_cast<std::int32_t>(random.below(below));
  return ids;
}

HEED_END
