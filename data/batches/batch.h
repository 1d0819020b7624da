#pragma once
/// A batch: concatenated sequences of any length, without padding.
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace heed {

/// One side of a batch: rows that are token ids, or feature vectors of `width` values. Sequence i
/// has rows [offsets[i], offsets[i+1]). A side that the task does not use has no offsets.
struct Side {
  std::vector<std::int32_t> ids;
  std::vector<float> features;        ///< rows() × width values, used in place of ids
  std::int64_t width = 0;             ///< number of values in a feature row; 0: the rows are ids
  std::vector<std::int32_t> offsets;  ///< n + 1 entries, from 0 to rows()

  std::int64_t rows() const { return offsets.empty() ? 0 : offsets.back(); }
  std::int64_t sequences() const {
    return offsets.empty() ? 0 : static_cast<std::int64_t>(offsets.size()) - 1;
  }
  /// Appends one sequence of ids: `sequence` followed by `rest`.
  void push(std::span<const std::int32_t> sequence, std::span<const std::int32_t> rest = {}) {
    if (offsets.empty()) offsets.push_back(0);
    ids.insert(ids.end(), sequence.begin(), sequence.end());
    ids.insert(ids.end(), rest.begin(), rest.end());
    offsets.push_back(static_cast<std::int32_t>(ids.size()));
  }
  /// The part that consists of sequences [from, to).
  Side part(std::int64_t from, std::int64_t to) const;

  friend bool operator==(const Side&, const Side&) = default;
};

/// The label of rows that the loss ignores.
inline constexpr std::int32_t no_label = -100;

/// The input of a model and the labels of its loss. The batch of a decoder-only model has only a
/// target, that of an encoder-only model only a source.
struct Batch {
  Side source;  ///< seq2seq: each sequence of ids ends in </s>
  Side target;  ///< input of the decoder; seq2seq: <s> y1 … yn
  /// One label, or no_label, for each row of labelled(); seq2seq: y1 … yn </s>. A classifier of
  /// sequences has one label per sequence, at its first row.
  std::vector<std::int32_t> labels;
  std::vector<std::int64_t> samples;  ///< indices of the samples in the dataset
  /// With BatchOptions::lanes: whether sequence i continues sequence i of the previous batch.
  bool continues = false;

  std::int64_t sequences() const { return std::max(source.sequences(), target.sequences()); }
  std::int64_t label_count() const {
    return std::ssize(labels) - std::ranges::count(labels, no_label);
  }
  /// The side that the labels belong to: the target or, without a target, the source.
  const Side& labelled() const { return target.offsets.empty() ? source : target; }

  friend bool operator==(const Batch&, const Batch&) = default;
};

/// The cost of a source row and of a target row, in a common unit.
struct TokenCost {
  double source = 1, target = 1;
};

}  // namespace heed
