#include "nn/parameters.h"

#include <cmath>
#include <utility>

#include "autograd/base/random.h"

HEED_BEGIN

Tensor Init::normal(const Shape& shape, double std) {
  Array values(shape);
  if (kind_ == InitKind::none) return Tensor::variable(std::move(values));
  Random random({seed_, Stream::init, 0, next_++});
  for (real& v : values.values()) v = static_cast<real>(std * random.normal());
  return Tensor::variable(std::move(values));
}

Tensor Init::matrix(std::int64_t out, std::int64_t in) {
  if (kind_ != InitKind::xavier) return normal({out, in}, std_);
  Array values({out, in});
  const double limit = std::sqrt(6.0 / static_cast<double>(in + out));
  Random random({seed_, Stream::init, 0, next_++});
  for (real& v : values.values()) v = static_cast<real>(limit * (2 * random.uniform() - 1));
  return Tensor::variable(std::move(values));
}

Tensor Init::table(std::int64_t n, std::int64_t d) {
  return normal({n, d}, kind_ == InitKind::normal ? std_ : 1 / std::sqrt(static_cast<double>(d)));
}

Tensor Init::zeros(std::int64_t n) { return Tensor::variable(Array::zeros({n})); }
Tensor Init::ones(std::int64_t n) { return Tensor::variable(Array::full({n}, 1)); }

HEED_END
