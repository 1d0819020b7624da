#include "nn/layers/attention.h"

#include <algorithm>

#include "autograd/ops/basic.h"
#include "autograd/ops/more/attention/attention_log.h"
#include "autograd/ops/more/attention/fused_attention.h"
#include "autograd/ops/more/attention/linear_attention.h"
#include "autograd/ops/more/index.h"
#include "autograd/ops/more/shape.h"
#include "nn/layers/patterns.h"
#include "nn/options.h"

HEED_BEGIN

MultiHeadAttention::MultiHeadAttention(const ModelOptions& options, AttentionScope which,
                                       Init& init)
    : d(options.d_model),
      heads(options.heads),
      kv_heads(options.attention.kv_heads == 0 ? heads : options.attention.kv_heads),
      scale(options.attention.scale),
      map(options.attention.map),
      dropout_rate(options.dropout.attention),
      scope(which),
      pattern(which == AttentionScope::encoder_output
                  ? full_pattern()
                  : make_pattern(options.attention, which == AttentionScope::past)) {
  if (heads < 1 || d % heads != 0)
    fail("[multi_head_attention] {} heads do not divide d_model {}", heads, d);
  if (kv_heads < 1 || heads % kv_heads != 0)
    fail("[multi_head_attention] {} key heads do not divide {} query heads", kv_heads, heads);
  in_proj_weight = init.matrix(in_rows(), d);
  if (options.bias) in_proj_bias = init.zeros(in_rows());
  out_proj = Linear(d, d, init, options.bias);
  if (which == AttentionScope::encoder_output) return;
  const PatternInfo& kind = info_of(options.attention.pattern);
  linear = !kind.scores;
  if (kind.largest) top_k = options.attention.top_k;
  positions = LayerPositions(options, which == AttentionScope::past, init);
}

Parameters MultiHeadAttention::parameters() const {
  Parameters all{{"in_proj_weight", in_proj_weight}};
  if (in_proj_bias.defined()) all.push_back({"in_proj_bias", in_proj_bias});
  append(all, "out_proj", out_proj);
  append(all, "positions", positions);
  return all;
}

Tensor MultiHeadAttention::queries(const Tensor& x) const {
  return affine_rows(x, in_proj_weight, positions.projection_bias(in_proj_bias, in_rows()), 0, d);
}
Tensor MultiHeadAttention::keys_and_values(const Tensor& x) const {
  return affine_rows(x, in_proj_weight, in_proj_bias, d, in_rows());
}

Tensor MultiHeadAttention::operator()(const Tensor& x, const Context& context) const {
  if (scope == AttentionScope::encoder_output && context.encoder_output == nullptr)
    fail("[multi_head_attention] expected the output of an encoder, got none");
  if (context.cache != nullptr && recording())
    fail("[multi_head_attention] a cache does not support gradients: use it under NoGrad");
  return out_proj(context.cache != nullptr ? decode_step(x, context) : whole_sequences(x, context));
}

AttentionOptions MultiHeadAttention::attention_options(const Context& context,
                                                       std::int64_t max_length) const {
  AttentionOptions options{.heads = heads,
                           .key_heads = kv_heads,
                           .scale = static_cast<real>(scale),
                           .pattern = pattern,
                           .map = map};
  if (scope == AttentionScope::encoder_output) return options;
  if (context.pattern != nullptr) options.pattern = context.pattern;
  options.top_k = top_k;
  options.terms.assign(context.terms.begin(), context.terms.end());
  positions.add_terms(options.terms, max_length,
                      context.cache != nullptr ? &context.cache->layers[context.layer] : nullptr);
  return options;
}

Tensor MultiHeadAttention::whole_sequences(const Tensor& x, const Context& context) const {
  if (AttentionLog* const log = AttentionLog::active)
    log->enter(x.value(), scope == AttentionScope::encoder_output
                              ? context.encoder_output->rows.value()
                              : Array());
  const std::int64_t remembered =
      context.lanes.memory != nullptr ? context.lanes.memory->length() : 0;
  AttentionOptions options =
      attention_options(context, remembered + max_length_of(context.offsets));
  options.dropout = static_cast<real>(context.pass.rate(dropout_rate));
  options.key = context.pass.next_key();
  if (scope == AttentionScope::encoder_output) {
    const EncoderOutput& encoded = *context.encoder_output;
    const Tensor q = queries(x);                      // [rows, d]
    const Tensor kv = keys_and_values(encoded.rows);  // [encoder rows, 2 e]: k, v
    return cross_attention(q, kv, context.offsets, encoded.offsets, options);
  }
  if (context.lanes.memory != nullptr) return next_segment(x, context, std::move(options));
  const Tensor qkv = rotated_qkv(x, context.offsets);
  if (linear) return linear_attention(qkv, context.offsets, scope == AttentionScope::past, options);
  return self_attention(qkv, context.offsets, options);
}

Tensor MultiHeadAttention::rotated_qkv(const Tensor& x, Offsets offsets) const {
  const Tensor unrotated =
      affine(x, in_proj_weight, positions.projection_bias(in_proj_bias, in_rows()));
  return positions.rotated(unrotated, heads + kv_heads, offsets, 0);
}

