#include "nn/layers/block.h"

HEED_BEGIN

TransformerBlock::TransformerBlock(const ModelOptions& options, BlockKind kind, Init& init)
    : self_attention(options, kind == BlockKind::encoder ? Sees::all : Sees::past, init),
      cross_attention(kind == BlockKind::decoder
                          ? std::optional(MultiHeadAttention(options, Sees::memory, init))
                          : std::nullopt),
      feed_forward(options, init),
      around_self(options, init),
      around_feed_forward(options, init) {
  if (cross_attention) around_cross.emplace(options, init);
}

Tensor TransformerBlock::operator()(const Tensor& x, const Context& context) const {
  Tensor y = around_self(x, context.pass,
                         [&](const Tensor& rows) { return self_attention(rows, context); });
  if (cross_attention) {
    y = (*around_cross)(y, context.pass,
                        [&](const Tensor& rows) { return (*cross_attention)(rows, context); });
  }
  return around_feed_forward(y, context.pass,
                             [&](const Tensor& rows) { return feed_forward(rows, context.pass); });
}

Parameters TransformerBlock::parameters() const {
  Parameters all;
  append(all, "self_attn", self_attention);
  if (cross_attention) append(all, "multihead_attn", *cross_attention);
  append(all, "", feed_forward);
  append(all, "norm1", around_self.norm);
  if (cross_attention) append(all, "norm2", around_cross->norm);
  append(all, cross_attention ? "norm3" : "norm2", around_feed_forward.norm);
  return all;
}

Stack::Stack(const ModelOptions& options, std::int64_t depth, BlockKind kind, Init& init) {
  for (std::int64_t i = 0; i < depth; ++i) blocks.emplace_back(options, kind, init);
  if (options.final_norm) norm.emplace(options, init);
}

Tensor Stack::operator()(Tensor x, Context context) const {
  if (context.cache != nullptr) context.cache->layers.resize(blocks.size());
  for (const TransformerBlock& block : blocks) {
    x = block(x, context);
    ++context.layer;
  }
  return norm ? (*norm)(x) : x;
}

Parameters Stack::parameters() const {
  Parameters all;
  for (std::size_t i = 0; i < blocks.size(); ++i)
    append(all, "layers." + std::to_string(i), blocks[i]);
  if (norm) append(all, "norm", *norm);
  return all;
}

HEED_END
