#include "train/exchange/huggingface/model_class.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "autograd/base/error.h"
#include "autograd/io/message_text.h"
#include "nn/options.h"
#include "train/config/tasks.h"

HEED_BEGIN

const NamePairs activation_names{
    {"relu", "relu"},          {"gelu", "gelu"},           {"gelu_tanh", "gelu_pytorch_tanh"},
    {"gelu_tanh", "gelu_new"}, {"gelu_tanh", "gelu_fast"}, {"silu", "silu"},
    {"silu", "swish"},         {"sigmoid", "sigmoid"},     {"tanh", "tanh"}};
const NamePairs gate_names{{"swiglu", "silu"},
                           {"swiglu", "swish"},
                           {"geglu", "gelu"},
                           {"geglu_tanh", "gelu_pytorch_tanh"},
                           {"geglu_tanh", "gelu_new"}};

namespace {

/// Keys of all classes without effect on the function: names, training, outputs, and the search, whose
/// options transformers reads from generation_config.json.
constexpr std::string_view never_effective =
    "architectures model_type dtype torch_dtype transformers_version "
    "_name_or_path _attn_implementation_autoset attn_implementation use_cache "
    "pad_token_id id2label label2id task_specific_params return_dict "
    "output_attentions output_hidden_states torchscript problem_type "
    "tokenizer_class prefix finetuning_task initializer_range init_std "
    "gradient_checkpointing chunk_size_feed_forward max_length min_length "
    "do_sample early_stopping num_beams num_beam_groups diversity_penalty "
    "temperature top_k top_p typical_p repetition_penalty length_penalty "
    "no_repeat_ngram_size encoder_no_repeat_ngram_size bad_words_ids "
    "num_return_sequences output_scores return_dict_in_generate "
    "forced_bos_token_id forced_eos_token_id remove_invalid_values "
    "exponential_decay_length_penalty suppress_tokens begin_suppress_tokens "
    "sep_token_id";

bool contains_word(std::string_view words, std::string_view word) {
  return fmt::format(" {} ", words).find(fmt::format(" {} ", word)) != std::string::npos;
}

/// The element at a dotted key, such as model.layers.encoder.
nlohmann::json::json_pointer pointer_to(std::string key) {
  std::ranges::replace(key, '.', '/');
  return nlohmann::json::json_pointer("/" + key);
}

/// null for a piece that the vocabulary lacks.
Json id_or_null(std::int32_t id) { return id < 0 ? Json(nullptr) : Json(id); }

void add_ids(Json& to, const SpecialIds& ids) {
  to.update({{"bos_token_id", id_or_null(ids.bos)},
             {"eos_token_id", id_or_null(ids.eos)},
             {"pad_token_id", id_or_null(ids.eos)}});  // masks say which tokens are read
}

/// generation_config.json of a class that writes text.
Json generation_config(const ModelSource& source) {
  Json suppressed = Json::array();  // the pieces that heed's search excludes
  for (const std::int32_t id : {source.ids.unk, source.ids.bos})
    if (id >= 0 && id != source.ids.eos) suppressed.push_back(id);
  Json all;
  add_ids(all, source.ids);
  all.update({{"suppress_tokens", suppressed},
              {"do_sample", false},
              {"num_beams", 1},
              {"repetition_penalty", source.config.decode.repetition_penalty},
              {"min_new_tokens", source.config.decode.min_length}});
  return all;
}

}  // namespace

std::string output_bias_obstacle(const ModelSource& source) {
  return source.output_bias() ? "the output projection has a bias (train with model.output_bias: "
                                "false, or with tie_embeddings: true)"
                              : "";
}

bool output_is_table(const ModelSource& source) {
  return output_is_tied(source.model) && source.embedding_factor() == 1;
}

void add_table_and_output(PartList& list, const ModelSource& source, const std::string& table,
                          const std::string& output) {
  const char* const own = "embedding.weight";
  list.add({.foreign = table, .own = own, .factor = source.embedding_factor()});
  if (!output_is_table(source))
    list.add({.foreign = output, .own = output_is_tied(source.model) ? own : "output.weight"});
}

void complete_pairs(const ModelSource& source, HuggingFaceModel& model) {
  for (Json* const config : {&model.config, &model.generation_config})
    config->update({{"decoder_start_token_id", source.ids.bos}, {"forced_eos_token_id", nullptr}});
}

const std::vector<ModelClass>& model_classes() {
  static const std::vector<ModelClass> all = [] {
    std::vector<ModelClass> classes;
    for (const auto add :
         {add_gpt_classes, add_bart_classes, add_t5_classes, add_bert_classes, add_image_classes})
      add(classes);
    return classes;
  }();
  return all;
}

