#include "nn/layers/recurrent.h"

#include "autograd/ops/basic.h"
#include "autograd/ops/more/sequences/recurrent.h"
#include "autograd/ops/more/shape.h"
#include "nn/options.h"

HEED_BEGIN

Recurrent::Recurrent(const ModelOptions& options, AttentionScope scope, Init& init)
    : kind(options.mixer) {
  const std::int64_t d = options.d_model, count = scope == AttentionScope::past ? 1 : 2,
                     gates = kind == MixerKind::lstm ? 4 : 3;
  if (d % count != 0)
    fail("[{}] two directions of half the width require an even d_model, got {}", name_of(kind), d);
  const std::int64_t h = d / count;
  for (std::int64_t i = 0; i < count; ++i) {
    directions.push_back({init.matrix(gates * h, d), init.matrix(gates * h, h),
                          init.zeros(gates * h), init.zeros(gates * h)});
  }
}

Parameters Recurrent::parameters() const {
  Parameters all;
  for (std::size_t i = 0; i < directions.size(); ++i) {
    const Direction& w = directions[i];
    const std::string suffix = i == 0 ? "_l0" : "_l0_reverse";
    all.insert(all.end(), {{"weight_ih" + suffix, w.weight_ih},
                           {"weight_hh" + suffix, w.weight_hh},
                           {"bias_ih" + suffix, w.bias_ih},
                           {"bias_hh" + suffix, w.bias_hh}});
  }
  return all;
}

Tensor Recurrent::operator()(const Tensor& x, const Context& context) const {
  std::vector<Tensor> parts;
  for (std::size_t i = 0; i < directions.size(); ++i) {
    const Direction& w = directions[i];
    const bool reverse = i == 1;
    const Tensor inputs = affine(x, w.weight_ih, w.bias_ih);  // [rows, gates h]
    parts.push_back(kind == MixerKind::lstm
                        ? lstm(inputs, w.weight_hh, w.bias_hh, context.offsets, reverse)
                        : gru(inputs, w.weight_hh, w.bias_hh, context.offsets, reverse));
  }
  return parts.size() == 1 ? parts[0] : concat(parts, 1);
}

Tensor Recurrent::step(const Tensor& x, const Context& context) const {
  const bool has_cell = kind == MixerKind::lstm;
  const std::int64_t states = has_cell ? 2 : 1, gates = has_cell ? 4 : 3;
  const Direction& w = directions[0];
  Array& state = running_state(context, x.shape()[0], states * x.shape()[1]);
  const std::vector<Tensor> before = split(state, states, 1);  // h and, for lstm, c
  const std::vector<Tensor> v = split(affine(x, w.weight_ih, w.bias_ih), gates, 1),
                            u = split(affine(before[0], w.weight_hh, w.bias_hh), gates, 1);
  Tensor h;
  if (has_cell) {
    const Tensor i = sigmoid(v[0] + u[0]), f = sigmoid(v[1] + u[1]), g = tanh(v[2] + u[2]),
                 o = sigmoid(v[3] + u[3]), c = f * before[1] + i * g;
    h = o * tanh(c);
    state = concat({h, c}, 1).value();
  } else {
    const Tensor r = sigmoid(v[0] + u[0]), z = sigmoid(v[1] + u[1]), n = tanh(v[2] + r * u[2]);
    h = (1 - z) * n + z * before[0];
    state = h.value();
  }
  return h;
}

HEED_END
