#include <fmt/format.h>

#include "data/tokenizers/tokenizer.h"
#include "nn/layers/activations.h"
#include "nn/layers/positions.h"
#include "nn/options.h"
#include "train/exchange/huggingface_class.h"

HEED_BEGIN

namespace {

/// BERT (Devlin et al. 2019) without a head.
HuggingFaceModel bert(const ModelSource& source, const char* architecture) {
  const ModelOptions& o = source.model;
  HuggingFaceModel out{architecture, common_config(source, architecture, "bert"), {}, {}};
  out.config.update({{"vocab_size", source.vocabulary.source},
                     {"hidden_size", o.d_model},
                     {"num_hidden_layers", o.encoder_layers},
                     {"num_attention_heads", o.heads},
                     {"intermediate_size", o.d_ff},
                     {"hidden_act", activation_name(o)},
                     {"max_position_embeddings", o.max_positions},
                     {"type_vocab_size", o.segments},
                     {"layer_norm_eps", o.norm_eps},
                     {"hidden_dropout_prob", o.dropout.residual},
                     {"attention_probs_dropout_prob", o.dropout.attention}});
  out.config.erase("use_cache");
  const double factor = source.embedding_factor();
  const std::string embeddings = "bert.embeddings.";
  out.parts.push_back({.foreign = embeddings + "word_embeddings.weight",
                       .own = "embedding.weight",
                       .factor = factor});
  out.parts.push_back(position_table(source, embeddings + "position_embeddings.weight",
                                     "positions.weight", o.max_positions));
  MappedTensor segments{.foreign = embeddings + "token_type_embeddings.weight"};
  if (o.segments > 1) {
    segments.own = "segments.weight";
    segments.factor = factor;
  } else {
    segments.constant = Array::zeros({1, o.d_model});
  }
  out.parts.push_back(segments);
  add_norm(out.parts, source, embeddings + "LayerNorm", "embedding_norm");
  for (std::int64_t i = 0; i < o.encoder_layers; ++i) {
    const std::string own = fmt::format("encoder.layers.{}.", i),
                      foreign = fmt::format("bert.encoder.layer.{}.", i);
    add_attention(out.parts, source, foreign + "attention", own + "self_attn",
                  {".self.query", ".self.key", ".self.value", ".output.dense"});
    add_norm(out.parts, source, foreign + "attention.output.LayerNorm", own + "norm1");
    add_linear(out.parts, source, foreign + "intermediate.dense", own + "linear1", o.d_ff);
    add_linear(out.parts, source, foreign + "output.dense", own + "linear2", o.d_model);
    add_norm(out.parts, source, foreign + "output.LayerNorm", own + "norm2");
  }
  return out;
}

HuggingFaceModel bert_for_masked_lm(const ModelSource& source) {
  const ModelOptions& o = source.model;
  HuggingFaceModel out = bert(source, "BertForMaskedLM");
  const std::string head = "cls.predictions.";
  const bool tied = output_is_tied(o), same = tied && source.embedding_factor() == 1;
  if (!same)
    out.parts.push_back(
        {.foreign = head + "decoder.weight", .own = tied ? "embedding.weight" : "output.weight"});
  out.config["tie_word_embeddings"] = same;
  MappedTensor bias{.foreign = head + "bias"};
  if (source.output_bias())
    bias.own = "output.bias";
  else
    bias.constant = Array::zeros({source.vocabulary.source});
  out.parts.push_back(bias);
  if (!same) {
    bias.foreign = head + "decoder.bias";
    out.parts.push_back(bias);
  }
  for (const char* const kind : {"weight", "bias"}) {
    out.parts.push_back({.foreign = fmt::format("{}transform.dense.{}", head, kind),
                         .own = fmt::format("transform.dense.{}", kind)});
  }
  add_norm(out.parts, source, head + "transform.LayerNorm", "transform.norm");
  return out;
}

HuggingFaceModel bert_for_token_classification(const ModelSource& source) {
  HuggingFaceModel out = bert(source, "BertForTokenClassification");
  for (const std::string kind : {"weight", "bias"})
    out.parts.push_back({.foreign = "classifier." + kind, .own = "output." + kind});
  return out;
}

}  // namespace

void add_bert_classes(std::vector<ModelClass>& classes) {
  std::vector<Requirement> common =
      with_common({{"data.input", {"text"}},
                   {"model.embedding_norm", {true}},
                   {"model.positions", {"learned", "sinusoidal", "none"}},
                   {"model.norm", {"post"}},
                   {"model.final_norm", {false}},
                   {"model.norm_kind", {"layer"}},
                   {"model.activation", ungated_activations()},
                   {"model.attention.kv_heads", {0}}});
  classes.push_back(
      {"BertForTokenClassification", Architecture::encoder, bert_for_token_classification, common});
  common.push_back({"model.head_transform", {true}});
  classes.push_back(
      {"BertForMaskedLM", Architecture::encoder_of_tokens, bert_for_masked_lm, common});
}

HEED_END
