#include "train/exchange/ctranslate2/ctranslate2.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "autograd/base/error.h"
#include "nn/layers/activations.h"
#include "nn/layers/positions.h"
#include "nn/options.h"
#include "train/config/tasks.h"
#include "train/exchange/huggingface_class.h"

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

/// Collects the tensors and attributes of a model.
class CTranslate2Writer {
 public:
  CTranslate2Writer(const ModelSource& source, CTranslate2Model& model)
      : source_(source), o_(source.model), model_(model) {}

  /// A tensor; the second one with the same elements is an alias.
  void add(MappedTensor part) {
    for (const MappedTensor& earlier : model_.parts) {
      if (!part.own.empty() && earlier.own == part.own && earlier.first == part.first &&
          earlier.rows == part.rows) {
        model_.aliases.emplace_back(part.foreign, earlier.foreign);
        return;
      }
    }
    model_.parts.push_back(std::move(part));
  }

  void stack(const std::string& name, bool cross, const std::string& embedding,
             const std::string& positions, std::int64_t depth, std::int64_t max_positions) {
    const std::string scope = name + "/";
    attribute(scope + "num_heads", static_cast<std::int16_t>(o_.heads));
    attribute(scope + "pre_norm", static_cast<std::int8_t>(o_.norm == NormPlace::pre));
    attribute(scope + "activation", number_of_activation());
    attribute(scope + "scale_embeddings", static_cast<std::int8_t>(o_.scale_embeddings));
    if (name == "encoder") attribute(scope + "embeddings_merge", std::int8_t{0});
    add({.foreign = scope + (name == "encoder" ? "embeddings_0/weight" : "embeddings/weight"),
         .own = embedding});
    if (o_.positions == PositionKind::alibi) {
      attribute(scope + "alibi", std::int8_t{1});
      attribute(scope + "alibi_use_positive_positions", std::int8_t{0});
    }
    if (o_.positions == PositionKind::learned || o_.positions == PositionKind::sinusoidal ||
        o_.positions == PositionKind::none)  // without a table, it would add its own sinusoids
      add(position_table(source_, scope + "position_encodings/encodings", positions,
                         max_positions));
    for (std::int64_t i = 0; i < depth; ++i)
      layer(fmt::format("{}layer_{}/", scope, i), fmt::format("{}.layers.{}.", name, i), cross,
            positions);
    if (o_.final_norm) norm(scope + "layer_norm", name + ".norm");
  }

  void linear(const std::string& foreign, const std::string& own) {
    add({.foreign = foreign + "/weight", .own = own + ".weight"});
    if (o_.bias) add({.foreign = foreign + "/bias", .own = own + ".bias"});
  }

  void output(const std::string& shared) {
    add({.foreign = "decoder/projection/weight",
         .own = output_is_tied(o_) ? shared : "output.weight"});
    if (source_.output_bias()) add({.foreign = "decoder/projection/bias", .own = "output.bias"});
  }

 private:
  template <class T>
  void attribute(const std::string& name, T value) {
    model_.attributes.emplace_back(name, value);
  }
  std::int8_t number_of_activation() const {
    return std::ranges::find(ct2_activations, name_of(o_.activation),
                             &std::pair<std::string_view, std::int8_t>::first)
        ->second;
  }

  void norm(const std::string& foreign, const std::string& own) {
    add({.foreign = foreign + "/gamma", .own = own + ".weight"});
    if (o_.norm_kind != NormKind::rms) add({.foreign = foreign + "/beta", .own = own + ".bias"});
  }

  /// Weight and bias of a linear layer that are rows of another one.
  void rows(const std::string& foreign, const std::string& own, const std::string& separator,
            std::int64_t first, std::int64_t count) {
    for (const char* const kind : {"weight", "bias"}) {
      if (o_.bias || kind == std::string_view("weight"))
        add({.foreign = foreign + "/" + kind,
             .own = own + separator + kind,
             .first = first,
             .rows = count});
    }
  }

  /// Attributes of every attention layer.
  void heads(const std::string& scope) {
    if (source_.kv_heads() != o_.heads)
      attribute(scope + "num_heads_kv", static_cast<std::int32_t>(source_.kv_heads()));
    if (o_.attention.scale != 0)
      attribute(scope + "queries_scale", static_cast<float>(o_.attention.scale));
  }

  void self_attention(const std::string& scope, const std::string& own,
                      const std::string& positions) {
    heads(scope);
    rows(scope + "linear_0", own, ".in_proj_", 0, 0);
    linear(scope + "linear_1", own + ".out_proj");
    if (o_.positions == PositionKind::rotary) {
      attribute(scope + "rotary_dim", static_cast<std::int32_t>(o_.d_model / o_.heads));
      attribute(scope + "rotary_interleave",
                static_cast<std::int8_t>(o_.rotary_pairs == RotaryPairs::adjacent));
      attribute(scope + "rotary_base", static_cast<float>(o_.rotary_base));
    }
    if (o_.positions == PositionKind::relative_t5) {
      add({.foreign = scope + "relative_attention_bias", .own = positions});
      attribute(scope + "relative_attention_max_distance",
                static_cast<std::int32_t>(o_.t5_distance));
    }
  }

  void layer(const std::string& scope, const std::string& own, bool cross,
             const std::string& positions) {
    const bool parallel = o_.block == BlockForm::parallel;
    self_attention(scope + "self_attention/", own + "self_attn", positions);
    norm(parallel ? scope + "shared_layer_norm" : scope + "self_attention/layer_norm",
         own + "norm1");
    if (cross) {
      const std::string attention = scope + "attention/";
      heads(attention);
      rows(attention + "linear_0", own + "multihead_attn", ".in_proj_", 0, o_.d_model);
      rows(attention + "linear_1", own + "multihead_attn", ".in_proj_", o_.d_model,
           2 * source_.kv_width());
      linear(attention + "linear_2", own + "multihead_attn.out_proj");
      norm(attention + "layer_norm", own + "norm2");
    }
    if (!parallel) norm(scope + "ffn/layer_norm", own + (cross ? "norm3" : "norm2"));
    if (gate_of(o_.activation)) {  // the gate is the first half of linear1
      rows(scope + "ffn/linear_0", own + "linear1", ".", 0, o_.d_ff);
      rows(scope + "ffn/linear_0_noact", own + "linear1", ".", o_.d_ff, o_.d_ff);
    } else {
      linear(scope + "ffn/linear_0", own + "linear1");
    }
    linear(scope + "ffn/linear_1", own + "linear2");
  }

  const ModelSource& source_;
  const ModelOptions& o_;
  CTranslate2Model& model_;
};

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
  CTranslate2Writer writer(source, model);
  std::string target = "embedding.weight";
  if (pairs) {
    model.config.update(
        {{"decoder_start_token", "<s>"}, {"add_source_bos", false}, {"add_source_eos", false}});
    const bool one_table = o.tie_embeddings && source.vocabulary.shared &&
                           source.vocabulary.source == source.vocabulary.target;
    if (!one_table) target = "target_embedding.weight";
    writer.stack("encoder", false, one_table ? target : "source_embedding.weight",
                 "source_positions.weight", o.encoder_layers, o.max_positions);
  }
  writer.stack("decoder", pairs, target, pairs ? "target_positions.weight" : "positions.weight",
               o.decoder_layers, pairs ? o.max_positions : o.context);
  writer.output(target);
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
