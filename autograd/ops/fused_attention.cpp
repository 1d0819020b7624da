#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "autograd/kernels/attention.h"
#include "autograd/kernels/dropout.h"
#include "autograd/kernels/gemm/gemm.h"
#include "autograd/kernels/gemm/product_log.h"
#include "autograd/kernels/reduce.h"
#include "autograd/ops.h"

HEED_BEGIN

using kernels::gemm;
using kernels::Trans;

namespace {

/// Columns of a matrix of rows: element (r, c) is at data[r · ld + c].
template <class T>
struct Columns {
  T* data = nullptr;
  std::int64_t ld = 0;
  T* at(std::int64_t row, std::int64_t column) const { return data + row * ld + column; }
};
using Source = Columns<const real>;
using Target = Columns<real>;

/// A block of queries of one sequence, in one head, and keys they may look at.
struct Block {
  std::int64_t query, rows;  ///< first row of q, and how many
  std::int64_t key, keys;    ///< first row of k and v, and how many
  std::int64_t column;       ///< first column of the head
  kernels::Visible visible;
  std::int64_t number;  ///< where the block's dropout mask begins
};

/// Per sequence and head, with S = Q Kᵀ/√d:
///   P = softmax(S) over what each query sees,  P' = dropout(P),  O = P' V
///   dV = P'ᵀ dO,  dP = dropout'(dO Vᵀ),  dS = P ⊙ (dP − D),  D_i = ⟨dO_i, O_i⟩ = Σ_j P_ij dP_ij
///   dQ = dS K/√d,  dK = dSᵀ Q/√d
/// Queries are taken in blocks, and the keys of long sequences in tiles, so only a tile of S exists
/// at a time; backward makes P again from S and the log-sum-exp of its rows, and so does forward
/// where there are several tiles. A query that sees no key gives exactly 0 and has no gradient.
/// Memory is linear in the tokens. Source: Vaswani et al. 2017, section 3.2; recomputation after
/// Dao et al., "FlashAttention", 2022.
struct BlockedAttention {
  /// Query rows a block: causal attention skips the blocks above the diagonal.
  static constexpr std::int64_t block_rows = 64;
  /// One head's scores of a short sequence are taken whole.
  static constexpr std::int64_t whole_values = 128 * 128;
  /// Keys a tile: three tiles of scores find room in a second cache of 1 MiB.
  static constexpr std::int64_t tile_keys = 1024;

  FusedAttentionOptions options;
  std::vector<std::int32_t, ArenaAllocator<std::int32_t>> query_offsets, key_offsets;
  std::int64_t head_size = 0;
  Array output, lse;  // [query tokens, d], [query tokens, heads]

  real root() const { return real(1) / std::sqrt(static_cast<real>(head_size)); }

  template <class Body>
  void for_each_block(Body body) const {
    std::int64_t number = 0;
    for (std::size_t s = 0; s + 1 < query_offsets.size(); ++s) {
      const std::int64_t queries = query_offsets[s + 1] - query_offsets[s];
      const std::int64_t keys = key_offsets[s + 1] - key_offsets[s];
      if (queries == 0) continue;  // of however many heads
      const std::int64_t step =
          queries * keys <= whole_values ? std::max<std::int64_t>(queries, 1) : block_rows;
      for (std::int64_t head = 0; head < options.heads; ++head) {
        for (std::int64_t first = 0; first < queries; first += step) {
          Block block{
              query_offsets[s] + first, std::min(step, queries - first), key_offsets[s], keys,
              head * head_size,         {options.causal, first},         number};
          if (options.causal) block.keys = std::min(keys, first + block.rows);
          number += (block.rows * block.keys + 127) / 128 * 128;
          body(block);
        }
      }
    }
  }
  /// The block's parts by keys, one at least; body(tile, whether it is the first).
  template <class Body>
  static void for_each_tile(const Block& block, Body body) {
    std::int64_t first = 0;
    do {
      Block tile = block;
      tile.key += first;
      tile.keys = std::min(tile_keys, block.keys - first);
      tile.visible.first -= first;
      tile.number += block.rows * first;
      body(tile, first == 0);
      first += tile_keys;
    } while (first < block.keys);
  }
  std::int64_t largest_tile() const {
    std::int64_t largest = 1;
    for_each_block(
        [&](const Block& b) { largest = std::max(largest, b.rows * std::min(b.keys, tile_keys)); });
    return largest;
  }

  /// P' from P, and dP from dP': the same mask.
  void drop(const Block& b, const Array& from, Array& to) const {
    kernels::dropout(options.key, b.number, options.dropout, from.data(), to.data(),
                     b.rows * b.keys);
  }
  void scores(const Block& b, Source q, Source k, Array& s) const {
    gemm(Trans::no, Trans::yes, b.rows, b.keys, head_size, root(), q.at(b.query, b.column), q.ld,
         k.at(b.key, b.column), k.ld, 0, s.data(), b.keys);
  }

