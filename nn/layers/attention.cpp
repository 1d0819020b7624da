#include "nn/layers/attention.h"

#include "autograd/kernels/attend.h"
#include "autograd/ops.h"

HEED_BEGIN

MultiHeadAttention::MultiHeadAttention(std::int64_t d_model, std::int64_t head_count,
                                       double dropout, Init& init)
    : in_proj_weight(init.matrix(3 * d_model, d_model)),
      in_proj_bias(init.zeros(3 * d_model)),
      out_proj(d_model, d_model, init),
      d(d_model),
      heads(head_count),
      dropout_rate(dropout) {
  if (heads < 1 || d % heads != 0)
    fail("[multi_head_attention] {} heads do not divide d_model {}", heads, d);
}

Parameters MultiHeadAttention::parameters() const {
  Parameters all{{"in_proj_weight", in_proj_weight}, {"in_proj_bias", in_proj_bias}};
  append(all, "out_proj", out_proj);
  return all;
}

Tensor MultiHeadAttention::self(const Tensor& x, std::span<const std::int32_t> offsets, bool causal,
                                Pass& pass) const {
  const FusedAttentionOptions options{heads, causal, static_cast<real>(pass.rate(dropout_rate)),
                                      pass.next_key()};
  return out_proj(self_attention(affine(x, in_proj_weight, in_proj_bias), offsets, options));
}

Tensor MultiHeadAttention::keys_values(const Tensor& memory) const {
  return affine_rows(memory, in_proj_weight, in_proj_bias, d, 3 * d);
}

Tensor MultiHeadAttention::cross(const Tensor& x, const Tensor& memory,
                                 std::span<const std::int32_t> offsets,
                                 std::span<const std::int32_t> memory_offsets, Pass& pass) const {
  const FusedAttentionOptions options{heads, false, static_cast<real>(pass.rate(dropout_rate)),
                                      pass.next_key()};
  const Tensor q = affine_rows(x, in_proj_weight, in_proj_bias, 0, d);
  return out_proj(cross_attention(q, keys_values(memory), offsets, memory_offsets, options));
}

Tensor MultiHeadAttention::self_step(const Tensor& x, SelfCache& cache,
                                     const Ancestry& ancestry) const {
  const NoGrad no_grad;
  cache.keys_values.push_back(keys_values(x).value());
  const Array q = affine_rows(x, in_proj_weight, in_proj_bias, 0, d).value();
  Array out(q.shape());
  std::vector<const real*> rows;
  for (std::int64_t i = 0; i < q.rows(); ++i) {
    rows.clear();
    const std::span<const std::int32_t> path = ancestry.of(i);
    for (std::size_t t = 0; t < path.size(); ++t) rows.push_back(cache.keys_values[t].row(path[t]));
    kernels::attend(q.row(i), rows, d, heads, out.row(i));
  }
  return out_proj(Tensor(std::move(out)));
}

Tensor MultiHeadAttention::cross_step(const Tensor& x, const Tensor& cached,
                                      std::span<const std::int32_t> memory_offsets,
                                      std::span<const std::int32_t> sentence) const {
  const NoGrad no_grad;
  const Array q = affine_rows(x, in_proj_weight, in_proj_bias, 0, d).value();
  Array out(q.shape());
  std::vector<const real*> rows;
  for (std::int64_t i = 0; i < q.rows(); ++i) {
    rows.clear();
    const auto s = static_cast<std::size_t>(sentence[static_cast<std::size_t>(i)]);
    for (std::int32_t t = memory_offsets[s]; t < memory_offsets[s + 1]; ++t)
      rows.push_back(cached.value().row(t));
    kernels::attend(q.row(i), rows, d, heads, out.row(i));
  }
  return out_proj(Tensor(std::move(out)));
}

HEED_END