Tensor MultiHeadAttention::prefill(const Tensor& x, const Context& context) const {
  std::vector<Array>& entries = context.cache->layers[context.layer].entries;
  const Tensor qkv = rotated_qkv(x, context.offsets);
  const std::int64_t width = in_rows() - d, rows = qkv.value().rows();
  Tensor y;
  if (linear) {
    const LinearAttentionStep step(attention_options(context, 0), d);
    Array out(x.shape()), state = Array::zeros({1, step.state_size()});
    for (std::int64_t t = 0; t < rows; ++t)
      step(qkv.value().row(t), qkv.value().row(t) + d, state.data(), out.row(t));
    entries.resize(rows);  // later steps read only the newest state
    entries.back() = std::move(state);
    y = Tensor(std::move(out));
  } else {
    for (std::int64_t t = 0; t < rows; ++t)
      entries.emplace_back(Shape{1, width}, std::span(qkv.value().row(t) + d, width));
    y = self_attention(qkv, context.offsets, attention_options(context, rows));
  }
  return out_proj(y);
}

/// The rows of x attend to the stored keys of their lane and to the keys of their segment. Keys are
/// stored before rotation, because positions count from the oldest stored token and therefore
/// change with each segment.
Tensor MultiHeadAttention::next_segment(const Tensor& x, const Context& context,
                                        AttentionOptions options) const {
  SegmentMemory& memory = *context.lanes.memory;
  const std::int64_t m = memory.length(), width = memory.width(),
                     lanes = std::ssize(context.offsets) - 1;
  const Tensor q = queries(x), kv = keys_and_values(x);
  Array past({lanes * m, width});
  std::vector<std::int32_t> order, key_offsets{0};  // order: rows of concat(past, kv), lane by lane
  for (std::int64_t i = 0; i < lanes; ++i) {
    const std::int64_t lane = context.lanes.first + i, begin = context.offsets[i],
                       rows = context.offsets[i + 1] - begin;
    std::copy_n(memory.lane(context.layer, lane), m * width, past.data() + i * m * width);
    memory.write(context.layer, lane, kv.value().data() + begin * width, rows);
    for (std::int64_t t = 0; t < m; ++t) order.push_back(static_cast<std::int32_t>(i * m + t));
    for (std::int64_t t = 0; t < rows; ++t)
      order.push_back(static_cast<std::int32_t>(lanes * m + begin + t));
    key_offsets.push_back(static_cast<std::int32_t>(order.size()));
  }
  const Tensor all = index_select(concat({Tensor(past), kv}, 0), order);
  options.queries_last = true;
  return cross_attention(positions.rotated(q, heads, context.offsets, m),
                         positions.rotated(all, kv_heads, key_offsets, 0), context.offsets,
                         key_offsets, options);
}

Tensor MultiHeadAttention::decode_step(const Tensor& x, const Context& context) const {
  const Cache& cache = *context.cache;
  LayerCache& layer = context.cache->layers[context.layer];
  Tensor q = queries(x);  // [hypotheses, d]
  if (scope != AttentionScope::encoder_output) {
    const Tensor kv = positions.rotated(keys_and_values(x), kv_heads, context.offsets,
                                        cache.position);  // [hypotheses, 2 e]: k, v
    q = positions.rotated(q, heads, context.offsets, cache.position);
    if (linear) return decode_step_linear(q, kv, context);
    layer.entries.push_back(kv.value());
  } else if (!layer.encoder_keys_values.defined()) {
    layer.encoder_keys_values =
        keys_and_values(context.encoder_output->rows).value();  // [encoder rows, 2 e]
  }
  Array out(q.shape());
  AttentionStep attend(attention_options(context, cache.position + 1), d);
  for (std::int64_t i = 0; i < out.rows(); ++i) {
    if (scope == AttentionScope::encoder_output) {
      const std::int32_t s = cache.sequence[i];
      const std::int64_t begin = context.encoder_output->offsets[s],
                         keys = context.encoder_output->offsets[s + 1] - begin;
      const auto row = [&](std::int64_t t) { return layer.encoder_keys_values.row(begin + t); };
      attend(q.value().row(i), s, cache.position, keys, row, out.row(i));
    } else {
      const std::vector<std::int32_t>& path = cache.paths[i];
      const auto keys = static_cast<std::int64_t>(path.size());
      const auto row = [&](std::int64_t t) { return layer.entries[t].row(path[t]); };
      attend(q.value().row(i), i, keys - 1, keys, row, out.row(i));
    }
  }
  return Tensor(std::move(out));
}

Tensor MultiHeadAttention::decode_step_linear(const Tensor& q, const Tensor& kv,
                                              const Context& context) const {
  const LinearAttentionStep step(attention_options(context, 0), d);
  Array out(q.shape());
  Array& states = running_state(context, out.rows(), step.state_size());
  for (std::int64_t i = 0; i < out.rows(); ++i)
    step(q.value().row(i), kv.value().row(i), states.row(i), out.row(i));
  return Tensor(std::move(out));
}

HEED_END
