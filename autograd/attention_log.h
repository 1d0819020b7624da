#pragma once
/// The weights of attention as they are computed, for programs that show them. Off by default: the
/// op then tests one pointer for each block of queries.
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "autograd/memory/array.h"

HEED_BEGIN

/// The weights of one call of self_attention or cross_attention, before dropout.
struct AttentionRecord {
  bool self = true;  ///< queries and keys are the rows of the same sequences
  std::int64_t heads = 1;
  /// P [queries, keys] of each sequence and, within a sequence, of each head. A key that a query
  /// does not read has weight 0.
  std::vector<Array> weights;

  const Array& of(std::int64_t sequence, std::int64_t head) const {
    return weights[sequence * heads + head];
  }
};

/// While one is alive, the calls of this thread are added to `records` in the order in which they
/// begin. If several are alive, only the newest one records. Linear attention has no weights and is not
/// recorded.
class AttentionLog {
 public:
  explicit AttentionLog(std::vector<AttentionRecord>& records)
      : records_(records), before_(active) {
    active = this;
  }
  ~AttentionLog() { active = before_; }
  AttentionLog(const AttentionLog&) = delete;
  AttentionLog& operator=(const AttentionLog&) = delete;

  /// A call begins; its weights are 0 until they are set.
  void begin(bool self, std::int64_t heads, std::span<const std::int32_t> query_offsets,
             std::span<const std::int32_t> key_offsets) {
    AttentionRecord record{self, heads, {}};
    for (std::size_t s = 0; s + 1 < query_offsets.size(); ++s) {
      for (std::int64_t head = 0; head < heads; ++head) {
        record.weights.push_back(Array::zeros(
            {query_offsets[s + 1] - query_offsets[s], key_offsets[s + 1] - key_offsets[s]}));
      }
    }
    records_.push_back(std::move(record));
  }
  /// Adds p [rows, keys] to the newest call, for queries from `query` and keys from `key`, which count
  /// from the beginning of their sequence. Adds, because the stretches of a pattern may overlap:
  /// where a query does not read a key of a stretch, p is 0.
  void add(std::int64_t sequence, std::int64_t head, std::int64_t query, std::int64_t rows,
           std::int64_t key, std::int64_t keys, const real* p) {
    AttentionRecord& record = records_.back();
    Array& weights = record.weights[sequence * record.heads + head];
    for (std::int64_t r = 0; r < rows; ++r) {
      real* const row = weights.row(query + r) + key;
      for (std::int64_t k = 0; k < keys; ++k) row[k] += p[r * keys + k];
    }
  }

  constinit static inline thread_local AttentionLog* active = nullptr;

 private:
  std::vector<AttentionRecord>& records_;
  AttentionLog* before_;
};

HEED_END
