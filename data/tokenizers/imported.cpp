#include "data/tokenizers/imported.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "autograd/base/error.h"
#include "autograd/io/formats/json_text.h"
#include "autograd/io/lines.h"
#include "autograd/io/message_text.h"
#include "autograd/io/utf8.h"
#include "data/tokenizers/regex.h"
#include "data/tokenizers/unicode.h"
#include "data/tokenizers/vocabulary.h"
#include "data/tokenizers/word_model.h"

namespace heed {

namespace {

using Json = nlohmann::json;
using Change = std::function<std::string(std::string)>;
using Words = std::function<void(std::string_view word)>;
using Cut = std::function<void(std::string_view text, const Words& words)>;

/// An array of objects with a "type", or a single one; nothing for null. Objects of the type
/// "Sequence" contain such an array under `key`.
void each_step(const Json& value, const char* key, const std::string& where,
               const std::function<void(JsonFields&, const std::string& type)>& visit) {
  if (value.is_null()) return;
  JsonFields step(value, where);
  const std::string type = step.text("type");
  if (type != "Sequence") {
    visit(step, type);
    return step.done();
  }
  const Json& list = step.at(key);
  if (!list.is_array()) step.refuse(fmt::format("\"{}\" must be a list", key));
  for (const Json& each : list) each_step(each, key, where, visit);
  step.done();
}

[[noreturn]] void refuse_type(const JsonFields& step, const std::string& type) {
  step.refuse(fmt::format("heed does not have the type \"{}\"", shown(type, 60)));
}

// ---- normalizer: the steps of BERT, and Unicode's normal forms -----------------------------------

std::string lower(const std::string& text) {
  // The full mapping, which the library has, differs from the simple one in this character.
  static const Regex dotted("\u0130", "lower case");
  return lowercase(dotted.replaced(text, "i\u0307"));
}

std::string without_accents(const std::string& text) {
  static const Regex marks(R"(\p{Mn})", "accents");
  return marks.replaced(nfd(text), "");
}

std::string spaced_ideographs(const std::string& text) {
  static const Regex ideographs(
      R"([\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{20000}-\x{2A6DF}\x{2A700}-\x{2B73F})"
      R"(\x{2B740}-\x{2B81F}\x{2B920}-\x{2CEAF}\x{F900}-\x{FAFF}\x{2F800}-\x{2FA1F}])",
      "ideographs");
  std::string out;
  ideographs.each_part(text, [&](std::string_view part, bool matched) {
    if (matched) out += ' ';
    out += part;
    if (matched) out += ' ';
  });
  return out;
}

std::string without_controls(const std::string& text) {
  static const Regex controls(R"((?![\t\n\r])[\x{0}\x{FFFD}\p{Cc}\p{Cf}\p{Co}])", "controls"),
      spaces(R"(\s)", "spaces");
  return spaces.replaced(controls.replaced(text, ""), " ");
}

std::vector<Change> read_normalizer(const Json& value, const std::string& from) {
  std::vector<Change> changes;
  each_step(value, "normalizers", from + ": normalizer",
            [&](JsonFields& step, const std::string& type) {
              if (type == "NFC") {
                changes.emplace_back(nfc);
              } else if (type == "NFD") {
                changes.emplace_back(nfd);
              } else if (type == "Lowercase") {
                changes.emplace_back(lower);
              } else if (type == "BertNormalizer") {
                const bool lowers = step.flag("lowercase", true);
                if (step.flag("clean_text", true)) changes.emplace_back(without_controls);
                if (step.flag("handle_chinese_chars", true))
                  changes.emplace_back(spaced_ideographs);
                if (step.flag("strip_accents", lowers)) changes.emplace_back(without_accents);
                if (lowers) changes.emplace_back(lower);
              } else {
                refuse_type(step, type);
              }
            });
  return changes;
}

// ---- pre_tokenizer: text to words ------------------------------------------------------------------

Cut split_cut(JsonFields& step) {
  JsonFields pattern(step.at("pattern"), step.where() + ": pattern");
  std::string text = pattern.text("Regex");
  if (text.empty()) {
    for (const char c : pattern.text("String")) {
      if (static_cast<unsigned char>(c) < 0x80 && std::isalnum(static_cast<unsigned char>(c)) == 0)
        text += '\\';
      text += c;
    }
  }
  pattern.done();
  const std::string behavior = step.text("behavior");
  step.expect("invert", {false});
  if (behavior != "Isolated" && behavior != "Removed")
    step.refuse(
        fmt::format("\"behavior\" is \"{}\"; heed has Isolated and Removed", shown(behavior, 60)));
  const bool keeps = behavior == "Isolated";
  return [keeps, regex = Regex(text, step.where())](std::string_view part, const Words& words) {
    regex.each_part(part, [&](std::string_view word, bool matched) {
      if (keeps || !matched) words(word);
    });
  };
}

/// GPT-2's pattern (Radford et al. 2019).
Cut byte_level_cut(JsonFields& step) {
  const bool space = step.flag("add_prefix_space", true), cuts = step.flag("use_regex", true);
  step.at("trim_offsets");  // offsets only
  const Regex regex(R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
                    step.where());
  return [space, cuts, regex](std::string_view part, const Words& words) {
    std::string prefixed;
    if (space && !part.starts_with(' ')) {
      prefixed = " ";
      part = prefixed += part;
    }
    if (!cuts) return words(part);
    regex.each_part(part, [&](std::string_view word, bool) { words(word); });
  };
}

Cut bert_cut(const std::string& where) {
  const Regex regex(R"([^\s\p{P}$+<=>^`|~]+|[\p{P}$+<=>^`|~])", where);
  return [regex](std::string_view part, const Words& words) {
    regex.each_part(part, [&](std::string_view word, bool matched) {
      if (matched) words(word);
    });
  };
}

// ---- the tokenizer ----------------------------------------------------------------------------------

/// The spaces that the library removes from English words (decoder WordPiece, "cleanup").
std::string without_spaces(std::string text) {
  constexpr std::pair<std::string_view, std::string_view> replaced[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : replaced) {
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
  }
  return text;
}

struct AddedToken {
  std::string text;
  std::int32_t id;
  bool special;
};

std::vector<AddedToken> read_added_tokens(const Json& list, bool normalises,
                                          const std::string& from) {
  std::vector<AddedToken> tokens;
  if (list.is_null()) return tokens;
  if (!list.is_array()) throw Error(Exit::bad_input, "{}: added_tokens: must be a list", from);
  for (const Json& each : list) {
    JsonFields token(each, from + ": added_tokens");
    const Json& id = token.at("id");
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() > INT32_MAX)
      token.refuse("\"id\" must be a whole number");
    AddedToken added{token.text("content"), id.get<std::int32_t>(), token.flag("special", false)};
    if (added.text.empty()) token.refuse("\"content\" is empty");
    // heed does not look for special pieces in a text, so their flags have no effect.
    for (const char* const flag : {"single_word", "lstrip", "rstrip"}) {
      if (token.flag(flag, false) && !added.special)
        token.refuse(fmt::format("\"{}\" of \"{}\" is true, which heed does not support", flag,
                                 shown(added.text, 60)));
    }
    if (token.flag("normalized", false) && normalises && !added.special)
      token.refuse(fmt::format("\"{}\" is found in normalised text, which heed does not support",
                               shown(added.text, 60)));
    token.done();
    tokens.push_back(std::move(added));
  }
  return tokens;
}

class ImportedTokenizer final : public Tokenizer {
 public:
  ImportedTokenizer(const std::string& json, const ImportedIds& ids, const std::string& from)
      : json_(json), ids_(ids) {
    const Json parsed = parse_json(json, from);
    JsonFields file(parsed, from);
    if (ids.size > most_pieces)
      throw Error(Exit::bad_input, "{}: a vocabulary of {} pieces; at most {} are allowed", from,
                  ids.size, most_pieces);
    file.expect("version", {"1.0"});
    file.at("truncation");  // of the library's own outputs, as is padding
    file.at("padding");
    file.at("post_processor");  // the specials around a text, which tasks add
    changes_ = read_normalizer(file.at("normalizer"), from);
    read_model(file.at("model"), from);
    read_pre_tokenizer(file.at("pre_tokenizer"), from);
    read_decoder(file.at("decoder"), from);
    std::vector<AddedToken> added =
        read_added_tokens(file.at("added_tokens"), !changes_.empty(), from);
    file.done();
    pieces_ = model_->pieces();
    place_added(std::move(added), from);
    if (std::cmp_greater(pieces_.size(), ids_.size))
      throw Error(Exit::bad_input, "{}: {} pieces, but the model's vocabulary has {}", from,
                  pieces_.size(), ids_.size);
    pieces_.resize(static_cast<std::size_t>(ids_.size));
    specials_.resize(pieces_.size());
    if (ids_.starts_text && ids_.special.bos < 0)
      throw Error(Exit::bad_input, "{}: texts begin with a piece that the vocabulary lacks", from);
    for (const std::int32_t id :
         {ids_.special.unk, ids_.special.bos, ids_.special.eos, ids_.mask}) {
      if (id < -1 || id >= size())
        throw Error(Exit::bad_input, "{}: special id {}, but the ids are 0 to {}", from, id,
                    size() - 1);
    }
  }

