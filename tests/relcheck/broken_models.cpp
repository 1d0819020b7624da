/// Broken SentencePiece models, written field by field (protocol buffers: a tag with the field's
/// number and type, then a length and the bytes, or a number in groups of seven bits).
#include <cstring>
#include <limits>

#include "autograd/io/formats/gzip.h"
#include "data/tokenizers/tokenizer.h"
#include "tests/relcheck/broken_case.h"

namespace heed::relcheck {
namespace {
namespace fs = std::filesystem;

const std::string kName = "m.model";

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(0x80 | (value & 0x7F));
  return bytes + static_cast<char>(value);
}

enum Wire : unsigned { number = 0, eight_bytes = 1, length = 2, group = 3, four_bytes = 5 };

std::string tag(std::uint64_t field, Wire wire) { return varint(field << 3 | wire); }
std::string text_field(std::uint64_t field, const std::string& bytes) {
  return tag(field, length) + varint(bytes.size()) + bytes;
}
std::string number_field(std::uint64_t field, std::uint64_t value) {
  return tag(field, number) + varint(value);
}

enum Type : unsigned { normal = 1, unknown = 2, control = 3, user = 4, unused = 5, byte = 6 };

std::string piece(const std::string& text, float score, unsigned type = normal) {
  std::string bits(sizeof score, '\0');
  std::memcpy(bits.data(), &score, sizeof score);
  return text_field(1, text_field(1, text) + tag(2, four_bytes) + bits + number_field(3, type));
}

const std::string kSpecials =
    piece("<unk>", 0, unknown) + piece("<s>", 0, control) + piece("</s>", 0, control);
const std::string kPieces = kSpecials + piece("\u2581a", -1) + piece("a", -2) + piece("b", -3);
const std::string kTrainer = text_field(2, number_field(3, 1) + number_field(4, 6));
const std::string kNormalizer = text_field(3, text_field(1, "identity"));
const std::string kEnd = kTrainer + kNormalizer;

struct Cases {
  std::vector<BrokenCase> all;

