#include "train/exchange/tokenizer_json.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "autograd/base/error.h"
#include "autograd/io/formats/base64.h"
#include "autograd/io/message_text.h"
#include "autograd/io/utf8.h"
#include "data/tokenizers/piece_model.h"
#include "data/tokenizers/word_model.h"

namespace heed {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view word_mark = "\u2581";

/// The parts of tokenizer.json that depend on the kind.
struct Pipeline {
  std::vector<Json> normalisers;
  Json pre_tokenizer, model, decoder;
  std::vector<std::int32_t> user_defined = {};  ///< pieces that are matched before any other
};

Json split(const char* pattern, const char* behavior) {
  return {{"type", "Split"},
          {"pattern", {{"Regex", pattern}}},
          {"behavior", behavior},
          {"invert", false}};
}

/// Ids by piece, from the first ordinary piece on, and the specials.
Json vocabulary_of(const Tokenizer& tokenizer) {
  Json vocabulary = Json::object();
  for (std::int32_t id = 0; id < tokenizer.size(); ++id) {
    const std::string piece = tokenizer.piece(id);
    if (vocabulary.contains(piece))
      throw Error(Exit::usage,
                  "the vocabulary contains \"{}\" as a word and as a special piece, which "
                  "tokenizer.json cannot express",
                  shown(piece));
    vocabulary[piece] = id;
  }
  return vocabulary;
}

Json word_level(const Tokenizer& tokenizer) {
  return {{"type", "WordLevel"}, {"vocab", vocabulary_of(tokenizer)}, {"unk_token", "<unk>"}};
}

Pipeline characters(const Tokenizer& tokenizer) {
  return {{}, split(R"([\s\S])", "Isolated"), word_level(tokenizer), {{"type", "Fuse"}}};
}

Json replace(const char* from, const char* to) {
  return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}

/// Words are joined by spaces, except around line breaks. The decoder of WordPiece puts a space
/// before each word that does not begin with its prefix, here a character that no word contains.
Pipeline words(const Tokenizer& tokenizer) {
  const Json join{{"type", "WordPiece"}, {"prefix", std::string(1, '\0')}, {"cleanup", false}};
  return {{},
          {{"type", "Sequence"},
           {"pretokenizers", {split(R"([ \t\r\v\f]+)", "Removed"), split(R"(\n)", "Isolated")}}},
          word_level(tokenizer),
          {{"type", "Sequence"},
           {"decoders", {join, {{"type", "Fuse"}}, replace(" \n", "\n"), replace("\n ", "\n")}}}};
}

Pipeline raw_bytes(const Tokenizer& tokenizer) {
  const std::vector<std::string>& characters = byte_characters();
  Json vocabulary = Json::object();
  const std::int32_t first = tokenizer.first_ordinary();
  for (std::int32_t id = 0; id < tokenizer.size(); ++id) {
    const std::string piece = tokenizer.piece(id);
    vocabulary[id < first ? piece : characters[static_cast<unsigned char>(piece[0])]] = id;
  }
  return {{},
          {{"type", "ByteLevel"},
           {"add_prefix_space", false},
           {"trim_offsets", true},
           {"use_regex", false}},
          {{"type", "BPE"},
           {"dropout", nullptr},
           {"unk_token", nullptr},
           {"continuing_subword_prefix", nullptr},
           {"end_of_word_suffix", nullptr},
           {"fuse_unk", false},
           {"byte_fallback", false},
           {"vocab", vocabulary},
           {"merges", Json::array()}},
          {{"type", "ByteLevel"},
           {"add_prefix_space", false},
           {"trim_offsets", true},
           {"use_regex", false}}};
}

// ---- SentencePiece -----------------------------------------------------------------------------

bool has_bytes(const PieceModel& model) {
  return std::ranges::find(model.pieces, PieceModel::Type::byte, &PieceModel::Piece::type) !=
         model.pieces.end();
}

Json unigram(const PieceModel& pieces) {
  Json vocabulary = Json::array();
  for (const PieceModel::Piece& piece : pieces.pieces)
    vocabulary.push_back({piece.text, piece.score});
  const auto unknown =
      std::ranges::find(pieces.pieces, PieceModel::Type::unknown, &PieceModel::Piece::type);
  return {{"type", "Unigram"},
          {"unk_id", unknown - pieces.pieces.begin()},
          {"vocab", vocabulary},
          {"byte_fallback", has_bytes(pieces)}};
}

/// SentencePiece merges the two neighbours whose union is the piece with the highest score. The
/// list therefore has every split of a piece into two pieces, by decreasing score.
Json merges(const PieceModel& model) {
  std::unordered_map<std::string_view, std::int32_t> ids;
  for (std::int32_t id = 0; std::cmp_less(id, model.pieces.size()); ++id)
    if (model.pieces[id].type == PieceModel::Type::normal) ids.emplace(model.pieces[id].text, id);
  std::vector<std::int32_t> order;
  for (const auto& [text, id] : ids) order.push_back(id);
  std::ranges::sort(order, [&](std::int32_t a, std::int32_t b) {
    return std::pair(-model.pieces[a].score, a) < std::pair(-model.pieces[b].score, b);
  });
  Json all = Json::array();
  for (const std::int32_t id : order) {
    const std::string_view text = model.pieces[id].text;
    for (std::size_t at = utf8_length(text, 0); at < text.size(); at += utf8_length(text, at)) {
      if (ids.contains(text.substr(0, at)) && ids.contains(text.substr(at)))
        all.push_back({text.substr(0, at), text.substr(at)});
    }
  }
  return all;
}

Json bpe(const PieceModel& model) {
  Json vocabulary = Json::object();
  for (std::size_t id = 0; id < model.pieces.size(); ++id) vocabulary[model.pieces[id].text] = id;
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", "<unk>"},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", true},
          {"byte_fallback", has_bytes(model)},
          {"vocab", vocabulary},
          {"merges", merges(model)}};
}

