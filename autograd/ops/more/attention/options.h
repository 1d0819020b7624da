#pragma once
/// The components of attention (of every kind except linear attention), which for one head of one
/// sequence computes
///
///   S = scale · Q Kᵀ + Σ terms,   P = softmax(S) over the keys that each query reads,   O = P V
///
/// where S are the scores. (kernels/fast/score_map.h contains other maps from S to P.) The components:
///
/// - the layout (query heads, key heads, the size of a head) and the scale, usually 1/√size;
/// - a Pattern: the keys that each query reads (causal.h, window.h);
/// - ScoreTerms: terms added to S (alibi.h, distance_bias.h, relative_keys.h).
///
/// fused_attention.cpp computes attention for whole sequences, with gradients;
/// attention_step.cpp computes it for one new row, with cached keys and values.
///
/// All positions, including those in blocks and stretches, count from the first row of the
/// sequence.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "autograd/base/random.h"
#include "autograd/kernels/fast/attention.h"
#include "autograd/kernels/fast/score_map.h"
#include "autograd/tensor.h"

HEED_BEGIN

using kernels::HeadLayout;
using kernels::KeyRange;

/// Queries [first, first + rows) of a sequence that has the keys [0, keys).
struct QueryBlock {
  std::int64_t sequence = 0;  ///< the index of the sequence in the batch
  std::int64_t first = 0, rows = 0, keys = 0;
};

/// The keys that a block of queries reads, as stretches. A stretch consists of a span of
/// consecutive keys and, for each query, the part of the span that it reads.
class Stretches {
 public:
  /// Adds a stretch in which the query at position i reads the keys reads(i), a KeyRange, clipped
  /// to [0, block.keys). Adds nothing if no query reads a key. No query may read the same key in
  /// two stretches.
  template <class Reads>
  void add(const QueryBlock& block, Reads reads) {
    KeyRange all{block.keys, 0};
    const std::size_t begin = rows_.size();
    for (std::int64_t i = block.first; i < block.first + block.rows; ++i) {
      KeyRange read = reads(i);
      read.begin = std::clamp<std::int64_t>(read.begin, 0, block.keys);
      read.end = std::clamp(read.end, read.begin, block.keys);
      if (read.begin < read.end)
        all = {std::min(all.begin, read.begin), std::max(all.end, read.end)};
      rows_.push_back(read);
    }
    if (all.begin < all.end) {
      stretches_.push_back({all, begin});
    } else {
      rows_.resize(begin);
    }
  }
  /// Adds a stretch without keys, so that a block whose queries read no key has a stretch too.
  void add_none(const QueryBlock& block) {
    stretches_.push_back({{0, 0}, rows_.size()});
    rows_.resize(rows_.size() + block.rows);
  }
  void clear() {
    stretches_.clear();
    rows_.clear();
  }
  std::size_t size() const { return stretches_.size(); }
  KeyRange keys(std::size_t stretch) const { return stretches_[stretch].keys; }
  /// rows(stretch)[r]: the keys of this stretch that query block.first + r reads.
  const KeyRange* rows(std::size_t stretch) const {
    return rows_.data() + stretches_[stretch].first_row;
  }

 private:
  struct Stretch {
    KeyRange keys;
    std::size_t first_row;
  };
  std::vector<Stretch, BlockAllocator<Stretch>> stretches_;
  std::vector<KeyRange, BlockAllocator<KeyRange>> rows_;
};

/// The rule that determines which keys the queries of a sequence read: adds the stretches of keys
/// that a block of queries reads. It is called for every block, so its cost should be proportional
/// to the number of keys in the stretches.
using Pattern = std::function<void(const QueryBlock& block, Stretches& into)>;
using PatternPtr = std::shared_ptr<const Pattern>;

/// Every query reads every key.
inline PatternPtr full_pattern() {
  static const auto pattern =
      std::make_shared<const Pattern>([](const QueryBlock& block, Stretches& into) {
        into.add(block, [&](std::int64_t) { return KeyRange{0, block.keys}; });
      });
  return pattern;
}

/// The scores of some queries of one head against some keys of their sequence.
struct ScoreBlock {
  std::int64_t sequence = 0, head = 0, heads = 0;
  std::int64_t query = 0, rows = 0;     ///< position of the first query, number of queries
  std::int64_t key = 0, keys = 0;       ///< position of the first key, number of keys
  const real* q = nullptr;              ///< the head's queries: row r begins at q + r · q_stride
  std::int64_t q_stride = 0, size = 0;  ///< size: number of values per query
  real scale = 1;                       ///< factor applied to Q Kᵀ
};

