#include "nn/layers/decoder.h"

#include <numeric>

HEED_BEGIN

DecoderLayer::DecoderLayer(const ModelOptions& options, Init& init)
    : self_attn(options.d_model, options.heads, options.dropout.attention, init),
      multihead_attn(options.d_model, options.heads, options.dropout.attention, init),
      feed_forward(options, init),
      norm1(options.d_model, options.norm_kind, options.norm_eps, init),
      norm2(options.d_model, options.norm_kind, options.norm_eps, init),
      norm3(options.d_model, options.norm_kind, options.norm_eps, init),
      place(options.norm),
      dropout_rate(options.dropout.residual) {}

Tensor DecoderLayer::operator()(const Tensor& x, std::span<const std::int32_t> offsets,
                                const Memory& memory, Pass& pass) const {
  const Tensor own = residual(place, norm1, x, dropout_rate, pass, [&](const Tensor& rows) {
    return self_attn.self(rows, offsets, true, pass);
  });
  const Tensor informed = residual(place, norm2, own, dropout_rate, pass, [&](const Tensor& rows) {
    return multihead_attn.cross(rows, memory.rows, offsets, memory.offsets, pass);
  });
  return residual(place, norm3, informed, dropout_rate, pass,
                  [&](const Tensor& rows) { return feed_forward(rows, pass); });
}

Tensor DecoderLayer::step(const Tensor& x, DecoderCache& cache, std::size_t layer) const {
  Pass pass;
  const Tensor own = residual(place, norm1, x, 0, pass, [&](const Tensor& rows) {
    return self_attn.self_step(rows, cache.self[layer], cache.ancestry);
  });
  const Tensor informed = residual(place, norm2, own, 0, pass, [&](const Tensor& rows) {
    return multihead_attn.cross_step(rows, cache.memory[layer], cache.memory_offsets,
                                     cache.sentence);
  });
  return residual(place, norm3, informed, 0, pass,
                  [&](const Tensor& rows) { return feed_forward(rows, pass); });
}

Parameters DecoderLayer::parameters() const {
  Parameters all;
  append(all, "self_attn", self_attn);
  append(all, "multihead_attn", multihead_attn);
  for (NamedTensor& p : feed_forward.parameters()) all.push_back(std::move(p));
  append(all, "norm1", norm1);
  append(all, "norm2", norm2);
  append(all, "norm3", norm3);
  return all;
}

Decoder::Decoder(const ModelOptions& options, Init& init)
    : norm(options.d_model, options.norm_kind, options.norm_eps, init) {
  for (std::int64_t i = 0; i < options.decoder_layers; ++i) layers.emplace_back(options, init);
}

Tensor Decoder::operator()(Tensor x, std::span<const std::int32_t> offsets, const Memory& memory,
                           Pass& pass) const {
  for (const DecoderLayer& layer : layers) x = layer(x, offsets, memory, pass);
  return norm(x);
}

DecoderCache Decoder::start(const Memory& memory) const {
  const NoGrad no_grad;
  DecoderCache cache;
  cache.self.resize(layers.size());
  for (const DecoderLayer& layer : layers)
    cache.memory.push_back(layer.multihead_attn.keys_values(memory.rows));
  cache.memory_offsets.assign(memory.offsets.begin(), memory.offsets.end());
  cache.sentence.resize(memory.offsets.size() - 1);
  std::iota(cache.sentence.begin(), cache.sentence.end(), 0);
  cache.ancestry = Ancestry(static_cast<std::int64_t>(cache.sentence.size()));
  return cache;
}

Tensor Decoder::step(Tensor x, DecoderCache& cache) const {
  for (std::size_t i = 0; i < layers.size(); ++i) x = layers[i].step(x, cache, i);
  return norm(x);
}

Parameters Decoder::parameters() const {
  Parameters all;
  for (std::size_t i = 0; i < layers.size(); ++i)
    append(all, "layers." + std::to_string(i), layers[i]);
  append(all, "norm", norm);
  return all;
}

HEED_END
