#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "autograd/kernels/fast/attention.h"
#include "autograd/kernels/fast/dropout.h"
#include "autograd/kernels/fast/gemm/product_log.h"
#include "autograd/kernels/fast/reduce.h"
#include "autograd/kernels/gemm.h"
#include "autograd/ops/more/attention/attention_log.h"
#include "autograd/ops/more/attention/fused_attention.h"
#include "autograd/ops/more/attention/keep_largest.h"
#include "autograd/ops/more/check.h"
#include "autograd/tape/many.h"

HEED_BEGIN

using kernels::gemm;
using kernels::Trans;

namespace {

/// A part of a row-major matrix: element (r, c) is at data[r · stride + c].
template <class T>
struct View {
  T* data = nullptr;
  std::int64_t stride = 0;
  View from(std::int64_t row, std::int64_t column) const {
    return {data + row * stride + column, stride};
  }
};

/// q, k and v of all tokens and heads, or of one tile; or their gradients.
template <class T>
struct Operands {
  View<T> q, k, v;
};
using Inputs = Operands<const real>;
using InputGradients = Operands<real>;

/// Attention of queries to keys and values, per sequence and head:
///   S = c Q Kᵀ + Σ terms,  P = softmax(S) over the keys that each query reads,
///   P' = dropout(P),  O = P' V
/// where c is the scale, 1/√size by default. With D_i = ⟨dO_i, O_i⟩ = Σ_j P_ij dP_ij, the gradients
/// are
///   dV = P'ᵀ dO,  dP = dropout(dO Vᵀ),  dS = P ⊙ (dP − D),  dQ = c dS K,  dK = c dSᵀ Q
/// The other maps from S to P (kernels/score_map.h) differ in dS: for sum, dS = (dP − D) / Σ S; for
/// hard, dS is that of softmax, and D_i = Σ_j P_ij dP_ij with the P of softmax.
/// Queries are processed in blocks, and the keys of long sequences in tiles, so only a tile of S
/// exists at a time. Backward recomputes S and, with the saved log-sum-exp of its rows, P. So does
/// forward if a block has several tiles. For a query that reads no key, the output and the gradient
/// are 0. Memory is linear in the number of tokens. Source: Vaswani et al. 2017, section 3.2;
/// recomputation after Dao et al., "FlashAttention", 2022.
struct FusedAttention {
  /// Number of queries per block of a long sequence. Causal attention skips the keys after the last
  /// query of a block.
  static constexpr std::int64_t block_rows = 64;
  /// Maximum number of scores per head for which the queries of a sequence form a single block.
  static constexpr std::int64_t whole_values = 128 * 128;
  /// Maximum number of keys per tile. With 1024, three tiles of scores in float fit in an L2 cache
  /// of 1 MiB.
  std::int64_t tile_keys(const QueryBlock& queries) const {
    return compares_all(queries.keys) ? queries.keys : 1024;
  }
  /// Whether a tile must contain all scores of a query, because top_k or the map requires their
  /// order or sum.
  bool compares_all(std::int64_t keys) const {
    return (options.top_k > 0 && options.top_k < keys) || options.map != ScoreMap::softmax;
  }

  using Offsets = std::vector<std::int32_t, BlockAllocator<std::int32_t>>;

  AttentionOptions options;
  Offsets query_offsets, key_offsets;
  HeadLayout layout;
  real scale = 1;          // c
  bool self = true;        // x[0] is qkv; if false, x[0] is q and x[1] is kv
  std::array<Array, 2> x;  // the op's further inputs belong to the terms
  Array output;            // [query tokens, heads · size]
  Array lse;               // [query tokens, heads]: log-sum-exp of the scores; map sum: Σ S

  /// A block of queries of one sequence, in one head.
  struct Block {
    QueryBlock queries;
    std::int64_t query_row, key_row;  ///< rows of its first query, and of its sequence's first key
    std::int64_t head;
    std::int64_t number;  ///< index of the first random number of the block's dropout mask
  };
  /// A block's queries against some of the keys of one stretch: scores [rows, keys].
  struct Tile {
    std::int64_t head;
    std::int64_t query_row, rows;  ///< first row of q, number of rows
    std::int64_t key_row, keys;    ///< first row of k and v, number of keys
    kernels::Visible visible;
    std::int64_t number;  ///< index of the first random number of the tile's dropout mask
    ScoreBlock scores;    ///< the tile in the form that terms receive
  };

