#include "data/tokenizers/word_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <queue>
#include <tuple>
#include <unordered_map>

#include "autograd/base/error.h"
#include "autograd/io/formats/json_text.h"
#include "autograd/io/message_text.h"
#include "autograd/io/utf8.h"

namespace heed {

const std::vector<std::string>& byte_characters() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> characters(256);
    char32_t next = 0x100;
    for (char32_t byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
      utf8_append(characters[byte], printable ? byte : next++);
    }
    return characters;
  }();
  return all;
}

namespace {

using Ids = std::unordered_map<std::string, std::int32_t>;

/// The vocabulary of a model: ids by piece.
Ids read_vocabulary(JsonFields& model) {
  const nlohmann::json& vocabulary = model.at("vocab");
  if (!vocabulary.is_object() || vocabulary.empty())
    model.refuse("\"vocab\" must be an object with the ids of the pieces");
  Ids ids;
  for (const auto& [piece, id] : vocabulary.items()) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= most_pieces)
      model.refuse(fmt::format("\"vocab\": the id of \"{}\" is no number below {}",
                               shown(piece, 60), most_pieces));
    ids.emplace(piece, id.get<std::int32_t>());
  }
  return ids;
}

std::vector<std::string> by_id(const Ids& ids, const JsonFields& model) {
  std::int32_t last = 0;
  for (const auto& [piece, id] : ids) last = std::max(last, id);
  std::vector<std::string> pieces(static_cast<std::size_t>(last) + 1);
  std::vector<bool> seen(pieces.size());
  for (const auto& [piece, id] : ids) {
    if (seen[id]) model.refuse(fmt::format("\"vocab\": two pieces have the id {}", id));
    seen[id] = true;
    pieces[id] = piece;
  }
  return pieces;
}

/// The id of a piece that a key names; −1 if the key is missing or null.
std::int32_t named_piece(JsonFields& model, const char* key, const Ids& ids) {
  const std::string name = model.text(key);
  if (name.empty()) return -1;
  const auto found = ids.find(name);
  if (found == ids.end())
    model.refuse(fmt::format("\"{}\": \"{}\" is not in the vocabulary", key, shown(name, 60)));
  return found->second;
}

/// The bytes that a piece represents; the piece itself if one of its characters represents no byte.
std::string bytes_of(const std::string& piece) {
  static const auto bytes = [] {
    std::map<std::string, char, std::less<>> all;
    for (int byte = 0; byte < 256; ++byte)
      all.emplace(byte_characters()[byte], static_cast<char>(byte));
    return all;
  }();
  std::string out;
  for (std::size_t at = 0; at < piece.size();) {
    const std::size_t length = std::max<std::size_t>(utf8_length(piece, at), 1);
    const auto found = bytes.find(std::string_view(piece).substr(at, length));
    if (found == bytes.end()) return piece;
    out += found->second;
    at += length;
  }
  return out;
}

class BytePairs final : public WordModel {
 public:
  explicit BytePairs(JsonFields& model) {
    const Ids ids = read_vocabulary(model);
    pieces_ = by_id(ids, model);
    model.expect("dropout", {0.0});
    model.expect("continuing_subword_prefix", {""});
    model.expect("end_of_word_suffix", {""});
    model.expect("byte_fallback", {false});
    fuses_unknown_ = model.flag("fuse_unk", false);
    unknown_ = named_piece(model, "unk_token", ids);
    if (model.flag("ignore_merges", false)) {
      for (const auto& [piece, id] : ids) whole_.emplace(bytes_of(piece), id);
    }
    for (int byte = 0; byte < 256; ++byte) {
      const auto found = ids.find(byte_characters()[byte]);
      bytes_[byte] = found == ids.end() ? -1 : found->second;
    }
    read_merges(model, ids);
    for (std::string& piece : pieces_) piece = bytes_of(piece);
  }

  void encode(std::string_view word, std::vector<std::int32_t>& ids) const override {
    if (const auto whole = whole_.find(std::string(word)); whole != whole_.end())
      return ids.push_back(whole->second);
    std::vector<Symbol> symbols;
    symbols.reserve(word.size());
    for (const char c : word) {
      std::int32_t id = bytes_[static_cast<unsigned char>(c)];
      if (id < 0) id = unknown_;
      if (id < 0 ||
          (fuses_unknown_ && id == unknown_ && !symbols.empty() && symbols.back().id == unknown_))
        continue;
      const auto place = static_cast<std::int32_t>(symbols.size());
      symbols.push_back({id, place - 1, place + 1});
    }
    if (!symbols.empty()) symbols.back().next = -1;
    merge(symbols);
    for (const Symbol& symbol : symbols)
      if (symbol.id >= 0) ids.push_back(symbol.id);
  }

