#include <fmt/format.h>

#include <algorithm>

#include "autograd/base/error.h"
#include "autograd/io/formats/json_fields.h"
#include "autograd/io/formats/json_text.h"
#include "autograd/io/message_text.h"
#include "data/tokenizers/word_model.h"
#include "train/exchange/import_parts.h"
#include "train/exchange/tokenizer_json.h"

HEED_BEGIN

namespace {

namespace fs = std::filesystem;

constexpr const char* json_name = "tokenizer.json";

// ---- the tokenizers that heed exports: inverses of tokenizer_json ----------------------------------

/// The contents of the added tokens that are special, from id 3 on.
std::vector<std::string> further_specials(const nlohmann::json& json) {
  std::vector<std::string> names;
  for (const nlohmann::json& token : value_at(json, "/added_tokens")) {
    const nlohmann::json id = value_at(token, "/id"), name = value_at(token, "/content");
    if (value_at(token, "/special") == true && id.is_number_unsigned() && id == 3 + names.size() &&
        name.is_string())
      names.push_back(name.get<std::string>());
  }
  return names;
}

std::unique_ptr<Tokenizer> plain_vocabulary(TokenizerKind kind, const nlohmann::json& json,
                                            const std::string& where) {
  std::vector<std::string> pieces = pieces_by_id(value_at(json, "/model/vocab"), where);
  const std::vector<std::string> specials = further_specials(json);
  const std::size_t first = 3 + specials.size();
  if (pieces.size() <= first) throw Error(Exit::bad_input, "{}: there is no vocabulary", where);
  pieces.erase(pieces.begin(), pieces.begin() + static_cast<std::ptrdiff_t>(first));
  if (kind == TokenizerKind::bytes) {
    const std::vector<std::string>& characters = byte_characters();
    for (std::string& piece : pieces) {
      const auto byte = std::ranges::find(characters, piece);
      if (byte != characters.end())
        piece = std::string(1, static_cast<char>(byte - characters.begin()));
    }
  }
  return make_vocabulary(kind, specials, pieces, where);
}

/// The tokenizer of heed that tokenizer.json looks like; null if it looks like none.
std::unique_ptr<Tokenizer> own_kind(const nlohmann::json& json, const ImportedIds& ids,
                                    TextRole role, const std::string& where) {
  const nlohmann::json type = value_at(json, "/model/type"),
                       cut = value_at(json, "/pre_tokenizer/type");
  if (type == "WordLevel")
    return plain_vocabulary(cut == "Split" ? TokenizerKind::characters : TokenizerKind::words, json,
                            where);
  if (type == "BPE" && cut == "ByteLevel" && value_at(json, "/pre_tokenizer/use_regex") == false &&
      value_at(json, "/model/merges") == nlohmann::json::array())
    return plain_vocabulary(TokenizerKind::bytes, json, where);
  if (cut == "Metaspace" && (type == "BPE" || type == "Unigram"))
    return pieces_of_json(json, ids, role, where);
  return nullptr;
}

/// The first place where two values differ, as a JSON pointer.
std::string first_difference(const nlohmann::json& a, const nlohmann::json& b,
                             const std::string& at = "") {
  if (a.is_object() && b.is_object()) {
    for (const auto& [key, value] : a.items()) {
      const auto other = b.find(key);
      if (other == b.end()) return at + "/" + key;
      if (value != *other) return first_difference(value, *other, at + "/" + key);
    }
    for (const auto& [key, value] : b.items())
      if (!a.contains(key)) return at + "/" + key;
  }
  if (a.is_array() && b.is_array() && a.size() == b.size()) {
    for (std::size_t i = 0; i < a.size(); ++i)
      if (a[i] != b[i]) return first_difference(a[i], b[i], fmt::format("{}/{}", at, i));
  }
  return at;
}

/// A tokenizer of heed's own kinds, if the file is what heed would write for it. Null for other
/// kinds and, if the folder also contains a SentencePiece model, for a file that differs.
ReadTokenizer read_own(const nlohmann::json& json, const ImportedIds& ids, TextRole role,
                       bool has_model, const std::string& where) {
  ReadTokenizer read{own_kind(json, ids, role, where)};
  if (!read.tokenizer) return read;
  read.lowercase = value_at(json, "/normalizer/normalizers/0/type") == "Lowercase";
  const nlohmann::json written =
      tokenizer_json(*read.tokenizer, {.start_token = role == TextRole::labelled,
                                       .end_token = role != TextRole::continued,
                                       .lowercase = read.lowercase});
  if (written == json) return read;
  if (has_model) return {};
  throw Error(Exit::bad_input, "{}: heed has tokenizers of this kind, but with other values at {}",
              where, shown(first_difference(json, written), 100));
}

// ---- byte-level BPE and WordPiece ------------------------------------------------------------------

/// The special pieces that a post_processor puts around a text.
struct Around {
  std::vector<std::int64_t> before, after;
};

void add_template(JsonFields& step, Around& around) {
  const nlohmann::json& single = step.at("single");
  const nlohmann::json& tokens = step.at("special_tokens");
  step.at("pair");
  bool text = false;
  for (const nlohmann::json& each : single) {
    const nlohmann::json name = value_at(each, "/SpecialToken/id");
    if (!name.is_string()) {
      text = true;
      continue;
    }
    const nlohmann::json token = tokens.is_object()
                                     ? tokens.value(name.get<std::string>(), nlohmann::json())
                                     : nlohmann::json();
    for (const nlohmann::json& id : value_at(token, "/ids")) {
      if (!id.is_number_unsigned()) step.refuse("an id is not a whole number");
      (text ? around.after : around.before).push_back(id.get<std::int64_t>());
    }
  }
}

/// ["[SEP]", 102], for the processors of BERT and RoBERTa.
std::int64_t id_of_pair(JsonFields& step, const char* key) {
  const nlohmann::json& pair = step.at(key);
  if (!pair.is_array() || pair.size() != 2 || !pair[1].is_number_unsigned())
    step.refuse(fmt::format("\"{}\" must be a text with its id", key));
  return pair[1].get<std::int64_t>();
}

void add_around(const nlohmann::json& processor, const std::string& where, Around& around) {
  if (processor.is_null()) return;
  JsonFields step(processor, where + ": post_processor");
  const std::string type = step.text("type");
  if (type == "Sequence") {
    for (const nlohmann::json& each : step.at("processors")) add_around(each, where, around);
  } else if (type == "TemplateProcessing") {
    add_template(step, around);
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    around.before.push_back(id_of_pair(step, "cls"));
    around.after.push_back(id_of_pair(step, "sep"));
    step.at("trim_offsets");
    step.at("add_prefix_space");
  } else if (type == "ByteLevel") {
    for (const char* const key : {"add_prefix_space", "trim_offsets", "use_regex"}) step.at(key);
  } else {
    step.refuse(fmt::format("heed does not have the type \"{}\"", shown(type)));
  }
  step.done();
}

/// Throws Error(bad_input) unless the specials around a text are those that heed's tasks add.
void check_around(const nlohmann::json& json, ImportedIds& ids, TextRole role,
                  const std::string& where) {
  Around around;
  add_around(value_at(json, "/post_processor"), where, around);
  using Ids = std::vector<std::int64_t>;
  const Ids end{ids.special.eos}, start{ids.special.bos};
  if (role == TextRole::source && around.before.empty() && around.after == end) return;
  if (role == TextRole::labelled && around.before.size() == 1 && around.after.size() == 1 &&
      std::max(around.before[0], around.after[0]) < most_pieces) {
    ids.special.bos = static_cast<std::int32_t>(around.before[0]);
    ids.special.eos = static_cast<std::int32_t>(around.after[0]);
    return;
  }
  if (role == TextRole::continued && around.after.empty() &&
      (around.before.empty() || around.before == start)) {
    ids.starts_text = !around.before.empty();
    return;
  }
  throw Error(Exit::bad_input,
              "{}: post_processor: puts the ids [{}] before and [{}] after a text; heed puts {}",
              where, fmt::join(around.before, ", "), fmt::join(around.after, ", "),
              role == TextRole::source ? fmt::format("[{}] after it", ids.special.eos)
              : role == TextRole::labelled
                  ? "one before and one after it"
                  : fmt::format("nothing, or [{}] before it", ids.special.bos));
}

/// The lines of a file, without their ends.
std::vector<std::string> lines_of(const fs::path& folder, const char* name) {
  const std::string text = read_bytes(plain_file(folder, name), largest_tokenizer);
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    if (lines.back().ends_with('\r')) lines.back().pop_back();
    at = end + 1;
  }
  return lines;
}

