#pragma once
/// Training and decoding of the encoder-decoder of nn/reference/transformer.h, and attention that
/// never holds a whole row of scores.
///   teacher forcing   loss = −1/n Σ_t ln p(y_t | y_<t, x), all positions in one pass
///   cached step       the keys and values of earlier positions are kept: O(t d + d²) per token
///   beam search       the `width` hypotheses of largest Σ_t ln p(y_t | y_<t, x)
///   online softmax    m' = max(m, s_j),  Z' = Z e^(m − m') + Σ_j e^(s_j − m'),
///                     O' = O e^(m − m') + Σ_j e^(s_j − m') v_j,  result O / Z
/// Sources: Vaswani et al. 2017; Milakov and Gimelshein, "Online normalizer calculation for softmax",
/// 2018; Dao et al., "FlashAttention", 2022.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "autograd/ops/basic.h"
#include "nn/reference/transformer.h"

namespace chapter10 {

using heed::Array;
using heed::Grad;
using heed::Tensor;
using heed::reference::DecoderLayer;
using heed::reference::EncoderDecoder;
using heed::reference::MultiHeadAttention;
using Ids = std::vector<std::int32_t>;

inline constexpr std::int32_t bos = 1, eos = 2;  ///< the tokens <s> and </s>
inline constexpr double infinity = std::numeric_limits<double>::infinity();

// ---- training -------------------------------------------------------------------------------

/// What the decoder reads, and what it is to predict at each position. Of equal length.
struct Forced {
  Ids input, labels;
};

/// Teacher forcing for a target y₁ … y_n, which contains neither <s> nor </s>.
inline Forced teacher_forced(const Ids& target) {
  // --- begin exercise teacher_forced: position t reads y_<t and predicts y_t; the last predicts </s>
  Ids input = target, labels = target;
  input.insert(input.begin(), bos);
  labels.push_back(eos);
  return {input, labels};
  // --- end exercise
}

/// The mean over the labels of −ln p(label). `source` ends with </s>, as the encoder expects it.
inline Tensor loss(const EncoderDecoder& model, const Ids& source, const Ids& target) {
  // --- begin exercise loss: one pass of encoder and decoder, then heed::cross_entropy
  const Forced forced = teacher_forced(target);
  const Tensor logits = model.decode(model.encode(source), forced.input);
  return heed::cross_entropy(logits, forced.labels);
  // --- end exercise
}

// ---- decoding -------------------------------------------------------------------------------

/// Reads the newest token; returns the logits of the next one: [1, vocabulary].
using Step = std::function<Array(std::int32_t token)>;

/// The most probable token at each step, up to </s> or `most` tokens; without <s> and </s>.
inline Ids greedy(const Step& step, std::int64_t most) {
  // --- begin exercise greedy: begin with <s>; feed each token that is chosen to the next step
  Ids tokens;
  std::int32_t newest = bos;
  while (static_cast<std::int64_t>(tokens.size()) < most) {
    const Array logits = step(newest);
    newest = static_cast<std::int32_t>(
        std::max_element(logits.data(), logits.data() + logits.size()) - logits.data());
    if (newest == eos) break;
    tokens.push_back(newest);
  }
  return tokens;
  // --- end exercise
}

/// The keys and values of the positions that a layer has read: [positions, d], or undefined.
struct LayerCache {
  Array keys, values;
};

/// What a hypothesis remembers. A copy is independent of the original.
struct Cache {
  std::int64_t position = 0;  ///< of the next token; the first is 0
  std::vector<LayerCache> layers;

