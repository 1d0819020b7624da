#pragma once
/// Helpers for tests of training: small models and data, and comparison of weights bit for bit.
#include <cstring>
#include <memory>
#include <vector>

#include "autograd/base/random.h"
#include "data/batches/batcher.h"
#include "data/tokenizers/tokenizer.h"
#include "nn/models/model.h"
#include "nn/options.h"
#include "optim/optimizer.h"

namespace heed::test {

inline constexpr std::int32_t vocabulary = 13;

inline ModelOptions small_model(double dropout = 0) {
  ModelOptions o;
  o.d_model = 12;
  o.heads = 3;
  o.d_ff = 20;
  o.encoder_layers = o.decoder_layers = 2;
  o.dropout = dropout;
  o.context = 8;
  return o;
}

inline std::unique_ptr<Generative> small_seq2seq(double dropout = 0, std::uint64_t seed = 1) {
  return make_seq2seq(small_model(dropout), vocabulary, vocabulary, true, seed);
}
inline std::unique_ptr<Generative> small_lm(double dropout = 0, std::uint64_t seed = 1) {
  return make_language_model(small_model(dropout), vocabulary, seed);
}

/// n random sources of 1 to 8 tokens and </s>. A target is its source reversed, without </s>.
inline Dataset reversals(std::int64_t n, std::uint64_t seed = 1) {
  Random random({.seed = seed, .stream = Stream::check, .index = 9});
  Dataset data;
  for (std::int64_t i = 0; i < n; ++i) {
    std::vector<std::int32_t> ids(1 + random.below(8));
    for (std::int32_t& id : ids) id = static_cast<std::int32_t>(3 + random.below(vocabulary - 3));
    data.target.push(std::vector<std::int32_t>(ids.rbegin(), ids.rend()));
    ids.push_back(Tokenizer::eos);
    data.source.push(ids);
  }
  return data;
}

/// A text of n random tokens. Every second one is its predecessor plus one if that is in the
/// vocabulary.
inline Dataset random_text(std::int64_t n) {
  Random random({.seed = 2, .stream = Stream::check, .index = 9});
  Dataset data;
  data.batching = &windows();
  for (std::int64_t i = 0; i < n; ++i) {
    const bool follows = i % 2 == 1 && data.stream.back() + 1 < vocabulary;
    data.stream.push_back(follows ? data.stream.back() + 1
                                  : static_cast<std::int32_t>(3 + random.below(vocabulary - 3)));
  }
  return data;
}

using Bits = std::vector<std::vector<float>>;

inline Bits bits_of(const std::vector<NamedTensor>& tensors) {
  Bits all;
  for (const NamedTensor& t : tensors)
    all.emplace_back(t.tensor.value().values().begin(), t.tensor.value().values().end());
  return all;
}

/// Compares bits: NaN equals itself, and 0 differs from −0.
inline bool same_bits(const Bits& a, const Bits& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].size() != b[i].size() ||
        std::memcmp(a[i].data(), b[i].data(), a[i].size() * sizeof(float)) != 0)
      return false;
  }
  return true;
}

}  // namespace heed::test
