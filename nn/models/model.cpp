#include "nn/models/model.h"

#include <algorithm>

#include "autograd/ops/more/cross_entropy.h"
#include "nn/models/classifier.h"
#include "nn/options.h"

HEED_BEGIN

Tensor rows_of_features(const SideView& side) {
  Array rows({side.width == 0 ? 0 : std::ssize(side.features) / side.width, side.width});
  std::ranges::copy(side.features, rows.data());
  return Tensor(rows);
}

DeferredLogits Model::deferred_logits(const ModelInput&, Pass&) const {
  fail("[model] this model does not support distillation: it overrides only loss()");
}

Tensor deferred_loss(const DeferredLogits& logits, std::span<const std::int32_t> labels,
                     const LossOptions& options) {
  if (std::ranges::find(labels, ignored_target) != labels.end()) {
    std::vector<std::int32_t> labelled, label_values;  // the rows with a label, and their labels
    for (std::size_t i = 0; i < labels.size(); ++i) {
      if (labels[i] == ignored_target) continue;
      labelled.push_back(static_cast<std::int32_t>(i));
      label_values.push_back(labels[i]);
    }
    LossOptions label_options = options;
    if (options.distillation) {
      Tensor& rows = label_options.distillation->teacher.rows;
      rows = index_select(rows, labelled);
    }
    for (std::size_t i = 0, n = labelled.size(); options.rdrop && i < n; ++i)
      labelled.push_back(labelled[i] + static_cast<std::int32_t>(labels.size()));
    return deferred_loss({index_select(logits.rows, labelled), logits.output}, label_values,
                         label_options);
  }
  const auto smoothing = static_cast<real>(options.label_smoothing);
  const Linear& output = logits.output;
  if (options.rdrop && options.distillation)
    fail("[deferred_loss] expected R-Drop or distillation, got both");
  if (options.rdrop) {
    return rdrop_cross_entropy(logits.rows, output.weight, output.bias, labels, smoothing,
                               static_cast<real>(*options.rdrop), options.divisor, options.counts);
  }
  if (options.distillation) {
    const auto& [taught, share, temperature] = *options.distillation;
    const Tensor& bias = taught.output.bias;
    const TeacherLogits teacher{taught.rows.value(), taught.output.weight.value(),
                                bias.defined() ? bias.value() : Array(), static_cast<real>(share),
                                static_cast<real>(temperature)};
    return distilled_cross_entropy(logits.rows, output.weight, output.bias, labels, smoothing,
                                   teacher, options.divisor, options.counts);
  }
  return projected_cross_entropy(logits.rows, output.weight, output.bias, labels, smoothing,
                                 options.divisor, options.counts);
}

std::unique_ptr<Model> make_model(Architecture architecture, const ModelOptions& options,
                                  const VocabularySizes& vocabulary, std::uint64_t seed) {
  switch (architecture) {
    case Architecture::encoder_decoder:
      return make_seq2seq(options, vocabulary.source, vocabulary.target, vocabulary.shared, seed);
    case Architecture::decoder:
      return make_language_model(options, vocabulary.target, seed);
    case Architecture::encoder:
      return make_classifier(options, Labelling::rows, vocabulary.source, vocabulary.target, seed);
    case Architecture::encoder_of_sequences:
      return make_classifier(options, Labelling::sequences, vocabulary.source, vocabulary.target,
                             seed);
    case Architecture::encoder_of_tokens:
      return make_classifier(options, Labelling::tokens, vocabulary.source, vocabulary.source,
                             seed);
  }
  return nullptr;
}

HEED_END