  explicit Cache(const EncoderDecoder& model) : layers(model.decoder.size()) {}
};

/// The rows of a matrix, then one more row: [n, d] and [1, d] → [n + 1, d].
inline Array appended(const Array& rows, const Array& row) {
  if (!rows.defined()) return row;
  Array all({rows.rows() + 1, rows.cols()});
  std::copy_n(rows.data(), rows.size(), all.data());
  std::copy_n(row.data(), row.size(), all.row(rows.rows()));
  return all;
}

/// Causal self-attention for the newest row x [1, d] → [1, d]. Rows 0 … d − 1 of in_proj_weight make
/// queries, rows d … 2d − 1 keys, rows 2d … 3d − 1 values (heed::affine_rows).
inline Tensor cached_attention(const MultiHeadAttention& layer, const Tensor& x,
                               LayerCache& cache) {
  // --- begin exercise cached_attention: project x alone, append key and value, attend to all keys
  const std::int64_t d = x.shape()[1];
  const auto part = [&](std::int64_t i) {
    return heed::affine_rows(x, layer.in_proj_weight, layer.in_proj_bias, i * d, (i + 1) * d)
        .value();
  };
  cache.keys = appended(cache.keys, part(1));
  cache.values = appended(cache.values, part(2));
  const auto split = [&](const Array& rows) {  // [rows, d] → [heads, rows, d / heads]
    return heed::transpose(heed::reshape(rows, {rows.rows(), layer.heads, d / layer.heads}), 0, 1);
  };
  const Tensor head =
      heed::attention(split(part(0)), split(cache.keys), split(cache.values)).output;
  return layer.out_proj(heed::reshape(heed::transpose(head, 0, 1), x.shape()));
  // --- end exercise
}

/// A layer of the decoder for the newest row. Cross-attention and feed-forward treat rows one by
/// one, so they need no cache. (heed keeps the keys and values of the encoder, too.)
inline Tensor cached_layer(const DecoderLayer& layer, Tensor x, const Tensor& encoded,
                           LayerCache& cache) {
  x = layer.norm1(x + cached_attention(layer.self_attention, x, cache));
  x = layer.norm2(x + layer.cross_attention(x, encoded));
  return layer.norm3(x + layer.feed_forward(x));
}

/// The row that the decoder reads for one token: √d times its embedding, plus PE(position): [1, d].
inline Tensor embedded(const EncoderDecoder& model, std::int32_t token, std::int64_t position) {
  // --- begin exercise embedded: model.embedding(ids), then one row of reference::positional_encoding
  const Tensor x = model.embedding(Ids{token});
  const Array all = heed::reference::positional_encoding(position + 1, x.shape()[1]);
  return x + all.sliced(position, position + 1);
  // --- end exercise
}

/// Reads a token and returns the logits of the next one, [1, vocabulary]: the last row of
/// model.decode for all tokens so far.
inline Array cached_step(const EncoderDecoder& model, const Tensor& encoded, std::int32_t token,
                         Cache& cache) {
  const heed::NoGrad no_grad;
  Tensor x = embedded(model, token, cache.position++);
  for (std::size_t i = 0; i < model.decoder.size(); ++i)
    x = cached_layer(model.decoder[i], x, encoded, cache.layers[i]);
  return heed::matmul(x, model.embedding.weight, false, true).value();
}

/// A hypothesis that grows by one token.
struct Candidate {
  double log_prob = 0;      ///< of the whole hypothesis
  std::int64_t parent = 0;  ///< the hypothesis that grows
  std::int32_t token = 0;
};

/// Of all hypotheses that grow by one token, those `width` of largest log-probability, the best
/// first. Row i of logits [hypotheses, vocabulary] belongs to hypothesis i, log_probs[i].
inline std::vector<Candidate> best_candidates(const std::vector<double>& log_probs,
                                              const Array& logits, std::size_t width) {
  // --- begin exercise best_candidates: ln p = logit − ln Σ exp(logits of its row); then sort all
  std::vector<Candidate> all;
  for (std::int64_t i = 0; i < logits.rows(); ++i) {
    const double* const z = logits.row(i);
    const double largest = *std::max_element(z, z + logits.cols());
    double sum = 0;
    for (std::int64_t t = 0; t < logits.cols(); ++t) sum += std::exp(z[t] - largest);
    for (std::int64_t t = 0; t < logits.cols(); ++t) {
      const double log_p = z[t] - largest - std::log(sum);
      all.push_back(
          {log_probs[static_cast<std::size_t>(i)] + log_p, i, static_cast<std::int32_t>(t)});
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Candidate& a, const Candidate& b) { return a.log_prob > b.log_prob; });
  if (all.size() > width) all.resize(width);
  return all;
  // --- end exercise
}

struct Hypothesis {
  Ids tokens;  ///< without <s> and </s>
  double log_prob = 0;
};

/// Beam search, up to </s> or `most` tokens. A finished hypothesis keeps its place in the beam.
inline Hypothesis beam_search(const EncoderDecoder& model, const Tensor& encoded, std::size_t width,
                              std::int64_t most) {
  std::vector<Hypothesis> live{{}}, finished;
  std::vector<Cache> caches{Cache(model)};
  for (std::int64_t length = 1; !live.empty(); ++length) {
    std::vector<double> log_probs;
    Array logits;
    for (std::size_t i = 0; i < live.size(); ++i) {
      const std::int32_t newest = live[i].tokens.empty() ? bos : live[i].tokens.back();
      logits = appended(logits, cached_step(model, encoded, newest, caches[i]));
      log_probs.push_back(live[i].log_prob);
    }
    std::vector<Hypothesis> next;
    std::vector<Cache> next_caches;
    for (const Candidate& c : best_candidates(log_probs, logits, width - finished.size())) {
      const auto parent = static_cast<std::size_t>(c.parent);
      Hypothesis grown{live[parent].tokens, c.log_prob};
      if (c.token != eos) grown.tokens.push_back(c.token);
      if (c.token == eos || length == most) {
        finished.push_back(grown);
        continue;
      }
      next.push_back(grown);
      next_caches.push_back(caches[parent]);
    }
    live = next;
    caches = next_caches;
  }
  return *std::max_element(finished.begin(), finished.end(),
                           [](const auto& a, const auto& b) { return a.log_prob < b.log_prob; });
}

// ---- attention in tiles ---------------------------------------------------------------------

/// The softmax of rows whose scores arrive tile by tile, times the values. After the tiles
/// that were added, for each row, over all scores s_j so far:
///   largest = max s_j,  sum = Σ_j exp(s_j − largest),  output = Σ_j exp(s_j − largest) v_j
/// A score of −∞ is masked. A row without any other score has largest −∞, sum 0 and output 0.
struct OnlineSoftmax {
  std::vector<double> largest, sum;  ///< one for each row
  Array output;                      ///< [rows, width of the values]

