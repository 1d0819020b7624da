#include "nn/layers/attention.h"

#include "autograd/kernels/attend.h"

HEED_BEGIN

MultiHeadAttention::MultiHeadAttention(const ModelOptions& options, Sees which, Init& init)
    : in_proj_weight(init.matrix(3 * options.d_model, options.d_model)),
      in_proj_bias(init.zeros(3 * options.d_model)),
      out_proj(options.d_model, options.d_model, init),
      d(options.d_model),
      heads(options.heads),
      dropout_rate(options.dropout.attention),
      sees(which) {
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

Tensor MultiHeadAttention::whole_sequences(const Tensor& x, const Context& context) const {
  const FusedAttentionOptions options{heads, sees == Sees::past,
                                      static_cast<real>(context.pass.rate(dropout_rate)),
                                      context.pass.next_key()};
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
  std::vector<const real*> seen;  // by one hypothesis: rows of 2 d values, k and v
  for (std::int64_t i = 0; i < q.rows(); ++i) {
    seen.clear();
    if (sees == Sees::memory) {
      const Offsets offsets = context.memory->offsets;
      const std::int32_t s = cache.sequence[i];
      for (std::int32_t t = offsets[s]; t < offsets[s + 1]; ++t)
        seen.push_back(layer.memory.row(t));
    } else {
      const std::vector<std::int32_t>& path = cache.paths[i];
      for (std::size_t t = 0; t < path.size(); ++t) seen.push_back(layer.own[t].row(path[t]));
    }
    kernels::attend(q.row(i), seen, d, heads, out.row(i));
  }
  return Tensor(std::move(out));
}

HEED_END
