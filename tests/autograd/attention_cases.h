#pragma once
/// The patterns and score terms that the attention tests use, each with a reference definition. For
/// each row of these tables, the tests compare fused attention with finite differences, with
/// composed ops and with step-by-step decoding. A new pattern or term needs a row.
#include <bit>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "autograd/ops.h"
#include "autograd/ops/more/attention/alibi.h"
#include "autograd/ops/more/attention/bigbird.h"
#include "autograd/ops/more/attention/causal.h"
#include "autograd/ops/more/attention/distance_bias.h"
#include "autograd/ops/more/attention/mask.h"
#include "autograd/ops/more/attention/prefix.h"
#include "autograd/ops/more/attention/relative_keys.h"
#include "autograd/ops/more/attention/window.h"

HEED_BEGIN

/// A pattern used only in the tests. It has two stretches: the first `prefix` keys, and a causal
/// window over the later keys.
inline void prefix_and_window(const QueryBlock& block, Stretches& into) {
  constexpr std::int64_t prefix = 2, back = 3;
  into.add(block, [&](std::int64_t) { return KeyRange{0, prefix}; });
  into.add(block, [&](std::int64_t i) { return KeyRange{std::max(prefix, i - back), i + 1}; });
}

struct PatternCase {
  std::string name;
  PatternPtr pattern;
  std::function<bool(std::int64_t, std::int64_t)> reads;  ///< whether query i reads key j
  bool looks_ahead = false;  ///< whether any query reads keys at later positions
};

inline std::vector<PatternCase> pattern_cases() {
  const auto window = [](std::int64_t back, std::int64_t ahead) {
    return [=](std::int64_t i, std::int64_t j) { return i - back <= j && j <= i + ahead; };
  };
  const auto odd = [](std::int64_t i, std::int64_t j) { return (i * 7 + j * 3) % 5 < 2; };
  const auto bird = [](const BigBirdOptions& o) {
    const auto reads = [o](std::int64_t i, std::int64_t j) {
      const std::int64_t of_i = i / o.block, of_j = j / o.block;
      return (!o.causal || j <= i) && (of_i < o.global_blocks || of_j < o.global_blocks ||
                                       std::abs(of_i - of_j) <= o.side_blocks);
    };
    return PatternCase{fmt::format("blocks of {}{}", o.block, o.causal ? ", causal" : ""),
                       bigbird_pattern(o), reads, !o.causal};
  };
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  return {
      {"full", full_pattern(), [](auto, auto) { return true; }, true},
      {"causal", causal_pattern(), [](auto i, auto j) { return j <= i; }},
      {"window 3", window_pattern(3, 0), window(3, 0)},
      {"window 0", window_pattern(0, 0), window(0, 0)},
      {"window 2 and 1", window_pattern(2, 1), window(2, 1), true},
      {"window over all keys", window_pattern(most, most), [](auto, auto) { return true; }, true},
      {"prefix and window", std::make_shared<Pattern>(prefix_and_window),
       [](auto i, auto j) { return j < 2 || (i - 3 <= j && j <= i); }, true},
      {"arbitrary pairs", mask_pattern([=](auto, auto i, auto j) { return odd(i, j); }), odd, true},
      {"prefix", prefix_pattern(std::vector<std::int64_t>(5, 3)),
       [](auto i, auto j) { return j <= std::max<std::int64_t>(i, 2); }, true},
      bird({.block = 2, .global_blocks = 1, .side_blocks = 1, .random_blocks = 0}),
      bird({.block = 3, .global_blocks = 0, .side_blocks = 0, .random_blocks = 0}),
      bird({.block = 2, .global_blocks = 1, .side_blocks = 1, .random_blocks = 0, .causal = true}),
  };
}

struct TermCase {
  std::string name;
  Shape parameter;  ///< shape of the term's parameter; {} if it has none
  std::function<ScoreTermPtr(const Tensor&)> make;  ///< makes the term from its parameter
  /// Computes the term of one head, [rows, keys], with composed ops. q [rows, size] contains the
  /// queries of that head.
  std::function<Tensor(const Tensor& parameter, const Tensor& q, std::int64_t keys,
                       std::int64_t head, std::int64_t heads)>
      composed;
};

/// row_of(i − j), a row of a table of distances, for every query i and key j in row-major order.
template <class RowOf>
std::vector<std::int32_t> distance_rows(std::int64_t rows, std::int64_t keys, RowOf row_of) {
  std::vector<std::int32_t> all;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < keys; ++j) all.push_back(static_cast<std::int32_t>(row_of(i - j)));
  }
  return all;
}

/// q_i · A[row_of(i − j)]ᵀ / √size for every query i and key j: [rows, keys].
template <class RowOf>
Tensor products_with(const Tensor& q, const Tensor& a, std::int64_t keys, RowOf row_of) {
  const std::int64_t rows = q.shape()[0], distances = a.shape()[0];
  std::vector<std::int32_t> at = distance_rows(rows, keys, row_of);
  for (std::int64_t i = 0; i < rows * keys; ++i)
    at[static_cast<std::size_t>(i)] += static_cast<std::int32_t>(i / keys * distances);
  const Tensor all = scale(matmul(q, a, false, true),
                           1 / std::sqrt(static_cast<real>(q.shape()[1])));  // [rows, distances]
  return reshape(embedding(reshape(all, {rows * distances, 1}), at), {rows, keys});
}