  OnlineSoftmax(std::int64_t rows, std::int64_t width)
      : largest(static_cast<std::size_t>(rows), -infinity),
        sum(static_cast<std::size_t>(rows)),
        output(Array::zeros({rows, width})) {}

  /// scores: [rows, keys of the tile], values: [keys of the tile, width]
  void add(const Array& scores, const Array& values) {
    for (std::int64_t r = 0; r < output.rows(); ++r)
      add_to_row(static_cast<std::size_t>(r), scores.data() + r * scores.cols(), values);
  }
  /// One score for each row of `values`.
  void add_to_row(std::size_t r, const double* scores, const Array& values) {
    const std::int64_t keys = values.rows(), width = values.cols();
    double* const o = output.data() + static_cast<std::int64_t>(r) * width;
    // --- begin exercise add_to_row: the new maximum; correct sum and output for it; then add the tile
    double maximum = largest[r];
    for (std::int64_t j = 0; j < keys; ++j) maximum = std::max(maximum, scores[j]);
    if (maximum == -infinity) return;
    const double correction = std::exp(largest[r] - maximum);
    largest[r] = maximum;
    sum[r] *= correction;
    for (std::int64_t c = 0; c < width; ++c) o[c] *= correction;
    for (std::int64_t j = 0; j < keys; ++j) {
      const double weight = std::exp(scores[j] - maximum);
      sum[r] += weight;
      for (std::int64_t c = 0; c < width; ++c) o[c] += weight * values.row(j)[c];
    }
    // --- end exercise
  }
  /// Softmax times values: [rows, width]; 0 for a row without scores.
  Array result() const {
    // --- begin exercise result: divide each row by its sum
    Array y = output.clone();
    for (std::int64_t r = 0; r < y.rows(); ++r) {
      const double z = sum[static_cast<std::size_t>(r)];
      for (std::int64_t c = 0; c < y.cols(); ++c) y.row(r)[c] = z == 0 ? 0 : y.row(r)[c] / z;
    }
    return y;
    // --- end exercise
  }
  /// ln Σ_j exp(s_j) of row r.
  double log_sum_exp(std::int64_t r) const {
    // --- begin exercise log_sum_exp: from largest and sum
    const auto i = static_cast<std::size_t>(r);
    return largest[i] + std::log(sum[i]);
    // --- end exercise
  }
};

/// softmax(q kᵀ / √d) v as an op whose largest array is one tile of scores, [m, tile].
///   q: [m, d], k: [n, d], v: [n, e] → [m, e]
/// backward computes the scores of a tile again, and from them, with the log-sum-exp of each row,
///   P = exp(S − lse),  D_i = ⟨dO_i, O_i⟩,
///   dV += Pᵀ dO,  dS = P ⊙ (dO Vᵀ − D),  dQ += dS K / √d,  dK += dSᵀ Q / √d
struct TiledAttention {
  std::int64_t tile = 1;
  Array q, k, v, output;
  std::vector<double> lse;  ///< of each row of q

