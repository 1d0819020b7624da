#include "nn/layers/encoder.h"

HEED_BEGIN

EncoderLayer::EncoderLayer(const ModelOptions& options, Init& init)
    : self_attn(options.d_model, options.heads, options.dropout.attention, init),
      feed_forward(options, init),
      norm1(options.d_model, options.norm_kind, options.norm_eps, init),
      norm2(options.d_model, options.norm_kind, options.norm_eps, init),
      place(options.norm),
      dropout_rate(options.dropout.residual) {}

Tensor EncoderLayer::operator()(const Tensor& x, std::span<const std::int32_t> offsets, bool causal,
                                Pass& pass) const {
  const Tensor attended = residual(place, norm1, x, dropout_rate, pass, [&](const Tensor& rows) {
    return self_attn.self(rows, offsets, causal, pass);
  });
  return residual(place, norm2, attended, dropout_rate, pass,
                  [&](const Tensor& rows) { return feed_forward(rows, pass); });
}

Tensor EncoderLayer::step(const Tensor& x, SelfCache& cache, const Ancestry& ancestry) const {
  Pass pass;
  const Tensor attended = residual(place, norm1, x, 0, pass, [&](const Tensor& rows) {
    return self_attn.self_step(rows, cache, ancestry);
  });
  return residual(place, norm2, attended, 0, pass,
                  [&](const Tensor& rows) { return feed_forward(rows, pass); });
}

Parameters EncoderLayer::parameters() const {
  Parameters all;
  append(all, "self_attn", self_attn);
  for (NamedTensor& p : feed_forward.parameters()) all.push_back(std::move(p));
  append(all, "norm1", norm1);
  append(all, "norm2", norm2);
  return all;
}

Encoder::Encoder(const ModelOptions& options, std::int64_t depth, bool is_causal, Init& init)
    : norm(options.d_model, options.norm_kind, options.norm_eps, init), causal(is_causal) {
  for (std::int64_t i = 0; i < depth; ++i) layers.emplace_back(options, init);
}

Tensor Encoder::operator()(Tensor x, std::span<const std::int32_t> offsets, Pass& pass) const {
  for (const EncoderLayer& layer : layers) x = layer(x, offsets, causal, pass);
  return norm(x);
}

Tensor Encoder::step(Tensor x, std::vector<SelfCache>& caches, const Ancestry& ancestry) const {
  for (std::size_t i = 0; i < layers.size(); ++i) x = layers[i].step(x, caches[i], ancestry);
  return norm(x);
}

Parameters Encoder::parameters() const {
  Parameters all;
  for (std::size_t i = 0; i < layers.size(); ++i)
    append(all, "layers." + std::to_string(i), layers[i]);
  append(all, "norm", norm);
  return all;
}

HEED_END
