#pragma once
/// Records what attention computes, for programs that display it. Off by default; the cost is then
/// one pointer test per tile of scores.
#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "autograd/base/scoped_value.h"
#include "autograd/memory/array.h"
#include "autograd/ops/more/attention/options.h"

HEED_BEGIN

/// One call of self_attention or cross_attention. The arrays of its inputs and outputs share their
/// values with those of the call.
struct AttentionRecord {
  bool self = true;  ///< queries and keys are computed from the same rows
  std::int64_t heads = 1;
  HeadLayout layout = {};
  real scale = 1;  ///< factor applied to Q Kᵀ
  std::vector<ScoreTermPtr> terms = {};
  Array q = {};       ///< [query rows, heads · size]; self-attention: q, k and v side by side
  Array kv = {};      ///< [key rows, 2 · key_heads · size]: k and v; cross-attention only
  Array output = {};  ///< [query rows, heads · size]: O, with dropout
  /// `input`: the rows from which a layer computed q (self-attention: q, k and v).
  /// `encoder_output`: the encoder output from which the layer computed k and v. Each is undefined
  /// if no layer has set it.
  Array input = {}, encoder_output = {};
  /// [queries, keys] for each sequence: 1 where the pattern permits the query to read the key, else
  /// 0.
  std::vector<Array> reads = {};
  /// P [queries, keys], before dropout, for each sequence and head. Masked keys have weight 0.
  std::vector<Array> weights = {};

  const Array& of(std::int64_t sequence, std::int64_t head) const {
    return weights[sequence * heads + head];
  }
  /// A row of a head's queries, keys or values: layout.size numbers. `head` is a query head.
  const real* query(std::int64_t row, std::int64_t head) const {
    return q.row(row) + head * layout.size;
  }
  const real* key(std::int64_t row, std::int64_t head) const {
    return (self ? q.row(row) + layout.heads * layout.size : kv.row(row)) +
           layout.key_head(head) * layout.size;
  }
  const real* value(std::int64_t row, std::int64_t head) const {
    return key(row, head) + layout.key_heads * layout.size;
  }
};

/// While an instance is alive, attention calls of this thread are added to `records` in the order
/// in which they begin. If several are alive, only the newest one records. Linear attention has no
/// weights and is ignored.
class AttentionLog {
 public:
  explicit AttentionLog(std::vector<AttentionRecord>& records)
      : records_(records), scope_(active, this) {}

  /// Sets the inputs of the layer for the next record: the rows from which it computes queries, and
  /// the encoder output from which it computes keys and values (undefined if it reads none).
  void enter(const Array& input, const Array& encoder_output) {
    input_ = input;
    encoder_output_ = encoder_output;
  }
  /// Begins a record, with weights 0.
  void begin(AttentionRecord record, std::span<const std::int32_t> query_offsets,
             std::span<const std::int32_t> key_offsets) {
    record.input = std::exchange(input_, {});
    record.encoder_output = std::exchange(encoder_output_, {});
    for (std::size_t s = 0; s + 1 < query_offsets.size(); ++s) {
      const Shape shape{query_offsets[s + 1] - query_offsets[s],
                        key_offsets[s + 1] - key_offsets[s]};
      record.reads.push_back(Array::zeros(shape));
      for (std::int64_t head = 0; head < record.heads; ++head)
        record.weights.push_back(Array::zeros(shape));
    }
    records_.push_back(std::move(record));
  }
  /// Adds p [rows, keys] to the newest record. `query` and `key` are the indices of the first query
  /// and the first key among those of the sequence. The weights are sums over the stretches,
  /// because the key ranges of stretches may overlap: p is 0 for the keys of a stretch that a query
  /// does not read.
  void add(std::int64_t sequence, std::int64_t head, std::int64_t query, std::int64_t rows,
           std::int64_t key, std::int64_t keys, const kernels::Visible& visible, const real* p) {
    AttentionRecord& record = records_.back();
    Array &weights = record.weights[sequence * record.heads + head],
          &reads = record.reads[sequence];
    for (std::int64_t r = 0; r < rows; ++r) {
      real* const row = weights.row(query + r) + key;
      for (std::int64_t k = 0; k < keys; ++k) row[k] += p[r * keys + k];
      const KeyRange range = visible.columns(r, keys);
      std::fill(reads.row(query + r) + key + range.begin, reads.row(query + r) + key + range.end,
                real(1));
    }
  }

  constinit static inline thread_local AttentionLog* active = nullptr;

 private:
  std::vector<AttentionRecord>& records_;
  ScopedValue<AttentionLog*> scope_;
  Array input_, encoder_output_;
};

HEED_END