/// Throws Error(usage) for a model, made by another program, that tokenizer.json cannot express.
void require_plain(const PieceModel& model) {
  const auto refuse = [](const char* what) {
    throw Error(Exit::usage, "the SentencePiece model {}, which heed cannot export", what);
  };
  bool user_defined = false;
  for (const PieceModel::Piece& piece : model.pieces) {
    if (piece.type == PieceModel::Type::unused) refuse("contains unused pieces");
    user_defined |= piece.type == PieceModel::Type::user_defined;
  }
  if (user_defined && model.add_dummy_prefix)
    refuse("contains user-defined pieces and begins each text with a space");
  if (!model.escape_whitespaces) refuse("does not escape spaces");
  if (model.whitespace_as_suffix) refuse("attaches spaces to the end of words");
}

Pipeline pieces(const PieceModel& model) {
  require_plain(model);
  Pipeline pipeline;
  if (!model.character_map.empty()) {
    pipeline.normalisers.push_back(
        {{"type", "Precompiled"}, {"precompiled_charsmap", base64(model.character_map)}});
  }
  if (model.remove_extra_whitespaces) {
    pipeline.normalisers.push_back(
        {{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}});
    pipeline.normalisers.push_back(
        {{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", " "}});
  }
  const Json metaspace{{"type", "Metaspace"},
                       {"replacement", word_mark},
                       {"prepend_scheme", model.add_dummy_prefix ? "always" : "never"},
                       {"split", false}};
  pipeline.pre_tokenizer = metaspace;
  // Like the library, removes every space at the beginning if it removes extra ones.
  const std::int64_t spaces = model.remove_extra_whitespaces ? 1'000'000
                              : model.add_dummy_prefix       ? 1
                                                             : 0;
  const Json strip{{"type", "Strip"}, {"content", " "}, {"start", spaces}, {"stop", 0}};
  Json decoders{replace("\u2581", " "), {{"type", "Fuse"}}, strip};
  if (has_bytes(model)) decoders.insert(decoders.begin() + 1, Json{{"type", "ByteFallback"}});
  pipeline.decoder = {{"type", "Sequence"}, {"decoders", decoders}};
  pipeline.model = model.bpe ? bpe(model) : unigram(model);
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    if (model.pieces[id].type == PieceModel::Type::user_defined)
      pipeline.user_defined.push_back(static_cast<std::int32_t>(id));
  }
  return pipeline;
}

Pipeline pipeline_of(const Tokenizer& tokenizer) {
  switch (tokenizer.kind()) {
    case TokenizerKind::characters:
      return characters(tokenizer);
    case TokenizerKind::words:
      return words(tokenizer);
    case TokenizerKind::bytes:
      return raw_bytes(tokenizer);
    case TokenizerKind::imported:
      throw Error(Exit::failed, "[exchange] an imported tokenizer contains its tokenizer.json");
    case TokenizerKind::sentencepiece:
      break;
  }
  PieceModel model = read_piece_model(tokenizer.content());
  while (model.pieces.back().type == PieceModel::Type::unused) model.pieces.pop_back();  // holes
  return pieces(model);
}

Json added_token(const Tokenizer& tokenizer, std::int32_t id, bool special) {
  return {{"id", id},
          {"content", tokenizer.piece(id)},
          {"single_word", false},
          {"lstrip", false},
          {"rstrip", false},
          {"normalized", false},
          {"special", special}};
}

/// Adds special tokens to a text or a pair of texts.
Json processor_of(const Tokenizer& tokenizer, const TokenizerJsonOptions& options) {
  const bool continued = !options.start_token && !options.end_token;
  if (continued && !tokenizer.text_start()) return nullptr;
  const SpecialIds ids = tokenizer.special_ids();
  const std::string start = ids.bos < 0 ? "" : tokenizer.piece(ids.bos),
                    end = tokenizer.piece(ids.eos);
  const auto token = [](const std::string& name, int type) -> Json {
    return {{"SpecialToken", {{"id", name}, {"type_id", type}}}};
  };
  const auto text = [](const char* name, int type) -> Json {
    return {{"Sequence", {{"id", name}, {"type_id", type}}}};
  };
  Json single = Json::array(), pair = Json::array(), specials = Json::object();
  if (continued) {
    single = {token(start, 0), text("A", 0)};
    pair = {token(start, 0), text("A", 0), text("B", 0)};
  } else if (options.start_token) {
    single = {token(start, 0), text("A", 0), token(end, 0)};
    pair = {token(start, 0), text("A", 0), token(end, 0), text("B", 1), token(end, 1)};
  } else {
    single = {text("A", 0), token(end, 0)};
    pair = {text("A", 0), text("B", 0), token(end, 0)};
  }
  const auto add_special = [&](const std::string& name, std::int32_t id) {
    specials[name] = {{"id", name}, {"ids", {id}}, {"tokens", {name}}};
  };
  if (continued || options.start_token) add_special(start, ids.bos);
  if (!continued) add_special(end, ids.eos);
  return {{"type", "TemplateProcessing"},
          {"single", single},
          {"pair", pair},
          {"special_tokens", specials}};
}

}  // namespace

Json tokenizer_json(const Tokenizer& tokenizer, const TokenizerJsonOptions& options) {
  Pipeline pipeline = pipeline_of(tokenizer);
  if (options.lowercase) {
    const Json lowercase{{"type", "Lowercase"}};
    pipeline.normalisers.insert(pipeline.normalisers.begin(), lowercase);
  }
  Json added = Json::array();
  for (std::int32_t id = 0; id < tokenizer.size(); ++id)
    if (tokenizer.special(tokenizer.piece(id)) == id)
      added.push_back(added_token(tokenizer, id, true));
  for (const std::int32_t id : pipeline.user_defined)
    added.push_back(added_token(tokenizer, id, false));
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", added},
          {"normalizer", pipeline.normalisers.empty()
                             ? Json(nullptr)
                             : Json{{"type", "Sequence"}, {"normalizers", pipeline.normalisers}}},
          {"pre_tokenizer", pipeline.pre_tokenizer},
          {"post_processor", processor_of(tokenizer, options)},
          {"decoder", pipeline.decoder},
          {"model", pipeline.model}};
}

Json tokenizer_config_json(const Tokenizer& tokenizer, std::int64_t max_length) {
  Json config{{"tokenizer_class", "PreTrainedTokenizerFast"}};
  const SpecialIds ids = tokenizer.special_ids();
  for (const auto& [key, id] : {std::pair("unk_token", ids.unk), std::pair("bos_token", ids.bos),
                                std::pair("eos_token", ids.eos), std::pair("pad_token", ids.eos)}) {
    if (id >= 0) config[key] = tokenizer.piece(id);
  }
  config["clean_up_tokenization_spaces"] = false;
  if (const auto mask = tokenizer.special("<mask>")) config["mask_token"] = tokenizer.piece(*mask);
  if (max_length > 0) config["model_max_length"] = max_length;
  return config;
}

}  // namespace heed