  TokenizerKind kind() const override { return TokenizerKind::imported; }
  std::int64_t size() const override { return ids_.size; }
  SpecialIds special_ids() const override { return ids_.special; }
  std::string piece(std::int32_t id) const override {
    check_id(id);
    return pieces_[id];
  }
  std::optional<std::int32_t> special(std::string_view name) const override {
    if (name == "<mask>" && ids_.mask >= 0) return ids_.mask;
    const auto named = [&](std::int32_t id) { return specials_[id] && pieces_[id] == name; };
    for (std::int32_t id = 0; id < size(); ++id)
      if (named(id)) return id;
    return std::nullopt;
  }
  /// The special pieces need not be the first ones, so this is 0 unless they are in the first half.
  std::int32_t first_ordinary() const override {
    std::int32_t id = static_cast<std::int32_t>(size() / 2);
    while (id > 0 && !specials_[id - 1]) --id;
    return id;
  }
  bool separates_lines() const override { return false; }
  std::optional<std::int32_t> text_start() const override {
    return ids_.starts_text ? std::optional(ids_.special.bos) : std::nullopt;
  }

  std::vector<std::int32_t> encode(std::string_view line) const override {
    std::vector<std::int32_t> ids;
    while (!line.empty()) {
      const std::size_t valid = std::min(invalid_utf8(line), line.size());
      encode_text(line.substr(0, valid), ids);
      if (valid == line.size()) break;
      model_->encode(line.substr(valid, 1), ids);  // a byte that is no character
      line.remove_prefix(valid + 1);
    }
    return ids;
  }