  std::int64_t columns() const { return layout.heads * layout.size; }

  /// q, k and v in the inputs, or their gradients in arrays of the same shapes.
  template <class T, class Arrays>
  Operands<T> operands(Arrays& in) const {
    const View<T> q{in[0].data(), in[0].cols()};
    const View<T> k = self ? q.from(0, columns()) : View<T>{in[1].data(), in[1].cols()};
    return {q, k, k.from(0, layout.key_heads * layout.size)};
  }
  /// A tile's q [rows, size], k and v [keys, size].
  template <class T>
  Operands<T> part(const Operands<T>& all, const Tile& t) const {
    const std::int64_t column = t.head * layout.size,
                       key_column = layout.key_head(t.head) * layout.size;
    return {all.q.from(t.query_row, column), all.k.from(t.key_row, key_column),
            all.v.from(t.key_row, key_column)};
  }

  // ---- the scores to compute: blocks of queries, their stretches of keys, and tiles -------------

  /// Finds the stretches of a block: at least one, so that the output of every block is written.
  void find_stretches(const QueryBlock& queries, Stretches& stretches) const {
    stretches.clear();
    (*options.pattern)(queries, stretches);
    if (stretches.size() == 0) stretches.add_none(queries);
    if (compares_all(queries.keys) && stretches.size() > 1)
      fail("[attention] with {}, expected a pattern of one stretch of keys, got {} stretches",
           options.top_k > 0 ? "top_k" : fmt::format("map {}", name_of(options.map)),
           stretches.size());
  }
  /// Calls body(block, its stretches) for every block of the first `heads` heads.
  template <class Body>
  void for_each_block(std::int64_t heads, Body body) const {
    Stretches stretches;
    std::int64_t number = 0;
    for (std::size_t s = 0; s + 1 < query_offsets.size(); ++s) {
      const std::int64_t queries = query_offsets[s + 1] - query_offsets[s];
      const std::int64_t keys = key_offsets[s + 1] - key_offsets[s];
      if (queries == 0) continue;  // skips a loop over a possibly huge number of heads
      const std::int64_t before = options.queries_last ? keys - queries : 0;
      const std::int64_t step = queries * keys <= whole_values ? queries : block_rows;
      for (std::int64_t head = 0; head < heads; ++head) {
        for (std::int64_t begin = 0; begin < queries; begin += step) {
          const QueryBlock some{static_cast<std::int64_t>(s), before + begin,
                                std::min(step, queries - begin), keys};
          const Block block{some, query_offsets[s] + begin, key_offsets[s], head, number};
          if (head == 0 || step < queries) find_stretches(some, stretches);
          for (std::size_t i = 0; i < stretches.size(); ++i)
            number += mask_values(some, stretches.keys(i));
          body(block, stretches);
        }
      }
    }
  }
  /// The number of random numbers reserved for a stretch's dropout mask, a multiple of 128.
  static std::int64_t mask_values(const QueryBlock& queries, KeyRange keys) {
    return (queries.rows * (keys.end - keys.begin) + 127) / 128 * 128;
  }
  /// Calls body(tile, whether it is the block's first) for every tile of a block.
  template <class Body>
  void for_each_tile(const Block& block, const Stretches& stretches, const Inputs& in,
                     Body body) const {
    const QueryBlock& queries = block.queries;
    std::int64_t number = block.number;
    for (std::size_t i = 0; i < stretches.size(); ++i) {
      const KeyRange all = stretches.keys(i);
      std::int64_t key = all.begin;
      do {
        Tile tile{.head = block.head,
                  .query_row = block.query_row,
                  .rows = queries.rows,
                  .key_row = block.key_row + key,
                  .keys = std::min(tile_keys(queries), all.end - key),
                  .visible = {stretches.rows(i), key},
                  .number = number + queries.rows * (key - all.begin),
                  .scores = {}};
        const View<const real> q = part(in, tile).q;
        tile.scores = {queries.sequence, block.head, layout.heads, queries.first, tile.rows, key,
                       tile.keys,        q.data,     q.stride,     layout.size,   scale};
        body(tile, i == 0 && key == all.begin);
        key += tile.keys;
      } while (key < all.end);
      number += mask_values(queries, all);
    }
  }
  bool one_tile(const Block& block, const Stretches& stretches) const {
    return stretches.size() == 1 &&
           stretches.keys(0).end - stretches.keys(0).begin <= tile_keys(block.queries);
  }
  /// The number of scores in the largest tile, which is the same in every head.
  std::int64_t largest_tile() const {
    std::int64_t largest = 1;
    for_each_block(1, [&](const Block& block, const Stretches& stretches) {
      for (std::size_t i = 0; i < stretches.size(); ++i) {
        const KeyRange keys = stretches.keys(i);
        largest = std::max(largest, block.queries.rows *
                                        std::min(keys.end - keys.begin, tile_keys(block.queries)));
      }
    });
    return largest;
  }

