#include <algorithm>

#include "nn/options.h"
#include "train/exchange/huggingface/model_class.h"

HEED_BEGIN

namespace {

/// The stacks of an encoder-decoder model in the naming of BART (Lewis et al. 2020).
PartList bart_parts(const ModelSource& source) {
  const ModelOptions& o = source.model;
  PartList list(source, {.zero_biases = true});
  list.add({.foreign = "model.shared.weight", .own = "embedding.weight"});
  list.output_bias("final_logits_bias", {1, source.vocabulary.target});
  BlockNames names{
      .norm1 = "self_attn_layer_norm",
      .self = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.out_proj"},
      .last_norm = "final_layer_norm",
      .linear1 = "fc1",
      .linear2 = "fc2"};
  for (const std::string stack : {"encoder", "decoder"}) {
    const bool decoder = stack == "decoder";
    if (decoder) {
      names.cross_norm = "encoder_attn_layer_norm";
      names.cross = {"encoder_attn.q_proj", "encoder_attn.k_proj", "encoder_attn.v_proj",
                     "encoder_attn.out_proj"};
    }
    list.positions("model." + stack + ".embed_positions.weight",
                   decoder ? "target_positions.weight" : "source_positions.weight",
                   o.max_positions);
    list.blocks("model." + stack + ".layers.{}.", stack,
                decoder ? o.decoder_layers : o.encoder_layers, names);
    if (o.final_norm) list.norm("model." + stack + ".layer_norm", stack + ".norm");
  }
  return list;
}

void complete_bart(const ModelSource& source, HuggingFaceModel& model) {
  complete_pairs(source, model);
  model.generation_config["max_new_tokens"] =
      std::min(source.config.decode.max_length, source.model.max_positions);
  model.generation_config["encoder_no_repeat_ngram_size"] = 0;
  if (source.model.norm == NormPlace::post)
    model.config.update({{"decoder_vocab_size", source.vocabulary.target},
                         {"share_encoder_decoder_embeddings", true}});
}

/// Marian (Junczys-Dowmunt et al. 2018), the Transformer of Vaswani et al. 2017 with the norm after each
/// sum, and Blenderbot (Roller et al. 2021), with the norm before. They share the config of BART.
ModelClass bart_class(bool marian) {
  const int heads = marian ? 16 : 32, d_ff = marian ? 4096 : 10240;
  // Keys of old files, which transformers does not read: Marian's say what BART's would mean.
  const std::vector<Json> of_old_files =
      marian ? std::vector<Json>{true, false} : std::vector<Json>{true};
  return {.name = marian ? "MarianMTModel" : "BlenderbotForConditionalGeneration",
          .type = marian ? "marian" : "blenderbot",
          .architecture = Architecture::encoder_decoder,
          .requirements = with_common({{"data.input", {"text"}},
                                       {"tokenizer.shared", {true}},
                                       {"model.tie_embeddings", {true}},
                                       {"model.tie_output", {true}},
                                       {"model.positions", {"learned", "sinusoidal", "none"}},
                                       {"model.norm", {marian ? "post" : "pre"}},
                                       {"model.final_norm", {!marian}},
                                       {"model.norm_kind", {"layer"}},
                                       {"model.norm_eps", {1e-5}},
                                       {"model.activation", ungated_activations()},
                                       {"model.attention.kv_heads", {0}}}),
          .keys = {{"d_model", "model.d_model", marian ? 1024 : 2560},
                   {"encoder_layers", "model.layers.encoder", marian ? 12 : 2},
                   {"decoder_layers", "model.layers.decoder", marian ? 12 : 24},
                   {"decoder_attention_heads", "model.heads", heads},
                   {"encoder_attention_heads", "model.heads", heads},
                   {"decoder_ffn_dim", "model.d_ff", d_ff},
                   {"encoder_ffn_dim", "model.d_ff", d_ff},
                   {"activation_function", "model.activation", "gelu", &activation_names},
                   {"max_position_embeddings", "model.max_positions", marian ? 1024 : 128},
                   {"scale_embedding", "model.scale_embeddings", false},
                   {"dropout", "model.dropout.residual", 0.1},
                   {"attention_dropout", "model.dropout.attention", 0.0},
                   {"activation_dropout", "model.dropout.activation", 0.0},
                   {"decoder_start_token_id", "", marian ? 58100 : 1},
                   {"eos_token_id", "", marian ? 0 : 2},
                   {"is_encoder_decoder", "", true},
                   {"tie_word_embeddings", "", true},
                   {"vocab_size", "", marian ? 58101 : 8008}},
          .constants = {{"is_encoder_decoder", true}, {"tie_word_embeddings", true}},
          .parts = bart_parts,
          .complete = complete_bart,
          .prefix = "model.",
          .own = {{"task", "seq2seq"}, {"model", {{"output_bias", true}}}},
          .fixed = {{"add_cross_attention", {false, true}},
                    {"normalize_before", of_old_files},
                    {"add_final_layer_norm", of_old_files},
                    {"normalize_embedding", {false}},
                    {"static_position_embeddings", {marian}},
                    {"extra_pos_embeddings", {0}},
                    {"force_bos_token_to_be_generated", {false}},
                    {"add_bias_logits", {false}}},
          .without_effect =
              "encoder_layerdrop decoder_layerdrop layerdrop num_hidden_layers "
              "hidden_size bos_token_id classifier_dropout classif_dropout is_decoder "
              "do_blenderbot_90_layernorm layernorm_variant unk_token_id",
          .extra = {{"model.encoder.embed_tokens.weight", "model.shared.weight"},
                    {"model.decoder.embed_tokens.weight", "model.shared.weight"},
                    {"lm_head.weight", "model.shared.weight"}},
          .adapt =
              [](nlohmann::json& foreign, nlohmann::json& own, const std::string&) {
                if (own["model"]["norm"] == "post" &&
                    foreign.value("decoder_vocab_size", nlohmann::json()).is_null())
                  foreign["decoder_vocab_size"] = foreign["vocab_size"];
              },
          .is_zero = [](const nlohmann::json&,
                        const std::string& tensor) { return tensor == "final_logits_bias"; },
          .sinusoids = marian};
}

}  // namespace

void add_bart_classes(std::vector<ModelClass>& classes) {
  classes.push_back(bart_class(true));
  classes.push_back(bart_class(false));
}

HEED_END