  std::string decode(std::span<const std::int32_t> ids) const override {
    std::string text;
    for (const std::int32_t id : ids) {
      check_id(id);
      if (specials_[id] && id != ids_.special.unk) continue;
      std::string piece = pieces_[id];
      if (!bytes_ && !text.empty()) {
        if (piece.starts_with(prefix_))
          piece.erase(0, prefix_.size());
        else
          piece.insert(0, " ");
      }
      text += cleans_ ? without_spaces(std::move(piece)) : piece;
    }
    return text;
  }

  std::string content() const override {
    const Json header{{"unk", ids_.special.unk},         {"bos", ids_.special.bos},
                      {"eos", ids_.special.eos},         {"mask", ids_.mask},
                      {"starts_text", ids_.starts_text}, {"size", ids_.size}};
    return header.dump() + "\n" + json_;
  }

 private:
  void read_model(const Json& value, const std::string& from) {
    JsonFields model(value, from + ": model");
    const std::string type = model.text("type");
    bytes_ = type == "BPE";
    if (bytes_)
      model_ = byte_pair_model(model);
    else if (type == "WordPiece")
      model_ = wordpiece_model(model);
    else
      refuse_type(model, type);
    model.done();
  }

  void read_pre_tokenizer(const Json& value, const std::string& from) {
    bool byte_level = false;
    each_step(value, "pretokenizers", from + ": pre_tokenizer",
              [&](JsonFields& step, const std::string& type) {
                if (byte_level) step.refuse("ByteLevel must be the last step");
                byte_level = type == "ByteLevel";
                if (type == "Split")
                  cuts_.push_back(split_cut(step));
                else if (byte_level)
                  cuts_.push_back(byte_level_cut(step));
                else if (type == "BertPreTokenizer")
                  cuts_.push_back(bert_cut(step.where()));
                else
                  refuse_type(step, type);
              });
    if (byte_level != bytes_)
      throw Error(Exit::bad_input,
                  "{}: heed has the model BPE with the pre_tokenizer ByteLevel, and WordPiece "
                  "without it",
                  from);
  }

