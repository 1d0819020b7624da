#include "data/tokenizers/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <set>
#include <unordered_map>
#include <utility>

#include "autograd/base/error.h"
#include "autograd/io/lines.h"
#include "autograd/io/utf8.h"

namespace heed {
namespace {

constexpr std::array<std::string_view, 3> special_pieces = {"<unk>", "<s>", "</s>"};
constexpr std::string_view special_mark = "\\!";  // precedes each further special in a file

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

/// Calls visit(piece) for every piece of a line. A byte that is not valid UTF-8 is one character.
template <class Visit>
void each_piece(TokenizerKind kind, std::string_view line, Visit visit) {
  if (kind == TokenizerKind::bytes) {
    for (std::size_t at = 0; at < line.size(); ++at) visit(line.substr(at, 1));
  } else if (kind == TokenizerKind::characters) {
    for (std::size_t at = 0; at < line.size();) {
      const bool ascii = static_cast<unsigned char>(line[at]) < 0x80;
      const std::size_t length = ascii ? 1 : std::max<std::size_t>(1, utf8_length(line, at));
      visit(line.substr(at, length));
      at += length;
    }
  } else {
    for (std::size_t at = 0; at < line.size();) {
      std::size_t end = at + 1;
      if (!is_space(line[at])) {
        if (line[at] != '\n') {
          while (end < line.size() && !is_space(line[end]) && line[end] != '\n') ++end;
        }
        visit(line.substr(at, end - at));
      }
      at = end;
    }
  }
}

/// Characters with a short escape, and the letters of their escapes.
constexpr auto escapes = std::to_array<std::pair<char, char>>(
    {{'\\', '\\'}, {'\n', 'n'}, {'\r', 'r'}, {'\t', 't'}, {' ', 's'}});

std::string escaped(std::string_view piece) {
  std::string out;
  const bool like_special =
      std::find(special_pieces.begin(), special_pieces.end(), piece) != special_pieces.end();
  for (std::size_t at = 0; at < piece.size();) {
    const std::size_t length = utf8_length(piece, at);
    const auto byte = static_cast<unsigned char>(piece[at]);
    const auto known = std::ranges::find(escapes, piece[at], &std::pair<char, char>::first);
    if (known != escapes.end()) {
      out += {'\\', known->second};
    } else if (length == 0 || byte < 0x20 || byte == 0x7F || (like_special && at == 0)) {
      out += fmt::format("\\x{:02X}", byte);
    } else {
      out += piece.substr(at, length);
    }
    at += std::max<std::size_t>(1, length);
  }
  return out;
}

/// The inverse of escaped(). Returns false if the line is malformed or empty.
bool unescape(std::string_view line, std::string& piece) {
  piece.clear();
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (line[at] != '\\') {
      piece.push_back(line[at]);
      continue;
    }
    if (++at == line.size()) return false;
    const auto known = std::ranges::find(escapes, line[at], &std::pair<char, char>::second);
    if (known != escapes.end()) {
      piece.push_back(known->first);
      continue;
    }
    const char* const digits = line.data() + at + 1;
    unsigned char byte = 0;
    if (line[at] != 'x' || at + 2 >= line.size() ||
        std::from_chars(digits, digits + 2, byte, 16).ptr != digits + 2)
      return false;
    piece.push_back(static_cast<char>(byte));
    at += 2;
  }
  return !piece.empty();
}

struct StringHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
};

class VocabularyTokenizer final : public Tokenizer {
 public:
  VocabularyTokenizer(TokenizerKind kind, std::span<const std::string> specials,
                      std::vector<std::string> pieces)
      : kind_(kind), pieces_(special_pieces.begin(), special_pieces.end()) {
    pieces_.insert(pieces_.end(), specials.begin(), specials.end());
    first_ = pieces_.size();
    std::move(pieces.begin(), pieces.end(), std::back_inserter(pieces_));
    for (std::size_t i = first_; i < pieces_.size(); ++i) {
      ids_.emplace(pieces_[i], static_cast<std::int32_t>(i));
    }
    for (int byte = 0; byte < 256; ++byte) {
      const char c = static_cast<char>(byte);
      single_[byte] = id_of({&c, 1});
    }
  }

