#include <fmt/format.h>

#include <algorithm>

#include "autograd/base/error.h"
#include "autograd/io/message_text.h"
#include "train/exchange/import_parts.h"

HEED_BEGIN

namespace {

/// Keys of all classes without effect on the function: names, training, outputs, and the search, whose
/// options transformers reads from generation_config.json.
constexpr const char* never_effective[] = {"architectures",
                                           "model_type",
                                           "dtype",
                                           "torch_dtype",
                                           "transformers_version",
                                           "_name_or_path",
                                           "_attn_implementation_autoset",
                                           "attn_implementation",
                                           "use_cache",
                                           "pad_token_id",
                                           "id2label",
                                           "label2id",
                                           "task_specific_params",
                                           "return_dict",
                                           "output_attentions",
                                           "output_hidden_states",
                                           "torchscript",
                                           "problem_type",
                                           "tokenizer_class",
                                           "prefix",
                                           "finetuning_task",
                                           "initializer_range",
                                           "init_std",
                                           "gradient_checkpointing",
                                           "chunk_size_feed_forward",
                                           "max_length",
                                           "min_length",
                                           "do_sample",
                                           "early_stopping",
                                           "num_beams",
                                           "num_beam_groups",
                                           "diversity_penalty",
                                           "temperature",
                                           "top_k",
                                           "top_p",
                                           "typical_p",
                                           "repetition_penalty",
                                           "length_penalty",
                                           "no_repeat_ngram_size",
                                           "encoder_no_repeat_ngram_size",
                                           "bad_words_ids",
                                           "num_return_sequences",
                                           "output_scores",
                                           "return_dict_in_generate",
                                           "forced_bos_token_id",
                                           "forced_eos_token_id",
                                           "remove_invalid_values",
                                           "exponential_decay_length_penalty",
                                           "suppress_tokens",
                                           "begin_suppress_tokens",
                                           "sep_token_id"};

/// heed's names of activations, by those of transformers.activations.ACT2FN.
std::string own_activation(const ImportJson& name, const std::string& where) {
  constexpr std::pair<std::string_view, std::string_view> names[] = {
      {"relu", "relu"},
      {"gelu", "gelu"},
      {"gelu_new", "gelu_tanh"},
      {"gelu_pytorch_tanh", "gelu_tanh"},
      {"gelu_fast", "gelu_tanh"},
      {"silu", "silu"},
      {"swish", "silu"},
      {"sigmoid", "sigmoid"},
      {"tanh", "tanh"}};
  for (const auto& [theirs, own] : names)
    if (name == theirs) return std::string(own);
  throw Error(Exit::bad_input, "{}: heed does not have the activation {}", where,
              shown(name.dump(), 60));
}

/// The name that a description for export has, so that the two can be compared.
void rename_activation(ImportJson& value) {
  if (value == "gelu_new" || value == "gelu_fast") value = "gelu_pytorch_tanh";
  if (value == "swish") value = "silu";
}

bool no_zeros(const ImportJson&, const std::string&) { return false; }

ImportClass gpt2_class() {
  return {
      .architecture = "GPT2LMHeadModel",
      .aliases = {},
      .prefix = "transformer.",
      .own = {{"task", "lm"},
              {"model",
               {{"positions", "learned"},
                {"norm", "pre"},
                {"norm_kind", "layer"},
                {"dropout", {{"activation", 0}}}}}},
      .rules = {{"n_positions", "model.context", 1024},
                {"n_embd", "model.d_model", 768},
                {"n_layer", "model.layers.decoder", 12},
                {"n_head", "model.heads", 12},
                {"n_inner", "model.d_ff", nullptr},
                {"layer_norm_epsilon", "model.norm_eps", 1e-5},
                {"resid_pdrop", "model.dropout.residual", 0.1},
                {"attn_pdrop", "model.dropout.attention", 0.1}},
      .defaults = {{"activation_function", "gelu_new"},
                   {"embd_pdrop", 0.1},
                   {"bos_token_id", 50256},
                   {"eos_token_id", 50256},
                   {"tie_word_embeddings", true},
                   {"vocab_size", 50257}},
      .fixed = {{"scale_attn_weights", {true}},
                {"scale_attn_by_inverse_layer_idx", {false}},
                {"add_cross_attention", {false}}},
      .without_effect = {"reorder_and_upcast_attn", "summary_activation", "summary_first_dropout",
                         "summary_proj_to_labels", "summary_type", "summary_use_proj"},
      .extra = {{"transformer.h.*.attn.bias", ""},  // the causal mask
                {"transformer.h.*.attn.masked_bias", ""},
                {"lm_head.weight", "transformer.wte.weight"}},
      .adapt =
          [](ImportJson& foreign, ImportJson& own, const std::string& where) {
            own["model"]["activation"] = own_activation(foreign["activation_function"], where);
            rename_activation(foreign["activation_function"]);
            own["model"]["max_positions"] = foreign["n_positions"];
            ImportJson& inner = foreign["n_inner"];
            if (inner.is_null() && foreign["n_embd"].is_number_unsigned())
              inner = 4 * foreign["n_embd"].get<std::uint64_t>();
            if (const auto window = foreign.find("n_ctx"); window != foreign.end()) {
              if (*window != foreign["n_positions"])
                throw Error(Exit::bad_input, "{}: n_ctx differs from n_positions", where);
              foreign.erase(window);
            }
          },
      .is_zero = no_zeros};
}

/// The base of rotary positions, which transformers 5 writes into "rope_parameters".
void adapt_rotary(ImportJson& foreign, const std::string& where) {
  const auto refuse = [&](const std::string& what) {
    throw Error(Exit::bad_input, "{}: {}, which heed does not have", where, what);
  };
  const ImportJson scaling = foreign.value("rope_scaling", ImportJson());
  if (!scaling.is_null()) refuse(fmt::format("rope_scaling is {}", shown(scaling.dump(), 80)));
  foreign.erase("rope_scaling");
  ImportJson base = foreign.value("rope_theta", ImportJson());
  if (const ImportJson parameters = foreign.value("rope_parameters", ImportJson());
      !parameters.is_null()) {
    if (!parameters.is_object()) refuse("rope_parameters is no object");
    for (const auto& [key, value] : parameters.items()) {
      if (key == "rope_theta" && (base.is_null() || base == value))
        base = value;
      else if (key != "rope_type" || value != "default")
        refuse(fmt::format("rope_parameters: {} is {}", shown(key), shown(value.dump(), 80)));
    }
  }
  if (base.is_null()) base = 10000.0;
  foreign["rope_theta"] = base;
  foreign["rope_parameters"] = {{"rope_theta", base}, {"rope_type", "default"}};
}

ImportClass llama_class() {
  return {
      .architecture = "LlamaForCausalLM",
      .aliases = {"MistralForCausalLM", "Qwen2ForCausalLM"},
      .prefix = "model.",
      .own = {{"task", "lm"},
              {"model",
               {{"positions", "rotary"},
                {"rotary_pairs", "halves"},
                {"norm", "pre"},
                {"norm_kind", "rms"},
                {"dropout", {{"residual", 0}, {"activation", 0}}}}}},
      .rules = {{"max_position_embeddings", "model.context", 2048},
                {"hidden_size", "model.d_model", 4096},
                {"intermediate_size", "model.d_ff", 11008},
                {"num_hidden_layers", "model.layers.decoder", 32},
                {"num_attention_heads", "model.heads", 32},
                {"num_key_value_heads", "model.attention.kv_heads", nullptr},
                {"rms_norm_eps", "model.norm_eps", 1e-6},
                {"rope_theta", "model.rotary_base", nullptr},
                {"attention_dropout", "model.dropout.attention", 0.0}},
      .defaults = {{"hidden_act", "silu"},
                   {"bos_token_id", 1},
                   {"eos_token_id", 2},
                   {"tie_word_embeddings", false},
                   {"vocab_size", 32000}},
      .fixed = {{"attention_bias", {true, false}},
                {"mlp_bias", {true, false}},
                {"sliding_window", {nullptr}},
                {"use_sliding_window", {false}}},
      .without_effect = {"pretraining_tp", "layer_types", "max_window_layers", "is_decoder"},
      .extra = {{"model.layers.*.self_attn.rotary_emb.inv_freq", ""},
                {"lm_head.weight", "model.embed_tokens.weight"}},
      .adapt =
          [](ImportJson& foreign, ImportJson& own, const std::string& where) {
            const std::string activation = own_activation(foreign["hidden_act"], where);
            if (activation != "silu" && activation != "gelu")
              throw Error(Exit::bad_input, "{}: hidden_act: heed has gates with silu and gelu",
                          where);
            own["model"]["activation"] = activation == "silu" ? "swiglu" : "geglu";
            rename_activation(foreign["hidden_act"]);
            adapt_rotary(foreign, where);
            ImportJson& kv_heads = foreign["num_key_value_heads"];
            if (kv_heads.is_null()) kv_heads = foreign["num_attention_heads"];
            const ImportJson &width = foreign["hidden_size"],
                             &heads = foreign["num_attention_heads"];
            if (foreign.value("head_dim", ImportJson()).is_null() && width.is_number_unsigned() &&
                heads.is_number_unsigned() && heads != 0)
              foreign["head_dim"] = width.get<std::uint64_t>() / heads.get<std::uint64_t>();
            // A window that does not apply has no effect.
            if (foreign.value("use_sliding_window", ImportJson()) == false)
              foreign["sliding_window"] = nullptr;
            for (const ImportJson& type : foreign.value("layer_types", ImportJson::array()))
              if (type != "full_attention")
                throw Error(Exit::bad_input, "{}: layer_types: {} is not full_attention", where,
                            shown(type.dump(), 60));
            const bool qwen = foreign.value("model_type", ImportJson()) == "qwen2";
            if (foreign.value("attention_bias", ImportJson()).is_null())
              foreign["attention_bias"] = qwen;
            if (foreign.value("mlp_bias", ImportJson()).is_null()) foreign["mlp_bias"] = false;
            own["model"]["bias"] = foreign["attention_bias"] == true || foreign["mlp_bias"] == true;
          },
      // heed's biases are zero where a model has only some. Qwen2 has those of q, k and v.
      .is_zero =
          [](const ImportJson& foreign, const std::string& tensor) {
            if (!tensor.ends_with(".bias")) return false;
            if (tensor.find(".mlp.") != std::string::npos) return foreign["mlp_bias"] == false;
            const bool qwen = foreign.value("model_type", ImportJson()) == "qwen2";
            return foreign["attention_bias"] == false || (qwen && tensor.ends_with(".o_proj.bias"));
          }};
}

/// Marian and Blenderbot, which share the config of BART.
ImportClass bart_class(const char* architecture, const char* norm) {
  const bool marian = std::string_view(norm) == "post";
  return {.architecture = architecture,
          .aliases = {},
          .prefix = "model.",
          .own = {{"task", "seq2seq"},
                  {"tokenizer", {{"shared", true}}},
                  {"model",
                   {{"positions", "learned"},
                    {"norm", norm},
                    {"final_norm", !marian},
                    {"norm_kind", "layer"},
                    {"norm_eps", 1e-5},
                    {"output_bias", true}}}},
          .rules = {{"d_model", "model.d_model", marian ? 1024 : 2560},
                    {"encoder_layers", "model.layers.encoder", marian ? 12 : 2},
                    {"decoder_layers", "model.layers.decoder", marian ? 12 : 24},
                    {"encoder_attention_heads", "model.heads", marian ? 16 : 32},
                    {"encoder_ffn_dim", "model.d_ff", marian ? 4096 : 10240},
                    {"max_position_embeddings", "model.max_positions", marian ? 1024 : 128},
                    {"scale_embedding", "model.scale_embeddings", false},
                    {"dropout", "model.dropout.residual", 0.1},
                    {"attention_dropout", "model.dropout.attention", 0.0},
                    {"activation_dropout", "model.dropout.activation", 0.0}},
          .defaults = {{"activation_function", "gelu"},
                       {"decoder_attention_heads", marian ? 16 : 32},
                       {"decoder_ffn_dim", marian ? 4096 : 10240},
                       {"decoder_start_token_id", marian ? 58100 : 1},
                       {"eos_token_id", marian ? 0 : 2},
                       {"is_encoder_decoder", true},
                       {"tie_word_embeddings", true},
                       {"vocab_size", marian ? 58101 : 8008}},
          .fixed = {{"add_cross_attention", {false, true}},
                    {"normalize_before", {true}},  // Blenderbot, in old files
                    {"add_final_layer_norm", {true}},
                    {"normalize_embedding", {false}},
                    {"static_position_embeddings", {marian}},
                    {"extra_pos_embeddings", {0}},
                    {"force_bos_token_to_be_generated", {false}},
                    {"add_bias_logits", {false}}},
          .without_effect = {"encoder_layerdrop", "decoder_layerdrop", "layerdrop",
                             "num_hidden_layers", "hidden_size", "bos_token_id",
                             "classifier_dropout", "classif_dropout", "is_decoder",
                             "do_blenderbot_90_layernorm", "layernorm_variant", "unk_token_id"},
          .extra = {{"model.encoder.embed_tokens.weight", "model.shared.weight"},
                    {"model.decoder.embed_tokens.weight", "model.shared.weight"},
                    {"lm_head.weight", "model.shared.weight"}},
          .adapt =
              [](ImportJson& foreign, ImportJson& own, const std::string& where) {
                own["model"]["activation"] = own_activation(foreign["activation_function"], where);
                rename_activation(foreign["activation_function"]);
                if (own["model"]["norm"] == "post" &&
                    foreign.value("decoder_vocab_size", ImportJson()).is_null())
                  foreign["decoder_vocab_size"] = foreign["vocab_size"];
              },
          .is_zero = [](const ImportJson&,
                        const std::string& tensor) { return tensor == "final_logits_bias"; },
          .sinusoids = marian};
}

/// T5 v1.1, whose output matrix is not that of the embeddings.
ImportClass t5_class() {
  return {
      .architecture = "T5ForConditionalGeneration",
      .aliases = {},
      .prefix = "",
      .own = {{"task", "seq2seq"},
              {"tokenizer", {{"shared", true}}},
              {"model",
               {{"positions", "relative_t5"},
                {"attention", {{"scale", "none"}}},
                {"norm", "pre"},
                {"norm_kind", "rms"},
                {"bias", false},
                {"tie_output", false},
                {"scale_embeddings", false}}}},
      .rules = {{"d_model", "model.d_model", 512},
                {"d_ff", "model.d_ff", 2048},
                {"num_layers", "model.layers.encoder", 6},
                {"num_decoder_layers", "model.layers.decoder", nullptr},
                {"num_heads", "model.heads", 8},
                {"relative_attention_num_buckets", "model.t5_buckets", 32},
                {"relative_attention_max_distance", "model.t5_distance", 128},
                {"layer_norm_epsilon", "model.norm_eps", 1e-6},
                {"dropout_rate", "model.dropout", 0.1}},
      .defaults = {{"d_kv", 64},
                   {"feed_forward_proj", "relu"},
                   {"decoder_start_token_id", 0},
                   {"eos_token_id", 1},
                   {"is_encoder_decoder", true},
                   {"tie_word_embeddings", true},
                   {"vocab_size", 32128}},
      .fixed = {},
      .without_effect = {"dense_act_fn", "is_gated_act", "n_positions", "initializer_factor",
                         "classifier_dropout", "output_past", "bos_token_id", "num_hidden_layers",
                         "hidden_size", "num_attention_heads", "head_dim", "is_decoder"},
      .extra = {{"*coder.embed_tokens.weight", "shared.weight"},
                {"decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight", ""}},
      .adapt =
          [](ImportJson& foreign, ImportJson& own, const std::string& where) {
            constexpr std::pair<std::string_view, const char*> names[] = {
                {"gated-gelu", "geglu_tanh"},
                {"gated-gelu_new", "geglu_tanh"},
                {"gated-gelu_python", "geglu"},
                {"gated-silu", "swiglu"},
                {"relu", "relu"}};
            const ImportJson feed_forward = foreign["feed_forward_proj"];
            for (const auto& [theirs, ours] : names)
              if (feed_forward == theirs) own["model"]["activation"] = ours;
            if (!own["model"].contains("activation"))
              throw Error(Exit::bad_input, "{}: heed does not have the feed_forward_proj {}", where,
                          shown(feed_forward.dump(), 60));
            // Files of transformers 5 say with this key that the output matrix is separate.
            if (foreign.value("scale_decoder_outputs", ImportJson()) == false)
              foreign["tie_word_embeddings"] = false;
            if (feed_forward == "gated-gelu_new") foreign["feed_forward_proj"] = "gated-gelu";
            ImportJson& layers = foreign["num_decoder_layers"];
            if (layers.is_null()) layers = foreign["num_layers"];
          },
      .is_zero = no_zeros};
}

/// BERT with its masked-language head. The special tokens around a text are those of the tokenizer.
ImportClass bert_class() {
  return {.architecture = "BertForMaskedLM",
          .aliases = {},
          .prefix = "bert.",
          .own = {{"task", "mlm"},
                  {"model",
                   {{"positions", "learned"},
                    {"norm", "post"},
                    {"final_norm", false},
                    {"norm_kind", "layer"},
                    {"embedding_norm", true},
                    {"head_transform", true},
                    {"output_bias", true},
                    {"scale_embeddings", false},
                    {"dropout", {{"activation", 0}}}}}},
          .rules = {{"hidden_size", "model.d_model", 768},
                    {"intermediate_size", "model.d_ff", 3072},
                    {"num_hidden_layers", "model.layers.encoder", 12},
                    {"num_attention_heads", "model.heads", 12},
                    {"max_position_embeddings", "model.max_positions", 512},
                    {"layer_norm_eps", "model.norm_eps", 1e-12},
                    {"hidden_dropout_prob", "model.dropout.residual", 0.1},
                    {"attention_probs_dropout_prob", "model.dropout.attention", 0.1}},
          .defaults = {{"hidden_act", "gelu"},
                       {"type_vocab_size", 2},
                       {"tie_word_embeddings", true},
                       {"vocab_size", 30522}},
          .fixed = {{"position_embedding_type", {"absolute"}},
                    {"add_cross_attention", {false}},
                    {"is_decoder", {false}}},
          .without_effect = {"classifier_dropout", "bos_token_id", "eos_token_id"},
          .extra = {{"bert.embeddings.position_ids", ""},
                    {"cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"},
                    {"cls.predictions.decoder.bias", "cls.predictions.bias"}},
          .adapt =
              [](ImportJson& foreign, ImportJson& own, const std::string& where) {
                own["model"]["activation"] = own_activation(foreign["hidden_act"], where);
                rename_activation(foreign["hidden_act"]);
                // Two segment embeddings belong to pairs of lines.
                own["data"]["mask"]["next_sentence"] = foreign["type_vocab_size"] == 2;
              },
          .is_zero = no_zeros};
}

const std::vector<ImportClass>& all_classes() {
  static const std::vector<ImportClass> all{gpt2_class(),
                                            llama_class(),
                                            bart_class("MarianMTModel", "post"),
                                            bart_class("BlenderbotForConditionalGeneration", "pre"),
                                            t5_class(),
                                            bert_class()};
  return all;
}

template <class Names>
bool contains(const Names& names, const std::string& name) {
  return std::ranges::any_of(names, [&](const char* each) { return name == each; });
}

}  // namespace

