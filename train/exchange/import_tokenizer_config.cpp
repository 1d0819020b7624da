#include <algorithm>
#include <array>

#include "autograd/base/error.h"
#include "autograd/io/message_text.h"
#include "data/tokenizers/word_model.h"
#include "train/exchange/import_parts.h"

HEED_BEGIN

namespace {

/// The pattern of Qwen2Tokenizer.
constexpr const char* qwen2_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

/// A value that a class computes: where it is in tokenizer.json, the key of tokenizer_config.json that
/// sets it ("": none), and its value without this key.
struct ClassRule {
  const char *pointer, *key;
  nlohmann::json value;
};

const std::vector<ClassRule>* rules_of(const std::string& name) {
  static const std::vector<ClassRule> none,
      bert{{"/model/type", "", "WordPiece"},
           {"/model/continuing_subword_prefix", "", "##"},
           {"/model/max_input_chars_per_word", "", 100},
           {"/normalizer/type", "", "BertNormalizer"},
           {"/normalizer/clean_text", "", true},
           {"/normalizer/lowercase", "do_lower_case", true},
           {"/normalizer/strip_accents", "strip_accents", nullptr},
           {"/normalizer/handle_chinese_chars", "tokenize_chinese_chars", true},
           {"/pre_tokenizer/type", "", "BertPreTokenizer"}},
      gpt2{{"/model/type", "", "BPE"},
           {"/normalizer", "", nullptr},
           {"/pre_tokenizer/type", "", "ByteLevel"},
           {"/pre_tokenizer/add_prefix_space", "add_prefix_space", false}},
      qwen2{{"/model/type", "", "BPE"},
            {"/normalizer/type", "", "NFC"},
            {"/pre_tokenizer/pretokenizers/0/pattern/Regex", "", qwen2_pattern},
            {"/pre_tokenizer/pretokenizers/1/type", "", "ByteLevel"}};
  if (name == "BertTokenizer") return &bert;
  if (name == "GPT2Tokenizer") return &gpt2;
  if (name == "Qwen2Tokenizer") return &qwen2;
  const bool reads_only =
      name.empty() || name == "PreTrainedTokenizer" || name == "TokenizersBackend";
  return reads_only ? &none : nullptr;
}

/// Whether two descriptions of a token have different flags.
bool flags_differ(const nlohmann::json& a, const nlohmann::json& b) {
  return std::ranges::any_of(
      std::array{"/lstrip", "/rstrip", "/normalized", "/single_word", "/special"},
      [&](const char* flag) {
        const nlohmann::json x = value_at(a, flag), y = value_at(b, flag);
        return !x.is_null() && !y.is_null() && x != y;
      });
}

}  // namespace

void require_fixed(const nlohmann::json& config, const FixedValues& fixed,
                   const std::string& where) {
  for (const auto& [key, values] : fixed)
    if (const nlohmann::json value = config.value(key, nlohmann::json());
        std::ranges::find(values, value) == values.end())
      throw Error(Exit::bad_input, "{}: {} is {}, which heed does not support", where, key,
                  shown(value.dump(), 80));
}

std::string TokenizerConfig::class_name() const {
  const nlohmann::json given = json.value("tokenizer_class", nlohmann::json());
  if (given.is_null())
    return model_type == "bert"    ? "BertTokenizer"
           : model_type == "gpt2"  ? "GPT2Tokenizer"
           : model_type == "qwen2" ? "Qwen2Tokenizer"
                                   : "";
  std::string name = given.is_string() ? given.get<std::string>() : given.dump();
  if (name.ends_with("Fast")) name.resize(name.size() - 4);
  return name;
}

void TokenizerConfig::require_tokens_in(const nlohmann::json& tokenizer) const {
  const nlohmann::json tokens = value_at(tokenizer, "/added_tokens"),
                       vocabulary = value_at(tokenizer, "/model/vocab"),
                       added = json.value("added_tokens_decoder", nlohmann::json::object());
  if (!added.is_object())
    throw Error(Exit::bad_input, "{}: added_tokens_decoder is not an object", where);
  for (const auto& [id, token] : added.items()) {
    const nlohmann::json content = value_at(token, "/content");
    const auto listed = std::ranges::find_if(tokens, [&, &id = id](const nlohmann::json& each) {
      return value_at(each, "/content") == content && value_at(each, "/id").dump() == id;
    });
    const bool in_vocabulary =
        content.is_string() && vocabulary.is_object() &&
        vocabulary.value(content.get<std::string>(), nlohmann::json()).dump() == id;
    if (listed == tokens.end() && !in_vocabulary)
      throw Error(Exit::bad_input, "{}: the added token {} with the id {} is not in tokenizer.json",
                  where, shown(content.dump(), 60), shown(id, 20));
    if (listed != tokens.end() && flags_differ(token, *listed))
      throw Error(Exit::bad_input, "{}: the added token {} has other flags in tokenizer.json",
                  where, shown(content.dump(), 60));
  }
}

void TokenizerConfig::require_class_of(const nlohmann::json& tokenizer) const {
  const std::string name = class_name();
  const std::vector<ClassRule>* const rules = rules_of(name);
  if (rules == nullptr)
    throw Error(Exit::bad_input,
                "{}: tokenizer_class is {}; beside tokenizer.json, heed knows BertTokenizer, "
                "GPT2Tokenizer, Qwen2Tokenizer and PreTrainedTokenizerFast",
                where, shown(name, 60));
  for (const ClassRule& rule : *rules) {
    const bool set = *rule.key != '\0' && json.contains(rule.key);
    const nlohmann::json& value = set ? json[rule.key] : rule.value;
    const nlohmann::json there = value_at(tokenizer, rule.pointer);
    if (value != there)
      throw Error(Exit::bad_input, "{}: {} has {}{} at {}, but tokenizer.json has {}", where, name,
                  set ? std::string(rule.key) + " " : "", shown(value.dump(), 100), rule.pointer,
                  shown(there.dump(), 100));
  }
}

TokenizerConfig read_tokenizer_config(const std::filesystem::path& folder) {
  const auto read = [&](const char* name) {
    return path_exists(folder / name) ? read_json(folder, name, largest_tokenizer)
                                      : nlohmann::json::object();
  };
  TokenizerConfig config{read(tokenizer_config_name), (folder / tokenizer_config_name).string(),
                         ""};
  if (const nlohmann::json type = read("config.json").value("model_type", nlohmann::json());
      type.is_string())
    config.model_type = type;
  const nlohmann::json added = read("added_tokens.json");
  for (const auto& [token, id] : added.items()) {
    nlohmann::json& decoder = config.json["added_tokens_decoder"];
    if (decoder.is_null() || (decoder.is_object() && !decoder.contains(id.dump())))
      decoder[id.dump()] = {{"content", token}};
  }
  return config;
}

HEED_END
