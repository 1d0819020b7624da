#pragma once
/// The parameters of layers: their names, and Init, which creates their initial values.
#include <cstdint>
#include <string>
#include <vector>

#include "autograd/named_tensor.h"
#include "nn/option_kinds.h"

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
  explicit Init(std::uint64_t seed) : Init(InitKind::xavier, 0, seed) {}
  /// `std` is used only by InitKind::normal.
  Init(InitKind kind, double std, std::uint64_t seed) : kind_(kind), std_(std), seed_(seed) {}

  /// A weight [out, in]. xavier: uniform within ±√(6 / (in + out)) (Glorot and Bengio 2010);
  /// normal: N(0, std²); none: uninitialised values.
  Tensor matrix(std::int64_t out, std::int64_t in);
  /// An embedding table [n, d]. xavier: N(0, 1/d), so that a table scaled by √d starts at unit
  /// variance (Vaswani et al. 2017, section 3.4); normal and none: as for a matrix.
  Tensor table(std::int64_t n, std::int64_t d);
  Tensor zeros(std::int64_t n);
  Tensor ones(std::int64_t n);

 private:
  Tensor normal(const Shape& shape, double std);

  InitKind kind_;
  double std_;
  std::uint64_t seed_;
  std::uint32_t next_ = 0;
};

HEED_END
