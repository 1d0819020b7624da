#include <fmt/format.h>

#include "nn/layers/positions.h"
#include "nn/options.h"
#include "train/exchange/huggingface/model_class.h"

HEED_BEGIN

namespace {

/// The projection of patches, which is a convolution in transformers: [d, channels, patch, patch].
void add_patches(PartList& list, const ModelSource& source, const std::string& foreign,
                 const std::string& own) {
  const ImageOptions& image = source.config.data.image;
  list.add({.foreign = foreign + ".weight",
            .own = own + ".weight",
            .channels = image.channels,
            .shape = {source.model.d_model, image.channels, image.patch, image.patch}});
  list.add({.foreign = foreign + ".bias", .own = own + ".bias"});
}

/// A class of transformers has no special ids: the rows of an imported model begin at its first label.
void add_classifier(PartList& list, const ModelSource& source) {
  const std::int64_t first = source.first_label,
                     rows = first == 0 ? 0 : source.vocabulary.target - first;
  for (const std::string kind : {"weight", "bias"})
    list.add(
        {.foreign = "classifier." + kind, .own = "output." + kind, .first = first, .rows = rows});
}

BlockNames block_of_images(const std::string& inner) {
  return {.norm1 = "layernorm_before",
          .self = {"attention." + inner + ".query", "attention." + inner + ".key",
                   "attention." + inner + ".value", "attention.output.dense"},
          .last_norm = "layernorm_after",
          .linear1 = "intermediate.dense",
          .linear2 = "output.dense"};
}

/// What both classes have. The norm's epsilon and the dropout rates are those of `eps` and of 0.
ModelClass class_of_images(std::vector<Requirement> requirements, double eps) {
  requirements.insert(requirements.end(), {{"data.input", {"image"}},
                                           {"model.norm", {"pre"}},
                                           {"model.final_norm", {true}},
                                           {"model.norm_kind", {"layer"}},
                                           {"model.activation", ungated_activations()},
                                           {"model.attention.kv_heads", {0}}});
  return {.architecture = Architecture::encoder_of_sequences,
          .requirements = with_common(std::move(requirements)),
          .keys = {{"num_channels", "data.image.channels", 3},
                   {"image_size", "", 224},
                   {"hidden_act", "model.activation", "gelu", &activation_names},
                   {"layer_norm_eps", "model.norm_eps", eps},
                   {"hidden_dropout_prob", "model.dropout.residual", 0.0},
                   {"attention_probs_dropout_prob", "model.dropout.attention", 0.0}},
          .constants = {{"qkv_bias", true}},
          .own = {{"task", "classify"}, {"model", {{"dropout", {{"activation", 0}}}}}}};
}

/// The size is a list if the image is not a square.
void complete_image(const ModelSource& source, HuggingFaceModel& model) {
  const ImageOptions& image = source.config.data.image;
  model.config["image_size"] =
      image.height == image.width ? Json(image.height) : Json({image.height, image.width});
}

void adapt_image(nlohmann::json& foreign, nlohmann::json& own) {
  nlohmann::json& size = foreign["image_size"];
  if (size.is_array() && size.size() == 2 && size[0] == size[1])
    size = nlohmann::json(size[0]);  // as export writes it
  const bool list = size.is_array() && size.size() == 2;
  own["data"]["image"]["height"] = list ? size[0] : size;
  own["data"]["image"]["width"] = list ? size[1] : size;
}

/// heed's class token is the bias of the projection, because the first row of an image is zero.
PartList vit_parts(const ModelSource& source) {
  const ModelOptions& o = source.model;
  const std::int64_t rows = patches_of(source.config.data.image) + 1;
  PartList list(source, {.zero_biases = true});
  list.positions("vit.embeddings.position_embeddings", "positions.weight", rows,
                 {1, rows, o.d_model});
  add_patches(list, source, "vit.embeddings.patch_embeddings.projection", "input");
  list.add(
      {.foreign = "vit.embeddings.cls_token", .own = "input.bias", .shape = {1, 1, o.d_model}});
  list.blocks("vit.encoder.layer.{}.", "encoder", o.encoder_layers, block_of_images("attention"));
  list.norm("vit.layernorm", "encoder.norm");
  add_classifier(list, source);
  return list;
}

std::string vit_obstacle(const ModelSource& source) {
  const std::int64_t rows = patches_of(source.config.data.image) + 1;
  if (source.model.positions == PositionKind::learned && source.model.max_positions < rows)
    return fmt::format("model.max_positions is {} (it has {})", source.model.max_positions, rows);
  return "";
}

/// ViT (Dosovitskiy et al. 2021).
ModelClass vit_class() {
  ModelClass about = class_of_images({{"model.front_end.kind", {"linear"}},
                                      {"model.pool", {"first"}},
                                      {"model.positions", {"learned", "sinusoidal", "none"}}},
                                     1e-12);
  about.name = "ViTForImageClassification";
  about.type = "vit";
  about.keys.insert(about.keys.end(), {{"patch_size", "data.image.patch", 16},
                                       {"hidden_size", "model.d_model", 768},
                                       {"num_hidden_layers", "model.layers.encoder", 12},
                                       {"num_attention_heads", "model.heads", 12},
                                       {"intermediate_size", "model.d_ff", 3072}});
  about.parts = vit_parts;
  about.complete = complete_image;
  about.obstacle = vit_obstacle;
  about.prefix = "vit.";
  about.at_position_0 = "vit.embeddings.cls_token";
  about.without_effect = "encoder_stride pooler_act pooler_output_size num_labels";
  about.adapt = [](nlohmann::json& foreign, nlohmann::json& own, const std::string&) {
    adapt_image(foreign, own);
    const auto side = [&](const char* key) { return own["data"]["image"].value(key, 0.0); };
    const nlohmann::json& patch = foreign["patch_size"];
    const double rows =
        patch.is_number() && patch > 0 && own["data"]["image"]["width"].is_number() &&
                own["data"]["image"]["height"].is_number()
            ? side("height") * side("width") / (patch.get<double>() * patch.get<double>())
            : 0;
    if (rows < 1e6) own["model"]["max_positions"] = static_cast<std::int64_t>(rows) + 1;
  };
  return about;
}

/// The merging layer belongs to the stage before, in heed to the stage after.
PartList swin_parts(const ModelSource& source) {
  const ModelOptions& o = source.model;
  PartList list(source, {.zero_biases = true});
  add_patches(list, source, "swin.embeddings.patch_embeddings.projection", "encoder.input");
  list.norm("swin.embeddings.norm", "encoder.input_norm");
  for (std::size_t s = 0; s < o.swin.depths.size(); ++s) {
    ModelOptions stage = o;
    stage.d_model <<= s;
    stage.heads <<= s;
    stage.d_ff <<= s;
    const ModelSource narrowed{source.config, stage, source.vocabulary, source.ids};
    PartList more(narrowed, {.zero_biases = true});
    const std::string own = fmt::format("encoder.stages.{}.", s);
    if (s > 0) {
      const std::string merge = fmt::format("swin.encoder.layers.{}.downsample.", s - 1);
      more.norm(merge + "norm", own + "merge.norm");
      more.add({.foreign = merge + "reduction.weight", .own = own + "merge.projection.weight"});
    }
    for (std::int64_t i = 0; i < o.swin.depths[s]; ++i) {
      const std::string block = fmt::format("swin.encoder.layers.{}.blocks.{}.", s, i),
                        layer = fmt::format("{}layers.{}.", own, i);
      more.add({.foreign = block + "attention.self.relative_position_bias_table",
                .own = layer + "positions.weight"});
      more.block(block, layer, block_of_images("self"));
    }
    list.parts.insert(list.parts.end(), more.parts.begin(), more.parts.end());
  }
  list.norm("swin.layernorm", "encoder.norm");
  add_classifier(list, source);
  return list;
}

void complete_swin(const ModelSource& source, HuggingFaceModel& model) {
  const ModelOptions& o = source.model;
  complete_image(source, model);
  Json heads = Json::array();
  for (std::size_t s = 0; s < o.swin.depths.size(); ++s) heads.push_back(o.heads << s);
  model.config.update(
      {{"num_heads", heads},
       {"mlp_ratio", static_cast<double>(o.d_ff) / static_cast<double>(o.d_model)}});
}

/// transformers fills the last windows with zeros, which are keys there; heed has smaller windows.
std::string swin_obstacle(const ModelSource& source) {
  const ModelOptions& o = source.model;
  const ImageOptions& image = source.config.data.image;
  // The class has this epsilon in the norms of the patches and of the merging layers, whatever its key.
  if (o.norm_eps != 1e-5) return fmt::format("model.norm_eps is {} (it has 1e-5)", o.norm_eps);
  for (std::size_t s = 0; s < o.swin.depths.size(); ++s) {
    const auto [shorter, longer] =
        std::minmax({(image.height / image.patch) >> s, (image.width / image.patch) >> s});
    if (shorter <= o.swin.window && longer > o.swin.window && o.swin.depths[s] > 1)
      return fmt::format(
          "model.swin.window is {} (it does not shift windows in stage {}, whose patches are {} by {})",
          o.swin.window, s + 1, longer, shorter);
    for (const std::int64_t side : {image.height / image.patch, image.width / image.patch}) {
      if ((side >> s) % o.swin.window != 0)
        return fmt::format(
            "model.swin.window is {} (it needs a divisor of {}, the patches of a side in stage {})",
            o.swin.window, side >> s, s + 1);
    }
  }
  return "";
}

/// Swin Transformer (Liu et al. 2021).
ModelClass swin_class() {
  ModelClass about = class_of_images({{"model.kind", {"swin"}}, {"model.pool", {"mean"}}}, 1e-5);
  about.name = "SwinForImageClassification";
  about.type = "swin";
  about.keys.insert(about.keys.end(), {{"patch_size", "data.image.patch", 4},
                                       {"embed_dim", "model.d_model", 96},
                                       {"depths", "model.swin.depths", Json::array({2, 2, 6, 2})},
                                       {"num_heads", "", Json::array({3, 6, 12, 24})},
                                       {"window_size", "model.swin.window", 7},
                                       {"mlp_ratio", "", 4.0}});
  about.constants["use_absolute_embeddings"] = false;
  about.constants["drop_path_rate"] = 0.0;
  about.parts = swin_parts;
  about.complete = complete_swin;
  about.obstacle = swin_obstacle;
  about.prefix = "swin.";
  // heed has no dropout of whole paths, which concerns training alone.
  about.without_effect =
      "drop_path_rate encoder_stride hidden_size num_layers path_norm num_labels "
      "out_features out_indices stage_names";
  about.extra = {{"swin.encoder.layers.*.blocks.*.attention.self.relative_position_index", ""}};
  about.adapt = [](nlohmann::json& foreign, nlohmann::json& own, const std::string&) {
    adapt_image(foreign, own);
    const nlohmann::json &heads = foreign["num_heads"], &width = foreign["embed_dim"],
                         &ratio = foreign["mlp_ratio"];
    if (heads.is_array() && !heads.empty()) own["model"]["heads"] = heads[0];
    if (ratio.is_number() && width.is_number() && ratio < 1e3 && width < 1e6)
      own["model"]["d_ff"] = static_cast<std::int64_t>(ratio.get<double>() * width.get<double>());
  };
  return about;
}

}  // namespace

void add_image_classes(std::vector<ModelClass>& classes) {
  classes.push_back(vit_class());
  classes.push_back(swin_class());
}

HEED_END
