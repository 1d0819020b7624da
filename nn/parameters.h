#pragma once
/// Common to all layers: a layer lists its parameters by name and takes their initial values from
/// an Init.
#include <cstdint>
#include <string>
#include <vector>

#include "autograd/named_tensor.h"
#include "nn/option_kinds.h"

HEED_BEGIN

/// The parameters of a layer, in a fixed order. The tensors share their values with the layer's.
using Parameters = std::vector<NamedTensor>;

/// Appends the parameters of a part, their names prefixed with "name."; with "", unprefixed.
template <class Part>
void append(Parameters& all, const std::string& name, const Part& part) {
  const std::string prefix = name.empty() ? "" : name + ".";
  for (NamedTensor& p : part.parameters()) all.push_back({prefix + p.name, std::move(p.tensor)});
}

/// The parameters of several parts: parameters_of("encoder", encoder, "output", output).
template <class Part, class... Others>
Parameters parameters_of(const std::string& name, const Part& part, const Others&... others) {
  Parameters all;
  append(all, name, part);
  if constexpr (sizeof...(others) > 0) {
    for (NamedTensor& p : parameters_of(others...)) all.push_back(std::move(p));
  }
  return all;
}

/// Creates the initial values of parameters. Each has its own random stream, numbered in order of
/// creation, so a layer added at the end of a model leaves the values of the others unchanged.
class Init {
 public:
  explicit Init(std::uint64_t seed) : Init(InitKind::xavier, 0, seed) {}
  /// `std` is used only by InitKind::normal.
  Init(InitKind kind, double std, std::uint64_t seed) : kind_(kind), std_(std), seed_(seed) {}

  /// A weight [out, in]. xavier: uniform within ±√(6 / (in + out)) (Glorot and Bengio 2010);
  /// normal: N(0, std²); none: uninitialised, which takes no memory until it is written.
  Tensor matrix(std::int64_t out, std::int64_t in);
  /// An embedding table [n, d]: N(0, 1/d) with xavier, so that a table scaled by √d starts at unit
  /// variance (Vaswani et al. 2017, section 3.4); N(0, std²) with normal.
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