HuggingFaceModel described(const ModelClass& about, const ModelSource& source) {
  HuggingFaceModel model{about.name,
                         {{"architectures", {about.name}},
                          {"model_type", about.type},
                          {"dtype", "float32"},
                          {"torch_dtype", "float32"}},
                         {},
                         {}};
  const bool writes = has_decoder(about.architecture);
  if (source.config.data.input == InputKind::text || writes) {
    model.config["vocab_size"] = writes ? source.vocabulary.target : source.vocabulary.source;
    add_ids(model.config, source.ids);
    model.config["use_cache"] = true;
  }
  if (writes) model.generation_config = generation_config(source);
  if (!about.constants.is_null()) model.config.update(about.constants);
  const nlohmann::json own = config_json(source.config);
  for (const ClassKey& key : about.keys) {
    if (*key.own == '\0') continue;
    nlohmann::json value = own.at(pointer_to(key.own));
    if (key.names != nullptr) {
      const auto name = std::ranges::find(*key.names, value.get<std::string>(),
                                          [](const auto& pair) { return pair.first; });
      if (name != key.names->end()) value = name->second;
    }
    model.config[key.foreign] = value;
  }
  if (about.complete != nullptr) about.complete(source, model);
  return model;
}

namespace {

/// "model_type" of a class: an alias, such as Qwen2ForCausalLM, has its own, qwen2.
std::string type_of(const ModelClass& about, const std::string& name) {
  if (name == about.name) return about.type;
  std::string type = name.substr(0, name.find("For"));
  std::ranges::transform(type, type.begin(), [](unsigned char c) { return std::tolower(c); });
  return type;
}

}  // namespace

const ModelClass& imported_class(const nlohmann::json& config, const std::string& where) {
  const nlohmann::json names = config.value("architectures", nlohmann::json());
  const bool one = names.is_array() && names.size() == 1 && names[0].is_string();
  const std::string name = one ? names[0].get<std::string>() : "";
  std::vector<std::string> known;
  for (const ModelClass& each : model_classes()) {
    if (each.prefix == nullptr) continue;
    known.emplace_back(each.name);
    known.insert(known.end(), each.aliases.begin(), each.aliases.end());
    if (std::ranges::find(known, name) == known.end()) continue;
    const std::string type = type_of(each, name);
    if (const nlohmann::json given = config.value("model_type", nlohmann::json(type));
        given != type)
      throw Error(Exit::bad_input, "{}: \"model_type\" is {}, but that of {} is \"{}\"", where,
                  shown(given.dump(), 60), name, type);
    return each;
  }
  throw Error(Exit::bad_input, "{}: \"architectures\" is {}; heed imports one of {}", where,
              shown(names.dump(), 100), fmt::join(known, ", "));
}

namespace {

[[noreturn]] void refuse_key(const nlohmann::json& foreign, const std::string& key,
                             const std::string& where, const std::string& what) {
  throw Error(Exit::bad_input, "{}: \"{}\" is {}{}", where, shown(key),
              shown(foreign.value(key, nlohmann::json()).dump(), 80), what);
}

/// heed's value of a key. A name becomes the first one of those with its meaning, so that it can be
/// compared.
nlohmann::json own_value(const ClassKey& key, nlohmann::json& foreign, const std::string& where) {
  nlohmann::json& value = foreign[key.foreign];
  if (key.names == nullptr) return value;
  const auto meaning = std::ranges::find_if(
      *key.names, [&](const auto& pair) { return value == std::string(pair.second); });
  if (meaning == key.names->end())
    refuse_key(foreign, key.foreign, where, ", which heed does not support");
  const auto first = std::ranges::find_if(
      *key.names, [&](const auto& pair) { return pair.first == meaning->first; });
  value = std::string(first->second);
  return std::string(meaning->first);
}

}  // namespace

nlohmann::json own_config(const ModelClass& about, nlohmann::json& foreign,
                          const std::string& where) {
  for (const ClassKey& key : about.keys) {
    const auto found = foreign.find(key.foreign);
    if (found == foreign.end() || (found->is_null() && *key.own != '\0'))
      foreign[key.foreign] = key.otherwise;
  }
  nlohmann::json own;
  for (const Requirement& need : about.requirements)
    own[pointer_to(need.key)] = need.values.front();
  own.merge_patch(about.own);
  if (about.adapt != nullptr) about.adapt(foreign, own, where);
  for (const ClassKey& key : about.keys)
    if (*key.own != '\0') own[pointer_to(key.own)] = own_value(key, foreign, where);
  return own;
}

void require_honoured(const ModelClass& about, const nlohmann::json& foreign,
                      const nlohmann::json& described, const std::string& where) {
  for (const auto& [key, value] : foreign.items()) {
    if (contains_word(never_effective, key) || contains_word(about.without_effect, key)) continue;
    const auto fixed =
        std::ranges::find_if(about.fixed, [&key = key](const auto& f) { return key == f.first; });
    if (fixed != about.fixed.end()) {
      if (std::ranges::find(fixed->second, Json(value)) == fixed->second.end())
        refuse_key(foreign, key, where, ", which heed does not support");
      continue;
    }
    const auto own = described.find(key);
    if (own == described.end()) refuse_key(foreign, key, where, ", a key that heed does not know");
    if (*own != value)
      refuse_key(foreign, key, where, fmt::format("; heed has {} here", shown(own->dump(), 80)));
  }
}

HEED_END