 private:
  struct Symbol {
    std::int32_t id, previous, next;  // id −1: merged into the one before; neighbours −1: none
  };
  struct Merge {
    std::int32_t rank, id;
  };
  struct Candidate {
    std::int32_t rank, place, id;
    bool operator>(const Candidate& other) const {
      return std::tie(rank, place) > std::tie(other.rank, other.place);
    }
  };

  static std::uint64_t key_of(std::int32_t a, std::int32_t b) {
    return std::uint64_t{static_cast<std::uint32_t>(a)} << 32 | static_cast<std::uint32_t>(b);
  }

  /// "merges": pairs of pieces, or their texts separated by a space, in the order of their ranks.
  void read_merges(JsonFields& model, const Ids& ids) {
    const nlohmann::json& list = model.at("merges");
    if (!list.is_array()) model.refuse("\"merges\" must be a list");
    std::int32_t rank = 0;
    for (const nlohmann::json& merge : list) {
      std::string first, second;
      if (merge.is_string()) {
        const auto& text = merge.get_ref<const std::string&>();
        const std::size_t space = text.find(' ');
        first = text.substr(0, space);
        if (space != std::string::npos) second = text.substr(space + 1);
      } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
                 merge[1].is_string()) {
        first = merge[0].get<std::string>();
        second = merge[1].get<std::string>();
      }
      const auto a = ids.find(first), b = ids.find(second), both = ids.find(first + second);
      if (a == ids.end() || b == ids.end() || both == ids.end())
        model.refuse(
            fmt::format("\"merges\": number {} ({}) is no pair of pieces whose union is a "
                        "piece",
                        rank + 1, shown(merge.dump(), 60)));
      // Of two equal pairs, the last one counts, as in the library.
      merges_[key_of(a->second, b->second)] = {rank++, both->second};
    }
  }

  void merge(std::vector<Symbol>& symbols) const {
    std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
    const auto add = [&](std::int32_t place) {
      if (place < 0 || symbols[place].next < 0) return;
      const auto found = merges_.find(key_of(symbols[place].id, symbols[symbols[place].next].id));
      if (found != merges_.end()) queue.push({found->second.rank, place, found->second.id});
    };
    for (std::int32_t place = 0; place < std::ssize(symbols); ++place) add(place);
    while (!queue.empty()) {
      const Candidate best = queue.top();
      queue.pop();
      Symbol& left = symbols[best.place];
      if (left.id < 0 || left.next < 0) continue;
      Symbol& right = symbols[left.next];
      const auto found = merges_.find(key_of(left.id, right.id));
      if (found == merges_.end() || found->second.id != best.id) continue;  // no longer neighbours
      left.id = best.id;
      right.id = -1;
      left.next = right.next;
      if (left.next >= 0) symbols[left.next].previous = best.place;
      add(left.previous);
      add(best.place);
    }
  }

  std::array<std::int32_t, 256> bytes_{};
  std::int32_t unknown_ = -1;
  bool fuses_unknown_ = false;
  std::unordered_map<std::uint64_t, Merge> merges_;
  Ids whole_;  // with "ignore_merges": words that are a piece
};

class WordPieces final : public WordModel {
 public:
  explicit WordPieces(JsonFields& model) : ids_(read_vocabulary(model)) {
    pieces_ = by_id(ids_, model);
    prefix_ = model.text("continuing_subword_prefix");
    unknown_ = named_piece(model, "unk_token", ids_);
    if (unknown_ < 0) model.refuse("\"unk_token\" is missing");
    const nlohmann::json& longest = model.at("max_input_chars_per_word");
    if (longest.is_null()) return;
    if (!longest.is_number_unsigned())
      model.refuse("\"max_input_chars_per_word\" must be a whole number");
    longest_ = longest.get<std::uint64_t>();
  }

  void encode(std::string_view word, std::vector<std::int32_t>& ids) const override {
    const std::size_t before = ids.size();
    const auto unknown = [&] {
      ids.resize(before);
      ids.push_back(unknown_);
    };
    if (character_count(word) > longest_) return unknown();
    std::string piece;
    for (std::size_t begin = 0; begin < word.size();) {
      std::size_t end = word.size();
      auto found = ids_.end();
      for (; end > begin; --end) {
        if (end < word.size() && (static_cast<unsigned char>(word[end]) & 0xC0u) == 0x80u) continue;
        piece = begin == 0 ? "" : prefix_;
        piece += word.substr(begin, end - begin);
        found = ids_.find(piece);
        if (found != ids_.end()) break;
      }
      if (found == ids_.end()) return unknown();
      ids.push_back(found->second);
      begin = end;
    }
  }

 private:
  Ids ids_;
  std::string prefix_;
  std::int32_t unknown_ = -1;
  std::uint64_t longest_ = 100;  // the library's default
};

}  // namespace

std::unique_ptr<WordModel> byte_pair_model(JsonFields& model) {
  return std::make_unique<BytePairs>(model);
}

std::unique_ptr<WordModel> wordpiece_model(JsonFields& model) {
  return std::make_unique<WordPieces>(model);
}

}  // namespace heed