  void put_in(const std::string& name, std::function<void(const fs::path&)> make,
              const std::string& says) {
    all.push_back({name,
                   std::move(make),
                   // An accepted model must also encode and decode a sentence without an error.
                   [](const fs::path& folder) {
                     const auto read = load_tokenizer(folder / kName, TokenizerKind::sentencepiece);
                     read->decode(read->encode("a b abab \u00E4 \u2581 <s> \n"));
                   },
                   {"FOLDER/" + kName, says}});
  }
  void file(const std::string& name, const std::string& bytes, const std::string& says) {
    put_in(
        "model: " + name, [bytes](const fs::path& folder) { put(folder / kName, bytes); }, says);
  }
};

void frames(Cases& cases) {
  const std::string broken = "not a sentencepiece model, or truncated";
  const std::string whole = kPieces + kEnd;
  cases.file("no pieces", kEnd, broken);
  cases.file("no trainer", kPieces + kNormalizer, broken);
  cases.file("no normaliser", kPieces + kTrainer, broken);
  cases.file("truncated in a tag", whole + "\x80", broken);
  cases.file("truncated in a length", whole + "\x0A\x80", broken);
  cases.file("a length one too large", whole + "\x0A\x01", broken);
  cases.file("a length of 2^31", whole + tag(1, length) + varint(1u << 31), broken);
  cases.file("a length of 2^63", whole + tag(1, length) + varint(std::uint64_t{1} << 63), broken);
  cases.file("a length of 2^64 - 1", whole + tag(1, length) + varint(~std::uint64_t{0}), broken);
  cases.file("an unterminated length", whole + "\x0A" + std::string(100, '\xFF'), broken);
  cases.file("a field with number 0", whole + text_field(0, "x"), "not a sentencepiece model");
  cases.file("a number instead of a message", number_field(1, 5) + whole, broken);
  cases.file("a group", whole + tag(1, group), broken);
  cases.file("eight bytes instead of a message", whole + tag(3, eight_bytes) + "12345678", broken);
  cases.file("nested groups in a piece", text_field(1, std::string(100'000, '\x0B')) + whole,
             "not a sentencepiece model");
  cases.all.back().make_eighth = [small = text_field(1, std::string(12'500, '\x0B')) + whole](
                                     const fs::path& folder) { put(folder / kName, small); };
  cases.file("a truncated piece",
             text_field(1,
                        "\x0A\x7F"
                        "abc") +
                 whole,
             "not a sentencepiece model");
  cases.file("a truncated trainer", kPieces + text_field(2, "\x18") + kNormalizer,
             "not a sentencepiece model");
  cases.file("a normaliser with garbage bytes", kPieces + kTrainer + text_field(3, "\xFF\xFF\xFF"),
             "not a sentencepiece model");
  cases.file("another program's vocabulary", "{\"version\": \"1.0\", \"model\": {\"vocab\": {}}}",
             broken);
  cases.file("SentencePiece's text format", "<unk>\t0\n<s>\t0\n</s>\t0\n\u2581a\t-1\n", broken);
  cases.file("a file of zeros", std::string(10'000, '\0'), broken);
  const std::string packed = pack_gzip(whole);
  cases.file("compressed and truncated", packed.substr(0, packed.size() - 9), "truncated");
}

void specials(Cases& cases) {
  const std::string needed = "they must be 0, 1, 2";
  const std::string rest = piece("\u2581a", -1) + piece("a", -2) + kEnd;
  cases.file("no specials", rest, "");
  cases.file(
      "<unk> at 1",
      piece("<s>", 0, control) + piece("<unk>", 0, unknown) + piece("</s>", 0, control) + rest,
      needed);
  cases.file("<pad> at 0",
             piece("<pad>", 0, control) + piece("<unk>", 0, unknown) + piece("<s>", 0, control) +
                 piece("</s>", 0, control) + rest,
             needed);
  cases.file(
      "<s> and </s> exchanged",
      piece("<unk>", 0, unknown) + piece("</s>", 0, control) + piece("<s>", 0, control) + rest,
      needed);
  cases.file("no </s>", piece("<unk>", 0, unknown) + piece("<s>", 0, control) + rest, needed);
  cases.file("<unk> twice", kPieces + piece("<unk2>", 0, unknown) + kEnd, "");
  cases.file("<s> as an ordinary piece",
             piece("<unk>", 0, unknown) + piece("<s>", 0) + piece("</s>", 0, control) + rest, "");
  cases.file("only special pieces", kSpecials + kEnd, "");
}

void pieces(Cases& cases) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinite = std::numeric_limits<float>::infinity();
  const auto with = [&](const std::string& name, const std::string& more, const std::string& says) {
    cases.file(name, kPieces + more + kEnd, says);
  };
  with("an empty piece", piece("", -1), "");
  with("a duplicate piece", piece("a", -1), "");
  with("a piece without text", text_field(1, number_field(3, 1)), "");
  with("a piece that is not UTF-8", piece("\xFF\xFE", -1), "");
  with("a score of NaN", piece("ab", nan), "");
  with("a score of infinity", piece("ab", infinite), "");
  with("a score of minus infinity", piece("ab", -infinite), "");
  with("an invalid byte piece", piece("<0xZZ>", -1, byte), "");
  with("an incomplete set of byte pieces", piece("<0x41>", -1, byte), "");
  cases.file("byte fallback without byte pieces",
             kPieces + text_field(2, number_field(3, 1) + number_field(35, 1)) + kNormalizer, "");
}

/// A model trained by SentencePiece, with a character map.
std::string learned_model() {
  const Scratch scratch;
  const std::vector<std::string> lines(50, "the quick brown fox jumps over a lazy dog");
  return get(train_tokenizer({.vocab_size = 40}, lines, 1)->save(scratch / "m"));
}

/// The trained model with a changed node in the trie of its character map.
std::string with_node(std::size_t node, const std::string& bytes) {
  const std::string name = "nmt_nfkc";
  std::string model = learned_model();
  std::size_t at = model.find(name) + name.size();
  if (model.at(at) != '\x12') throw Error(Exit::failed, "the trained model has no character map");
  do ++at;  // past the tag and the length
  while ((model.at(at) & 0x80) != 0);
  const std::size_t trie = at + 1 + sizeof(std::uint32_t);
  return model.replace(trie + node * sizeof(std::uint32_t), bytes.size(), bytes);
}

void normalisers(Cases& cases) {
  cases.file("a trie with a wrong root", with_node(0, std::string("\0\xFE\xFF\x7F", 4)), "");
  cases.file("a trie with a wrong inner node", with_node(1000, std::string("\0\xFE\xFF\x7F", 4)),
             "");
  cases.file("a text offset beyond the texts", with_node(1000, "\xFF\xFF\xFF\xFF"), "");

  const auto map = [&](const std::string& name, const std::string& bytes) {
    cases.file(name, kPieces + kTrainer + text_field(3, text_field(2, bytes)), "");
  };
  map("a character map of one byte", "x");
  map("a character map shorter than its size", std::string("\xFF\xFF\xFF\x7F", 4) + "abcd");
  map("a character map with garbage as its trie",
      std::string("\0\x04\0\0", 4) + std::string(1024, '\xA5') + "abc");
  map("a character map with a trie of all ones",
      std::string("\0\x04\0\0", 4) + std::string(1024, '\xFF') + "abc");
  map("a character map of zeros", std::string(64, '\0'));
  // The root marks its first child as a value, although the child is an inner node.
  map("a text offset beyond the texts, in a node that is not a leaf",
      std::string("\0\x04\0\0\0\x05\0\0\x64\0\0\0", 12) + std::string(1016, '\0') +
          std::string("abc\0", 4));
}

void places(Cases& cases) {
  const auto link = [](const std::string& target) {
    return [target](const fs::path& folder) { fs::create_symlink(target, folder / kName); };
  };
  cases.put_in(
      "model: a folder", [](const fs::path& folder) { fs::create_directory(folder / kName); },
      "folder");
  cases.put_in(
      "model: a pipe", [](const fs::path& folder) { make_pipe(folder / kName); }, "");
  cases.put_in("model: an endless device", link("/dev/zero"), "");
  cases.put_in("model: a link to itself", link(kName), "Too many levels");
  cases.put_in("model: a dangling link", link("none"), "no such file");
  cases.put_in(
      "model: a sparse file of a terabyte",
      [](const fs::path& folder) {
        put(folder / kName, kPieces + kEnd);
        fs::resize_file(folder / kName, std::uintmax_t{1} << 40);
      },
      "longer than 67108864 bytes");
  cases.put_in(
      "model: a file used as a folder",
      [](const fs::path& folder) {
        put(folder / "file", "x");
        fs::create_symlink("file/m.model", folder / kName);
      },
      "Not a directory");
}

}  // namespace

std::vector<BrokenCase> sound_models() {
  Cases cases;
  cases.file("a trained model", learned_model(), "");
  cases.file("a complete model", kPieces + kEnd, "");
  cases.file("a compressed model", pack_gzip(kPieces + kEnd), "");
  cases.file("a field from a newer version", kPieces + kEnd + text_field(9, "new"), "");
  return cases.all;
}

std::vector<BrokenCase> broken_models() {
  Cases cases;
  frames(cases);
  specials(cases);
  pieces(cases);
  normalisers(cases);
  places(cases);
  return cases.all;
}

}  // namespace heed::relcheck
