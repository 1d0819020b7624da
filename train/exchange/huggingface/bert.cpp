#include <fmt/format.h>

#include "nn/options.h"
#include "train/exchange/huggingface/model_class.h"

HEED_BEGIN

namespace {

/// BERT (Devlin et al. 2019) without a head.
PartList bert_encoder(const ModelSource& source) {
  const ModelOptions& o = source.model;
  const double factor = source.embedding_factor();
  const std::string embeddings = "bert.embeddings.";
  PartList list(source, {.zero_biases = true});
  list.add({.foreign = embeddings + "word_embeddings.weight",
            .own = "embedding.weight",
            .factor = factor});
  list.positions(embeddings + "position_embeddings.weight", "positions.weight", o.max_positions);
  MappedTensor segments{.foreign = embeddings + "token_type_embeddings.weight"};
  if (o.segments > 1) {
    segments.own = "segments.weight";
    segments.factor = factor;
  } else {
    segments.constant = Array::zeros({1, o.d_model});
  }
  list.add(segments);
  list.norm(embeddings + "LayerNorm", "embedding_norm");
  list.blocks("bert.encoder.layer.{}.", "encoder", o.encoder_layers,
              {.norm1 = "attention.output.LayerNorm",
               .self = {"attention.self.query", "attention.self.key", "attention.self.value",
                        "attention.output.dense"},
               .last_norm = "output.LayerNorm",
               .linear1 = "intermediate.dense",
               .linear2 = "output.dense"});
  return list;
}

PartList masked_parts(const ModelSource& source) {
  PartList list = bert_encoder(source);
  const std::string head = "cls.predictions.";
  const bool one_matrix = output_is_table(source);
  if (!one_matrix)
    list.add({.foreign = head + "decoder.weight",
              .own = output_is_tied(source.model) ? "embedding.weight" : "output.weight"});
  list.output_bias(head + "bias");
  if (!one_matrix) list.output_bias(head + "decoder.bias");
  for (const std::string kind : {"weight", "bias"})
    list.add({.foreign = head + "transform.dense." + kind, .own = "transform.dense." + kind});
  list.norm(head + "transform.LayerNorm", "transform.norm");
  return list;
}

PartList tagging_parts(const ModelSource& source) {
  PartList list = bert_encoder(source);
  for (const std::string kind : {"weight", "bias"})
    list.add({.foreign = "classifier." + kind, .own = "output." + kind});
  return list;
}

ModelClass bert_class() {
  return {.name = "BertForTokenClassification",
          .type = "bert",
          .architecture = Architecture::encoder,
          .requirements = with_common({{"data.input", {"text"}},
                                       {"model.embedding_norm", {true}},
                                       {"model.positions", {"learned", "sinusoidal", "none"}},
                                       {"model.norm", {"post"}},
                                       {"model.final_norm", {false}},
                                       {"model.norm_kind", {"layer"}},
                                       {"model.activation", ungated_activations()},
                                       {"model.attention.kv_heads", {0}}}),
          .keys = {{"hidden_size", "model.d_model", 768},
                   {"num_hidden_layers", "model.layers.encoder", 12},
                   {"num_attention_heads", "model.heads", 12},
                   {"intermediate_size", "model.d_ff", 3072},
                   {"hidden_act", "model.activation", "gelu", &activation_names},
                   {"max_position_embeddings", "model.max_positions", 512},
                   {"layer_norm_eps", "model.norm_eps", 1e-12},
                   {"hidden_dropout_prob", "model.dropout.residual", 0.1},
                   {"attention_probs_dropout_prob", "model.dropout.attention", 0.1},
                   {"type_vocab_size", "", 2},
                   {"tie_word_embeddings", "", true},
                   {"vocab_size", "", 30522}},
          .parts = tagging_parts,
          .complete =
              [](const ModelSource& source, HuggingFaceModel& model) {
                model.config["type_vocab_size"] = source.model.segments;
                model.config.erase("use_cache");
              },
          .fixed = {{"position_embedding_type", {"absolute"}},
                    {"add_cross_attention", {false}},
                    {"is_decoder", {false}}},
          .without_effect = "classifier_dropout bos_token_id eos_token_id"};
}

/// BERT with its masked-language head. The special tokens around a text are those of the tokenizer.
ModelClass masked_class() {
  ModelClass about = bert_class();
  about.name = "BertForMaskedLM";
  about.architecture = Architecture::encoder_of_tokens;
  about.requirements.push_back({"model.head_transform", {true}});
  about.parts = masked_parts;
  about.complete = [](const ModelSource& source, HuggingFaceModel& model) {
    bert_class().complete(source, model);
    model.config["tie_word_embeddings"] = output_is_table(source);
  };
  about.prefix = "bert.";
  about.own = {
      {"task", "mlm"},
      {"model",
       {{"output_bias", true}, {"scale_embeddings", false}, {"dropout", {{"activation", 0}}}}}};
  about.extra = {{"bert.embeddings.position_ids", ""},
                 {"bert.pooler.dense.*", ""},  // of heads that this class does not have
                 {"cls.seq_relationship.*", ""},
                 {"cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"},
                 {"cls.predictions.decoder.bias", "cls.predictions.bias"}};
  about.adapt = [](nlohmann::json& foreign, nlohmann::json& own, const std::string&) {
    // The output matrix of a model with scaled embeddings is not the table of the file.
    own["model"]["tie_embeddings"] = foreign["tie_word_embeddings"] != false;
    // Two segment embeddings belong to pairs of lines.
    own["model"]["segments"] = foreign["type_vocab_size"];
    own["data"]["mask"]["next_sentence"] = foreign["type_vocab_size"] == 2;
  };
  return about;
}

}  // namespace

void add_bert_classes(std::vector<ModelClass>& classes) {
  classes.push_back(bert_class());
  classes.push_back(masked_class());
}

HEED_END