/// The slopes of ALiBi for all heads, as in the published code (Press et al. 2022): for a power of
/// two, a geometric sequence whose first term and ratio are 2^(−2^(3 − log2 heads)); otherwise the
/// slopes for the power of two below, then every second slope for the power of two above.
inline std::vector<double> alibi_slopes(std::int64_t heads) {
  const auto below = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(heads)));
  std::vector<double> slopes;
  if (below == heads) {
    const double ratio = std::pow(2, -std::pow(2, 3 - std::log2(static_cast<double>(heads))));
    for (std::int64_t h = 0; h < heads; ++h)
      slopes.push_back(h == 0 ? ratio : slopes.back() * ratio);
    return slopes;
  }
  slopes = alibi_slopes(below);
  const std::vector<double> above = alibi_slopes(2 * below);
  for (std::size_t i = 0; std::ssize(slopes) < heads; i += 2) slopes.push_back(above[i]);
  return slopes;
}

/// One case for each kind of term. The shapes of the parameters fit the layout.
inline std::vector<TermCase> term_cases(const HeadLayout& layout) {
  const auto alibi = [](const Tensor&, const Tensor& q, std::int64_t keys, std::int64_t head,
                        std::int64_t heads) {
    Array bias({q.shape()[0], keys});
    const auto slope = static_cast<real>(alibi_slopes(heads)[static_cast<std::size_t>(head)]);
    for (std::int64_t i = 0; i < bias.rows(); ++i) {
      for (std::int64_t j = 0; j < keys; ++j)
        bias.row(i)[j] = -slope * static_cast<real>(i < j ? j - i : i - j);
    }
    return Tensor(bias);
  };
  static constexpr std::int64_t buckets = 8, farthest = 6, reach = 2, distances = 2 * reach + 1;
  const auto bias = [](bool causal) {
    return TermCase{
        causal ? "distance biases of earlier keys" : "distance biases of keys on both sides",
        {buckets, 0},
        [=](const Tensor& b) { return std::make_shared<DistanceBias>(b, causal, farthest); },
        [=](const Tensor& b, const Tensor& q, std::int64_t keys, std::int64_t head, std::int64_t) {
          const std::int64_t rows = q.shape()[0];
          // The bucket of a distance, computed by hand as the T5 paper describes, for 8 buckets and
          // distances up to 6.
          const auto row_of = [=](std::int64_t distance) -> std::int64_t {
            if (causal)
              return std::vector<std::int64_t>{
                         0, 1, 2, 3, 4, 6}[std::clamp<std::int64_t>(distance, 0, 5)] +
                     (distance > 5);
            const std::int64_t n = std::abs(distance);
            return (distance < 0 ? 4 : 0) + (n < 2 ? n : n < 4 ? 2 : 3);
          };
          return reshape(embedding(slice(b, 1, head, head + 1), distance_rows(rows, keys, row_of)),
                         {rows, keys});
        }};
  };
  const auto row_of = [=](std::int64_t distance) {
    return std::clamp<std::int64_t>(distance, -reach, reach) + reach;
  };
  const auto keys_of_distances = [=](const Tensor& a, const Tensor& q, std::int64_t keys,
                                     std::int64_t head, std::int64_t) {
    const std::int64_t size = q.shape()[1];
    return products_with(q, slice(a, 1, head * size, (head + 1) * size), keys, row_of);
  };
  // The last row of the parameter is the shift.
  const auto shifted = [=](const Tensor& a, const Tensor& q, std::int64_t keys, std::int64_t head,
                           std::int64_t) {
    const std::int64_t size = q.shape()[1];
    const Tensor own = slice(a, 1, head * size, (head + 1) * size);
    return products_with(add(q, slice(own, 0, distances, distances + 1)),
                         slice(own, 0, 0, distances), keys, row_of);
  };
  const std::int64_t d = layout.heads * layout.size;
  TermCase both = bias(false), earlier = bias(true);
  both.parameter = earlier.parameter = {buckets, layout.heads};
  return {{"ALiBi", {}, [](const Tensor&) { return std::make_shared<Alibi>(); }, alibi},
          both,
          earlier,
          {"relative keys",
           {distances, d},
           [=](const Tensor& a) { return std::make_shared<RelativeKeys>(a, -reach); },
           keys_of_distances},
          {"relative keys with a shift",
           {distances + 1, d},
           [=](const Tensor& a) {
             return std::make_shared<RelativeKeys>(
                 slice(a, 0, 0, distances), -reach,
                 reshape(slice(a, 0, distances, distances + 1), {d}));
           },
           shifted}};
}

HEED_END
