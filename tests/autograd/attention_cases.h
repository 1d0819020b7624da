#pragma once
/// The patterns and score terms that the attention tests use, each with a reference definition. A
/// new one needs a row here: it is then checked against finite differences, against composed ops,
/// and in decoding.
#include <functional>
#include <string>
#include <vector>

#include "autograd/ops.h"
#include "autograd/ops/attention/alibi.h"
#include "autograd/ops/attention/causal.h"
#include "autograd/ops/attention/window.h"

HEED_BEGIN

// ---- kinds that exist only in the tests --------------------------------------------------------

/// Two stretches: the first `prefix` keys, and a causal window after them.
struct PrefixAndWindow final : Pattern {
  std::int64_t prefix = 2, back = 3;
  void stretches(const QueryBlock& block, Stretches& into) const override {
    into.add(block, [&](std::int64_t) { return KeyRange{0, prefix}; });
    into.add(block, [&](std::int64_t i) { return KeyRange{std::max(prefix, i - back), i + 1}; });
  }
};

/// Any set of pairs: stretch n contains the n-th run of keys of each query.
struct PairsPattern final : Pattern {
  std::function<bool(std::int64_t, std::int64_t)> reads;
  explicit PairsPattern(std::function<bool(std::int64_t, std::int64_t)> pairs)
      : reads(std::move(pairs)) {}
  KeyRange run(std::int64_t query, std::int64_t keys, std::int64_t n) const {
    std::int64_t key = 0;
    for (;; --n) {
      while (key < keys && !reads(query, key)) ++key;
      const std::int64_t begin = key;
      while (key < keys && reads(query, key)) ++key;
      if (n == 0 || begin == key) return {begin, key};
    }
  }
  void stretches(const QueryBlock& block, Stretches& into) const override {
    for (std::int64_t n = 0; n <= block.keys / 2; ++n)
      into.add(block, [&](std::int64_t i) { return run(i, block.keys, n); });
  }
};

/// An index for the distance of a key from the query; all large distances share one.
inline std::int64_t distance_row(std::int64_t query, std::int64_t key) {
  return std::clamp<std::int64_t>(key - query, -2, 2) + 2;
}
constexpr std::int64_t distances = 5;

/// S_ij += B[distance, head]: a trained bias (as in T5). B: [distances, heads]
struct DistanceBias final : ScoreTerm {
  Tensor bias;
  explicit DistanceBias(Tensor b) : bias(std::move(b)) {}
  std::span<const Tensor> inputs() const override { return {&bias, 1}; }
  void add(const ScoreBlock& b, real* s) const override {
    for (std::int64_t r = 0; r < b.rows; ++r) {
      for (std::int64_t c = 0; c < b.keys; ++c)
        s[r * b.keys + c] += bias.value().row(distance_row(b.query + r, b.key + c))[b.head];
    }
  }
  void backward(const ScoreBlock& b, const real* ds, real*,
                std::span<const Grad> dinputs) const override {
    if (!dinputs[0]) return;
    Array& sum = dinputs[0].sum();
    for (std::int64_t r = 0; r < b.rows; ++r) {
      for (std::int64_t c = 0; c < b.keys; ++c)
        sum.row(distance_row(b.query + r, b.key + c))[b.head] += ds[r * b.keys + c];
    }
  }
};

/// S_ij += ⟨q_i, A[distance]⟩ (as in Shaw et al. 2018). A: [distances, size]
struct DistanceKeys final : ScoreTerm {
  Tensor keys;
  explicit DistanceKeys(Tensor a) : keys(std::move(a)) {}
  std::span<const Tensor> inputs() const override { return {&keys, 1}; }
  void add(const ScoreBlock& b, real* s) const override {
    for (std::int64_t r = 0; r < b.rows; ++r) {
      for (std::int64_t c = 0; c < b.keys; ++c) {
        const real* const a = keys.value().row(distance_row(b.query + r, b.key + c));
        for (std::int64_t i = 0; i < b.size; ++i)
          s[r * b.keys + c] += b.q[r * b.q_stride + i] * a[i];
      }
    }
  }
  void backward(const ScoreBlock& b, const real* ds, real* dq,
                std::span<const Grad> dinputs) const override {
    for (std::int64_t r = 0; r < b.rows; ++r) {
      for (std::int64_t c = 0; c < b.keys; ++c) {
        const std::int64_t row = distance_row(b.query + r, b.key + c);
        const real g = ds[r * b.keys + c];
        for (std::int64_t i = 0; i < b.size; ++i) {
          dq[r * b.q_stride + i] += g * keys.value().row(row)[i];
          if (dinputs[0]) dinputs[0].sum().row(row)[i] += g * b.q[r * b.q_stride + i];
        }
      }
    }
  }
};