  TokenizerKind kind() const override { return kind_; }
  std::int64_t size() const override { return static_cast<std::int64_t>(pieces_.size()); }
  std::string piece(std::int32_t id) const override {
    check_id(id);
    return pieces_[id];
  }
  std::optional<std::int32_t> special(std::string_view name) const override {
    const auto end = pieces_.begin() + first_, found = std::find(pieces_.begin(), end, name);
    if (found == end) return std::nullopt;
    return static_cast<std::int32_t>(found - pieces_.begin());
  }

  std::vector<std::int32_t> encode(std::string_view line) const override {
    std::vector<std::int32_t> ids;
    if (kind_ != TokenizerKind::words) ids.reserve(line.size());
    each_piece(kind_, line, [&](std::string_view piece) {
      ids.push_back(piece.size() == 1 ? single_[static_cast<unsigned char>(piece[0])]
                                      : id_of(piece));
    });
    return ids;
  }

  std::string decode(std::span<const std::int32_t> ids) const override {
    std::string text;
    for (const std::int32_t id : ids) {
      check_id(id);
      if (id != unk && std::cmp_less(id, first_)) continue;
      if (kind_ != TokenizerKind::words) {
        text += id == unk ? "\uFFFD" : pieces_[id];
        continue;
      }
      const std::string& word = pieces_[id];
      if (!text.empty() && text.back() != '\n' && word != "\n") text += ' ';
      text += word;
    }
    return text;
  }

  std::string content() const override {
    std::string content;
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      if (i >= special_pieces.size() && i < first_) content += special_mark;
      content += i < first_ ? pieces_[i] : escaped(pieces_[i]);
      content += '\n';
    }
    return content;
  }

 private:
  std::int32_t id_of(std::string_view piece) const {
    const auto found = ids_.find(piece);
    return found == ids_.end() ? unk : found->second;
  }

  TokenizerKind kind_;
  std::vector<std::string> pieces_;
  std::size_t first_;  ///< id of the first piece of text
  std::unordered_map<std::string, std::int32_t, StringHash, std::equal_to<>> ids_;
  std::array<std::int32_t, 256> single_{};  ///< id of each one-byte piece, or unk
};

std::vector<std::string> all_bytes() {
  std::vector<std::string> pieces;
  pieces.reserve(256);
  for (int byte = 0; byte < 256; ++byte) pieces.emplace_back(1, static_cast<char>(byte));
  return pieces;
}

/// Whether `piece` is a single piece for each_piece and, unless the kind is `bytes`, valid UTF-8.
bool fits(TokenizerKind kind, const std::string& piece) {
  std::int64_t count = 0;
  each_piece(kind, piece,
             [&](std::string_view part) { count += part.size() == piece.size() ? 1 : 2; });
  return count == 1 && (kind == TokenizerKind::bytes || invalid_utf8(piece) == std::string::npos);
}

/// Calls refuse(id, message), which throws, if the pieces are not those of the kind.
template <class Refuse>
std::unique_ptr<Tokenizer> checked(TokenizerKind kind, const std::vector<std::string>& specials,
                                   std::vector<std::string> pieces, const Refuse& refuse) {
  const std::size_t first = special_pieces.size() + specials.size();
  if (!wrong_specials(specials).empty())
    refuse(first - 1, "the special pieces must be distinct names like <mask>");
  std::set<std::string> seen;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (!fits(kind, pieces[i]))
      refuse(first + i, "this kind of tokenizer requires a single character, byte or word");
    if (!seen.insert(pieces[i]).second) refuse(first + i, "duplicate piece");
  }
  if (pieces.empty()) refuse(first, "a vocabulary without pieces");
  if (kind == TokenizerKind::bytes && pieces != all_bytes())
    refuse(first + pieces.size(), "a byte vocabulary must contain the 256 bytes in order");
  return std::make_unique<VocabularyTokenizer>(kind, specials, std::move(pieces));
}

}  // namespace