/// A term in words and numbers, for programs that display attention.
struct TermFormula {
  std::string formula = {};  ///< "B_ij = −m |i − j|", where B is added to the scores
  std::string about = {};    ///< a remark, such as the value of m; for a term with keys, about R
  /// A term c ⟨q_i + w, R[i − j]⟩ also returns the head's keys R [rows + keys − 1, size], the key
  /// of the greatest distance first, and w [1, size] with its formula; w is undefined if it is 0.
  Array keys = {}, shift = {};
  std::string shift_formula = {};
};

/// A term that is added to the scores. S and dS are contiguous matrices [rows, keys] of a block; dS
/// is 0 where a query does not read a key.
class ScoreTerm {
 public:
  virtual ~ScoreTerm() = default;
  /// The tensors besides q that the term depends on: its parameters, or values computed from them.
  /// They become inputs of the op.
  virtual std::span<const Tensor> inputs() const { return {}; }
  /// Adds the term to s.
  virtual void add(const ScoreBlock& block, real* s) const = 0;
  /// Adds the contribution of dS to the gradients of the queries (row r at dq + r · block.q_stride)
  /// and of inputs() (dinputs; an entry is false if that gradient is not required). A constant term
  /// adds nothing.
  virtual void backward(const ScoreBlock& /*block*/, const real* /*ds*/, real* /*dq*/,
                        std::span<const Grad> /*dinputs*/) const {}
  /// The term for the head of a block, as `heed trace` shows it.
  virtual TermFormula formula(const ScoreBlock& /*block*/) const { return {}; }
};
using ScoreTermPtr = std::shared_ptr<const ScoreTerm>;

struct AttentionOptions {
  std::int64_t heads = 1;
  std::int64_t key_heads = 0;  ///< a divisor of heads (HeadLayout); 0: equal to heads
  real scale = 0;              ///< factor applied to Q Kᵀ; 0: 1/√size
  /// Cross-attention only: the queries have the last positions of their sequence, after keys from
  /// earlier calls (segment memory). By default, they have the first positions.
  bool queries_last = false;
  PatternPtr pattern = full_pattern();
  std::vector<ScoreTermPtr> terms = {};
  std::int64_t top_k = 0;  ///< maximum number of keys per query (keep_largest.h); 0: no limit
  ScoreMap map = ScoreMap::softmax;  ///< the map from S to P; top_k requires softmax
  real dropout = 0;                  ///< dropout rate of P
  RandomKey key = {};

  /// The layout of rows of `columns` values: q alone, or q, k and v side by side. Throws if the key
  /// heads do not divide the heads, if the columns do not divide evenly among the heads, or if an
  /// option is invalid.
  HeadLayout layout(const char* op, std::int64_t columns, bool with_keys_and_values) const;
  /// The factor applied to Q Kᵀ.
  real scale_for(const HeadLayout& layout) const {
    return scale != 0 ? scale : real(1) / std::sqrt(static_cast<real>(layout.size));
  }
};

/// Attention for one new row at a time, in decoding. Except for rounding, the result equals the row
/// that self_attention or cross_attention computes for the same query. Keys and values may be at
/// any address. There is neither a gradient nor dropout.
class AttentionStep {
 public:
  /// `q_columns` is heads · size.
  AttentionStep(const AttentionOptions& options, std::int64_t q_columns);

  /// q, out: [heads · size], the query and the result at `position` of sequence `sequence`, which
  /// has `keys` keys. row(t): the address of the keys [key_heads · size] of position t, followed by
  /// its values. out is 0 if the query reads no key.
  template <class Row>
  void operator()(const real* q, std::int64_t sequence, std::int64_t position, std::int64_t keys,
                  Row row, real* out) {
    const QueryBlock query{sequence, position, 1, keys};
    stretches_.clear();
    (*options_.pattern)(query, stretches_);
    rows_.clear();
    for (std::size_t i = 0; i < stretches_.size(); ++i) {
      for (std::int64_t t = stretches_.keys(i).begin; t < stretches_.keys(i).end; ++t)
        rows_.push_back(row(t));
    }
    attend(q, query, out);
  }

 private:
  void attend(const real* q, const QueryBlock& query, real* out);
  void add(const ScoreTerm& term, const real* q, const QueryBlock& query);

  AttentionOptions options_;
  HeadLayout layout_;
  Stretches stretches_;
  std::vector<const real*, BlockAllocator<const real*>> rows_;
  std::vector<real, BlockAllocator<real>> scores_;
};

HEED_END