  // ---- the values of a tile: S, P, P' -----------------------------------------------------------

  /// S [rows, keys] = c Q [rows, size] Kᵀ [size, keys] + Σ terms
  void scores(const Tile& t, const Inputs& in, Array& s) const {
    const auto [q, k, v] = part(in, t);
    gemm(Trans::no, Trans::yes, t.rows, t.keys, layout.size, scale, q.data, q.stride, k.data,
         k.stride, 0, s.data(), t.keys);
    if (t.keys == 0) return;
    for (const ScoreTermPtr& term : options.terms) term->add(t.scores, s.data());
    if (options.top_k > 0) keep_largest(options.top_k, s.data(), t.rows, t.keys, t.visible);
  }
  /// For a block of one tile, writes P to p and the log-sum-exp of the rows of S (map sum: Σ S) to
  /// `sums`.
  void weights(const Tile& t, const Inputs& in, Array& p, real* sums) const {
    scores(t, in, p);
    if (options.map == ScoreMap::sum) {
      kernels::for_each_row(p.data(), t.rows, t.keys, t.visible, [&](auto r, real* s, auto n) {
        sums[r * layout.heads] = kernels::divide_by_sum(s, n);
      });
      return;
    }
    kernels::attention_softmax(p.data(), t.rows, t.keys, t.visible, sums, layout.heads);
    if (options.map == ScoreMap::hard) harden(t, p);
  }
  /// Computes the log-sum-exp of the rows of S for a block of several tiles (map softmax).
  void log_sums(const Block& block, const Stretches& stretches, const Inputs& in, Array& s,
                real* sums) const {
    for (std::int64_t r = 0; r < block.queries.rows; ++r)
      sums[r * layout.heads] = -std::numeric_limits<real>::infinity();
    for_each_tile(block, stretches, in, [&](const Tile& t, bool) {
      scores(t, in, s);
      kernels::attention_add_to_lse(s.data(), t.rows, t.keys, t.visible, sums, layout.heads);
    });
  }
  /// Recomputes S, then P from S and the log-sum-exp of its rows (map sum: from S alone). For map
  /// hard, this is the P of softmax.
  void weights_again(const Tile& t, const Inputs& in, Array& p, const real* sums) const {
    scores(t, in, p);
    if (options.map == ScoreMap::sum) {
      kernels::for_each_row(p.data(), t.rows, t.keys, t.visible,
                            [&](auto, real* s, auto n) { kernels::divide_by_sum(s, n); });
    } else {
      kernels::attention_softmax_again(p.data(), t.rows, t.keys, t.visible, sums, layout.heads);
    }
  }
  void harden(const Tile& t, Array& p) const {
    kernels::for_each_row(p.data(), t.rows, t.keys, t.visible, [](auto, real* weights, auto n) {
      kernels::keep_first_largest(weights, n);
    });
  }
  /// Computes P' from P, or dP from dP', with the same mask.
  void drop(const Tile& t, const Array& from, Array& to) const {
    kernels::dropout(options.key, t.number, options.dropout, from.data(), to.data(),
                     t.rows * t.keys);
  }

  // ---- forward and backward ---------------------------------------------------------------------

  /// FLOPs of Q Kᵀ and P V over all query-key pairs, masked or not; backward has twice as many.
  double model_flops() const {
    double pairs = 0;
    for (std::size_t s = 0; s + 1 < query_offsets.size(); ++s) {
      pairs += static_cast<double>(query_offsets[s + 1] - query_offsets[s]) *
               static_cast<double>(key_offsets[s + 1] - key_offsets[s]);
    }
    return 4 * pairs * static_cast<double>(columns());
  }

