#pragma once
/// Training and greedy decoding with the reference models.
#include <functional>

#include "autograd/base/random.h"
#include "autograd/ops/basic.h"
#include "nn/reference/transformer.h"
#include "optim/adam.h"
#include "train/essentials/characters.h"

HEED_BEGIN
namespace reference {

/// The logits of a sample's labels: [labels, vocabulary]
inline Tensor logits_of(const EncoderDecoder& model, const Sample& sample) {
  return model.decode(model.encode(sample.source), sample.input);
}
inline Tensor logits_of(const LanguageModel& model, const Sample& sample) {
  return model.logits(sample.input);
}

/// The mean label-smoothed cross-entropy over the labels of a batch.
template <class Model>
Tensor loss_of(const Model& model, std::span<const Sample* const> batch, double smoothing) {
  std::size_t labels = 0;
  for (const Sample* sample : batch) labels += sample->labels.size();
  Tensor loss(Array::scalar(0));
  for (const Sample* sample : batch)
    loss = loss + cross_entropy(logits_of(model, *sample), sample->labels,
                                static_cast<real>(smoothing), static_cast<double>(labels));
  return loss;
}

/// lr · min(t / warmup, √(warmup / t)): a linear warmup, then inverse-square-root decay.
/// With lr = 1 / √(d warmup) this is equation 3 of Vaswani et al. 2017,
/// d^−½ min(t^−½, t · warmup^−1.5).
inline double learning_rate(double lr, std::int64_t warmup, std::int64_t step) {
  const auto t = static_cast<double>(step),
             w = static_cast<double>(std::max<std::int64_t>(warmup, 1));
  return lr * std::min(t / w, std::sqrt(w / t));
}

/// One step: forward, backward, update. Returns the loss before the update.
template <class Model>
double train_step(const Model& model, Adam& adam, std::span<const Sample* const> batch,
                  double smoothing, double lr) {
  const Tensor loss = loss_of(model, batch, smoothing);
  adam.step(backward(loss), lr);
  return loss.item();
}

/// The samples in a random order, which depends on seed and epoch, cut into batches of about
/// `tokens` labels.
inline std::vector<std::vector<const Sample*>> batches_of(const std::vector<Sample>& samples,
                                                          std::int64_t tokens, std::uint64_t seed,
                                                          std::uint64_t epoch) {
  std::vector<const Sample*> order;
  for (const Sample& sample : samples) order.push_back(&sample);
  Random random({seed, Stream::shuffle, epoch, 0});
  for (std::size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[random.below(static_cast<std::uint32_t>(i))]);
  std::vector<std::vector<const Sample*>> batches;
  std::int64_t labels = tokens;  // begins the first batch
  for (const Sample* sample : order) {
    if (labels >= tokens) {
      batches.emplace_back();
      labels = 0;
    }
    batches.back().push_back(sample);
    labels += static_cast<std::int64_t>(sample->labels.size());
  }
  return batches;
}

struct LoopOptions {
  std::int64_t steps, warmup, batch_tokens;
  double lr, label_smoothing;
  std::uint64_t seed;
};

/// Trains for options.steps updates: the model is const, but its tensors share their values with
/// those of Adam. `report` receives the number and the loss of each.
template <class Model>
void train(const Model& model, const std::vector<Sample>& samples, const LoopOptions& options,
           const std::function<void(std::int64_t, double)>& report) {
  if (samples.empty()) throw Error(Exit::bad_input, "there are no samples to train on");
  Adam adam(model.parameters());
  std::int64_t step = 0;
  for (std::uint64_t epoch = 0; step < options.steps; ++epoch) {
    for (const auto& batch : batches_of(samples, options.batch_tokens, options.seed, epoch)) {
      if (++step > options.steps) return;
      const double lr = learning_rate(options.lr, options.warmup, step);
      report(step, train_step(model, adam, batch, options.label_smoothing, lr));
    }
  }
}

/// Greedy decoding: after <s>, appends the most likely next token until it is </s> or `max_length`
/// tokens are reached, and returns the tokens between. Each step decodes the whole prefix.
inline Ids translate(const EncoderDecoder& model, std::span<const std::int32_t> source,
                     std::int64_t max_length) {
  const NoGrad no_grad;
  const Tensor encoded = model.encode(source);
  Ids target{Characters::bos};
  while (static_cast<std::int64_t>(target.size()) <= max_length) {
    const Array logits = model.decode(encoded, target).value();
    const real* const last = logits.row(logits.rows() - 1);
    const auto best =
        static_cast<std::int32_t>(std::max_element(last, last + logits.cols()) - last);
    if (best == Characters::eos) break;
    target.push_back(best);
  }
  return {target.begin() + 1, target.end()};
}

}  // namespace reference
HEED_END
