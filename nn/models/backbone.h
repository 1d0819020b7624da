#pragma once
#include <algorithm>
#include <optional>

#include "autograd/ops/basic.h"
#include "autograd/ops/more/dropout.h"
#include "nn/embedding.h"
#include "nn/layers/block.h"
#include "nn/layers/positions.h"
#include "nn/models/front_end.h"
#include "nn/models/model.h"
#include "nn/options.h"

HEED_BEGIN

/// The initial values of the parameters of a model.
inline Init init_of(const ModelOptions& options, std::uint64_t seed) {
  if (options.init == InitKind::none) return Init::uninitialised();
  if (options.init == InitKind::normal) return Init(seed, options.init_std);
  return Init(seed);
}

/// The projection to a vocabulary: with the matrix `shared`, if it is defined.
inline Linear output_layer(const ModelOptions& options, std::int64_t vocabulary,
                           const Tensor& shared, Init& init) {
  const bool with_bias =
      options.output_bias == OutputBias::yes ||
      (options.output_bias == OutputBias::automatic && options.bias && !shared.defined());
  Linear output =
      shared.defined() ? Linear(shared) : Linear(options.d_model, vocabulary, init, with_bias);
  if (shared.defined() && with_bias) output.bias = init.zeros(vocabulary);
  return output;
}

/// The parameters of an output projection, without a shared matrix.
inline void append_output(Parameters& all, const Linear& output, bool shared) {
  if (!shared) append(all, "output", output);
  if (shared && output.bias.defined()) all.push_back({"output.bias", output.bias});
}

/// The part of a Transformer from token ids or feature rows to hidden rows: embedding or front end,
/// segment embeddings, positions, dropout and a stack of blocks. A model that shares a table
/// between backbones or has the parameter names of torch.nn.Transformer constructs and lists the
/// parts itself.
struct Backbone {
  Embedding embedding;
  std::optional<FrontEnd> input;      ///< input layer for feature rows, in place of the embedding
  std::optional<Embedding> segments;  ///< embeddings of segments (segments_of)
  bool ends = true;                   ///< the last row of every sequence is </s>
  Positions positions;
  std::optional<Norm> embedding_norm;  ///< after the sum of embeddings and positions
  double dropout_rate = 0;
  Stack stack;

  Backbone() = default;
  /// The number of blocks is options.encoder_layers for kind encoder, else options.decoder_layers.
  Backbone(const ModelOptions& options, std::int64_t vocabulary, BlockKind kind, Init& init)
      : embedding(reads_features(options, kind)
                      ? Embedding()
                      : Embedding(vocabulary, options.d_model, options.scale_embeddings, init)),
        input(input_of(options, kind, init)),
        positions(options, kind != BlockKind::encoder, init),
        embedding_norm(norm_of(options, init)),
        dropout_rate(options.dropout.residual),
        stack(options, kind == BlockKind::encoder ? options.encoder_layers : options.decoder_layers,
              kind, init) {
    if (options.segments > 1)
      segments.emplace(options.segments, options.d_model, options.scale_embeddings, init);
  }

  /// The front end of an encoder that reads feature rows; nullopt for token ids.
  static std::optional<FrontEnd> input_of(const ModelOptions& options, BlockKind kind, Init& init) {
    if (!reads_features(options, kind)) return std::nullopt;
    return FrontEnd(options, init);
  }
  /// The norm of the embeddings, if the options have it.
  static std::optional<Norm> norm_of(const ModelOptions& options, Init& init) {
    if (!options.embedding_norm) return std::nullopt;
    return Norm(options, init);
  }
  /// The offsets of the hidden rows of each sequence of a side.
  ComputedOffsets row_offsets(Offsets offsets) const {
    if (input) return input->offsets_after(offsets);
    return {offsets.begin(), offsets.end()};
  }
  /// A side of n rows → [n, d], or fewer rows after a convolutional front end (row_offsets).
  /// context.offsets must be the offsets of the side.
  Tensor operator()(const SideView& side, const Context& context) const {
    Tensor x = input ? (*input)(rows_of_features(side), context.offsets) : embedding(side.ids);
    if (segments) x = add(x, (*segments)(segments_of(side.ids, context.offsets)));
    const ComputedOffsets offsets = row_offsets(context.offsets);
    Pass& pass = context.pass;
    const auto p = static_cast<real>(pass.rate(dropout_rate));
    Context inner = context;
    inner.offsets = offsets;
    inner.terms = positions.terms;
    x = positions(x, offsets, context.first_position());
    if (embedding_norm) x = (*embedding_norm)(x, pass);
    return stack(dropout(x, p, pass.next_key()), inner);
  }
  /// n ids → [n, d]
  Tensor operator()(std::span<const std::int32_t> ids, const Context& context) const {
    return (*this)(SideView{ids, context.offsets}, context);
  }
  /// n ids → [n, d], without encoder output or cache.
  Tensor operator()(std::span<const std::int32_t> ids, Offsets offsets, Pass& pass) const {
    return (*this)(ids, {offsets, nullptr, pass});
  }
  /// n ids → [n, d], in evaluation: without dropout.
  Tensor operator()(std::span<const std::int32_t> ids, Offsets offsets) const {
    Pass evaluation;
    return (*this)(ids, offsets, evaluation);
  }
  /// The parameters of the embedding or of the front end.
  Parameters input_parameters() const {
    return input ? parameters_of("input", *input) : parameters_of("embedding", embedding);
  }
  Parameters parameters() const {
    Parameters all = input_parameters();
    if (segments) append(all, "segments", *segments);
    append(all, "positions", positions);
    if (embedding_norm) append(all, "embedding_norm", *embedding_norm);
    append(all, "", stack);
    return all;
  }

 private:
  static bool reads_features(const ModelOptions& options, BlockKind kind) {
    return options.input_width > 0 && kind == BlockKind::encoder;
  }
  /// The segment of each row: the number of </s> before it in its sequence, up to the last segment.
  /// In "<s> A </s> B </s>" (in BERT, "[CLS] A [SEP] B [SEP]"), A is segment 0 and B segment 1. The last
  /// row says which id </s> has; without it, all rows are in segment 0.
  std::vector<std::int32_t> segments_of(std::span<const std::int32_t> ids, Offsets offsets) const {
    const auto last = static_cast<std::int32_t>(segments->weight.shape()[0]) - 1;
    std::vector<std::int32_t> all(ids.size());
    for (std::size_t s = 0; ends && s + 1 < offsets.size(); ++s) {
      std::int32_t segment = 0;
      const std::int32_t end = offsets[s + 1];
      for (std::int32_t row = offsets[s]; row < end; ++row) {
        all[row] = segment;
        if (ids[row] == ids[end - 1]) segment = std::min(segment + 1, last);
      }
    }
    return all;
  }
};

using Tower [[deprecated("use Backbone")]] = Backbone;

HEED_END