  /// The scores of all queries with keys [begin, end): [m, end − begin].
  Array scores(std::int64_t begin, std::int64_t end) const {
    const double factor = 1 / std::sqrt(static_cast<double>(q.cols()));
    return heed::scale(heed::matmul(q, k.sliced(begin, end), false, true), factor).value();
  }

  Array forward(const Array& q_in, const Array& k_in, const Array& v_in) {
    q = q_in, k = k_in, v = v_in;
    OnlineSoftmax online(q.rows(), v.cols());
    for (std::int64_t begin = 0; begin < k.rows(); begin += tile) {
      const std::int64_t end = std::min(begin + tile, k.rows());
      online.add(scores(begin, end), v.sliced(begin, end));
    }
    for (std::int64_t r = 0; r < q.rows(); ++r) lse.push_back(online.log_sum_exp(r));
    output = online.result();
    return output;
  }

  void backward(const Array& dy, Grad dq, Grad dk, Grad dv) const {
    Array gq = Array::zeros(q.shape()), gk = Array::zeros(k.shape()), gv = Array::zeros(v.shape());
    for (std::int64_t begin = 0; begin < k.rows(); begin += tile)
      tile_backward(dy, begin, std::min(begin + tile, k.rows()), gq, gk, gv);
    if (dq) dq.add(gq);
    if (dk) dk.add(gk);
    if (dv) dv.add(gv);
  }
  /// Adds what keys [begin, end) contribute: to all rows of gq, to rows [begin, end) of gk and gv.
  void tile_backward(const Array& dy, std::int64_t begin, std::int64_t end, Array& gq, Array& gk,
                     Array& gv) const {
    const double factor = 1 / std::sqrt(static_cast<double>(q.cols()));
    Array p = scores(begin, end);                                            // becomes P
    Array ds = heed::matmul(dy, v.sliced(begin, end), false, true).value();  // dO Vᵀ, becomes dS
    // --- begin exercise tile_backward: P from the scores and lse; dS by D; then the three gradients
    for (std::int64_t r = 0; r < p.rows(); ++r) {
      double along = 0;
      for (std::int64_t c = 0; c < dy.cols(); ++c) along += dy.row(r)[c] * output.row(r)[c];
      for (std::int64_t j = 0; j < p.cols(); ++j) {
        p.row(r)[j] = std::exp(p.row(r)[j] - lse[static_cast<std::size_t>(r)]);
        ds.row(r)[j] = p.row(r)[j] * (ds.row(r)[j] - along);
      }
    }
    const Array keys = k.sliced(begin, end);
    add_rows(gq, 0, heed::scale(heed::matmul(ds, keys), factor).value());
    add_rows(gk, begin, heed::scale(heed::matmul(ds, q, true, false), factor).value());
    add_rows(gv, begin, heed::matmul(p, dy, true, false).value());
    // --- end exercise
  }
  /// sum[first + r] += rows[r] for each row.
  static void add_rows(Array& sum, std::int64_t first, const Array& rows) {
    for (std::int64_t i = 0; i < rows.size(); ++i)
      sum.data()[first * sum.cols() + i] += rows.data()[i];
  }
};

/// Attention in tiles of `tile` keys.
inline Tensor attend_in_tiles(const Tensor& q, const Tensor& k, const Tensor& v,
                              std::int64_t tile) {
  return heed::apply(
      TiledAttention{.tile = tile, .q = {}, .k = {}, .v = {}, .output = {}, .lse = {}}, q, k, v);
}

}  // namespace chapter10
