#include "nn/layers/attention.h"

#include "autograd/ops.h"
#include "nn/layers/patterns.h"

HEED_BEGIN

MultiHeadAttention::MultiHeadAttention(const ModelOptions& options, Sees which, Init& init)
    : in_proj_weight(init.matrix(3 * options.d_model, options.d_model)),
      in_proj_bias(init.zeros(3 * options.d_model)),
      out_proj(options.d_model, options.d_model, init),
      d(options.d_model),
      heads(options.heads),
      dropout_rate(options.dropout.attention),
      sees(which),
      pattern(which == Sees::memory ? full_pattern()
                                    : make_pattern(options.attention, which == Sees::past)) {
  if (heads < 1 || d % heads != 0)
    fail("[multi_head_attention] {} heads do not divide d_model {}", heads, d);
}

Parameters MultiHeadAttention::parameters() const {
  Parameters all{{"in_proj_weight", in_proj_weight}, {"in_proj_bias", in_proj_bias}};
  append(all, "out_proj", out_proj);
  return all;
}

Tensor MultiHeadAttention::projected(const Tensor& x, std::int64_t begin, std::int64_t end) const {
  return affine_rows(x, in_proj_weight, in_proj_bias, begin, end);
}

Tensor MultiHeadAttention::operator()(const Tensor& x, const Context& context) const {
  if (sees == Sees::memory && context.memory == nullptr)
    fail("[multi_head_attention] expected a memory, got none");
  if (context.cache != nullptr && recording())
    fail("[multi_head_attention] a cache has no gradients: use it under NoGrad");
  return out_proj(context.cache != nullptr ? new_rows(x, context) : whole_sequences(x, context));
}

AttentionOptions MultiHeadAttention::attention_options(const Context& context) const {
  AttentionOptions options{.heads = heads, .pattern = pattern};
  if (sees != Sees::memory) options.terms.assign(context.terms.begin(), context.terms.end());
  return options;
}

Tensor MultiHeadAttention::whole_sequences(const Tensor& x, const Context& context) const {
  AttentionOptions options = attention_options(context);
  options.dropout = static_cast<real>(context.pass.rate(dropout_rate));
  options.key = context.pass.next_key();
  if (sees == Sees::memory) {
    const Memory& memory = *context.memory;
    const Tensor q = projected(x, 0, d);                 // [rows, d]
    const Tensor kv = projected(memory.rows, d, 3 * d);  // [memory rows, 2 d]: k, v
    return cross_attention(q, kv, context.offsets, memory.offsets, options);
  }
  const Tensor qkv = affine(x, in_proj_weight, in_proj_bias);  // [rows, 3 d]: q, k, v
  return self_attention(qkv, context.offsets, options);
}

Tensor MultiHeadAttention::new_rows(const Tensor& x, const Context& context) const {
  const Cache& cache = *context.cache;
  LayerCache& layer = context.cache->layers[context.layer];
  if (sees != Sees::memory) {
    layer.own.push_back(projected(x, d, 3 * d).value());  // [hypotheses, 2 d]: k, v
  } else if (!layer.memory.defined()) {
    layer.memory = projected(context.memory->rows, d, 3 * d).value();  // [memory rows, 2 d]
  }
  const Array q = projected(x, 0, d).value();  // [hypotheses, d]
  Array out(q.shape());
  AttentionStep attend(attention_options(context), d);
  for (std::int64_t i = 0; i < q.rows(); ++i) {
    if (sees == Sees::memory) {
      const std::int32_t s = cache.sequence[i];
      const std::int64_t begin = context.memory->offsets[s],
                         keys = context.memory->offsets[s + 1] - begin;
      const auto row = [&](std::int64_t t) { return layer.memory.row(begin + t); };
      attend(q.row(i), s, cache.position, keys, row, out.row(i));
    } else {
      const std::vector<std::int32_t>& path = cache.paths[i];
      const auto keys = static_cast<std::int64_t>(path.size());
      const auto row = [&](std::int64_t t) { return layer.own[t].row(path[t]); };
      attend(q.row(i), i, keys - 1, keys, row, out.row(i));
    }
  }
  return Tensor(std::move(out));
}

HEED_END
