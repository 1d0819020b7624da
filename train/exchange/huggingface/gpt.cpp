#include "train/exchange/huggingface/model_class.h"

#include "autograd/base/error.h"
#include "autograd/io/message_text.h"
#include "nn/options.h"

HEED_BEGIN

namespace {

PartList gpt2_parts(const ModelSource& source) {
  PartList list(source, {.transposed = true, .zero_biases = true});
  add_table_and_output(list, source, "transformer.wte.weight", "lm_head.weight");
  list.positions("transformer.wpe.weight", "positions.weight", source.model.context);
  list.blocks("transformer.h.{}.", "decoder", source.model.decoder_layers,
              {.norm1 = "ln_1",
               .self = {.q = "attn.c_attn", .out = "attn.c_proj"},
               .last_norm = "ln_2",
               .linear1 = "mlp.c_fc",
               .linear2 = "mlp.c_proj"});
  list.norm("transformer.ln_f", "decoder.norm");
  return list;
}

void complete_language_model(const ModelSource& source, HuggingFaceModel& model) {
  model.config["tie_word_embeddings"] = output_is_table(source);
  model.generation_config["max_length"] = source.model.context;
}

void adapt_language_model(const nlohmann::json& foreign, nlohmann::json& own) {
  own["task"] = "lm";
  own["model"]["tie_embeddings"] = foreign["tie_word_embeddings"] != false;
  own["model"]["scale_embeddings"] = own["model"]["output_bias"] = false;
}

/// GPT-2 (Radford et al. 2019).
ModelClass gpt2_class() {
  return {.name = "GPT2LMHeadModel",
          .type = "gpt2",
          .architecture = Architecture::decoder,
          .requirements = with_common({{"model.positions", {"learned", "sinusoidal", "none"}},
                                       {"model.norm", {"pre"}},
                                       {"model.final_norm", {true}},
                                       {"model.norm_kind", {"layer"}},
                                       {"model.activation", ungated_activations()},
                                       {"model.attention.kv_heads", {0}},
                                       {"model.memory", {0}}}),
          .keys = {{"n_positions", "model.context", 1024},
                   {"n_embd", "model.d_model", 768},
                   {"n_layer", "model.layers.decoder", 12},
                   {"n_head", "model.heads", 12},
                   {"n_inner", "model.d_ff"},
                   {"activation_function", "model.activation", "gelu_new", &activation_names},
                   {"layer_norm_epsilon", "model.norm_eps", 1e-5},
                   {"embd_pdrop", "model.dropout.residual", 0.1},
                   {"resid_pdrop", "model.dropout.residual", 0.1},
                   {"attn_pdrop", "model.dropout.attention", 0.1},
                   {"bos_token_id", "", 50256},
                   {"eos_token_id", "", 50256},
                   {"tie_word_embeddings", "", true},
                   {"vocab_size", "", 50257}},
          .parts = gpt2_parts,
          .complete = complete_language_model,
          .obstacle = output_bias_obstacle,
          .prefix = "transformer.",
          .own = {{"model", {{"dropout", {{"activation", 0}}}}}},
          .fixed = {{"scale_attn_weights", {true}},
                    {"scale_attn_by_inverse_layer_idx", {false}},
                    {"add_cross_attention", {false}}},
          .without_effect =
              "reorder_and_upcast_attn summary_activation summary_first_dropout "
              "summary_proj_to_labels summary_type summary_use_proj",
          .extra = {{"transformer.h.*.attn.bias", ""},  // the causal mask
                    {"transformer.h.*.attn.masked_bias", ""},
                    {"lm_head.weight", "transformer.wte.weight"}},
          .adapt = [](nlohmann::json& foreign, nlohmann::json& own, const std::string& where) {
            adapt_language_model(foreign, own);
            own["model"]["max_positions"] = foreign["n_positions"];
            nlohmann::json& inner = foreign["n_inner"];
            if (inner.is_null() && foreign["n_embd"].is_number_unsigned())
              inner = 4 * foreign["n_embd"].get<std::uint64_t>();
            if (const auto window = foreign.find("n_ctx"); window != foreign.end()) {
              if (*window != foreign["n_positions"])
                throw Error(Exit::bad_input, "{}: n_ctx differs from n_positions", where);
              foreign.erase(window);
            }
          }};
}

PartList llama_parts(const ModelSource& source) {
  PartList list(source);
  add_table_and_output(list, source, "model.embed_tokens.weight", "lm_head.weight");
  list.blocks(
      "model.layers.{}.", "decoder", source.model.decoder_layers,
      {.norm1 = "input_layernorm",
       .self = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj"},
       .last_norm = "post_attention_layernorm",
       .gate = "mlp.gate_proj",
       .linear1 = "mlp.up_proj",
       .linear2 = "mlp.down_proj"});
  list.norm("model.norm", "decoder.norm");
  return list;
}

void complete_llama(const ModelSource& source, HuggingFaceModel& model) {
  const ModelOptions& o = source.model;
  complete_language_model(source, model);
  model.config.update(
      {{"head_dim", o.d_model / o.heads},
       {"num_key_value_heads", source.kv_heads()},
       {"attention_bias", o.bias},
       {"mlp_bias", o.bias},
       {"rope_parameters", {{"rope_theta", o.rotary_base}, {"rope_type", "default"}}}});
}

/// The base of rotary positions, which transformers 5 writes into "rope_parameters".
void adapt_rotary(nlohmann::json& foreign, const std::string& where) {
  const auto refuse = [&](const std::string& what) {
    throw Error(Exit::bad_input, "{}: {}, which heed does not support", where, what);
  };
  const nlohmann::json scaling = foreign.value("rope_scaling", nlohmann::json());
  if (!scaling.is_null() && scaling != nlohmann::json{{"rope_type", "default"}} &&
      scaling != nlohmann::json{{"type", "default"}})
    refuse(fmt::format("rope_scaling is {}", shown(scaling.dump(), 80)));
  foreign.erase("rope_scaling");
  nlohmann::json base = foreign.value("rope_theta", nlohmann::json());
  if (const nlohmann::json parameters = foreign.value("rope_parameters", nlohmann::json());
      !parameters.is_null()) {
    if (!parameters.is_object()) refuse("rope_parameters is not an object");
    if (const nlohmann::json type = parameters.value("rope_type", nlohmann::json("default"));
        type != "default")
      refuse(fmt::format("rope_parameters: rope_type is {}", shown(type.dump(), 80)));
    for (const auto& [key, value] : parameters.items()) {
      if (key == "rope_type") continue;
      if (key != "rope_theta")
        refuse(fmt::format("rope_parameters: {} is {}", shown(key), shown(value.dump(), 80)));
      if (!base.is_null() && base != value)
        throw Error(Exit::bad_input, "{}: rope_theta is {}, but {} in rope_parameters", where,
                    shown(base.dump(), 80), shown(value.dump(), 80));
      base = value;
    }
  }
  if (base.is_null()) base = 10000.0;
  foreign["rope_theta"] = base;
  foreign["rope_parameters"] = {{"rope_theta", base}, {"rope_type", "default"}};
}

bool is_qwen2(const nlohmann::json& foreign) {
  return foreign.value("model_type", nlohmann::json()) == "qwen2";
}

void adapt_llama(nlohmann::json& foreign, nlohmann::json& own, const std::string& where) {
  adapt_language_model(foreign, own);
  adapt_rotary(foreign, where);
  nlohmann::json& kv_heads = foreign["num_key_value_heads"];
  if (kv_heads.is_null()) kv_heads = foreign["num_attention_heads"];
  const nlohmann::json &width = foreign["hidden_size"], &heads = foreign["num_attention_heads"];
  if (foreign.value("head_dim", nlohmann::json()).is_null() && width.is_number_unsigned() &&
      heads.is_number_unsigned() && heads != 0)
    foreign["head_dim"] = width.get<std::uint64_t>() / heads.get<std::uint64_t>();
  // A window has no effect if it does not apply or contains all positions.
  const nlohmann::json window = foreign.value("sliding_window", nlohmann::json());
  if (foreign.value("use_sliding_window", nlohmann::json()) == false ||
      (window.is_number() && window >= foreign["max_position_embeddings"]))
    foreign["sliding_window"] = nullptr;
  for (const nlohmann::json& type : foreign.value("layer_types", nlohmann::json::array()))
    if (type != "full_attention")
      throw Error(Exit::bad_input, "{}: layer_types: {} is not full_attention", where,
                  shown(type.dump(), 60));
  if (foreign.value("attention_bias", nlohmann::json()).is_null())
    foreign["attention_bias"] = is_qwen2(foreign);
  if (foreign.value("mlp_bias", nlohmann::json()).is_null()) foreign["mlp_bias"] = false;
  own["model"]["bias"] = foreign["attention_bias"] == true || foreign["mlp_bias"] == true;
}

/// Llama (Touvron et al. 2023).
ModelClass llama_class() {
  return {
      .name = "LlamaForCausalLM",
      .type = "llama",
      .architecture = Architecture::decoder,
      .requirements = with_common({{"model.positions", {"rotary"}},
                                   {"model.rotary_pairs", {"halves"}},
                                   {"model.norm", {"pre"}},
                                   {"model.final_norm", {true}},
                                   {"model.norm_kind", {"rms"}},
                                   {"model.activation", {"swiglu", "geglu", "geglu_tanh"}},
                                   {"model.memory", {0}}}),
      .keys = {{"hidden_size", "model.d_model", 4096},
               {"intermediate_size", "model.d_ff", 11008},
               {"num_hidden_layers", "model.layers.decoder", 32},
               {"num_attention_heads", "model.heads", 32},
               {"num_key_value_heads", "model.attention.kv_heads"},
               {"hidden_act", "model.activation", "silu", &gate_names},
               {"max_position_embeddings", "model.context", 2048},
               {"rms_norm_eps", "model.norm_eps", 1e-6},
               {"rope_theta", "model.rotary_base"},
               {"attention_dropout", "model.dropout.attention", 0.0},
               {"bos_token_id", "", 1},
               {"eos_token_id", "", 2},
               {"tie_word_embeddings", "", false},
               {"vocab_size", "", 32000}},
      .parts = llama_parts,
      .complete = complete_llama,
      .obstacle = output_bias_obstacle,
      .prefix = "model.",
      .aliases = {{"MistralForCausalLM",
                   {{"intermediate_size", 14336},
                    {"num_key_value_heads", 8},
                    {"max_position_embeddings", 131072},
                    {"sliding_window", 4096}}},
                  {"Qwen2ForCausalLM",
                   {{"vocab_size", 151936},
                    {"intermediate_size", 22016},
                    {"num_key_value_heads", 32},
                    {"max_position_embeddings", 32768},
                    {"use_sliding_window", false},
                    {"bos_token_id", nullptr},
                    {"eos_token_id", nullptr}}}},
      .own = {{"model", {{"dropout", {{"residual", 0}, {"activation", 0}}}}}},
      .fixed = {{"attention_bias", {true, false}},
                {"mlp_bias", {true, false}},
                {"sliding_window", {nullptr}},
                {"rope_interleaved", {false}},
                {"use_mrope", {false}},
                {"use_sliding_window", {false}}},
      .without_effect = "pretraining_tp layer_types max_window_layers is_decoder is_llama_config",
      .extra = {{"model.layers.*.self_attn.rotary_emb.inv_freq", ""},
                {"lm_head.weight", "model.embed_tokens.weight"}},
      .adapt = adapt_llama,
      // heed's biases are zero where a model has only some. Qwen2 has those of q, k and v.
      .lacks = [](const nlohmann::json& foreign, const std::string& tensor) {
        if (!tensor.ends_with(".bias")) return false;
        if (tensor.find(".mlp.") != std::string::npos) return foreign["mlp_bias"] == false;
        return foreign["attention_bias"] == false ||
               (is_qwen2(foreign) && tensor.ends_with(".o_proj.bias"));
      }};
}

}  // namespace

void add_gpt_classes(std::vector<ModelClass>& classes) {
  classes.push_back(gpt2_class());
  classes.push_back(llama_class());
}

HEED_END