/// tokenizer.json with these special pieces, as far as the vocabulary contains them.
std::string whole_json(nlohmann::json parts, const std::vector<std::string>& specials) {
  parts["version"] = "1.0";
  parts["added_tokens"] = nlohmann::json::array();
  for (const std::string& name : specials) {
    if (const nlohmann::json id = parts["model"]["vocab"].value(name, nlohmann::json());
        !id.is_null())
      parts["added_tokens"].push_back({{"id", id},
                                       {"content", name},
                                       {"single_word", false},
                                       {"lstrip", false},
                                       {"rstrip", false},
                                       {"normalized", false},
                                       {"special", true}});
  }
  return parts.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

/// tokenizer.json from vocab.json and merges.txt, the files of GPT-2's first tokenizer. Other classes
/// have files of these names, but cut a text differently or add special pieces.
std::string byte_pairs_json(const fs::path& folder, const nlohmann::json& config) {
  const nlohmann::json model = read_json(folder, "config.json", 1 << 20);
  if (config.contains("tokenizer_class"))
    require_fixed(config, {{"tokenizer_class", {"GPT2Tokenizer", "GPT2TokenizerFast"}}},
                  (folder / tokenizer_config_name).string());
  else if (model.value("model_type", nlohmann::json()) != "gpt2")
    throw Error(
        Exit::bad_input,
        "{}: vocab.json and merges.txt are read as GPT-2's tokenizer only; for others, write "
        "tokenizer.json with the library tokenizers",
        folder.string());
  require_fixed(config,
                {{"add_bos_token", {nullptr, false}}, {"add_prefix_space", {nullptr, true, false}}},
                (folder / tokenizer_config_name).string());
  const nlohmann::json vocabulary = read_json(folder, "vocab.json", largest_tokenizer);
  nlohmann::json merges = nlohmann::json::array();
  for (const std::string& line : lines_of(folder, "merges.txt"))
    if (!line.empty() && !(merges.empty() && line.starts_with("#version"))) merges.push_back(line);
  const nlohmann::json byte_level{
      {"type", "ByteLevel"},
      {"add_prefix_space", config.value("add_prefix_space", nlohmann::json()) == true},
      {"trim_offsets", true},
      {"use_regex", true}};
  return whole_json(
      {{"normalizer", nullptr},
       {"pre_tokenizer", byte_level},
       {"post_processor", nullptr},
       {"decoder", byte_level},
       {"model",
        {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", merges}, {"unk_token", nullptr}}}},
      {"<|endoftext|>"});
}

/// tokenizer.json from vocab.txt and tokenizer_config.json, the files of BERT's first tokenizer.
std::string word_pieces_json(const fs::path& folder, const nlohmann::json& config) {
  nlohmann::json vocabulary = nlohmann::json::object();
  const std::vector<std::string> lines = lines_of(folder, "vocab.txt");
  for (std::size_t id = 0; id < lines.size(); ++id) vocabulary[lines[id]] = id;
  const std::string where = (folder / tokenizer_config_name).string();
  // A Japanese BERT also has a vocab.txt.
  require_fixed(config,
                {{"tokenizer_class", {nullptr, "BertTokenizer", "BertTokenizerFast"}},
                 {"do_basic_tokenize", {nullptr, true}},
                 {"never_split", {nullptr, nlohmann::json::array()}}},
                where);
  std::vector<std::string> specials;
  for (const auto& [key, usual] : {std::pair("pad_token", "[PAD]"), std::pair("unk_token", "[UNK]"),
                                   std::pair("cls_token", "[CLS]"), std::pair("sep_token", "[SEP]"),
                                   std::pair("mask_token", "[MASK]")}) {
    const nlohmann::json token = config.value(key, nlohmann::json(usual)),
                         text =
                             token.is_object() ? token.value("content", nlohmann::json()) : token;
    if (!text.is_string() || !vocabulary.contains(text.get<std::string>()))
      throw Error(Exit::bad_input, "{}: {} is {}, which vocab.txt does not contain", where, key,
                  shown(token.dump(), 80));
    specials.push_back(text);
  }
  const auto pair = [&](std::size_t i) {
    return nlohmann::json{specials[i], vocabulary[specials[i]]};
  };
  return whole_json(
      {{"normalizer",
        {{"type", "BertNormalizer"},
         {"clean_text", true},
         {"handle_chinese_chars", config.value("tokenize_chinese_chars", nlohmann::json(true))},
         {"strip_accents", config.value("strip_accents", nlohmann::json())},
         {"lowercase", config.value("do_lower_case", nlohmann::json(true))}}},
       {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
       {"post_processor", {{"type", "BertProcessing"}, {"cls", pair(2)}, {"sep", pair(3)}}},
       {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}},
       {"model",
        {{"type", "WordPiece"},
         {"unk_token", specials[1]},
         {"continuing_subword_prefix", "##"},
         {"max_input_chars_per_word", 100},
         {"vocab", vocabulary}}}},
      specials);
}

// ---- tokenizer_config.json -------------------------------------------------------------------------

/// The step of this type in a normalizer or pre_tokenizer; null if it has none.
nlohmann::json step_of_type(const nlohmann::json& step, const char* type) {
  if (value_at(step, "/type") == type) return step;
  for (const char* const steps : {"/normalizers", "/pretokenizers"})
    for (const nlohmann::json& each : value_at(step, steps))
      if (nlohmann::json found = step_of_type(each, type); !found.is_null()) return found;
  return {};
}

/// Throws Error(bad_input) if tokenizer_config.json contradicts tokenizer.json: which of them the library
/// follows depends on its version.
void require_agreement(const nlohmann::json& config, const nlohmann::json& json,
                       const std::string& where) {
  const nlohmann::json bert = step_of_type(value_at(json, "/normalizer"), "BertNormalizer"),
                       bytes = step_of_type(value_at(json, "/pre_tokenizer"), "ByteLevel");
  for (const auto& [key, step, name] : {std::tuple("do_lower_case", &bert, "lowercase"),
                                        {"strip_accents", &bert, "strip_accents"},
                                        {"tokenize_chinese_chars", &bert, "handle_chinese_chars"},
                                        {"add_prefix_space", &bytes, "add_prefix_space"}}) {
    if (step->is_null() || !config.contains(key)) continue;
    const nlohmann::json there = step->value(name, nlohmann::json());
    if (config[key] != there)
      throw Error(Exit::bad_input, "{}: {} is {}, but {} in tokenizer.json is {}", where, key,
                  shown(config[key].dump(), 60), name, shown(there.dump(), 60));
  }
  const nlohmann::json tokens = value_at(json, "/added_tokens"),
                       vocabulary = value_at(json, "/model/vocab"),
                       added = config.value("added_tokens_decoder", nlohmann::json::object());
  for (const auto& [id, token] : added.items()) {
    const nlohmann::json content = value_at(token, "/content");
    const auto is_it = [&, &id = id](const nlohmann::json& each) {
      return value_at(each, "/content") == content && value_at(each, "/id").dump() == id;
    };
    if (std::ranges::any_of(tokens, is_it) ||
        (content.is_string() && vocabulary.is_object() &&
         vocabulary.value(content.get<std::string>(), nlohmann::json()).dump() == id))
      continue;
    throw Error(Exit::bad_input,
                "{}: added_tokens_decoder: {} with the id {} is not in tokenizer.json", where,
                shown(content.dump(), 60), shown(id, 20));
  }
}

ReadTokenizer read_imported(const std::string& text, const nlohmann::json& json, ImportedIds ids,
                            TextRole role, const std::string& where) {
  check_around(json, ids, role, where);
  for (const nlohmann::json& token : value_at(json, "/added_tokens")) {
    const nlohmann::json name = value_at(token, "/content"), id = value_at(token, "/id");
    if ((name == "[MASK]" || name == "<mask>") && id.is_number_unsigned() && id < most_pieces)
      ids.mask = id.get<std::int32_t>();
  }
  const nlohmann::json unknown = value_at(json, "/model/unk_token"),
                       vocabulary = value_at(json, "/model/vocab");
  if (unknown.is_string() && vocabulary.is_object()) {
    const nlohmann::json id = vocabulary.value(unknown.get<std::string>(), nlohmann::json());
    if (id.is_number_unsigned() && id < most_pieces) ids.special.unk = id.get<std::int32_t>();
  }
  return {make_imported(text, ids, where)};
}

}  // namespace

ReadTokenizer import_tokenizer(const fs::path& folder, ImportedIds ids, TextRole role) {
  const auto has = [&](const char* name) { return path_exists(folder / name); };
  const std::string config_path = (folder / tokenizer_config_name).string();
  const nlohmann::json config = has(tokenizer_config_name)
                                    ? read_json(folder, tokenizer_config_name, largest_tokenizer)
                                    : nlohmann::json::object();
  const auto joined = [&](const std::string& text, const char* name) {
    const std::string where = (folder / name).string();
    const nlohmann::json json = parse_json(text, where);
    require_agreement(config, json, config_path);
    return read_imported(text, json, ids, role, where);
  };
  const bool marian = has("source.spm") && has("target.spm");
  const char* const model = has("tokenizer.model") ? "tokenizer.model"
                            : has("spiece.model")  ? "spiece.model"
                                                   : nullptr;
  if (has(json_name)) {
    const std::string where = (folder / json_name).string(),
                      text = read_bytes(plain_file(folder, json_name), largest_tokenizer);
    const nlohmann::json json = parse_json(text, where);
    if (!json.is_object()) throw Error(Exit::bad_input, "{}: expected an object", where);
    require_agreement(config, json, config_path);
    const nlohmann::json type = value_at(json, "/model/type");
    const bool pieces = type == "Unigram" || value_at(json, "/model/byte_fallback") == true,
               has_model = pieces && (marian || model != nullptr);
    ReadTokenizer own = read_own(json, ids, role, has_model, where);
    if (own.tokenizer) return own;
    if (!has_model) return read_imported(text, json, ids, role, where);
    check_around(json, ids, role, where);
    if (!marian) return {pieces_of_file(folder, model, config, json, ids, role)};
  }
  if (model != nullptr) return {pieces_of_file(folder, model, config, {}, ids, role)};
  if (marian) return pieces_of_two_files(folder, ids);
  if (has("vocab.json") && has("merges.txt"))
    return joined(byte_pairs_json(folder, config), "vocab.json");
  if (has("vocab.txt")) return joined(word_pieces_json(folder, config), "vocab.txt");
  throw Error(Exit::bad_input,
              "{}: there is no tokenizer: expected tokenizer.json, tokenizer.model, spiece.model, "
              "source.spm and target.spm, vocab.json and merges.txt, or vocab.txt",
              folder.string());
}

HEED_END
