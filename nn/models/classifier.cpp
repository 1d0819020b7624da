#include "nn/models/classifier.h"

#include <algorithm>

#include "autograd/ops/basic.h"
#include "autograd/ops/more/affine_activation.h"
#include "autograd/ops/more/index.h"
#include "nn/layers/activations.h"
#include "nn/models/backbone.h"
#include "nn/models/swin.h"
#include "nn/options.h"

HEED_BEGIN

namespace {

/// The label of each sequence, which is the label of its first row. (With R-Drop, only the first
/// half of the sequences has labels.)
std::vector<std::int32_t> labels_of_sequences(const ModelInput& input) {
  std::vector<std::int32_t> labels;
  for (std::size_t s = 0; s + 1 < input.source.offsets.size(); ++s) {
    const auto first = static_cast<std::size_t>(input.source.offsets[s]);
    if (first < input.labels.size()) labels.push_back(input.labels[first]);
  }
  return labels;
}

/// The mean of each sequence's rows: [rows, d] → [sequences, d].
Tensor mean_of_sequences(const Tensor& x, Offsets offsets) {
  const std::int64_t sequences = std::ssize(offsets) - 1;
  std::vector<std::int32_t> sequence_of_row;
  Array share({sequences, 1});
  for (std::int64_t s = 0; s < sequences; ++s) {
    const std::int32_t length = offsets[s + 1] - offsets[s];
    sequence_of_row.insert(sequence_of_row.end(), static_cast<std::size_t>(length),
                           static_cast<std::int32_t>(s));
    share.data()[s] = 1 / static_cast<real>(std::max(length, 1));
  }
  return mul(scatter_add(x, sequence_of_row, sequences), Tensor(share));
}

/// norm(f(x Wᵀ + b)): [rows, d] → [rows, d], before the output projection of BERT (Devlin et al.
/// 2019, as in its source code).
struct HeadTransform {
  Linear dense;
  Activation activation;
  Norm norm;

  HeadTransform(const ModelOptions& options, Init& init)
      : dense(options.d_model, options.d_model, init),
        activation(options.activation),
        norm(options, init) {
    if (gate_of(activation) || registered_function(activation) != nullptr)
      fail("[classifier] head_transform requires a built-in activation without a gate");
  }
  Tensor operator()(const Tensor& x, const Pass& pass) const {
    return norm(affine_activation(static_cast<UnaryFunction>(activation), x, dense.weight,
                                  dense.bias, 0, {}),
                pass);
  }
  Parameters parameters() const { return parameters_of("dense", dense, "norm", norm); }
};

class EncoderClassifier final : public Classifier {
 public:
  EncoderClassifier(const ModelOptions& options, Labelling labelling, std::int64_t vocabulary,
                    std::int64_t labels, std::uint64_t seed)
      : labelling_(labelling),
        pool_(options.pool),
        tied_(labelling == Labelling::tokens && output_is_tied(options)),
        dropout_rate_(labelling == Labelling::sequences ? options.dropout.residual : 0),
        position_limit_(heed::position_limit(options)) {
    Init init = init_of(options, seed);
    if (options.kind == ModelKind::swin) {
      if (labelling != Labelling::sequences || pool_ != Pool::mean)
        fail("[classifier] swin requires `pool: mean` and one label per image");
      swin_.emplace(options, init);
      output_ = Linear(swin_->width(), labels, init);
      return;
    }
    const bool conv_front_end =
        options.input_width > 0 && options.front_end.kind == FrontEndKind::conv;
    if (conv_front_end && (labelling != Labelling::sequences || pool_ != Pool::mean))
      fail("[classifier] front end conv requires `pool: mean` and one label per sequence");
    encoder_ = Backbone(options, vocabulary, BlockKind::encoder, init);
    encoder_.ends = labelling != Labelling::rows;
    if (labelling != Labelling::tokens) {
      output_ = Linear(options.d_model, labels, init);
      return;
    }
    if (options.head_transform) transform_.emplace(options, init);
    output_ = output_layer(options, labels, tied_ ? encoder_.embedding.weight : Tensor(), init);
  }

  Parameters parameters() const override {
    if (swin_) return parameters_of("encoder", *swin_, "output", output_);
    Parameters all = encoder_.input_parameters();
    if (encoder_.segments) append(all, "segments", *encoder_.segments);
    append(all, "positions", encoder_.positions);
    if (encoder_.embedding_norm) append(all, "embedding_norm", *encoder_.embedding_norm);
    append(all, "encoder", encoder_.stack);
    if (transform_) append(all, "transform", *transform_);
    append_output(all, output_, tied_);
    return all;
  }
  std::vector<NamedStatistics> statistics() const override {
    std::vector<NamedStatistics> all = encoder_.stack.statistics();
    for (NamedStatistics& s : all) s.name = "encoder." + s.name;
    return all;
  }
  std::int64_t position_limit() const override { return position_limit_; }
  bool of_sequences() const override { return labelling_ == Labelling::sequences; }
  Tensor logits(const ModelInput& input, Pass& pass) const override {
    return output_(labelled_rows(input, pass));
  }
  DeferredLogits deferred_logits(const ModelInput& input, Pass& pass) const override {
    return {labelled_rows(input, pass), output_};
  }
  Tensor loss(const ModelInput& input, const LossOptions& options, Pass& pass) const override {
    const DeferredLogits logits = deferred_logits(input, pass);
    if (!of_sequences()) return deferred_loss(logits, input.labels, options);
    return deferred_loss(logits, labels_of_sequences(input), options);
  }

 private:
  struct Encoded {
    Tensor rows;
    ComputedOffsets offsets;  ///< offsets of the rows of each sequence
  };
  Encoded encoded(const SideView& side, Pass& pass) const {
    if (!swin_) {
      return {encoder_(side, {side.offsets, nullptr, pass}), encoder_.row_offsets(side.offsets)};
    }
    const std::vector<std::int32_t> lengths(side.offsets.size() - 1,
                                            static_cast<std::int32_t>(swin_->patches()));
    const std::vector<std::int32_t> offsets = offsets_of(lengths);
    return {(*swin_)(side, pass), {offsets.begin(), offsets.end()}};
  }
  /// The rows that the model labels: all encoder rows, or one pooled row per sequence.
  Tensor labelled_rows(const ModelInput& input, Pass& pass) const {
    const auto [x, offsets] = encoded(input.source, pass);
    if (!of_sequences()) return transform_ ? (*transform_)(x, pass) : x;
    const Tensor pooled = pool_ == Pool::mean
                              ? mean_of_sequences(x, offsets)
                              : index_select(x, std::span(offsets).first(offsets.size() - 1));
    return dropout(pooled, static_cast<real>(pass.rate(dropout_rate_)), pass.next_key());
  }

  Labelling labelling_;
  Pool pool_;
  bool tied_;
  double dropout_rate_;
  std::int64_t position_limit_;
  Backbone encoder_;
  std::optional<SwinEncoder> swin_;  ///< used in place of encoder_
  std::optional<HeadTransform> transform_;
  Linear output_;
};

}  // namespace

std::unique_ptr<Classifier> make_classifier(const ModelOptions& options, Labelling labelling,
                                            std::int64_t vocabulary, std::int64_t labels,
                                            std::uint64_t seed) {
  return std::make_unique<EncoderClassifier>(options, labelling, vocabulary, labels, seed);
}

HEED_END
