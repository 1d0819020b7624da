#pragma once
/// The reference Transformer and the models of nn/models side by side: equal options, equal weights,
/// equal batches, equal steps.
#include <map>
#include <string>
#include <vector>

#include "autograd/base/team.h"
#include "nn/reference/transformer.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "tests/nn/support.h"
#include "train/essentials/loop.h"
#include "train/loop/step.h"

HEED_BEGIN

/// The options under which a model computes the same as the reference.
inline ModelOptions options_of(const reference::Sizes& sizes) {
  ModelOptions o;
  o.d_model = sizes.d_model;
  o.heads = sizes.heads;
  o.d_ff = sizes.d_ff;
  o.encoder_layers = sizes.encoder_layers;
  o.decoder_layers = sizes.decoder_layers;
  o.dropout = 0;
  o.norm = NormPlace::post;
  o.final_norm = false;
  return o;
}

/// Copies the values of the parameters by name; both lists must have the same names.
inline void copy_by_name(const Parameters& from, Parameters to) {
  std::map<std::string, Array> values;
  for (const NamedTensor& p : from) values.emplace(p.name, p.tensor.value());
  BOOST_REQUIRE(values.size() == to.size());
  for (NamedTensor& p : to) {
    BOOST_REQUIRE(values.contains(p.name));
    BOOST_REQUIRE(values.at(p.name).shape() == p.tensor.shape());
    std::ranges::copy(values.at(p.name).values(), p.tensor.mutable_value().data());
  }
}

/// Random samples of different lengths; without sources for a language model.
inline std::vector<reference::Sample> random_samples(std::int64_t count, std::uint32_t vocabulary,
                                                     bool language_model, std::uint32_t number) {
  std::vector<reference::Sample> samples;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = number + 3 * static_cast<std::uint32_t>(i);
    reference::Sample sample;
    if (!language_model) sample.source = random_ids(1 + (5 * i + 2) % 9, vocabulary, at);
    sample.input = random_ids(1 + (7 * i + 3) % 11, vocabulary, at + 1);
    sample.labels = random_ids(std::ssize(sample.input), vocabulary, at + 2);
    samples.push_back(std::move(sample));
  }
  return samples;
}

inline Batch batch_of(const std::vector<reference::Sample>& samples) {
  Batch batch;
  for (const reference::Sample& sample : samples) {
    if (!sample.source.empty()) batch.source.push(sample.source);
    batch.target.push(sample.input);
    batch.labels.insert(batch.labels.end(), sample.labels.begin(), sample.labels.end());
    batch.samples.push_back(std::ssize(batch.samples));
  }
  return batch;
}

/// Trains both models for 100 steps on the same batches of random samples and returns the largest
/// difference of a weight, divided by the largest weight of its tensor. The biases of keys are
/// excluded: they add the same amount to all scores of a query, so softmax ignores them, and Adam
/// divides the rounding errors in their gradients by themselves.
template <class Definition>
double difference_after_100_steps(const Definition& definition, const Generative& model,
                                  std::uint32_t vocabulary, bool language_model) {
  copy_by_name(definition.parameters(), model.parameters());
  OptimOptions options;
  options.lr = 3e-3;
  options.clip_norm = 0;
  options.schedule = {.name = ScheduleKind::noam, .warmup = 30};
  Optimizer optimizer(options, model.parameters());
  Team team(2);
  TrainStep step(model, optimizer, team, {.label_smoothing = 0.1});
  reference::Adam adam(definition.parameters());
  for (std::int64_t t = 1; t <= 100; ++t) {
    const auto samples =
        random_samples(6, vocabulary, language_model, 100 * static_cast<std::uint32_t>(t % 5));
    std::vector<const reference::Sample*> batch;
    for (const reference::Sample& sample : samples) batch.push_back(&sample);
    const Batch whole[] = {batch_of(samples)};
    step.run(whole, t, learning_rate(options, t, 100));
    reference::train_step(definition, adam, batch, 0.1,
                          reference::learning_rate(options.lr, options.schedule.warmup, t));
  }
  double worst = 0;
  const Parameters all = model.parameters();
  std::map<std::string, Array> defined;
  for (const NamedTensor& p : definition.parameters()) defined.emplace(p.name, p.tensor.value());
  for (const NamedTensor& p : all) {
    double largest = 0, gap = 0;
    const Array& w = defined.at(p.name);
    const bool has_keys = p.name.ends_with("in_proj_bias");  // queries, keys, values
    for (std::int64_t i = 0; i < w.size(); ++i) {
      if (has_keys && i >= w.size() / 3 && i < 2 * w.size() / 3) continue;
      largest = std::max(largest, std::abs(static_cast<double>(w.data()[i])));
      gap = std::max(gap, std::abs(static_cast<double>(w.data()[i]) -
                                   static_cast<double>(p.tensor.value().data()[i])));
    }
    worst = std::max(worst, gap / largest);
  }
  return worst;
}

/// Checks both kinds of model with difference_after_100_steps.
inline void check_100_steps(const reference::Sizes& sizes, double tolerance) {
  constexpr std::uint32_t vocabulary = 11;
  Init init(5);
  const reference::EncoderDecoder translator(sizes, vocabulary, init);
  BOOST_TEST(difference_after_100_steps(
                 translator, *make_seq2seq(options_of(sizes), vocabulary, vocabulary, true, 1),
                 vocabulary, false) < tolerance);
  const reference::LanguageModel language_model(sizes, vocabulary, init);
  BOOST_TEST(difference_after_100_steps(language_model,
                                        *make_language_model(options_of(sizes), vocabulary, 1),
                                        vocabulary, true) < tolerance);
}

HEED_END