  Array run() {
    const std::int64_t d = columns(), size = layout.size;
    const Inputs in = operands<const real>(x);
    output = Array({query_offsets.back(), d});
    if (d == 0) return output;
    const kernels::DeclaredFlops counted([&] { return model_flops(); });
    lse = Array({query_offsets.back(), layout.heads});
    AttentionLog* const log = AttentionLog::active;
    if (log != nullptr) {
      AttentionRecord record{.self = self, .heads = layout.heads, .layout = layout, .scale = scale};
      record.terms = options.terms;
      record.q = x[0];
      record.kv = x[1];
      record.output = output;
      log->begin(std::move(record), query_offsets, key_offsets);
    }
    Array p({largest_tile()});
    for_each_block(layout.heads, [&](const Block& block, const Stretches& stretches) {
      real* const sums = lse.row(block.query_row) + block.head;
      real* const o = output.row(block.query_row) + block.head * size;
      const bool one = one_tile(block, stretches);
      if (!one) log_sums(block, stretches, in, p, sums);
      for_each_tile(block, stretches, in, [&](const Tile& t, bool first) {
        const View<const real> v = part(in, t).v;
        one ? weights(t, in, p, sums) : weights_again(t, in, p, sums);
        if (log != nullptr) {
          log->add(t.scores.sequence, t.head, t.query_row - query_offsets[t.scores.sequence],
                   t.rows, t.scores.key, t.keys, t.visible, p.data());
        }
        if (options.dropout > 0) drop(t, p, p);
        // O [rows, size] += P' [rows, keys] V [keys, size]
        gemm(Trans::no, Trans::no, t.rows, size, t.keys, 1, p.data(), t.keys, v.data, v.stride,
             first ? real(0) : real(1), o, d);
      });
    });
    return output;
  }

