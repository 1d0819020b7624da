#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "autograd/base/error.h"
#include "autograd/io/formats/base64.h"
#include "autograd/io/formats/json_text.h"
#include "autograd/io/message_text.h"
#include "data/tokenizers/piece_model.h"
#include "train/exchange/import_parts.h"

HEED_BEGIN

namespace {

namespace fs = std::filesystem;

using Type = PieceModel::Type;

/// Scores of the pieces of a BPE model, by the rank of the first merge that makes a piece; single
/// characters follow.
void set_scores(PieceModel& model, const nlohmann::json& merges) {
  std::map<std::string, float> scores;
  float next = 0;
  for (const nlohmann::json& merge : merges) {
    if (!merge.is_array() || merge.size() != 2 || !merge[0].is_string() || !merge[1].is_string())
      continue;
    if (scores.emplace(merge[0].get<std::string>() + merge[1].get<std::string>(), next).second)
      --next;
  }
  for (PieceModel::Piece& piece : model.pieces) {
    if (piece.type != Type::normal) continue;
    const auto found = scores.find(piece.text);
    piece.score = found != scores.end() ? found->second : next--;
  }
}

PieceModel read_file_of_pieces(const fs::path& folder, const char* name) {
  const std::string proto = read_bytes(plain_file(folder, name), largest_tokenizer),
                    where = (folder / name).string();
  const std::string flaw = flaw_in_piece_model(proto);
  if (!flaw.empty()) throw Error(Exit::bad_input, "{}: {}", where, flaw);
  try {
    return read_piece_model(proto);
  } catch (const Error& e) {
    throw Error(e.code, "{}: {}", where, e.what());
  }
}

/// The tokenizer of a model of the folder, whose config.json has other special ids than the
/// model's file may say, and a number of ids to which unused pieces are added.
std::unique_ptr<Tokenizer> finished(PieceModel model, const ImportedIds& ids,
                                    const std::string& where) {
  constexpr std::int64_t most_unused = 10'000;
  const std::int64_t size = std::ssize(model.pieces);
  const auto named = [&](std::int32_t id, std::string& name) {
    if (id < 0) return;  // config.json does not say: <s> and </s>
    if (id >= size || model.pieces[id].type != Type::control)
      throw Error(Exit::bad_input, "{}: the id {} of config.json is that of no special piece",
                  where, id);
    name = model.pieces[id].text;
  };
  named(ids.special.bos, model.bos);
  named(ids.special.eos, model.eos);
  const std::int64_t ids_of_pieces =
      model.use.ids > 0 ? static_cast<std::int64_t>(model.use.ids) : size;
  if (ids_of_pieces > ids.size || ids.size - size > most_unused)
    throw Error(Exit::bad_input, "{}: {} pieces, but the model's vocabulary has {}", where,
                ids_of_pieces, ids.size);
  for (std::int64_t id = size; id < ids.size; ++id)
    model.pieces.push_back({fmt::format("<id_{}>", id), 0, Type::unused});
  return make_sentencepiece(write_piece_model(model), where);
}

/// Appends the tokens that the library adds to the pieces of a file. Of the names of tokens in a text,
/// heed reads none, so all must be special ones.
void add_tokens(PieceModel& model, const nlohmann::json& tokens, const std::string& where) {
  std::map<std::size_t, nlohmann::json> by_id;
  for (const nlohmann::json& token : tokens)
    if (const nlohmann::json id = value_at(token, "/id"); id.is_number_unsigned())
      by_id[id] = token;
  for (const auto& [id, token] : by_id) {
    const nlohmann::json text = value_at(token, "/content");
    const bool has = id < model.pieces.size();
    if (!text.is_string() || id > model.pieces.size() || (has && model.pieces[id].text != text) ||
        (!has && value_at(token, "/special") != true))
      throw Error(Exit::bad_input,
                  "{}: heed cannot add the token {} with the id {} to the {} pieces of the model",
                  where, shown(text.dump(), 60), id, model.pieces.size());
    if (!has) model.pieces.push_back({text.get<std::string>(), 0, Type::control});
  }
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

nlohmann::json value_at(const nlohmann::json& json, const char* pointer) {
  const nlohmann::json::json_pointer at(pointer);
  return json.contains(at) ? json.at(at) : nlohmann::json();
}

std::vector<std::string> pieces_by_id(const nlohmann::json& vocabulary, const std::string& where) {
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

std::unique_ptr<Tokenizer> pieces_of_json(const nlohmann::json& json, const ImportedIds& ids,
                                          TextRole role, const std::string& where) {
  PieceModel model;
  const nlohmann::json vocabulary = value_at(json, "/model/vocab");
  model.bpe = value_at(json, "/model/type") == "BPE";
  nlohmann::json unknown = value_at(json, "/model/unk_id");
  if (model.bpe) {
    for (std::string& piece : pieces_by_id(vocabulary, where))
      model.pieces.push_back({.text = std::move(piece)});
    unknown = vocabulary.value("<unk>", nlohmann::json());
  } else {
    for (const nlohmann::json& pair : vocabulary) {
      if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() || !pair[1].is_number())
        throw Error(Exit::bad_input, "{}: a piece of the vocabulary is not a text with a score",
                    where);
      model.pieces.push_back({pair[0].get<std::string>(), pair[1].get<float>()});
    }
  }
  if (model.pieces.size() < 4) throw Error(Exit::bad_input, "{}: there is no vocabulary", where);
  for (const nlohmann::json& token : value_at(json, "/added_tokens")) {
    const nlohmann::json id = value_at(token, "/id");
    if (!id.is_number_unsigned() || id >= model.pieces.size()) continue;
    model.pieces[id.get<std::size_t>()].type = id == unknown ? Type::unknown
                                               : value_at(token, "/special") == true
                                                   ? Type::control
                                                   : Type::user_defined;
  }
  if (value_at(json, "/model/byte_fallback") == true) {
    for (PieceModel::Piece& piece : model.pieces)
      if (piece.text.size() == 6 && piece.text.starts_with("<0x") && piece.text.ends_with('>'))
        piece.type = Type::byte;
  }
  if (model.bpe) set_scores(model, value_at(json, "/model/merges"));
  model.remove_extra_whitespaces = false;
  for (const nlohmann::json& step : value_at(json, "/normalizer/normalizers")) {
    const nlohmann::json map = value_at(step, "/precompiled_charsmap");
    if (map.is_string())
      model.character_map = from_base64(map.get_ref<const std::string&>()).value_or("");
    if (value_at(step, "/type") == "Strip") model.remove_extra_whitespaces = true;
  }
  model.add_dummy_prefix = value_at(json, "/pre_tokenizer/prepend_scheme") == "always";
  model.use.starts_text =
      role == TextRole::continued && !value_at(json, "/post_processor").is_null();
  return finished(std::move(model), ids, where);
}

std::unique_ptr<Tokenizer> pieces_of_file(const fs::path& folder, const char* name,
                                          const nlohmann::json& config, const nlohmann::json& json,
                                          const ImportedIds& ids, TextRole role) {
  const std::string where = (folder / tokenizer_config_name).string();
  PieceModel model = read_file_of_pieces(folder, name);
  const nlohmann::json kind = config.value("tokenizer_class", nlohmann::json());
  const bool any =
                 kind.is_null() || kind == "PreTrainedTokenizerFast" || kind == "TokenizersBackend",
             llama = kind == "LlamaTokenizer" || kind == "LlamaTokenizerFast" ||
                     (any && role == TextRole::continued),
             t5 = kind == "T5Tokenizer" || kind == "T5TokenizerFast" ||
                  (any && role == TextRole::source);
  if (!any && !llama && !t5)
    throw Error(Exit::bad_input,
                "{}: tokenizer_class is {}; heed reads SentencePiece models of LlamaTokenizer and "
                "T5Tokenizer",
                where, shown(kind.dump(), 60));
  nlohmann::json tokens = value_at(json, "/added_tokens");
  if (tokens.is_null()) {
    const nlohmann::json added = config.value("added_tokens_decoder", nlohmann::json());
    for (const auto& [id, token] : added.items()) {
      if (!token.is_object()) continue;
      tokens.push_back(token);
      tokens.back()["id"] = parse_json(id, where);
    }
  }
  if (t5 && tokens.is_null()) {  // <extra_id_0> is the last one
    const nlohmann::json further = config.value("extra_ids", nlohmann::json(100));
    const std::size_t first = model.pieces.size(),
                      number = further.is_number_unsigned() ? further.get<std::size_t>() : 0;
    for (std::size_t i = std::min<std::size_t>(number, 10'000); i-- > 0;)
      tokens.push_back({{"id", first + tokens.size()},
                        {"content", fmt::format("<extra_id_{}>", i)},
                        {"special", true}});
  }
  add_tokens(model, tokens, where);
  require_fixed(config, {{"add_prefix_space", {nullptr, true}}}, where);
  if (llama) require_fixed(config, {{"add_eos_token", {nullptr, false}}}, where);
  model.use.starts_text = json.is_null()
                              ? llama && role == TextRole::continued &&
                                    config.value("add_bos_token", nlohmann::json(true)) != false
                              : ids.starts_text;
  return finished(std::move(model), ids, (folder / name).string());
}

ReadTokenizer pieces_of_two_files(const fs::path& folder, const ImportedIds& ids) {
  const std::string where = (folder / "vocab.json").string();
  const std::vector<std::string> vocabulary =
      pieces_by_id(read_json(folder, "vocab.json", largest_tokenizer), where);
  for (const std::string& piece : vocabulary)
    if (piece.starts_with(">>") && piece.ends_with("<<"))
      throw Error(Exit::bad_input,
                  "{}: {} begins lines of a target language, which heed does not support", where,
                  shown(piece, 60));
  const auto read = [&](const char* name) {
    PieceModel file = read_file_of_pieces(folder, name), model = file;
    if (file.bpe)
      throw Error(Exit::bad_input, "{}: a BPE model; Marian's are unigram models",
                  (folder / name).string());
    std::unordered_map<std::string, PieceModel::Piece> known;
    for (PieceModel::Piece& piece : file.pieces) known.emplace(piece.text, piece);
    model.pieces.clear();
    for (std::int64_t id = 0; id < std::ssize(vocabulary); ++id) {
      // A piece of the other language has an id, but is not found in a text.
      PieceModel::Piece piece{vocabulary[id], 0, Type::unused};
      if (const auto found = known.extract(piece.text)) piece = found.mapped();
      if (id == ids.special.bos || id == ids.special.eos) piece.type = Type::control;
      model.pieces.push_back(std::move(piece));
    }
    for (std::int64_t id = std::ssize(vocabulary); id < ids.size; ++id)
      model.pieces.push_back({fmt::format("<id_{}>", id), 0, Type::unused});
    model.use.ids = model.pieces.size();
    // Pieces without an id are found in a text, and are unknown.
    for (PieceModel::Piece& piece : file.pieces)
      if (known.contains(piece.text)) model.pieces.push_back(std::move(piece));
    return finished(std::move(model), ids, (folder / name).string());
  };
  return {read("source.spm"), false, read("target.spm")};
}

HEED_END
