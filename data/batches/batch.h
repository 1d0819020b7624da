#pragma once
/// A batch: concatenated sequences of any length. There is no padding and no pad token.
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace heed {

/// One side of a batch: rows that are token ids, or feature vectors of `width` values. Sequence i
/// owns rows [offsets[i], offsets[i+1]). A side that the task does not use has no offsets.
struct Side {
  std::vector<std::int32_t> ids;
  std::vector<float> features;        ///< rows() × width values, instead of ids
  std::int64_t width = 0;             ///< values of a feature row; 0: the rows are ids
  std::vector<std::int32_t> offsets;  ///< n + 1 entries, from 0 to rows()

  std::int64_t rows() const { return offsets.empty() ? 0 : offsets.back(); }
  std::int64_t sequences() const {
    return offsets.empty() ? 0 : static_cast<std::int64_t>(offsets.size()) - 1;
  }
  /// Appends a sequence of ids, optionally given in two parts.
  void push(std::span<const std::int32_t> sequence, std::span<const std::int32_t> rest = {}) {
    if (offsets.empty()) offsets.push_back(0);
    ids.insert(ids.end(), sequence.begin(), sequence.end());
    ids.insert(ids.end(), rest.begin(), rest.end());
    offsets.push_back(static_cast<std::int32_t>(ids.size()));
  }
  /// Only the sequences from … to − 1.
  Side part(std::int64_t from, std::int64_t to) const;

  friend bool operator==(const Side&, const Side&) = default;
};

/// The label of a row that has none: the loss leaves it out.
inline constexpr std::int32_t no_label = -100;

/// What a model reads, and the labels of its loss. A language model has only a target, a classifier
/// only a source.
struct Batch {
  Side source;  ///< seq2seq: each sequence ends in </s>
  Side target;  ///< what a decoder reads; seq2seq: <s> y1 … yn
  /// One for each row of labelled(), or no_label; seq2seq: y1 … yn </s>. The label of a sequence is
  /// that of its first row.
  std::vector<std::int32_t> labels;
  std::vector<std::int64_t> samples;  ///< which samples of the dataset these are
  bool continues =
      false;  ///< each sequence continues that of the previous batch (BatchOptions::lanes)

  std::int64_t sequences() const { return std::max(source.sequences(), target.sequences()); }
  std::int64_t label_count() const {
    return std::ssize(labels) - std::ranges::count(labels, no_label);
  }
  /// The side whose rows the labels belong to: the target, or the source if there is no target.
  const Side& labelled() const { return target.offsets.empty() ? source : target; }

  friend bool operator==(const Batch&, const Batch&) = default;
};

/// The cost of one row of each side, in any unit.
struct TokenCost {
  double source = 1, target = 1;
};

}  // namespace heed