  void read_decoder(const Json& value, const std::string& from) {
    JsonFields decoder(value, from + ": decoder");
    const std::string type = decoder.text("type");
    if (type != (bytes_ ? "ByteLevel" : "WordPiece")) refuse_type(decoder, type);
    if (bytes_) {
      for (const char* const key : {"add_prefix_space", "trim_offsets", "use_regex"})
        decoder.at(key);  // without effect on a decoder
    } else {
      prefix_ = decoder.text("prefix");
      cleans_ = decoder.flag("cleanup", true);
    }
    decoder.done();
  }

  /// Adds the tokens to the pieces; those that are not special are found in a text before all else.
  void place_added(std::vector<AddedToken> added, const std::string& from) {
    specials_.resize(pieces_.size());
    for (AddedToken& token : added) {
      const auto id = static_cast<std::size_t>(token.id);
      if (std::cmp_greater_equal(id, ids_.size))
        throw Error(Exit::bad_input,
                    "{}: added_tokens: \"{}\" has the id {}, but the model's vocabulary has {}",
                    from, shown(token.text, 60), id, ids_.size);
      if (id >= pieces_.size()) {
        pieces_.resize(id + 1);
        specials_.resize(id + 1);
      }
      pieces_[id] = token.text;
      specials_[id] = token.special;
      if (!token.special) found_.push_back(std::move(token));
    }
  }

  /// The first of the added tokens in the text, and the longest one at this place.
  std::pair<std::size_t, const AddedToken*> first_added(std::string_view text) const {
    std::pair<std::size_t, const AddedToken*> first{text.size(), nullptr};
    for (const AddedToken& token : found_) {
      const std::size_t at = text.find(token.text);
      if (at < first.first ||
          (at == first.first && first.second && token.text.size() > first.second->text.size()))
        first = {at, &token};
    }
    return first;
  }

  void encode_text(std::string_view text, std::vector<std::int32_t>& ids) const {
    while (!text.empty()) {
      const auto [at, token] = first_added(text);
      if (at > 0) encode_words(text.substr(0, at), ids);
      if (token == nullptr) return;
      ids.push_back(token->id);
      text.remove_prefix(at + token->text.size());
    }
  }

  void encode_words(std::string_view text, std::vector<std::int32_t>& ids) const {
    std::string changed;
    if (!changes_.empty()) {
      changed = text;
      for (const Change& change : changes_) changed = change(std::move(changed));
      text = changed;
    }
    if (!text.empty()) cut(0, text, ids);
  }

  void cut(std::size_t step, std::string_view text, std::vector<std::int32_t>& ids) const {
    if (step == cuts_.size()) return model_->encode(text, ids);
    cuts_[step](text, [&](std::string_view word) { cut(step + 1, word, ids); });
  }

  std::string json_;
  ImportedIds ids_;
  std::vector<Change> changes_;
  std::vector<Cut> cuts_;
  std::unique_ptr<WordModel> model_;
  bool bytes_ = false;   // the model is byte-level BPE
  std::string prefix_;   // WordPiece: begins pieces that continue a word
  bool cleans_ = false;  // WordPiece: some spaces are removed from decoded text
  std::vector<std::string> pieces_;
  std::vector<bool> specials_;
  std::vector<AddedToken> found_;
};

}  // namespace

std::unique_ptr<Tokenizer> make_imported(const std::string& json, const ImportedIds& ids,
                                         const std::string& from) {
  return std::make_unique<ImportedTokenizer>(json, ids, from);
}

std::unique_ptr<Tokenizer> load_imported(const std::filesystem::path& file) {
  const std::string content = read_file(file.string(), largest_tokenizer),
                    name = shown_path(file.string());
  const Json header = parse_json(std::string_view(content).substr(0, content.find('\n')), name);
  JsonFields fields(header, name + ": line 1");
  const auto number = [&](const char* key) {
    const Json& value = fields.at(key);
    if (!value.is_number_integer() || value < -1 || value > INT32_MAX)
      fields.refuse(fmt::format("\"{}\" must be a whole number", key));
    return value.get<std::int32_t>();
  };
  const ImportedIds ids{{number("unk"), number("bos"), number("eos")},
                        number("mask"),
                        fields.flag("starts_text", false),
                        number("size")};
  fields.done();
  return make_imported(std::string(json_of_imported(content)), ids, name);
}

std::string_view json_of_imported(std::string_view content) {
  const std::size_t line = content.find('\n');
  return line == std::string_view::npos ? std::string_view() : content.substr(line + 1);
}

}  // namespace heed
