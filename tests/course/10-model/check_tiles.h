#pragma once
// The cases of chapter 10 on attention in tiles, for check.cpp.
#include <numeric>

#include "autograd/memory/arena.h"
#include "check.h"
#include "exercise.h"

namespace tiles {

using namespace heed;
using namespace heed::course;
using chapter10::infinity;
using chapter10::OnlineSoftmax;

// ---- online softmax -----------------------------------------------------------------------------

/// What a wrong correction gives.
enum class Wrong { neither, only_sum, only_output, inverse };
inline Array online_mistake(const Array& scores, const Array& values, std::int64_t tile,
                            Wrong wrong) {
  Array y = Array::zeros({scores.rows(), values.cols()});
  for (std::int64_t r = 0; r < scores.rows(); ++r) {
    double largest = -infinity, sum = 0;
    for (std::int64_t begin = 0; begin < scores.cols(); begin += tile) {
      const std::int64_t end = std::min(begin + tile, scores.cols());
      const double before = largest;
      largest = std::max(largest, *std::max_element(scores.row(r) + begin, scores.row(r) + end));
      double factor = std::exp(before - largest);
      if (wrong == Wrong::inverse) factor = before == -infinity ? 1 : 1 / factor;
      if (wrong != Wrong::neither && wrong != Wrong::only_output) sum *= factor;
      for (std::int64_t c = 0; c < y.cols(); ++c)
        if (wrong != Wrong::neither && wrong != Wrong::only_sum) y.row(r)[c] *= factor;
      for (std::int64_t j = begin; j < end; ++j) {
        const double weight = std::exp(scores.row(r)[j] - largest);
        sum += weight;
        for (std::int64_t c = 0; c < y.cols(); ++c) y.row(r)[c] += weight * values.row(j)[c];
      }
    }
    for (std::int64_t c = 0; c < y.cols(); ++c) y.row(r)[c] /= sum;
  }
  return y;
}

/// Columns [begin, end).
inline Array columns(const Array& x, std::int64_t begin, std::int64_t end) {
  return slice(x, 1, begin, end).value().clone();
}

inline OnlineSoftmax online(const Array& scores, const Array& values, std::int64_t tile) {
  OnlineSoftmax state(scores.rows(), values.cols());
  for (std::int64_t begin = 0; begin < scores.cols(); begin += tile) {
    const std::int64_t end = std::min(begin + tile, scores.cols());
    state.add(columns(scores, begin, end), values.sliced(begin, end));
  }
  return state;
}

inline void require_online(const std::string& what, const Array& scores, const Array& values,
                           std::int64_t tile) {
  const OnlineSoftmax state = online(scores, values, tile);
  for (std::int64_t r = 0; r < scores.rows(); ++r) {
    const double largest = *std::max_element(scores.row(r), scores.row(r) + scores.cols());
    require_close(
        fmt::format("{}: largest[{}], the maximum of all scores after the last tile,", what, r),
        state.largest[static_cast<std::size_t>(r)], largest);
  }
  const std::string all = fmt::format("{}, tiles of {}: result()", what, tile);
  std::vector<Mistake> mistakes{
      {"this is output, not divided by sum", state.output.clone()},
      {"neither sum nor output is corrected when the maximum rises: multiply both by "
       "exp(old maximum − new maximum)",
       online_mistake(scores, values, tile, Wrong::neither)},
      {"output is not corrected when the maximum rises, only sum is",
       online_mistake(scores, values, tile, Wrong::only_sum)},
      {"sum is not corrected when the maximum rises, only output is",
       online_mistake(scores, values, tile, Wrong::only_output)},
      {"the correction has the wrong sign: it is exp(old maximum − new maximum), at most 1",
       online_mistake(scores, values, tile, Wrong::inverse)}};
  const Array y = state.result();
  for (const double value : y.values())
    require(!std::isnan(value),
            fmt::format("{} contains NaN: an exponent that overflows, or −∞ − (−∞)", all));
  require_same(all, y, matmul(softmax(scores), values).value(), mistakes);
  for (std::int64_t r = 0; r < scores.rows(); ++r) {
    const double largest = state.largest[static_cast<std::size_t>(r)];
    double sum = 0;
    for (std::int64_t j = 0; j < scores.cols(); ++j) sum += std::exp(scores.row(r)[j] - largest);
    const double lse = state.log_sum_exp(r), right = largest + std::log(sum);
    std::string cause;
    if (close(lse, std::log(sum), exact)) cause = ": this is ln(sum); largest is missing";
    if (close(lse, largest + sum, exact)) cause = ": this is largest + sum, without the logarithm";
    require(close(lse, right, exact),
            fmt::format("{}: log_sum_exp({}), which is largest + ln(sum), is {:.12g}, expected "
                        "{:.12g}{}",
                        what, r, lse, right, cause));
  }
}

inline Array sorted_scores(const Array& x, bool rising) {
  Array y = x.clone();
  for (std::int64_t r = 0; r < y.rows(); ++r) {
    std::sort(y.row(r), y.row(r) + y.cols());
    if (!rising) std::reverse(y.row(r), y.row(r) + y.cols());
  }
  return y;
}

inline void online_values(Draw& draw) {
  const std::int64_t rows = draw.extent(3, 2, 4), keys = draw.extent(7, 6, 9),
                     width = draw.extent(4, 3, 5);
  const Array scores = draw.normal({rows, keys}, 2), values = draw.normal({keys, width});
  require_online("falling scores", sorted_scores(scores, false), values, 2);
  require_online("rising scores", sorted_scores(scores, true), values, 2);
  for (const std::int64_t tile : {1, 3, 100}) require_online("random scores", scores, values, tile);
}

inline void online_large(Draw& draw) {
  Array scores = draw.normal({2, 6});
  for (std::int64_t j = 0; j < 6; ++j) {
    scores.row(0)[j] += 900 * static_cast<double>(j - 3);
    scores.row(1)[j] -= 2000;
  }
  require_online("scores of −3000 to 1800", scores, draw.normal({6, 3}), 2);
}

inline void online_masked(Draw& draw) {
  const std::int64_t width = draw.extent(3, 2, 5);
  Array scores = draw.normal({3, 6});
  const Array values = draw.normal({6, width});
  for (std::int64_t j = 0; j < 6; ++j) {
    if (j < 4) scores.row(0)[j] = -infinity;  // its first two tiles
    if (j != 1) scores.row(1)[j] = -infinity;
    scores.row(2)[j] = -infinity;
  }
  const OnlineSoftmax state = online(scores, values, 2);
  const Array y = state.result();
  for (std::int64_t r = 0; r < 3; ++r)
    for (std::int64_t c = 0; c < width; ++c)
      require(std::isfinite(y.row(r)[c]),
              fmt::format("result() of {} is {}: {}",
                          r == 2   ? "a row with only masked scores"
                          : r == 0 ? "a row whose first tiles are masked"
                                   : "a row whose last tiles are masked",
                          y.row(r)[c],
                          r == 2 ? "its sum is 0, and the result is defined as 0"
                                 : "−∞ − (−∞) is NaN: a tile that is masked changes nothing"));
  require_same("result() of rows with masked scores", y, matmul(softmax(scores), values).value());
  require(state.log_sum_exp(2) == -infinity,
          fmt::format("log_sum_exp of a row with only masked scores is {}, expected −∞",
                      state.log_sum_exp(2)));
}

inline void online_order(Draw& draw) {
  const Array scores = draw.normal({3, 6}, 3), values = draw.normal({6, 4});
  OnlineSoftmax state(3, 4);
  for (const std::int64_t begin : {4, 0, 2})
    state.add(columns(scores, begin, begin + 2), values.sliced(begin, begin + 2));
  require_same("result() of tiles in another order", state.result(),
               matmul(softmax(scores), values).value());
}

// ---- attention in tiles -------------------------------------------------------------------------

inline void attention_values(Draw& draw) {
  const std::int64_t m = draw.extent(4, 3, 5), n = draw.extent(7, 6, 9), d = draw.extent(5, 4, 6);
  const Array q = draw.normal({m, d}), k = draw.normal({n, d}), v = draw.normal({n, 3});
  for (const std::int64_t tile : {std::int64_t{1}, std::int64_t{2}, std::int64_t{3}, n, n + 3})
    require_same(fmt::format("attention in tiles of {}", tile),
                 chapter10::attend_in_tiles(q, k, v, tile).value(),
                 attention(q, k, v).output.value());
}

/// Refuses gradients that known mistakes of tile_backward give. gradcheck judges all others.
inline void require_no_known_mistake(const Array& q, const Array& k, const Array& v,
                                     std::int64_t tile, const Array& dy) {
  const Tensor tq = Tensor::variable(q), tk = Tensor::variable(k), tv = Tensor::variable(v);
  const Gradients g = backward(chapter10::attend_in_tiles(tq, tk, tv, tile), dy);
  const double factor = 1 / std::sqrt(static_cast<double>(q.cols()));
  const Array p = softmax(scale(matmul(q, k, false, true), factor)).value();
  const Array dp = matmul(dy, v, false, true).value();
  const Array ds_without_d = mul(p, dp).value();
  Array ds = ds_without_d.clone();
  for (std::int64_t r = 0; r < ds.rows(); ++r) {
    const double along = std::accumulate(ds.row(r), ds.row(r) + ds.cols(), 0.0);
    for (std::int64_t j = 0; j < ds.cols(); ++j) ds.row(r)[j] -= p.row(r)[j] * along;
  }
  const auto dq_of = [&](const Array& scores, std::int64_t first) {
    return scale(matmul(columns(scores, first, k.rows()), k.sliced(first, k.rows())), factor)
        .value();
  };
  const std::int64_t last = (k.rows() - 1) / tile * tile;
  require(!close(g[tq], dq_of(ds_without_d, 0), 1e-9),
          "the gradient of q is that of dS = P ⊙ dO Vᵀ: D_i = ⟨dO_i, O_i⟩ is not subtracted");
  require(
      last == 0 || !close(g[tq], dq_of(ds, last), 1e-9),
      "the gradient of q is that of the last tile: a tile adds to gq, it does not overwrite it");
  require(!close(g[tv], matmul(ds, dy, true, false).value(), 1e-9),
          "the gradient of v is dSᵀ dO, but it is Pᵀ dO");
}

inline void gradients(Draw& draw) {
  const std::int64_t n = draw.extent(5, 4, 6), d = draw.extent(4, 4, 5);
  const Array q = draw.normal({3, d}), k = draw.normal({n, d}), v = draw.normal({n, 2});
  require_no_known_mistake(q, k, v, 2, draw.normal({3, 2}));
  for (const std::int64_t tile : {2, 100}) {
    try {
      require_gradients(
          {"q", "k", "v"},
          [&](const Tensor& q, const Tensor& k, const Tensor& v) {
            return chapter10::attend_in_tiles(q, k, v, tile);
          },
          draw.normal({3, d}), draw.normal({n, d}), draw.normal({n, 2}));
    } catch (const Error& error) {
      fail("{} keys in {}: {}", n, tile == 2 ? "tiles of 2" : "one tile", error.what());
    }
  }
}

inline void extents(Draw& draw) {
  const Array v = draw.normal({1, 3});
  require_same("attention in tiles to one key",
               chapter10::attend_in_tiles(draw.normal({1, 4}), draw.normal({1, 4}), v, 8).value(),
               v);
  require_same(
      "attention in tiles to no keys",
      chapter10::attend_in_tiles(draw.normal({2, 4}), Array({0, 4}), Array({0, 3}), 8).value(),
      Array::zeros({2, 3}));
  require_same(
      "attention in tiles of no queries",
      chapter10::attend_in_tiles(Array({0, 4}), draw.normal({2, 4}), draw.normal({2, 3}), 8)
          .value(),
      Array({0, 3}));
}

inline void memory(Draw& draw) {
  constexpr std::int64_t n = 1024;
  const Array q = draw.normal({n, 4}), k = draw.normal({n, 4}), v = draw.normal({n, 4});
  const std::int64_t before = arena_counters().live_bytes;
  arena_reset_peak();
  require_within("attention of 1024 queries to 1024 keys in tiles of 32", 0.5,
                 [&] { chapter10::attend_in_tiles(q, k, v, 32); });
  const double most = 2,
               taken = static_cast<double>(arena_counters().peak_bytes - before) / (1 << 20);
  require(
      taken <= most,
      fmt::format("attention of 1024 queries to 1024 keys in tiles of 32 takes {:.1f} MB, allowed "
                  "are {:.0f} MB: a tile of scores takes 0.25 MB, all scores 8 MB",
                  taken, most));
}

}  // namespace tiles
