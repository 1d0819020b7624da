#include "train/exchange/ctranslate2/ctranslate2.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "autograd/base/error.h"
#include "nn/layers/activations.h"
#include "nn/layers/positions.h"
#include "nn/options.h"
#include "train/config/tasks.h"
#include "train/exchange/model_parts.h"

HEED_BEGIN

namespace {

/// Forms of models, in the order in which they are tried.
struct CTranslate2Form {
  const char* name;
  Architecture architecture;
  std::vector<Requirement> requirements;
};

/// The numbers of ctranslate2::ops::ActivationType.
constexpr std::pair<std::string_view, std::int8_t> ct2_activations[] = {
    {"relu", 0},    {"gelu_tanh", 1}, {"silu", 2},  {"gelu", 3},      {"tanh", 5},
    {"sigmoid", 6}, {"swiglu", 2},    {"geglu", 3}, {"geglu_tanh", 1}};

const std::vector<CTranslate2Form>& ctranslate2_forms() {
  const auto with = [](std::vector<Requirement> more) {
    std::vector<nlohmann::json> activations;
    for (const auto& each : ct2_activations) activations.emplace_back(each.first);
    more.push_back({"model.norm_kind", {"layer", "rms"}});
    more.push_back({"model.activation", std::move(activations)});
    more.push_back({"tokenizer.kind", {"sentencepiece", "char", "byte", "word"}});
    std::vector<Requirement> all = with_common(std::move(more));
    std::erase_if(all, [](const Requirement& each) { return each.key == "model.attention.scale"; });
    return all;
  };
  const std::vector<nlohmann::json> of_decoders{"learned", "sinusoidal", "rotary", "alibi", "none"};
  static const std::vector<CTranslate2Form> forms{
      {"decoder", Architecture::decoder,
       with({{"model.positions", of_decoders},
             {"model.norm", {"pre", "post"}},
             {"model.memory", {0}}})},
      {"decoder of parallel blocks", Architecture::decoder,
       with({{"model.positions", of_decoders},
             {"model.norm", {"pre"}},
             {"model.block", {"parallel"}},
             {"model.memory", {0}}})},
      {"encoder-decoder", Architecture::encoder_decoder,
       with({{"data.input", {"text"}},
             {"model.positions", {"learned", "sinusoidal", "rotary", "relative_t5", "none"}},
             {"model.norm", {"pre", "post"}}})}};
  return forms;
}

/// The tensors and attributes of a stack.
class CTranslate2Stack {
 public:
  CTranslate2Stack(const ModelSource& source, CTranslate2Model& model, bool decoder, bool cross)
      : source_(source),
        o_(source.model),
        model_(model),
        stack_(decoder ? "decoder" : "encoder"),
        scope_(stack_ + "/"),
        cross_(cross),
        depth_(decoder ? o_.decoder_layers : o_.encoder_layers) {}

  void add(PartList& list, const std::string& embedding, const std::string& positions,
           std::int64_t max_positions) {
    attribute("num_heads", static_cast<std::int16_t>(o_.heads));
    attribute("pre_norm", static_cast<std::int8_t>(o_.norm == NormPlace::pre));
    attribute("activation", std::ranges::find(ct2_activations, name_of(o_.activation),
                                              &std::pair<std::string_view, std::int8_t>::first)
                                ->second);
    attribute("scale_embeddings", static_cast<std::int8_t>(o_.scale_embeddings));
    const bool encoder = stack_ == "encoder";
    if (encoder) attribute("embeddings_merge", std::int8_t{0});
    list.add({.foreign = scope_ + (encoder ? "embeddings_0/weight" : "embeddings/weight"),
              .own = embedding});
    if (o_.positions == PositionKind::alibi) {
      attribute("alibi", std::int8_t{1});
      attribute("alibi_use_positive_positions", std::int8_t{0});
    }
    if (o_.positions == PositionKind::learned || o_.positions == PositionKind::sinusoidal ||
        o_.positions == PositionKind::none)  // without a table, it would add its own sinusoids
      list.positions(scope_ + "position_encodings/encodings", positions, max_positions);
    list.blocks(scope_ + "layer_{}/", stack_, depth_, names());
    for (std::int64_t i = 0; i < depth_; ++i) attributes_of_layer(list, i, positions);
    if (o_.final_norm) list.norm(scope_ + "layer_norm", stack_ + ".norm");
  }

 private:
  template <class T>
  void attribute(const std::string& name, T value) {
    model_.attributes.emplace_back(scope_ + name, value);
  }

  BlockNames names() const {
    const bool parallel = o_.block == BlockForm::parallel,
               gated = gate_of(o_.activation).has_value();
    BlockNames names{.norm1 = parallel ? "shared_layer_norm" : "self_attention/layer_norm",
                     .self = {.q = "self_attention/linear_0", .out = "self_attention/linear_1"},
                     .last_norm = parallel ? "" : "ffn/layer_norm",
                     .gate = "ffn/linear_0",  // the gate is the first half of linear1
                     .linear1 = gated ? "ffn/linear_0_noact" : "ffn/linear_0",
                     .linear2 = "ffn/linear_1"};
    if (cross_) {
      names.cross_norm = "attention/layer_norm";
      names.cross = {
          .q = "attention/linear_0", .k = "attention/linear_1", .out = "attention/linear_2"};
    }
    return names;
  }

