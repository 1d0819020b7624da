#include "nn/layers/block.h"

#include "autograd/ops/basic.h"
#include "autograd/tape/recompute.h"
#include "nn/options.h"

HEED_BEGIN

Residual::Residual(const ModelOptions& options, Init& init)
    : place(options.norm), connected(options.residual), dropout_rate(options.dropout.residual) {
  if (place != NormPlace::none) norm.emplace(options, init);
}

TransformerBlock::TransformerBlock(const ModelOptions& options, BlockKind kind, Init& init)
    : mixer_kind(options.mixer),
      mixer(make_mixer(
          options, kind == BlockKind::encoder ? AttentionScope::all : AttentionScope::past, init)),
      cross_attention(
          kind == BlockKind::decoder
              ? std::optional(MultiHeadAttention(options, AttentionScope::encoder_output, init))
              : std::nullopt),
      feed_forward(options, init),
      around_mixer(options, init) {
  if (options.norm_kind == NormKind::batch && options.norm != NormPlace::none &&
      kind != BlockKind::encoder)
    fail(
        "[transformer_block] batch norm requires an encoder: in a causal block, a row would depend "
        "on later rows");
  if (options.block == BlockForm::parallel) return;
  around_feed_forward.emplace(options, init);
  if (cross_attention) around_cross.emplace(options, init);
}

Tensor TransformerBlock::operator()(const Tensor& x, const Context& context) const {
  const auto mix = [&](const Tensor& rows) {
    if (context.cache == nullptr) return (*mixer)(rows, context);
    return context.prefill ? mixer->prefill(rows, context) : mixer->step(rows, context);
  };
  const auto cross = [&](const Tensor& rows) { return (*cross_attention)(rows, context); };
  const auto feed = [&](const Tensor& rows) { return feed_forward(rows, context.pass); };
  if (!around_feed_forward) {
    return around_mixer(x, context.pass, [&](const Tensor& rows) {
      const Tensor y = cross_attention ? add(mix(rows), cross(rows)) : mix(rows);
      return add(y, feed(rows));
    });
  }
  Tensor y = around_mixer(x, context.pass, mix);
  if (cross_attention) y = (*around_cross)(y, context.pass, cross);
  return (*around_feed_forward)(y, context.pass, feed);
}

namespace {

template <class Body>
void for_each_norm(const TransformerBlock& block, Body body) {
  int number = 0;
  for (const std::optional<Residual>& around :
       {std::optional(block.around_mixer), block.around_cross, block.around_feed_forward}) {
    if (around && around->norm) body("norm" + std::to_string(++number), *around->norm);
  }
}

}  // namespace

Parameters TransformerBlock::parameters() const {
  Parameters all;
  append(all, mixer_kind == MixerKind::attention ? "self_attn" : "mixer", *mixer);
  if (cross_attention) append(all, "multihead_attn", *cross_attention);
  append(all, "", feed_forward);
  for_each_norm(*this, [&](const std::string& name, const Norm& norm) { append(all, name, norm); });
  return all;
}

std::vector<NamedStatistics> TransformerBlock::statistics() const {
  std::vector<NamedStatistics> all;
  for_each_norm(*this, [&](const std::string& name, const Norm& norm) {
    if (norm.statistics != nullptr) all.push_back({name, norm.statistics});
  });
  return all;
}

Stack::Stack(const ModelOptions& options, std::int64_t depth, BlockKind kind, Init& init) {
  for (std::int64_t i = 0; i < depth; ++i) blocks.emplace_back(options, kind, init);
  if (options.final_norm && options.norm != NormPlace::none) norm.emplace(options, init);
}

namespace {

/// The output of the block. Its ops store no values for backward, which runs the block again
/// instead. The parts of the context that backward requires are copied, because the context does
/// not outlive the call.
Tensor recomputed(const TransformerBlock& block, const Tensor& x, const Context& context) {
  std::vector<Tensor> inputs{x}, variables;
  ComputedOffsets encoder_offsets;
  if (block.cross_attention && context.encoder_output != nullptr) {
    inputs.push_back(context.encoder_output->rows);
    encoder_offsets = context.encoder_output->offsets;
  }
  for (const NamedTensor& p : block.parameters()) variables.push_back(p.tensor);
  for (const ScoreTermPtr& term : context.terms)
    variables.insert(variables.end(), term->inputs().begin(), term->inputs().end());
  const auto after = std::make_shared<Pass>();  // state of the pass after the dropouts of the block
  const ComputedOffsets offsets(context.offsets.begin(), context.offsets.end());
  const auto run = [&block, encoder_offsets, after, offsets, start = context.pass,
                    terms = context.terms, pattern = context.pattern, layer = context.layer,
                    lanes = context.lanes](std::span<const Tensor> args) {
    *after = start;
    const EncoderOutput encoded{args.back(), encoder_offsets};
    Context inner{offsets, args.size() > 1 ? &encoded : nullptr, *after};
    inner.terms = terms;
    inner.pattern = pattern;
    inner.layer = layer;
    inner.lanes = lanes;
    return block(args[0], inner);
  };
  const Tensor y = recompute(run, inputs, variables);
  context.pass = *after;
  return y;
}

}  // namespace

Tensor Stack::operator()(Tensor x, Context context) const {
  const bool again = context.pass.recompute && context.cache == nullptr && recording();
  if (context.cache != nullptr) context.cache->layers.resize(blocks.size());
  for (const TransformerBlock& block : blocks) {
    x = again ? recomputed(block, x, context) : block(x, context);
    ++context.layer;
  }
  return norm ? (*norm)(x, context.pass) : x;
}

std::vector<NamedStatistics> Stack::statistics() const {
  std::vector<NamedStatistics> all;
  for (std::size_t i = 0; i < blocks.size(); ++i)
    for (const NamedStatistics& s : blocks[i].statistics())
      all.push_back({"layers." + std::to_string(i) + "." + s.name, s.of});
  if (norm && norm->statistics != nullptr) all.push_back({"norm", norm->statistics});
  return all;
}

Parameters Stack::parameters() const {
  Parameters all;
  for (std::size_t i = 0; i < blocks.size(); ++i)
    append(all, "layers." + std::to_string(i), blocks[i]);
  if (norm) append(all, "norm", *norm);
  return all;
}

HEED_END