  /// Buffers for the values of one tile and the D of one block.
  struct Scratch {
    Array p, dropped, dp;
    std::vector<real, BlockAllocator<real>> delta;
  };
  /// Writes g.q; adds to g.k, g.v and the gradients of the terms' inputs.
  void run_backward(const Array& dy, const InputGradients& g, std::span<const Grad> dterms) const {
    const std::int64_t d = columns(), size = layout.size;
    if (d == 0) return;
    const kernels::DeclaredFlops counted([&] { return 2 * model_flops(); });
    const Inputs in = operands<const real>(x);
    const std::int64_t largest = largest_tile();
    Scratch scratch{
        Array({largest}), Array({uses_other_weights() ? largest : 0}), Array({largest}), {}};
    for_each_block(layout.heads, [&](const Block& block, const Stretches& stretches) {
      const std::int64_t column = block.head * size;
      scratch.delta.clear();  // D_i = ⟨dO_i, O_i⟩
      for (std::int64_t r = block.query_row; r < block.query_row + block.queries.rows; ++r)
        scratch.delta.push_back(kernels::dot(dy.row(r) + column, output.row(r) + column, size));
      const View<const real> dout{dy.row(block.query_row) + column, d};
      for_each_tile(block, stretches, in, [&](const Tile& t, bool first) {
        tile_backward(t, first, part(in, t), dout, part(g, t), scratch, in);
        if (t.keys > 0) terms_backward(t, scratch.dp, part(g, t).q, dterms);
      });
    });
  }
  /// Computes the five products of a tile. dO is [rows, size]; dS is left in scratch.dp.
  void tile_backward(const Tile& t, bool first, const Inputs& tile_inputs, View<const real> dout,
                     const InputGradients& g, Scratch& scratch, const Inputs& in) const {
    const auto [q, k, v] = tile_inputs;
    const auto [dq, dk, dv] = g;
    const std::int64_t rows = t.rows, keys = t.keys, size = layout.size;
    const real* const sums = lse.row(t.query_row) + t.head;
    weights_again(t, in, scratch.p, sums);
    const Array& used = used_weights(t, scratch);
    // dV [keys, size] += P'ᵀ [keys, rows] dO [rows, size]
    gemm(Trans::yes, Trans::no, keys, size, rows, 1, used.data(), keys, dout.data, dout.stride, 1,
         dv.data, dv.stride);
    // dP [rows, keys] = dropout(dO [rows, size] Vᵀ [size, keys])
    real* const dp = scratch.dp.data();
    gemm(Trans::no, Trans::yes, rows, keys, size, 1, dout.data, dout.stride, v.data, v.stride, 0,
         dp, keys);
    if (options.dropout > 0) drop(t, scratch.dp, scratch.dp);
    // dS [rows, keys] = P ⊙ (dP − D), in place of dP
    real* const ds = dp;
    real* const p = scratch.p.data();
    if (options.map == ScoreMap::sum) {  // 1 / Σ S in place of P
      kernels::for_each_row(p, rows, keys, t.visible, [&](auto r, real* row, auto n) {
        std::fill(row, row + n, 1 / sums[r * layout.heads]);
      });
    } else if (options.map == ScoreMap::hard) {
      for (std::int64_t r = 0; r < rows; ++r)
        scratch.delta[r] = kernels::dot(p + r * keys, dp + r * keys, keys);
    }
    kernels::attention_softmax_grad(p, dp, ds, rows, keys, t.visible, scratch.delta.data());
    // dQ [rows, size] += c dS [rows, keys] K [keys, size]
    gemm(Trans::no, Trans::no, rows, size, keys, scale, ds, keys, k.data, k.stride,
         first ? real(0) : real(1), dq.data, dq.stride);
    // dK [keys, size] += c dSᵀ [keys, rows] Q [rows, size]
    gemm(Trans::yes, Trans::no, keys, size, rows, scale, ds, keys, q.data, q.stride, 1, dk.data,
         dk.stride);
  }
  bool uses_other_weights() const { return options.dropout > 0 || options.map == ScoreMap::hard; }
  /// P' computed from scratch.p; stored in scratch.dropped if it differs from P.
  const Array& used_weights(const Tile& t, Scratch& scratch) const {
    if (!uses_other_weights()) return scratch.p;
    const Array* from = &scratch.p;
    if (options.map == ScoreMap::hard) {
      std::copy_n(scratch.p.data(), t.rows * t.keys, scratch.dropped.data());
      harden(t, scratch.dropped);
      from = &scratch.dropped;
    }
    if (options.dropout > 0) drop(t, *from, scratch.dropped);
    return scratch.dropped;
  }
  /// Adds the terms' contributions to dQ and to the gradients of their inputs.
  void terms_backward(const Tile& t, const Array& ds, View<real> dq,
                      std::span<const Grad> dterms) const {
    for (const ScoreTermPtr& term : options.terms) {
      const std::size_t count = term->inputs().size();
      term->backward(t.scores, ds.data(), dq.data, dterms.first(count));
      dterms = dterms.subspan(count);
    }
  }

  bool straight_through() const { return options.map == ScoreMap::hard; }
  Array forward(std::span<const Array> inputs) {
    x[0] = inputs[0];
    if (!self) x[1] = inputs[1];
    return run();
  }
  void backward(const Array& dy, std::span<const Grad> dx) const {
    std::array<Array, 2> g{Array::zeros(x[0].shape())};
    if (!self) g[1] = Array::zeros(x[1].shape());
    const std::size_t operand_count = self ? 1 : 2;
    run_backward(dy, operands<real>(g), dx.subspan(operand_count));
    for (std::size_t i = 0; i < operand_count; ++i) {
      if (dx[i]) dx[i].add(std::move(g[i]));
    }
  }
};

/// Two types, so that profiles distinguish the ops.
struct SelfAttention : FusedAttention {};
struct CrossAttention : FusedAttention {};

template <class Op>
Tensor apply_attention(Op op, const HeadLayout& layout, const AttentionOptions& options,
                       std::span<const std::int32_t> query_offsets,
                       std::span<const std::int32_t> key_offsets,
                       std::span<const Tensor> projected) {
  op.options = options;
  op.layout = layout;
  op.scale = options.scale_for(layout);
  op.query_offsets.assign(query_offsets.begin(), query_offsets.end());
  op.key_offsets.assign(key_offsets.begin(), key_offsets.end());
  op.self = projected.size() == 1;
  std::vector<Tensor, BlockAllocator<Tensor>> inputs(projected.begin(), projected.end());
  for (const ScoreTermPtr& term : options.terms) {
    for (const Tensor& x : term->inputs()) inputs.push_back(x);
  }
  return apply(std::move(op), std::span<const Tensor>(inputs));
}

}  // namespace

