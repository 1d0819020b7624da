#pragma once
/// heed's layers as graphs of ONNX: attention with all position schemes, blocks and stacks.
#include <functional>
#include <string>
#include <vector>

#include "nn/layers/block.h"
#include "nn/options.h"
#include "train/exchange/onnx/builder.h"

HEED_BEGIN

/// Keys and values: [batch, key heads, length, size of a head].
struct OnnxKeysAndValues {
  OnnxValue keys, values;
};

/// The sequences whose rows a stack computes.
struct OnnxSequences {
  OnnxValue batch, length;   ///< number of sequences and of rows of each: [1]
  OnnxValue positions = {};  ///< of the rows: [batch or 1, length]
  OnnxValue distances =
      {};  ///< position of the query − position of the key: [batch or 1, length, keys]
  OnnxValue visible =
      {};  ///< whether a query reads a key: [batch or 1, 1, length or 1, keys]; empty: all
  /// Adds to the scores [batch, heads, length, keys] of self-attention.
  std::function<OnnxValue(const OnnxValue& scores)> bias = {};
  /// Joins the new keys and values of a layer with its cache.
  std::function<OnnxKeysAndValues(const OnnxKeysAndValues&, std::int64_t layer)> cached = {};
  /// The keys and values of cross-attention, and which of them are read, as in `visible`.
  std::function<OnnxKeysAndValues(const std::string& name, std::int64_t layer)> encoded = {};
  OnnxValue encoder_visible = {};
};

/// The layers of one stack. Its tables have `limit` positions; later positions use the last row.
class OnnxStack {
 public:
  /// `positions`: name of the tensor of Positions.
  OnnxStack(OnnxBuilder& builder, const ModelOptions& options, BlockKind kind,
            std::string positions, std::int64_t limit);

  /// Sets positions, distances and visible keys. `mask`: which keys are no padding, [batch, keys] of
  /// integers, or empty; `past`: number of keys before the first row, [1], or empty.
  void place(OnnxSequences& sequences, const OnnxValue& mask, const OnnxValue& past);
  /// Adds position vectors to rows [batch, length, d], then applies `layers` blocks and the final norm:
  /// → [batch · length, d]
  OnnxValue operator()(const OnnxValue& rows, const OnnxSequences& sequences,
                       const std::string& name, std::int64_t layers);
  OnnxValue block(const OnnxValue& x, const OnnxSequences& sequences, const std::string& name,
                  std::int64_t layer);
  /// Keys and values of rows [batch · length, d] for cross-attention.
  OnnxKeysAndValues keys_and_values(const OnnxValue& rows, const OnnxSequences& of,
                                    const std::string& name);

 private:
  OnnxValue positioned(const OnnxValue& rows, const OnnxSequences& sequences);
  OnnxValue self_attention(const OnnxValue& x, const OnnxSequences& s, const std::string& name,
                           std::int64_t layer);
  OnnxValue cross_attention(const OnnxValue& x, const OnnxSequences& s, const std::string& name,
                            std::int64_t layer);
  OnnxValue attend(OnnxValue q, const OnnxKeysAndValues& kv, const OnnxSequences& s,
                   const OnnxValue& visible, const std::string& positions);
  OnnxValue scores(const OnnxValue& q, const OnnxKeysAndValues& kv, const OnnxSequences& s);
  OnnxValue weighted(const OnnxValue& weights, const OnnxKeysAndValues& kv, const OnnxSequences& s);
  OnnxValue weights_of(OnnxValue scores, const OnnxValue& visible, bool self);
  OnnxValue with_terms(OnnxValue scores, const OnnxValue& q, const OnnxSequences& s,
                       const std::string& positions);
  OnnxValue distance_keys(const OnnxValue& q, const OnnxValue& table, std::int64_t first,
                          std::int64_t rows, const OnnxValue& scores, const OnnxSequences& s);
  void make_turns(const OnnxSequences& s);
  /// The axis along which the two values of a pair lie, in heads [2, size / 2] or [size / 2, 2].
  std::int64_t pair_axis() const { return o_.rotary_pairs == RotaryPairs::halves ? 3 : 4; }
  OnnxValue rotated(const OnnxValue& x, const OnnxSequences& s);
  OnnxValue heads(const OnnxValue& rows, const OnnxSequences& s, std::int64_t count);
  OnnxValue joined(const OnnxValue& x);
  OnnxValue feed_forward(const OnnxValue& x, const std::string& name);
  OnnxValue residual(const OnnxValue& x, const std::string& norm,
                     const std::function<OnnxValue(const OnnxValue&)>& sublayer);

  OnnxBuilder& b_;
  const ModelOptions& o_;
  BlockKind kind_;
  std::string positions_;
  std::int64_t limit_, size_, kv_heads_;
  OnnxValue cosine_, sine_;  ///< rotary: of the rows' positions
};

HEED_END