  void attributes_of_layer(PartList& list, std::int64_t i, const std::string& positions) {
    const std::string layer = fmt::format("layer_{}/", i), self = layer + "self_attention/";
    for (const std::string& attention : {self, layer + "attention/"}) {
      if (attention != self && !cross_) continue;
      if (source_.kv_heads() != o_.heads)
        attribute(attention + "num_heads_kv", static_cast<std::int32_t>(source_.kv_heads()));
      if (o_.attention.scale != 0)
        attribute(attention + "queries_scale", static_cast<float>(o_.attention.scale));
    }
    if (o_.positions == PositionKind::rotary) {
      attribute(self + "rotary_dim", static_cast<std::int32_t>(o_.d_model / o_.heads));
      attribute(self + "rotary_interleave",
                static_cast<std::int8_t>(o_.rotary_pairs == RotaryPairs::adjacent));
      attribute(self + "rotary_base", static_cast<float>(o_.rotary_base));
    }
    if (o_.positions == PositionKind::relative_t5) {
      list.add({.foreign = scope_ + self + "relative_attention_bias", .own = positions});
      attribute(self + "relative_attention_max_distance",
                static_cast<std::int32_t>(o_.t5_distance));
    }
  }

  const ModelSource& source_;
  const ModelOptions& o_;
  CTranslate2Model& model_;
  std::string stack_, scope_;
  bool cross_;
  std::int64_t depth_;
};

/// Moves the parts into the model; the second one with the same elements becomes an alias.
void add_with_aliases(CTranslate2Model& model, const MappedTensors& parts) {
  for (const MappedTensor& part : parts) {
    const auto earlier = std::ranges::find_if(model.parts, [&](const MappedTensor& each) {
      return !part.own.empty() && each.own == part.own && each.first == part.first &&
             each.rows == part.rows;
    });
    if (earlier == model.parts.end())
      model.parts.push_back(part);
    else
      model.aliases.emplace_back(part.foreign, earlier->foreign);
  }
}

CTranslate2Model described_for_ctranslate2(const ModelSource& source, bool pairs) {
  const ModelOptions& o = source.model;
  CTranslate2Model model;
  model.specification = pairs ? "TransformerSpec" : "TransformerDecoderSpec";
  model.revision = pairs ? 7 : 8;
  model.config = {{"unk_token", "<unk>"},
                  {"bos_token", "<s>"},
                  {"eos_token", "</s>"},
                  {"layer_norm_epsilon", o.norm_eps},
                  {"multi_query_attention", source.kv_heads() != o.heads}};
  PartList list(
      source,
      {.weight = "/weight", .bias = "/bias", .norm_weight = "/gamma", .norm_bias = "/beta"});
  std::string target = "embedding.weight";
  if (pairs) {
    model.config.update(
        {{"decoder_start_token", "<s>"}, {"add_source_bos", false}, {"add_source_eos", false}});
    const bool one_table = o.tie_embeddings && source.vocabulary.shared &&
                           source.vocabulary.source == source.vocabulary.target;
    if (!one_table) target = "target_embedding.weight";
    CTranslate2Stack(source, model, false, false)
        .add(list, one_table ? target : "source_embedding.weight", "source_positions.weight",
             o.max_positions);
  }
  CTranslate2Stack(source, model, true, pairs)
      .add(list, target, pairs ? "target_positions.weight" : "positions.weight",
           pairs ? o.max_positions : o.context);
  list.add({.foreign = "decoder/projection/weight",
            .own = output_is_tied(o) ? target : "output.weight"});
  if (source.output_bias()) list.add({.foreign = "decoder/projection/bias", .own = "output.bias"});
  add_with_aliases(model, list.parts);
  return model;
}

}  // namespace

CTranslate2Model ctranslate2_model(const Config& config, const VocabularySizes& vocabulary) {
  std::string why;
  for (const CTranslate2Form& form : ctranslate2_forms()) {
    if (form.architecture != info_of(config.task).architecture) continue;
    const std::vector<std::string> found = obstacles(form.requirements, config);
    if (found.empty())
      return described_for_ctranslate2({config, *config.model, vocabulary},
                                       form.architecture == Architecture::encoder_decoder);
    why += fmt::format("\n  {}: {}", form.name, fmt::join(found, "; "));
  }
  if (why.empty())
    why =
        fmt::format("\n  task {}: it neither translates nor continues text", name_of(config.task));
  throw Error(Exit::usage,
              "ctranslate2: it does not compute what this model computes (export to onnx, or train "
              "with other values):{}",
              why);
}

ScaledRows ctranslate2_int8(const TensorView& matrix) {
  const std::span<const float> all = matrix.values<float>();
  const auto columns = static_cast<std::size_t>(matrix.shape.back());
  ScaledRows rows;
  rows.values.reserve(all.size());
  for (std::size_t begin = 0; begin < all.size(); begin += columns) {
    const std::span<const float> row = all.subspan(begin, columns);
    float largest = 0;
    for (const float v : row) {
      if (!std::isfinite(v))
        throw Error(Exit::usage, "ctranslate2: {} has a value that is not finite", matrix.name);
      largest = std::max(largest, std::abs(v));
    }
    // The scale of a row of tiny values must also be finite.
    constexpr float smallest = 127 / std::numeric_limits<float>::max();
    const float scale = 127 / (largest == 0 ? 127 : std::max(largest, smallest));
    for (const float v : row)
      rows.values.push_back(static_cast<std::int8_t>(std::nearbyint(v * scale)));
    rows.scales.push_back(scale);
  }
  return rows;
}

HEED_END