  /// P of a block of one tile in p, and the log-sum-exp of its rows in `sums`.
  void softmax(const Block& b, Source q, Source k, Array& p, real* sums) const {
    scores(b, q, k, p);
    kernels::attention_softmax(p.data(), b.rows, b.keys, b.visible, sums, options.heads);
  }
  /// The log-sum-exp alone, of any block.
  void log_sums(const Block& b, Source q, Source k, Array& s, real* sums) const {
    for (std::int64_t r = 0; r < b.rows; ++r)
      sums[r * options.heads] = -std::numeric_limits<real>::infinity();
    for_each_tile(b, [&](const Block& tile, bool) {
      scores(tile, q, k, s);
      kernels::attention_add_to_lse(s.data(), tile.rows, tile.keys, tile.visible, sums,
                                    options.heads);
    });
  }
  void softmax_again(const Block& b, Source q, Source k, Array& p, const real* sums) const {
    scores(b, q, k, p);
    kernels::attention_softmax_again(p.data(), b.rows, b.keys, b.visible, sums, options.heads);
  }

  /// Of Q Kᵀ and P V over all pairs of a query and a key, masked or not: backward has twice as many.
  double model_flops() const {
    double pairs = 0;
    for (std::size_t s = 0; s + 1 < query_offsets.size(); ++s) {
      pairs += static_cast<double>(query_offsets[s + 1] - query_offsets[s]) *
               static_cast<double>(key_offsets[s + 1] - key_offsets[s]);
    }
    return 4 * pairs * static_cast<double>(head_size * options.heads);
  }

  Array run(Source q, Source k, Source v, std::int64_t query_tokens) {
    const std::int64_t d = head_size * options.heads;
    output = Array({query_tokens, d});
    if (d == 0) return output;
    const kernels::CountedAsWhole counted([&] { return model_flops(); });
    lse = Array({query_tokens, options.heads});
    Array p({largest_tile()});
    for_each_block([&](const Block& b) {
      real* const sums = lse.row(b.query) + b.column / head_size;
      const bool one_tile = b.keys <= tile_keys;
      if (!one_tile) log_sums(b, q, k, p, sums);
      for_each_tile(b, [&](const Block& tile, bool first) {
        one_tile ? softmax(tile, q, k, p, sums) : softmax_again(tile, q, k, p, sums);
        if (options.dropout > 0) drop(tile, p, p);
        gemm(Trans::no, Trans::no, tile.rows, head_size, tile.keys, 1, p.data(), tile.keys,
             v.at(tile.key, tile.column), v.ld, first ? real(0) : real(1),
             output.row(tile.query) + tile.column, d);
      });
    });
    return output;
  }

  /// Writes dq and adds to dk and dv.
  void run_backward(const Array& dy, Source q, Source k, Source v, Target dq, Target dk,
                    Target dv) const {
    const std::int64_t d = head_size * options.heads;
    if (d == 0) return;
    const kernels::CountedAsWhole counted([&] { return 2 * model_flops(); });
    const std::int64_t largest = largest_tile();
    const Source dout{dy.data(), d};
    Array p({largest}), dropped({options.dropout > 0 ? largest : 0}), dp({largest});
    std::vector<real, ArenaAllocator<real>> delta;
    for_each_block([&](const Block& block) {
      delta.clear();
      for (std::int64_t r = block.query; r < block.query + block.rows; ++r) {
        delta.push_back(
            kernels::dot(dout.at(r, block.column), output.row(r) + block.column, head_size));
      }
      for_each_tile(block, [&](const Block& b, bool first) {
        softmax_again(b, q, k, p, lse.row(b.query) + b.column / head_size);
        if (options.dropout > 0) drop(b, p, dropped);
        const Array& used = options.dropout > 0 ? dropped : p;
        gemm(Trans::yes, Trans::no, b.keys, head_size, b.rows, 1, used.data(), b.keys,
             dout.at(b.query, b.column), d, 1, dv.at(b.key, b.column), dv.ld);
        gemm(Trans::no, Trans::yes, b.rows, b.keys, head_size, 1, dout.at(b.query, b.column), d,
             v.at(b.key, b.column), v.ld, 0, dp.data(), b.keys);
        if (options.dropout > 0) drop(b, dp, dp);
        kernels::attention_softmax_grad(p.data(), dp.data(), dp.data(), b.rows, b.keys, b.visible,
                                        delta.data());
        gemm(Trans::no, Trans::no, b.rows, head_size, b.keys, root(), dp.data(), b.keys,
             k.at(b.key, b.column), k.ld, first ? real(0) : real(1), dq.at(b.query, b.column),
             dq.ld);
        gemm(Trans::yes, Trans::no, b.keys, head_size, b.rows, root(), dp.data(), b.keys,
             q.at(b.query, b.column), q.ld, 1, dk.at(b.key, b.column), dk.ld);
      });
    });
  }