std::unique_ptr<Tokenizer> train_vocabulary(const TokenizerOptions& options,
                                            std::span<const std::string> lines) {
  const auto tokenizer_of = [&](std::vector<std::string> pieces) {
    return std::make_unique<VocabularyTokenizer>(options.kind, options.specials, std::move(pieces));
  };
  if (options.kind == TokenizerKind::bytes) return tokenizer_of(all_bytes());
  std::unordered_map<std::string, std::int64_t, StringHash, std::equal_to<>> counts;
  std::array<std::int64_t, 128> single{};  // counts of ASCII characters, without a lookup
  for (const auto& line : lines) {
    each_piece(options.kind, line, [&](std::string_view piece) {
      const auto first = static_cast<unsigned char>(piece[0]);
      if (piece.size() == 1 && first < single.size()) {
        ++single[first];
      } else if (const auto known = counts.find(piece); known != counts.end()) {
        ++known->second;
      } else if (invalid_utf8(piece) == std::string_view::npos) {
        counts.emplace(piece, 1);
      }
    });
  }
  for (std::size_t c = 0; c < single.size(); ++c)
    if (single[c] > 0) counts.emplace(std::string(1, static_cast<char>(c)), single[c]);
  if (counts.empty()) throw Error(Exit::bad_input, "tokenizer: there is no text to learn from");

  std::vector<std::pair<std::string, std::int64_t>> sorted(counts.begin(), counts.end());
  const bool words = options.kind == TokenizerKind::words;
  std::sort(sorted.begin(), sorted.end(), [words](const auto& a, const auto& b) {
    return words && a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  if (words) {
    const auto specials =
        static_cast<std::int64_t>(special_pieces.size() + options.specials.size());
    const std::int64_t room = options.vocab_size - specials;
    if (room < 1)
      throw Error(Exit::usage, "tokenizer.vocab_size: must be at least {}", specials + 1);
    if (static_cast<std::int64_t>(sorted.size()) > room) sorted.resize(room);
  }
  std::vector<std::string> pieces;
  pieces.reserve(sorted.size());
  std::uint64_t bytes = 0;  // size of the file, without the specials
  for (auto& [piece, count] : sorted) {
    bytes += escaped(piece).size() + 1;
    pieces.push_back(std::move(piece));
  }
  refuse_large_tokenizer(bytes);
  return tokenizer_of(std::move(pieces));
}

std::unique_ptr<Tokenizer> load_vocabulary(const std::filesystem::path& file, TokenizerKind kind) {
  const auto lines = read_lines(file.string(), largest_tokenizer);
  const auto refuse = [&](std::size_t line, const std::string& message) {
    throw Error(Exit::bad_input, "{}:{}: {}", shown_path(file.string()), line + 1, message);
  };
  for (std::size_t i = 0; i < special_pieces.size(); ++i) {
    if (i >= lines.size() || lines[i] != special_pieces[i]) {
      refuse(i, fmt::format("not a vocabulary: expected {}", special_pieces[i]));
    }
  }
  std::vector<std::string> specials;
  std::size_t first = special_pieces.size();
  for (; first < lines.size() && lines[first].starts_with(special_mark); ++first)
    specials.push_back(lines[first].substr(special_mark.size()));
  std::vector<std::string> pieces(lines.size() - first);
  for (std::size_t i = first; i < lines.size(); ++i)
    if (!unescape(lines[i], pieces[i - first]))
      refuse(i, "not a piece (empty, or a broken escape)");
  return checked(kind, specials, std::move(pieces), refuse);
}

std::unique_ptr<Tokenizer> make_vocabulary(TokenizerKind kind,
                                           const std::vector<std::string>& specials,
                                           const std::vector<std::string>& pieces,
                                           const std::string& from) {
  return checked(kind, specials, pieces, [&](std::size_t id, const std::string& message) {
    throw Error(Exit::bad_input, "{}: id {}: {}", from, id, message);
  });
}

}  // namespace heed
