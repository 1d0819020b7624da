#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "autograd/base/error.h"
#include "autograd/io/formats/base64.h"
#include "autograd/io/formats/json_fields.h"
#include "autograd/io/formats/json_text.h"
#include "autograd/io/message_text.h"
#include "data/tokenizers/piece_model.h"
#include "data/tokenizers/word_model.h"
#include "train/exchange/import_parts.h"
#include "train/exchange/tokenizer_json.h"

HEED_BEGIN

namespace {

namespace fs = std::filesystem;

constexpr const char* json_name = "tokenizer.json";

/// The value at a JSON pointer; null if there is none.
ImportJson value_at(const ImportJson& json, const char* pointer) {
  const ImportJson::json_pointer at(pointer);
  return json.contains(at) ? json.at(at) : ImportJson();
}

// ---- the tokenizers that heed exports: inverses of tokenizer_json ----------------------------------

/// The vocabulary of a model as pieces by id. Throws Error(bad_input) unless the ids are 0 to n − 1.
std::vector<std::string> pieces_by_id(const ImportJson& vocabulary, const std::string& where) {
  std::vector<std::string> pieces(vocabulary.is_object() ? vocabulary.size() : 0);
  std::vector<bool> seen(pieces.size());
  for (const auto& [piece, id] : vocabulary.items()) {
    if (!id.is_number_unsigned() || id >= pieces.size() || seen[id.get<std::size_t>()])
      throw Error(Exit::bad_input, "{}: the ids of the vocabulary are not 0 to {}", where,
                  pieces.size() - 1);
    seen[id.get<std::size_t>()] = true;
    pieces[id.get<std::size_t>()] = piece;
  }
  if (pieces.size() < 4) throw Error(Exit::bad_input, "{}: there is no vocabulary", where);
  return pieces;
}

/// The contents of the added tokens that are special, from id 3 on.
std::vector<std::string> further_specials(const ImportJson& json) {
  std::vector<std::string> names;
  for (const ImportJson& token : value_at(json, "/added_tokens")) {
    const ImportJson id = value_at(token, "/id"), name = value_at(token, "/content");
    if (value_at(token, "/special") == true && id.is_number_unsigned() && id == 3 + names.size() &&
        name.is_string())
      names.push_back(name.get<std::string>());
  }
  return names;
}

std::unique_ptr<Tokenizer> plain_vocabulary(TokenizerKind kind, const ImportJson& json,
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

/// Scores of the pieces of a BPE model, by the rank of the first merge that makes a piece; single
/// characters follow.
void set_scores(PieceModel& model, const ImportJson& merges) {
  std::map<std::string, float> scores;
  float next = 0;
  for (const ImportJson& merge : merges) {
    if (!merge.is_array() || merge.size() != 2 || !merge[0].is_string() || !merge[1].is_string())
      continue;
    if (scores.emplace(merge[0].get<std::string>() + merge[1].get<std::string>(), next).second)
      --next;
  }
  for (PieceModel::Piece& piece : model.pieces) {
    if (piece.type != PieceModel::Type::normal) continue;
    const auto found = scores.find(piece.text);
    piece.score = found != scores.end() ? found->second : next--;
  }
}

std::unique_ptr<Tokenizer> pieces_of(const ImportJson& json, const std::string& where) {
  PieceModel model;
  const ImportJson vocabulary = value_at(json, "/model/vocab");
  model.bpe = value_at(json, "/model/type") == "BPE";
  if (model.bpe) {
    for (std::string& piece : pieces_by_id(vocabulary, where))
      model.pieces.push_back({.text = std::move(piece)});
  } else {
    for (const ImportJson& pair : vocabulary) {
      if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() || !pair[1].is_number())
        throw Error(Exit::bad_input, "{}: a piece of the vocabulary is no text with a score",
                    where);
      model.pieces.push_back({pair[0].get<std::string>(), pair[1].get<float>()});
    }
  }
  if (model.pieces.size() < 4) throw Error(Exit::bad_input, "{}: there is no vocabulary", where);
  for (const ImportJson& token : value_at(json, "/added_tokens")) {
    const ImportJson id = value_at(token, "/id");
    if (!id.is_number_unsigned() || id >= model.pieces.size()) continue;
    model.pieces[id.get<std::size_t>()].type = id == Tokenizer::unk ? PieceModel::Type::unknown
                                               : value_at(token, "/special") == true
                                                   ? PieceModel::Type::control
                                                   : PieceModel::Type::user_defined;
  }
  if (value_at(json, "/model/byte_fallback") == true) {
    for (PieceModel::Piece& piece : model.pieces)
      if (piece.text.size() == 6 && piece.text.starts_with("<0x") && piece.text.ends_with('>'))
        piece.type = PieceModel::Type::byte;
  }
  if (value_at(json, "/model/byte_fallback") == true) {
    for (PieceModel::Piece& piece : model.pieces)
      if (piece.text.size() == 6 && piece.text.starts_with("<0x") && piece.text.ends_with('>'))
        piece.type = PieceModel::Type::byte;
  }
  if (model.bpe) set_scores(model, value_at(json, "/model/merges"));
  model.remove_extra_whitespaces = false;
  for (const ImportJson& step : value_at(json, "/normalizer/normalizers")) {
    const ImportJson map = value_at(step, "/precompiled_charsmap");
    if (map.is_string())
      model.character_map = from_base64(map.get_ref<const std::string&>()).value_or("");
    if (value_at(step, "/type") == "Strip") model.remove_extra_whitespaces = true;
  }
  model.add_dummy_prefix = value_at(json, "/pre_tokenizer/prepend_scheme") == "always";
  return make_sentencepiece(write_piece_model(model), where);
}

/// The tokenizer of heed that tokenizer.json looks like; null if it looks like none.
std::unique_ptr<Tokenizer> own_kind(const ImportJson& json, const std::string& where) {
  const ImportJson type = value_at(json, "/model/type"),
                   cut = value_at(json, "/pre_tokenizer/type");
  if (type == "WordLevel")
    return plain_vocabulary(cut == "Split" ? TokenizerKind::characters : TokenizerKind::words, json,
                            where);
  if (type == "BPE" && cut == "ByteLevel" && value_at(json, "/pre_tokenizer/use_regex") == false &&
      value_at(json, "/model/merges") == ImportJson::array())
    return plain_vocabulary(TokenizerKind::bytes, json, where);
  if (cut == "Metaspace" && (type == "BPE" || type == "Unigram")) return pieces_of(json, where);
  return nullptr;
}

/// The first place where two values differ, as a JSON pointer.
std::string first_difference(const ImportJson& a, const ImportJson& b, const std::string& at = "") {
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

/// A tokenizer of heed's own kinds, if the file is what heed would write for it. Null if it is not of
/// such a kind.
ReadTokenizer read_own(const ImportJson& json, TextRole role, const std::string& where) {
  ReadTokenizer read{own_kind(json, where)};
  if (!read.tokenizer) return read;
  read.lowercase = value_at(json, "/normalizer/normalizers/0/type") == "Lowercase";
  const ImportJson written =
      tokenizer_json(*read.tokenizer, {.start_token = role == TextRole::labelled,
                                       .end_token = role != TextRole::continued,
                                       .lowercase = read.lowercase});
  if (written == json) return read;
  throw Error(Exit::bad_input, "{}: heed has tokenizers of this kind, but with other values at {}",
              where, shown(first_difference(json, written), 100));
}

// ---- byte-level BPE and WordPiece ------------------------------------------------------------------

/// The special pieces that a post_processor puts around a text.
struct Around {
  std::vector<std::int64_t> before, after;
};

void add_template(JsonFields& step, Around& around) {
  const ImportJson& single = step.at("single");
  const ImportJson& tokens = step.at("special_tokens");
  step.at("pair");
  bool text = false;
  for (const ImportJson& each : single) {
    const ImportJson name = value_at(each, "/SpecialToken/id");
    if (!name.is_string()) {
      text = true;
      continue;
    }
    const ImportJson token =
        tokens.is_object() ? tokens.value(name.get<std::string>(), ImportJson()) : ImportJson();
    for (const ImportJson& id : value_at(token, "/ids")) {
      if (!id.is_number_unsigned()) step.refuse("an id is no whole number");
      (text ? around.after : around.before).push_back(id.get<std::int64_t>());
    }
  }
}

/// ["[SEP]", 102], for the processors of BERT and RoBERTa.
std::int64_t id_of_pair(JsonFields& step, const char* key) {
  const ImportJson& pair = step.at(key);
  if (!pair.is_array() || pair.size() != 2 || !pair[1].is_number_unsigned())
    step.refuse(fmt::format("\"{}\" must be a text with its id", key));
  return pair[1].get<std::int64_t>();
}

void add_around(const ImportJson& processor, const std::string& where, Around& around) {
  if (processor.is_null()) return;
  JsonFields step(processor, where + ": post_processor");
  const std::string type = step.text("type");
  if (type == "Sequence") {
    for (const ImportJson& each : step.at("processors")) add_around(each, where, around);
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
void check_around(const ImportJson& json, ImportedIds& ids, TextRole role,
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

/// tokenizer.json from vocab.json and merges.txt, the files of GPT-2's first tokenizer.
std::string joined_json(const fs::path& folder) {
  const ImportJson vocabulary = read_json(folder, "vocab.json", largest_tokenizer);
  const fs::path path = plain_file(folder, "merges.txt");
  const std::string text = read_bytes(path, largest_tokenizer);
  ImportJson merges = ImportJson::array();
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty() && !(at == 0 && line.starts_with("#version"))) merges.push_back(line);
    at = end + 1;
  }
  ImportJson added = ImportJson::array();
  if (vocabulary.contains("<|endoftext|>"))
    added.push_back({{"id", vocabulary["<|endoftext|>"]},
                     {"content", "<|endoftext|>"},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  const ImportJson byte_level{{"type", "ByteLevel"},
                              {"add_prefix_space", false},
                              {"trim_offsets", true},
                              {"use_regex", true}};
  return ImportJson{
             {"version", "1.0"},
             {"added_tokens", added},
             {"normalizer", nullptr},
             {"pre_tokenizer", byte_level},
             {"post_processor", nullptr},
             {"decoder", byte_level},
             {"model",
              {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", merges}, {"unk_token", nullptr}}}}
             .dump(2, ' ', false, ImportJson::error_handler_t::replace) +
         "\n";
}

ReadTokenizer read_imported(const std::string& text, const ImportJson& json, ImportedIds ids,
                            TextRole role, const std::string& where) {
  check_around(json, ids, role, where);
  for (const ImportJson& token : value_at(json, "/added_tokens")) {
    const ImportJson name = value_at(token, "/content"), id = value_at(token, "/id");
    if ((name == "[MASK]" || name == "<mask>") && id.is_number_unsigned() && id < most_pieces)
      ids.mask = id.get<std::int32_t>();
  }
  const ImportJson unknown = value_at(json, "/model/unk_token"),
                   vocabulary = value_at(json, "/model/vocab");
  if (unknown.is_string() && vocabulary.is_object()) {
    const ImportJson id = vocabulary.value(unknown.get<std::string>(), ImportJson());
    if (id.is_number_unsigned() && id < most_pieces) ids.special.unk = id.get<std::int32_t>();
  }
  return {make_imported(text, ids, where)};
}

}  // namespace

ReadTokenizer import_tokenizer(const fs::path& folder, ImportedIds ids, TextRole role) {
  const std::string where = (folder / json_name).string();
  if (path_exists(folder / json_name)) {
    const std::string text = read_bytes(plain_file(folder, json_name), largest_tokenizer);
    const ImportJson json = parse_json(text, where);
    if (!json.is_object()) throw Error(Exit::bad_input, "{}: expected an object", where);
    ReadTokenizer own = read_own(json, role, where);
    return own.tokenizer ? std::move(own) : read_imported(text, json, ids, role, where);
  }
  for (const char* const name : {"tokenizer.model", "spiece.model"}) {
    if (path_exists(folder / name))
      return {make_sentencepiece(read_bytes(plain_file(folder, name), largest_tokenizer),
                                 (folder / name).string())};
  }
  if (path_exists(folder / "vocab.json") && path_exists(folder / "merges.txt")) {
    const std::string text = joined_json(folder);
    return read_imported(text, parse_json(text, where), ids, role,
                         (folder / "vocab.json").string());
  }
  throw Error(
      Exit::bad_input,
      "{}: there is no tokenizer: expected tokenizer.json, tokenizer.model, spiece.model, or "
      "vocab.json and merges.txt",
      folder.string());
}

HEED_END