  void check(const char* op, std::int64_t d, std::int64_t query_tokens, std::int64_t key_tokens) {
    if (options.heads < 1 || d % options.heads != 0)
      fail("[{}] {} heads do not divide {} columns", op, options.heads, d);
    if (!(options.dropout >= 0 && options.dropout < 1))
      fail("[{}] expected dropout in [0, 1), got {}", op, options.dropout);
    head_size = d / options.heads;
    check_offsets(op, query_offsets, query_tokens);
    check_offsets(op, key_offsets, key_tokens);
    if (query_offsets.size() != key_offsets.size()) {
      fail("[{}] {} sequences of queries, {} of keys", op, query_offsets.size() - 1,
           key_offsets.size() - 1);
    }
  }
  template <class Offsets>
  static void check_offsets(const char* op, const Offsets& offsets, std::int64_t tokens) {
    if (offsets.empty() || offsets.front() != 0 || offsets.back() != tokens ||
        !std::is_sorted(offsets.begin(), offsets.end())) {
      fail("[{}] expected offsets rising from 0 to {} rows, got {}", op, tokens,
           fmt::join(offsets, ", "));
    }
  }
};

/// qkv: [tokens, 3 d], the columns of q, then k, then v → [tokens, d]
struct SelfAttention {
  BlockedAttention attention;
  Array qkv;

  Array forward(const Array& x) {
    if (x.shape().rank() != 2 || x.cols() % 3 != 0)
      fail("[self_attention] expected qkv [tokens, 3 d], got {}", x.shape());
    qkv = x;
    const std::int64_t d = x.cols() / 3, ld = x.cols();
    attention.check("self_attention", d, x.rows(), x.rows());
    return attention.run({x.data(), ld}, {x.data() + d, ld}, {x.data() + 2 * d, ld}, x.rows());
  }
  void backward(const Array& dy, Grad dx) const {
    const std::int64_t ld = qkv.cols(), d = ld / 3;
    const real* const x = qkv.data();
    Array g = Array::zeros(qkv.shape());
    attention.run_backward(dy, {x, ld}, {x + d, ld}, {x + 2 * d, ld}, {g.data(), ld},
                           {g.data() + d, ld}, {g.data() + 2 * d, ld});
    dx.add(std::move(g));
  }
};

/// q: [query tokens, d], kv: [key tokens, 2 d] → [query tokens, d]
struct CrossAttention {
  BlockedAttention attention;
  Array q, kv;

  Array forward(const Array& q_in, const Array& kv_in) {
    if (q_in.shape().rank() != 2 || kv_in.shape().rank() != 2 || kv_in.cols() != 2 * q_in.cols()) {
      fail("[cross_attention] expected q [tokens, d] and kv [tokens, 2 d], got {} and {}",
           q_in.shape(), kv_in.shape());
    }
    q = q_in;
    kv = kv_in;
    const std::int64_t d = q.cols(), ld = 2 * d;
    attention.check("cross_attention", d, q.rows(), kv.rows());
    return attention.run({q.data(), d}, {kv.data(), ld}, {kv.data() + d, ld}, q.rows());
  }
  void backward(const Array& dy, Grad dq, Grad dkv) const {
    const std::int64_t d = q.cols(), ld = 2 * d;
    Array gq = Array::zeros(q.shape()), gkv = Array::zeros(kv.shape());
    attention.run_backward(dy, {q.data(), d}, {kv.data(), ld}, {kv.data() + d, ld}, {gq.data(), d},
                           {gkv.data(), ld}, {gkv.data() + d, ld});
    if (dq) dq.add(std::move(gq));
    if (dkv) dkv.add(std::move(gkv));
  }
};

BlockedAttention blocked(std::span<const std::int32_t> query_offsets,
                         std::span<const std::int32_t> key_offsets,
                         const FusedAttentionOptions& options) {
  BlockedAttention attention;
  attention.options = options;
  attention.query_offsets.assign(query_offsets.begin(), query_offsets.end());
  attention.key_offsets.assign(key_offsets.begin(), key_offsets.end());
  return attention;
}

}  // namespace

Tensor self_attention(const Tensor& qkv, std::span<const std::int32_t> offsets,
                      const FusedAttentionOptions& options) {
  SelfAttention op;
  op.attention = blocked(offsets, offsets, options);
  return apply(std::move(op), qkv);
}

Tensor cross_attention(const Tensor& q, const Tensor& kv,
                       std::span<const std::int32_t> query_offsets,
                       std::span<const std::int32_t> key_offsets,
                       const FusedAttentionOptions& options) {
  CrossAttention op;
  op.attention = blocked(query_offsets, key_offsets, options);
  return apply(std::move(op), q, kv);
}

HEED_END
