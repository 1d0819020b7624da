#pragma once
/// Support for the tests of layers: small models, pairs of sequences, comparisons.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "autograd/ops.h"
#include "nn/layers/block.h"
#include "nn/layers/patterns.h"
#include "nn/layers/positions.h"
#include "nn/models/model.h"
#include "tests/autograd/expect.h"
#include "tests/nn/random_weights.h"

HEED_BEGIN

/// Random pairs of source and target sequences as input of a model; `number` selects the values.
struct Pairs {
  std::vector<std::int32_t> source, source_offsets, target_in, target_out, target_offsets;

  Pairs(const std::vector<std::int32_t>& source_lengths,
        const std::vector<std::int32_t>& target_lengths, std::uint32_t vocabulary,
        std::uint32_t number = 1)
      : source_offsets(offsets_of(source_lengths)), target_offsets(offsets_of(target_lengths)) {
    source = random_ids(source_offsets.back(), vocabulary, number);
    target_in = random_ids(target_offsets.back(), vocabulary, number + 1);
    target_out = random_ids(target_offsets.back(), vocabulary, number + 2);
  }
  SideView source_side() const { return {source, source_offsets}; }
  ModelInput input() const { return {source_side(), {target_in, target_offsets}, target_out}; }
  std::int64_t sequences() const { return static_cast<std::int64_t>(target_offsets.size()) - 1; }
  /// Pair i alone.
  Pairs only(std::int64_t i) const {
    Pairs one = *this;
    const auto cut = [i](const std::vector<std::int32_t>& all,
                         const std::vector<std::int32_t>& at) {
      const auto k = static_cast<std::size_t>(i);
      return std::vector<std::int32_t>(all.begin() + at[k], all.begin() + at[k + 1]);
    };
    one.source = cut(source, source_offsets);
    one.target_in = cut(target_in, target_offsets);
    one.target_out = cut(target_out, target_offsets);
    one.source_offsets = {0, static_cast<std::int32_t>(one.source.size())};
    one.target_offsets = {0, static_cast<std::int32_t>(one.target_in.size())};
    return one;
  }
};

/// The maximum of |a − b| / max(1, |b|). It is infinite if the shapes differ or a value is not
/// finite.
inline double difference(const Array& a, const Array& b) {
  constexpr double never = std::numeric_limits<double>::infinity();
  if (a.shape() != b.shape()) return never;
  double worst = 0;
  for (std::int64_t i = 0; i < a.size(); ++i) {
    const double x = a.data()[i], y = b.data()[i];
    const double d = std::abs(x - y) / std::max(1.0, std::abs(y));
    if (!(d <= never) || std::isinf(y)) return never;
    worst = std::max(worst, d);
  }
  return worst;
}

/// The rows of sequence i.
inline Array rows_of_sequence(const Array& all, const std::vector<std::int32_t>& offsets,
                              std::int64_t i) {
  const auto k = static_cast<std::size_t>(i);
  return all.sliced(offsets[k], offsets[k + 1]);
}

/// A function that calls a layer, together with the parameters of the layer, as gradcheck requires.
template <class F>
struct Layered {
  Parameters all;
  F f;
  const Parameters& parameters() const { return all; }
  template <class... Tensors>
  Tensor operator()(const Tensors&... x) const {
    return f(x...);
  }
};
/// Randomises the parameters and combines them with f.
template <class F>
Layered<F> layered(Parameters parameters, F f) {
  randomise(parameters);
  return {std::move(parameters), std::move(f)};
}

/// All values of a named enum.
template <class E>
std::vector<E> every() {
  std::vector<E> all;
  for (std::size_t i = 0; i < names_of(E{}).size(); ++i) all.push_back(static_cast<E>(i));
  return all;
}

/// The options of a small model; tests modify some of them.
inline ModelOptions small_options() {
  ModelOptions o;
  o.d_model = 6;
  o.heads = 2;
  o.d_ff = 5;
  o.encoder_layers = 1;
  o.decoder_layers = 1;
  o.dropout = 0;
  o.max_positions = 16;
  o.context = 16;
  return o;
}
inline MultiHeadAttention attention_of(std::int64_t d, std::int64_t heads, AttentionScope scope,
                                       double dropout, Init& init) {
  ModelOptions o = small_options();
  o.d_model = d;
  o.heads = heads;
  o.dropout.attention = dropout;
  return {o, scope, init};
}
inline Init test_init() { return Init(3); }

HEED_END