HeadLayout AttentionOptions::layout(const char* op, std::int64_t columns,
                                    bool with_keys_and_values) const {
  HeadLayout l{heads, key_heads == 0 ? heads : key_heads, 0};
  if (heads < 1 || l.key_heads < 1 || heads % l.key_heads != 0)
    fail("[{}] expected key_heads to divide heads, got {} and {}", op, l.key_heads, heads);
  require_probability(op, dropout, "dropout");
  if (!std::isfinite(scale)) fail("[{}] expected a finite scale, got {}", op, scale);
  if (top_k < 0) fail("[{}] expected top_k of at least 0, got {}", op, top_k);
  if (top_k > 0 && map != ScoreMap::softmax)
    fail("[{}] expected map softmax with top_k, got {}", op, name_of(map));
  if (pattern == nullptr) fail("[{}] expected a pattern, got none", op);
  if (std::ranges::count(terms, nullptr) > 0)
    fail("[{}] expected score terms, got a null pointer", op);
  if (columns == 0) return l;
  const bool too_many = heads > columns;  // if so, heads + 2 · key_heads could overflow
  const std::int64_t parts = with_keys_and_values && !too_many ? heads + 2 * l.key_heads : heads;
  const bool fits = !too_many && columns % parts == 0;
  if (!fits && with_keys_and_values) {
    fail("[{}] expected qkv [tokens, ({} + 2 · {}) size], got {} columns", op, heads, l.key_heads,
         columns);
  }
  if (!fits) fail("[{}] expected q [tokens, {} size], got {} columns", op, heads, columns);
  l.size = columns / parts;
  return l;
}

Tensor self_attention(const Tensor& qkv, std::span<const std::int32_t> offsets,
                      const AttentionOptions& options) {
  constexpr const char* op = "self_attention";
  if (qkv.shape().rank() != 2)
    fail("[{}] expected qkv [tokens, (heads + 2 key_heads) size], got {}", op, qkv.shape());
  require_offsets(op, offsets, qkv.shape()[0]);
  return apply_attention(SelfAttention{}, options.layout(op, qkv.shape()[1], true), options,
                         offsets, offsets, std::array{qkv});
}

Tensor cross_attention(const Tensor& q, const Tensor& kv,
                       std::span<const std::int32_t> query_offsets,
                       std::span<const std::int32_t> key_offsets, const AttentionOptions& options) {
  constexpr const char* op = "cross_attention";
  if (q.shape().rank() != 2 || kv.shape().rank() != 2) {
    fail(
        "[{}] expected q [query tokens, heads size] and kv [key tokens, 2 key_heads size], got {} "
        "and {}",
        op, q.shape(), kv.shape());
  }
  const HeadLayout layout = options.layout(op, q.shape()[1], false);
  // Rows without columns may have any number of heads, so 2 · heads could overflow.
  const std::int64_t kv_columns = kv.shape()[1];
  if (kv_columns % 2 != 0 || kv_columns / 2 != layout.key_heads * layout.size) {
    fail("[{}] expected kv [tokens, 2 · {} · {}] for q {}, got {}", op, layout.key_heads,
         layout.size, q.shape(), kv.shape());
  }
  require_offsets(op, query_offsets, q.shape()[0]);
  require_offsets(op, key_offsets, kv.shape()[0]);
  if (query_offsets.size() != key_offsets.size()) {
    fail("[{}] expected as many key sequences as query sequences, got {} and {}", op,
         key_offsets.size() - 1, query_offsets.size() - 1);
  }
  for (std::size_t s = 0; options.queries_last && s + 1 < key_offsets.size(); ++s) {
    const std::int32_t queries = query_offsets[s + 1] - query_offsets[s],
                       keys = key_offsets[s + 1] - key_offsets[s];
    if (queries > keys)
      fail("[{}] with queries_last, expected at least as many keys as queries, got {} and {}", op,
           keys, queries);
  }
  return apply_attention(CrossAttention{}, layout, options, query_offsets, key_offsets,
                         std::array{q, kv});
}

HEED_END
