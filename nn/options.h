#pragma once
/// The options of a model, as plain values, read from the YAML section `model`. Used by both
/// builds.
#include <cstdint>
#include <vector>

#include "autograd/kernels/fast/score_map.h"
#include "autograd/ops/more/attention/rotary.h"
#include "nn/option_kinds.h"

namespace heed {

/// The dropout probabilities in training (Srivastava et al. 2014). One number sets all three.
struct DropoutRates {
  /// Embeddings, the output of a sublayer before the residual sum, and the pooled row of a
  /// sequence.
  double residual = 0.1;
  double attention = 0.1;   ///< attention weights
  double activation = 0.1;  ///< hidden values of the feed-forward layer

  DropoutRates() = default;
  DropoutRates(double all) : residual(all), attention(all), activation(all) {}
};

/// The keys that self-attention reads, and the key heads, scale and score map of all attention
/// layers.
struct AttentionChoice {
  PatternKind pattern{};  ///< default: full
  /// Pattern window: a token reads its own key and those of the window − 1 tokens before it; in an
  /// encoder, also those of the window − 1 tokens after it.
  std::int64_t window = 128;
  /// The number of key heads, which must divide `heads`. A group of query heads shares each key
  /// head. 0: as many key heads as query heads.
  std::int64_t kv_heads = 0;
  std::int64_t block = 64;           ///< pattern bigbird: number of positions in a block
  std::int64_t global_blocks = 2;    ///< pattern bigbird (autograd/ops/more/attention/bigbird.h)
  std::int64_t side_blocks = 1;      ///< pattern bigbird
  std::int64_t random_blocks = 3;    ///< pattern bigbird
  std::int64_t top_k = 16;           ///< pattern topk: maximum number of keys per query
  double scale = 0;                  ///< factor of the products q · k; 0: 1/√(size of a head)
  ScoreMap map = ScoreMap::softmax;  ///< function from scores to weights
};

struct FrontEndOptions {
  FrontEndKind kind = FrontEndKind::linear;
  std::int64_t layers = 2;  ///< conv: number of convolutions
};
/// The number of rows that a front end returns for a sequence of n rows or, for an image, along a
/// side of n patches.
constexpr std::int64_t rows_after(const FrontEndOptions& o, std::int64_t n) {
  if (o.kind == FrontEndKind::linear) return n;
  const std::int64_t stride = std::int64_t{1} << o.layers;
  return (n + stride - 1) / stride;
}

/// The encoder of a Swin Transformer (nn/models/swin.h).
struct SwinOptions {
  std::int64_t window = 7;                    ///< side of a window, in patches
  std::vector<std::int64_t> depths = {2, 2};  ///< number of blocks in each stage
};

struct ModelOptions {
  ModelKind kind = ModelKind::transformer;
  std::int64_t d_model = 256;
  std::int64_t heads = 4;  ///< divides d_model
  std::int64_t d_ff = 1024;
  std::int64_t encoder_layers = 3;  ///< not used by a language model or by swin
  std::int64_t decoder_layers = 3;  ///< not used by a classifier
  DropoutRates dropout = {};
  Activation activation{};      ///< default: relu
  MixerKind mixer{};            ///< default: attention
  std::int64_t conv_width = 5;  ///< mixer conv: number of rows in the convolution window
  PositionKind positions{};     ///< default: sinusoidal
  AttentionChoice attention = {};
  BlockForm block = BlockForm::serial;
  bool residual = true;  ///< the output of a sublayer is added to its input
  NormPlace norm = NormPlace::pre;
  bool final_norm = true;  ///< a norm after the last block of a stack, unless `norm` is none
  NormKind norm_kind = NormKind::layer;
  double norm_eps = 1e-5;
  bool bias = true;             ///< the linear layers of attention and feed-forward have biases
  bool embedding_norm = false;  ///< a norm after the sum of embeddings and positions
  /// Embeddings and output projection share a matrix where they share a vocabulary.
  bool tie_embeddings = true;
  bool tie_output = true;        ///< with tie_embeddings: the output projection shares it too
  bool scale_embeddings = true;  ///< embeddings are multiplied by √d_model
  OutputBias output_bias = OutputBias::automatic;
  /// Labelling::tokens: a linear layer, the activation and a norm before the output projection, as
  /// in BERT.
  bool head_transform = false;
  InitKind init = InitKind::xavier;
  double init_std = 0.02;  ///< standard deviation of InitKind::normal
  /// Number of values in a source row of features, which the encoder projects instead of looking up
  /// an embedding; 0: the source rows are token ids.
  std::int64_t input_width = 0;
  std::int64_t grid_height = 0, grid_width = 0;  ///< size of an image in patches; 0: no images
  FrontEndOptions front_end = {};                ///< used if input_width > 0
  SwinOptions swin = {};
  std::int64_t segments = 1;   ///< encoder-only model: number of segment embeddings; 1: none
  Pool pool = Pool::first;     ///< used by classifiers of sequences
  std::int64_t context = 256;  ///< language model: window length, in tokens
  std::int64_t memory = 0;     ///< language model: number of tokens in the segment memory
  /// Number of rows of a learned position table; a language model uses `context` instead.
  std::int64_t max_positions = 1024;
  RotaryPairs rotary_pairs{};       ///< default: halves
  double rotary_base = 10000;       ///< pair i is rotated by position · base^(−2i/size)
  std::int64_t shaw_distance = 16;  ///< relative_shaw: all distances ≥ this one share a key
  std::int64_t t5_buckets = 32;     ///< relative_t5: number of buckets, a multiple of 4
  std::int64_t t5_distance = 128;   ///< relative_t5: all distances ≥ this one share a bucket
};

/// Whether the output projection has the matrix of the embeddings.
constexpr bool output_is_tied(const ModelOptions& o) { return o.tie_embeddings && o.tie_output; }

/// The number of source rows that the front end reduces to one position of the encoder.
constexpr std::int64_t rows_per_position(const ModelOptions& o) {
  if (o.front_end.kind == FrontEndKind::linear) return 1;
  return std::int64_t{1} << (o.grid_width > 0 ? 2 : 1) * o.front_end.layers;
}

}  // namespace heed
