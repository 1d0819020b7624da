#include "train/loop/pruning.h"

#include <algorithm>
#include <cmath>

#include "autograd/base/error.h"
#include "data/batches/batcher.h"
#include "train/decode/model_input.h"
#include "train/tasks/data.h"

HEED_BEGIN

namespace {

constexpr std::string_view projection = ".out_proj.weight";

struct Attention {
  std::string name;
  Tensor weight;  ///< out_proj.weight: [d, d]
  std::int64_t heads;

  std::int64_t size() const { return weight.shape().cols() / heads; }
};

std::vector<Attention> attentions_of(const Model& model, const Config& config) {
  const ModelSizes sizes = model_sizes(config);
  std::vector<Attention> all;
  for (const NamedTensor& p : model.parameters()) {
    if (!p.name.ends_with(projection)) continue;
    // In a Swin Transformer, the number of heads of a stage is proportional to its width.
    const std::int64_t heads = sizes.heads * (p.tensor.shape().cols() / sizes.d_model);
    all.push_back({p.name.substr(0, p.name.size() - projection.size()), p.tensor, heads});
  }
  return all;
}

bool is_removed(const Attention& attention, std::int64_t head) {
  const Array& weight = attention.weight.value();
  for (std::int64_t r = 0; r < weight.rows(); ++r) {
    const real* const columns = weight.row(r) + head * attention.size();
    if (std::any_of(columns, columns + attention.size(), [](real w) { return w != 0; }))
      return false;
  }
  return true;
}

/// ⟨W_h, ∂L/∂W_h⟩ for each head.
std::vector<double> gate_gradients(const Attention& attention, const Array& gradient) {
  std::vector<double> sums(static_cast<std::size_t>(attention.heads));
  const Array& weight = attention.weight.value();
  for (std::int64_t r = 0; r < weight.rows(); ++r) {
    for (std::int64_t c = 0; c < weight.cols(); ++c)
      sums[c / attention.size()] += double{weight.row(r)[c]} * gradient.row(r)[c];
  }
  return sums;
}

/// Up to `max_sequences` evenly spaced sequences, each as one batch, made as for an evaluation.
std::vector<Batch> sequences_of(const Config& config, const Dataset& data,
                                std::int64_t max_sequences) {
  BatchOptions options;
  options.batch_sequences = 1;
  options.context = batch_options(config).context;
  std::vector<Batch> all = evaluation_batches(data, options), some;
  const std::int64_t n = std::ssize(all), wanted = std::min(n, max_sequences);
  for (std::int64_t i = 0; i < wanted; ++i) some.push_back(std::move(all[i * n / wanted]));
  return some;
}

}  // namespace

std::vector<HeadImportance> importance_of_heads(const Model& model, const Config& config,
                                                const Dataset& data, std::int64_t max_sequences,
                                                Team& team) {
  const std::vector<Attention> attentions = attentions_of(model, config);
  const std::vector<Batch> sequences = sequences_of(config, data, max_sequences);
  // ∂L/∂ξ_h of all heads, for each sequence; empty for a sequence without labels.
  std::vector<std::vector<double>> gate_values(sequences.size());
  team.run(std::ssize(sequences), [&](std::int64_t i) {
    const Batch& batch = sequences[i];
    if (batch.label_count() == 0) return;
    Pass evaluation;
    const LossOptions loss{0, static_cast<double>(batch.label_count())};
    Gradients gradients = backward(model.loss(model_input(batch), loss, evaluation));
    for (const Attention& attention : attentions) {
      const Array gradient = gradients.take(attention.weight);
      const std::vector<double> values = gradient.defined() ? gate_gradients(attention, gradient)
                                                            : std::vector<double>(attention.heads);
      gate_values[i].insert(gate_values[i].end(), values.begin(), values.end());
    }
  });
  std::vector<HeadImportance> all;
  std::size_t at = 0;
  for (const Attention& attention : attentions) {
    const std::size_t first = all.size();
    double squares = 0;
    for (std::int64_t head = 0; head < attention.heads; ++head, ++at) {
      double sum = 0;
      for (const std::vector<double>& values : gate_values)
        sum += values.empty() ? 0 : std::abs(values[at]);
      if (!std::isfinite(sum))
        throw Error(Exit::non_finite,
                    "the gradient of a head of " + attention.name + " is not finite");
      squares += sum * sum;
      all.push_back({attention.name, head, sum, is_removed(attention, head)});
    }
    for (std::size_t k = first; k < all.size() && squares > 0; ++k)
      all[k].importance /= std::sqrt(squares);
  }
  return all;
}

void remove_head(Model& model, const Config& config, const HeadImportance& head) {
  for (Attention& attention : attentions_of(model, config)) {
    if (attention.name != head.attention) continue;
    Array& weight = attention.weight.mutable_value();
    for (std::int64_t r = 0; r < weight.rows(); ++r)
      std::fill_n(weight.row(r) + head.head * attention.size(), attention.size(), real(0));
  }
}

std::int64_t remove_weights(Model& model, double share) {
  std::vector<real> magnitudes;
  for (const NamedTensor& p : model.parameters()) {
    if (p.tensor.shape().rank() < 2) continue;
    for (const real w : p.tensor.value().values()) magnitudes.push_back(std::abs(w));
  }
  const auto wanted =
      static_cast<std::int64_t>(std::llround(share * static_cast<double>(magnitudes.size())));
  if (std::ranges::any_of(magnitudes, [](real w) { return std::isnan(w); }))
    throw Error(Exit::non_finite, "a weight is NaN");
  if (wanted == 0) return std::ranges::count(magnitudes, real(0));
  const auto last = magnitudes.begin() + (wanted - 1);
  std::nth_element(magnitudes.begin(), last, magnitudes.end());
  const real limit = *last;
  std::int64_t zeros = 0;
  std::int64_t zeros_at_limit = wanted - std::count_if(magnitudes.begin(), magnitudes.end(),
                                                       [&](real w) { return w < limit; });
  for (const NamedTensor& p : model.parameters()) {
    if (p.tensor.shape().rank() < 2) continue;
    Tensor tensor = p.tensor;
    for (real& w : tensor.mutable_value().values()) {
      const real magnitude = std::abs(w);
      if (magnitude < limit || (magnitude == limit && zeros_at_limit-- > 0)) w = 0;
      zeros += w == 0 ? 1 : 0;
    }
  }
  return zeros;
}

HEED_END
