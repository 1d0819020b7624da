#include <fmt/format.h>

#include "nn/layers/activations.h"
#include "nn/layers/positions.h"
#include "nn/options.h"
#include "train/exchange/huggingface_class.h"

HEED_BEGIN

namespace {

/// Entries of the config of both classes. The size is a list if the image is not a square.
HuggingFaceModel image_model(const ModelSource& source, const char* architecture,
                             const char* type) {
  const ModelOptions& o = source.model;
  const ImageOptions& image = source.config.data.image;
  HuggingFaceModel out{architecture, {}, {}, {}};
  out.config = {{"architectures", {architecture}},
                {"model_type", type},
                {"dtype", "float32"},
                {"torch_dtype", "float32"},
                {"image_size", image.height == image.width ? Json(image.height)
                                                           : Json({image.height, image.width})},
                {"patch_size", image.patch},
                {"num_channels", image.channels},
                {"hidden_act", activation_name(o)},
                {"layer_norm_eps", o.norm_eps},
                {"qkv_bias", true},
                {"hidden_dropout_prob", o.dropout.residual},
                {"attention_probs_dropout_prob", o.dropout.attention}};
  return out;
}

/// The projection of patches, which is a convolution in transformers: [d, channels, patch, patch].
void add_patches(MappedTensors& parts, const ModelSource& source, const std::string& foreign,
                 const std::string& own) {
  const ImageOptions& image = source.config.data.image;
  parts.push_back({.foreign = foreign + ".weight",
                   .own = own + ".weight",
                   .channels = image.channels,
                   .shape = {source.model.d_model, image.channels, image.patch, image.patch}});
  parts.push_back({.foreign = foreign + ".bias", .own = own + ".bias"});
}

void add_classifier(MappedTensors& parts) {
  for (const std::string kind : {"weight", "bias"})
    parts.push_back({.foreign = "classifier." + kind, .own = "output." + kind});
}

void add_image_block(MappedTensors& parts, const ModelSource& source, const std::string& foreign,
                     const std::string& own, const AttentionNames& names) {
  const ModelOptions& o = source.model;
  add_norm(parts, source, foreign + "layernorm_before", own + "norm1");
  add_attention(parts, source, foreign + "attention", own + "self_attn", names);
  add_norm(parts, source, foreign + "layernorm_after", own + "norm2");
  add_linear(parts, source, foreign + "intermediate.dense", own + "linear1", o.d_ff);
  add_linear(parts, source, foreign + "output.dense", own + "linear2", o.d_model);
}

/// ViT (Dosovitskiy et al. 2021). heed's class token is the bias of the projection, because the
/// first row of an image is zero.
HuggingFaceModel vit(const ModelSource& source) {
  const ModelOptions& o = source.model;
  const std::int64_t rows = patches_of(source.config.data.image) + 1;
  HuggingFaceModel out = image_model(source, "ViTForImageClassification", "vit");
  out.config.update({{"hidden_size", o.d_model},
                     {"num_hidden_layers", o.encoder_layers},
                     {"num_attention_heads", o.heads},
                     {"intermediate_size", o.d_ff}});
  out.parts.push_back(
      {.foreign = "vit.embeddings.cls_token", .own = "input.bias", .shape = {1, 1, o.d_model}});
  MappedTensor positions =
      position_table(source, "vit.embeddings.position_embeddings", "positions.weight", rows);
  if (!positions.own.empty()) positions.rows = rows;
  positions.shape = {1, rows, o.d_model};
  out.parts.push_back(positions);
  add_patches(out.parts, source, "vit.embeddings.patch_embeddings.projection", "input");
  for (std::int64_t i = 0; i < o.encoder_layers; ++i)
    add_image_block(out.parts, source, fmt::format("vit.encoder.layer.{}.", i),
                    fmt::format("encoder.layers.{}.", i),
                    {".attention.query", ".attention.key", ".attention.value", ".output.dense"});
  add_norm(out.parts, source, "vit.layernorm", "encoder.norm");
  add_classifier(out.parts);
  return out;
}

/// Swin Transformer (Liu et al. 2021). Its merging layer belongs to the stage before, in heed to the
/// stage after.
HuggingFaceModel swin(const ModelSource& source) {
  const ModelOptions& o = source.model;
  const std::vector<std::int64_t>& depths = o.swin.depths;
  HuggingFaceModel out = image_model(source, "SwinForImageClassification", "swin");
  std::vector<std::int64_t> heads;
  for (std::size_t s = 0; s < depths.size(); ++s) heads.push_back(o.heads << s);
  out.config.update({{"embed_dim", o.d_model},
                     {"depths", depths},
                     {"num_heads", heads},
                     {"window_size", o.swin.window},
                     {"mlp_ratio", static_cast<double>(o.d_ff) / static_cast<double>(o.d_model)},
                     {"drop_path_rate", 0.0},
                     {"use_absolute_embeddings", false}});
  add_patches(out.parts, source, "swin.embeddings.patch_embeddings.projection", "encoder.input");
  add_norm(out.parts, source, "swin.embeddings.norm", "encoder.input_norm");
  for (std::size_t s = 0; s < depths.size(); ++s) {
    ModelOptions stage = o;
    stage.d_model <<= s;
    stage.heads <<= s;
    stage.d_ff <<= s;
    const ModelSource narrowed{source.config, stage, source.vocabulary, source.ids};
    const std::string own = fmt::format("encoder.stages.{}.", s);
    if (s > 0) {
      const std::string merge = fmt::format("swin.encoder.layers.{}.downsample.", s - 1);
      add_norm(out.parts, narrowed, merge + "norm", own + "merge.norm");
      out.parts.push_back(
          {.foreign = merge + "reduction.weight", .own = own + "merge.projection.weight"});
    }
    for (std::int64_t i = 0; i < depths[s]; ++i) {
      const std::string block = fmt::format("swin.encoder.layers.{}.blocks.{}.", s, i),
                        layer = fmt::format("{}layers.{}.", own, i);
      out.parts.push_back({.foreign = block + "attention.self.relative_position_bias_table",
                           .own = layer + "positions.weight"});
      add_image_block(out.parts, narrowed, block, layer,
                      {".self.query", ".self.key", ".self.value", ".output.dense"});
    }
  }
  add_norm(out.parts, source, "swin.layernorm", "encoder.norm");
  add_classifier(out.parts);
  return out;
}

std::string vit_obstacle(const ModelSource& source) {
  const std::int64_t rows = patches_of(source.config.data.image) + 1;
  if (source.model.positions == PositionKind::learned && source.model.max_positions < rows)
    return fmt::format("model.max_positions is {} (it has {})", source.model.max_positions, rows);
  return "";
}

/// transformers fills the last windows with zeros, which are keys there; heed has smaller windows.
std::string swin_obstacle(const ModelSource& source) {
  const ModelOptions& o = source.model;
  const ImageOptions& image = source.config.data.image;
  for (std::size_t s = 0; s < o.swin.depths.size(); ++s) {
    for (const std::int64_t side : {image.height / image.patch, image.width / image.patch}) {
      if ((side >> s) % o.swin.window != 0)
        return fmt::format(
            "model.swin.window is {} (it needs a divisor of {}, the patches of a side in stage {})",
            o.swin.window, side >> s, s + 1);
    }
  }
  return "";
}

}  // namespace

void add_image_classes(std::vector<ModelClass>& classes) {
  const auto common = [](std::vector<Requirement> more) {
    more.insert(more.end(), {{"data.input", {"image"}},
                             {"model.norm", {"pre"}},
                             {"model.final_norm", {true}},
                             {"model.norm_kind", {"layer"}},
                             {"model.activation", ungated_activations()},
                             {"model.attention.kv_heads", {0}}});
    return with_common(std::move(more));
  };
  classes.push_back({"ViTForImageClassification", Architecture::encoder_of_sequences, vit,
                     common({{"model.front_end.kind", {"linear"}},
                             {"model.pool", {"first"}},
                             {"model.positions", {"learned", "sinusoidal", "none"}}}),
                     vit_obstacle});
  classes.push_back({"SwinForImageClassification", Architecture::encoder_of_sequences, swin,
                     common({{"model.kind", {"swin"}}, {"model.pool", {"mean"}}}), swin_obstacle});
}

HEED_END
