#pragma once
/// The shape of a model, as plain values. Read from the YAML section `model`; used by both builds.
#include <cstdint>
#include <vector>

#include "autograd/kernels/score_map.h"
#include "autograd/ops/attention/rotary.h"
#include "nn/option_kinds.h"

namespace heed {

/// Probability that a value is dropped while training (Srivastava et al. 2014), by place. One
/// number sets all.
struct DropoutRates {
  double residual = 0.1;    ///< embeddings, and a sublayer's output before the sum
  double attention = 0.1;   ///< attention weights
  double activation = 0.1;  ///< values between the two feed-forward layers

  DropoutRates() = default;
  DropoutRates(double all) : residual(all), attention(all), activation(all) {}
};

/// Which keys self-attention reads, and how every attention compares queries with keys.
struct AttentionChoice {
  PatternKind pattern{};  ///< the first: full
  /// Pattern window: the number of keys that a token reads: its own and those before it; in an
  /// encoder, also as many after it as before.
  std::int64_t window = 128;
  /// Key heads, a divisor of the query heads, which share them in groups; 0: as many as query
  /// heads.
  std::int64_t kv_heads = 0;
  std::int64_t block = 64;         ///< pattern bigbird: positions in a block
  std::int64_t global_blocks = 2;  ///< pattern bigbird (ops/attention/bigbird.h)
  std::int64_t side_blocks = 1;    ///< the same
  std::int64_t random_blocks = 3;  ///< the same
  std::int64_t top_k = 16;         ///< pattern topk: keys that a token keeps
  double scale = 0;  ///< of the products of queries and keys; 0: 1/√(size of a head)
  ScoreMap map = ScoreMap::softmax;  ///< from scores to weights
};

struct FrontEndOptions {
  FrontEndKind kind = FrontEndKind::linear;
  std::int64_t layers = 2;  ///< conv
};
/// Rows that a front end makes of n rows: of a sequence, or along a side of a picture.
constexpr std::int64_t rows_after(const FrontEndOptions& o, std::int64_t n) {
  if (o.kind == FrontEndKind::linear) return n;
  const std::int64_t of = std::int64_t{1} << o.layers;
  return (n + of - 1) / of;
}

/// The encoder of a Swin Transformer (nn/models/swin.h).
struct SwinOptions {
  std::int64_t window = 7;                    ///< patches along the side of a window
  std::vector<std::int64_t> depths = {2, 2};  ///< blocks of each stage
};

struct ModelOptions {
  ModelKind kind = ModelKind::transformer;
  std::int64_t d_model = 256;
  std::int64_t heads = 4;  ///< must divide d_model
  std::int64_t d_ff = 1024;
  std::int64_t encoder_layers = 3;  ///< a language model has none
  std::int64_t decoder_layers = 3;
  DropoutRates dropout = {};
  Activation activation{};      ///< the first: relu
  MixerKind mixer{};            ///< the first: attention
  std::int64_t conv_width = 5;  ///< mixer conv: tokens that a token reads, its own included
  PositionKind positions{};     ///< the first: sinusoidal
  AttentionChoice attention = {};
  BlockForm block = BlockForm::serial;
  bool residual = true;  ///< what a sublayer computes is added to its input, not put in its place
  NormPlace norm = NormPlace::pre;
  bool final_norm = true;  ///< a norm after the last layer of a stack
  NormKind norm_kind = NormKind::layer;
  double norm_eps = 1e-5;
  bool tie_embeddings = true;    ///< source, target and output share one matrix if possible
  bool scale_embeddings = true;  ///< multiply embeddings by sqrt(d_model)
  InitKind init = InitKind::xavier;
  double init_std = 0.02;  ///< only for InitKind::normal
  /// Values of a source row: the encoder projects rows of features in place of an embedding; 0: the
  /// rows are token ids.
  std::int64_t input_width = 0;
  std::int64_t grid_height = 0, grid_width = 0;  ///< patches of a picture; 0: not pictures
  FrontEndOptions front_end = {};                ///< with input_width
  SwinOptions swin = {};
  std::int64_t segments = 1;   ///< encoder alone: texts in a line that have embeddings of their own
  Pool pool = Pool::first;     ///< classifier of sequences
  std::int64_t context = 256;  ///< language model: window length, in tokens
  std::int64_t memory = 0;     ///< language model: earlier tokens whose keys and values are kept
  std::int64_t max_positions = 1024;  ///< rows of a learned position table
  RotaryPairs rotary_pairs{};         ///< the first: halves
  double rotary_base = 10000;         ///< pair i turns by position · base^(−2i/size)
  std::int64_t shaw_distance = 16;    ///< relative_shaw: longer distances count as this one
  std::int64_t t5_buckets = 32;       ///< relative_t5: a multiple of 4
  std::int64_t t5_distance = 128;     ///< relative_t5: longer distances share a bucket
};

/// How many source rows share a position of the encoder.
constexpr std::int64_t rows_per_position(const ModelOptions& o) {
  if (o.front_end.kind == FrontEndKind::linear) return 1;
  return std::int64_t{1} << (o.grid_width > 0 ? 2 : 1) * o.front_end.layers;
}

}  // namespace heed