// ---- the table ---------------------------------------------------------------------------------

struct PatternCase {
  std::string name;
  PatternPtr pattern;
  std::function<bool(std::int64_t, std::int64_t)> reads;  ///< whether query i reads key j
  bool looks_ahead = false;
};

inline std::vector<PatternCase> pattern_cases() {
  const auto window = [](std::int64_t back, std::int64_t ahead) {
    return [=](std::int64_t i, std::int64_t j) { return i - back <= j && j <= i + ahead; };
  };
  const auto odd = [](std::int64_t i, std::int64_t j) { return (i * 7 + j * 3) % 5 < 2; };
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  return {
      {"full", full_pattern(), [](auto, auto) { return true; }, true},
      {"causal", causal_pattern(), [](auto i, auto j) { return j <= i; }},
      {"window 3", window_pattern(3, 0), window(3, 0)},
      {"window 0", window_pattern(0, 0), window(0, 0)},
      {"window 2 and 1", window_pattern(2, 1), window(2, 1), true},
      {"window over all keys", window_pattern(most, most), [](auto, auto) { return true; }, true},
      {"prefix and window", std::make_shared<PrefixAndWindow>(),
       [](auto i, auto j) { return j < 2 || (i - 3 <= j && j <= i); }, true},
      {"any pairs", std::make_shared<PairsPattern>(odd), odd, true},
  };
}

struct TermCase {
  std::string name;
  Shape parameter;                                  ///< of its parameter; none for a constant
  std::function<ScoreTermPtr(const Tensor&)> make;  ///< from that parameter
  /// The same with composed ops, for a head's q [rows, size]: [rows, keys].
  std::function<Tensor(const Tensor& parameter, const Tensor& q, std::int64_t keys,
                       std::int64_t head, std::int64_t heads)>
      composed;
};

/// distance_row of every pair of query and key, in row-major order.
inline std::vector<std::int32_t> distance_rows(std::int64_t rows, std::int64_t keys) {
  std::vector<std::int32_t> all;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < keys; ++j)
      all.push_back(static_cast<std::int32_t>(distance_row(i, j)));
  }
  return all;
}

/// Terms for a layout, with parameters of the required shapes.
inline std::vector<TermCase> term_cases(const HeadLayout& layout) {
  const auto alibi = [](const Tensor&, const Tensor& q, std::int64_t keys, std::int64_t head,
                        std::int64_t heads) {
    Array bias({q.shape()[0], keys});
    for (std::int64_t i = 0; i < bias.rows(); ++i) {
      for (std::int64_t j = 0; j < keys; ++j)
        bias.row(i)[j] = -Alibi::slope(head, heads) * static_cast<real>(i < j ? j - i : i - j);
    }
    return Tensor(bias);
  };
  const auto bias = [](const Tensor& b, const Tensor& q, std::int64_t keys, std::int64_t head,
                       std::int64_t) {
    const std::int64_t rows = q.shape()[0];
    return reshape(embedding(slice(b, 1, head, head + 1), distance_rows(rows, keys)), {rows, keys});
  };
  const auto products = [](const Tensor& a, const Tensor& q, std::int64_t keys, std::int64_t,
                           std::int64_t) {
    const std::int64_t rows = q.shape()[0];
    std::vector<std::int32_t> at = distance_rows(rows, keys);
    for (std::int64_t i = 0; i < rows * keys; ++i)
      at[static_cast<std::size_t>(i)] += static_cast<std::int32_t>(i / keys * distances);
    const Tensor all = matmul(q, a, false, true);  // [rows, distances]
    return reshape(embedding(reshape(all, {rows * distances, 1}), at), {rows, keys});
  };
  return {{"ALiBi", {}, [](const Tensor&) { return std::make_shared<Alibi>(); }, alibi},
          {"a trained bias",
           {distances, layout.heads},
           [](const Tensor& b) { return std::make_shared<DistanceBias>(b); },
           bias},
          {"keys of distances",
           {distances, layout.size},
           [](const Tensor& a) { return std::make_shared<DistanceKeys>(a); },
           products}};
}

HEED_END
