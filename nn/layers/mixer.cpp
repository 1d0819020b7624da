#include "nn/layers/mixer.h"

#include <algorithm>

#include "nn/layers/attention.h"
#include "nn/layers/convolution.h"
#include "nn/layers/recurrent.h"
#include "nn/options.h"

HEED_BEGIN

namespace {

using Mixers = OpenTable<MixerKind, MixerFactory>;

void require_no_gradients() {
  if (recording()) fail("[mixer] a cache does not support gradients: use it under NoGrad");
}

}  // namespace

Tensor Mixer::step(const Tensor& x, const Context& context) const {
  require_no_gradients();
  const Cache& cache = *context.cache;
  std::vector<Array>& entries = context.cache->layers[context.layer].entries;
  entries.push_back(x.value());  // entries[t]: the inputs of the mixer at position t
  const auto length = static_cast<std::int64_t>(entries.size()), hypotheses = x.value().rows(),
             d = x.value().cols();
  Array sequences({hypotheses * length, d}), newest({hypotheses, d});
  std::vector<std::int32_t> offsets{0};
  for (std::int64_t i = 0; i < hypotheses; ++i) {
    for (std::int64_t t = 0; t < length; ++t)
      std::copy_n(entries[t].row(cache.paths[i][t]), d, sequences.row(i * length + t));
    offsets.push_back(static_cast<std::int32_t>((i + 1) * length));
  }
  Context whole = context;
  whole.offsets = offsets;
  whole.cache = nullptr;
  const Array y = (*this)(Tensor(sequences), whole).value();
  for (std::int64_t i = 0; i < hypotheses; ++i)
    std::copy_n(y.row((i + 1) * length - 1), d, newest.row(i));
  return Tensor(std::move(newest));
}

Tensor Mixer::prefill(const Tensor& x, const Context& context) const {
  Array all(x.shape());
  constexpr std::int32_t one[] = {0, 1};
  Context step_context = context;
  step_context.offsets = one;
  for (std::int64_t t = 0; t < all.rows(); ++t) {
    const Array y = step(Tensor(x.value().sliced(t, t + 1)), step_context).value();
    std::copy_n(y.data(), y.size(), all.row(t));
  }
  return Tensor(std::move(all));
}

Array& Mixer::running_state(const Context& context, std::int64_t hypotheses, std::int64_t width) {
  require_no_gradients();
  std::vector<Array>& entries = context.cache->layers[context.layer].entries;
  Array state = Array::zeros({hypotheses, width});
  if (!entries.empty()) {
    const std::size_t newest = entries.size() - 1;
    const Array before = std::exchange(entries[newest], Array());  // no later step reads it
    for (std::int64_t i = 0; i < hypotheses; ++i)
      std::copy_n(before.row(context.cache->paths[i][newest]), width, state.row(i));
  }
  return entries.emplace_back(std::move(state));
}

void add_mixer(std::string_view name, MixerFactory make) { Mixers::add(name, std::move(make)); }

std::unique_ptr<Mixer> make_mixer(const ModelOptions& options, AttentionScope scope, Init& init) {
  switch (options.mixer) {
    case MixerKind::attention:
      return std::make_unique<MultiHeadAttention>(options, scope, init);
    case MixerKind::lstm:
    case MixerKind::gru:
      return std::make_unique<Recurrent>(options, scope, init);
    case MixerKind::conv:
      return std::make_unique<GatedConvolution>(options, scope, init);
  }
  return Mixers::of(options.mixer)(options, scope, init);
}

HEED_END