const ImportClass& import_class(const ImportJson& config, const std::string& where) {
  const ImportJson names = config.value("architectures", ImportJson());
  const bool one = names.is_array() && names.size() == 1 && names[0].is_string();
  const std::string name = one ? names[0].get<std::string>() : "";
  std::string known;
  for (const ImportClass& each : all_classes()) {
    if (name == each.architecture || contains(each.aliases, name)) return each;
    known += (known.empty() ? "" : ", ") + std::string(each.architecture);
    for (const char* const alias : each.aliases) known += fmt::format(", {}", alias);
  }
  throw Error(Exit::bad_input, "{}: \"architectures\" is {}; heed imports one of {}", where,
              shown(names.dump(), 100), known);
}

void require_honoured(const ImportClass& about, const ImportJson& foreign,
                      const ImportJson& described, const std::string& where) {
  const auto refuse = [&](const std::string& key, const std::string& what) {
    throw Error(Exit::bad_input, "{}: \"{}\" is {}{}", where, shown(key),
                shown(foreign.value(key, ImportJson()).dump(), 80), what);
  };
  for (const auto& [key, value] : foreign.items()) {
    if (contains(never_effective, key) || contains(about.without_effect, key)) continue;
    const auto fixed =
        std::ranges::find_if(about.fixed, [&key = key](const auto& f) { return key == f.first; });
    if (fixed != about.fixed.end()) {
      if (std::ranges::find(fixed->second, value) == fixed->second.end())
        refuse(key, ", which heed does not have");
      continue;
    }
    const auto own = described.find(key);
    if (own == described.end()) refuse(key, ", a key that heed does not know");
    if (*own != value) refuse(key, fmt::format("; heed has {} here", shown(own->dump(), 80)));
  }
}

HEED_END
