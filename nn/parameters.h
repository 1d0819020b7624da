#pragma once
/// The parameters of layers: their names, and Init, which creates their initial values.
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "autograd/base/random.h"
#include "autograd/tensor.h"

HEED_BEGIN

/// The parameters of a layer, in a fixed order. The tensors share their values with the layer.
using Parameters = std::vector<NamedTensor>;

/// Appends the parameters of a part. Their names are prefixed with `name` and a dot, unless `name`
/// is empty.
template <class Part>
void append(Parameters& all, const std::string& name, const Part& part) {
  const std::string prefix = name.empty() ? "" : name + ".";
  for (NamedTensor& p : part.parameters()) all.push_back({prefix + p.name, std::move(p.tensor)});
}

/// The parameters of several parts: parameters_of("encoder", encoder, "output", output).
template <class Part, class... MoreParts>
Parameters parameters_of(const std::string& name, const Part& part, const MoreParts&... more) {
  Parameters all;
  append(all, name, part);
  if constexpr (sizeof...(more) > 0) {
    for (NamedTensor& p : parameters_of(more...)) all.push_back(std::move(p));
  }
  return all;
}

/// Creates the initial values of parameters. Each random parameter has a separate stream, numbered
/// in order of creation, so adding a layer at the end of a model does not change the initial values
/// of the other layers.
class Init {
 public:
  /// Without `stddev`: matrices are uniform within ±√(6 / (in + out)) (Glorot and Bengio 2010), tables
  /// N(0, 1/d), so that a table scaled by √d starts at unit variance (Vaswani et al. 2017,
  /// section 3.4). With it: both are N(0, std²).
  explicit Init(std::uint64_t seed, std::optional<double> stddev = {})
      : seed_(seed), stddev_(stddev) {}
  /// Creates uninitialised values, for weights that are then loaded from a file.
  static Init uninitialised() {
    Init init(0);
    init.random_ = false;
    return init;
  }

  Tensor matrix(std::int64_t out, std::int64_t in) {  ///< a weight [out, in]
    if (stddev_) return normal({out, in}, *stddev_);
    const double limit = std::sqrt(6.0 / static_cast<double>(in + out));
    return filled({out, in}, [limit](Random& r) { return limit * (2 * r.uniform() - 1); });
  }
  Tensor table(std::int64_t n, std::int64_t d) {  ///< an embedding table [n, d]
    return normal({n, d}, stddev_ ? *stddev_ : 1 / std::sqrt(static_cast<double>(d)));
  }
  Tensor zeros(std::int64_t n) { return Tensor::variable(Array::zeros({n})); }
  Tensor ones(std::int64_t n) { return Tensor::variable(Array::full({n}, 1)); }

 private:
  Tensor normal(const Shape& shape, double stddev) {
    return filled(shape, [stddev](Random& r) { return stddev * r.normal(); });
  }
  template <class Draw>
  Tensor filled(const Shape& shape, Draw draw) {
    Array values(shape);
    if (random_) {
      Random random({seed_, Stream::init, 0, next_++});
      for (real& v : values.values()) v = static_cast<real>(draw(random));
    }
    return Tensor::variable(std::move(values));
  }

  std::uint64_t seed_;
  std::optional<double> stddev_;
  bool random_ = true;
  std::uint32_t next_ = 0;
};

HEED_END
