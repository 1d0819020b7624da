/// Broken vocabulary files of the tokenizers that list their pieces: characters, bytes, words.
#include "autograd/io/formats/gzip.h"
#include "data/tokenizers/tokenizer.h"
#include "tests/relcheck/broken_case.h"

namespace heed::relcheck {
namespace {
namespace fs = std::filesystem;
using enum TokenizerKind;

const std::string kSpecials = "<unk>\n<s>\n</s>\n";

struct Cases {
  std::vector<BrokenCase> all;

  void put_in(const std::string& name, TokenizerKind kind,
              std::function<void(const fs::path&)> make, const std::string& says) {
    all.push_back({"vocabulary: " + name,
                   std::move(make),
                   [kind](const fs::path& folder) { load_tokenizer(folder / "t.vocab", kind); },
                   {"FOLDER/t.vocab" + says}});
  }
  void file(const std::string& name, TokenizerKind kind, const std::string& bytes,
            const std::string& says) {
    put_in(
        name, kind, [bytes](const fs::path& folder) { put(folder / "t.vocab", bytes); }, says);
  }
  /// Adds a file with the content bytes(size) and, as its shorter form, bytes(size / 8).
  void sized(const std::string& name, TokenizerKind kind, std::size_t size,
             const std::function<std::string(std::size_t)>& bytes, const std::string& says) {
    file(name, kind, bytes(size), says);
    all.back().make_eighth = [small = bytes(size / 8)](const fs::path& folder) {
      put(folder / "t.vocab", small);
    };
  }
  /// Adds a file with this fourth line; `says` is the message about the line.
  void line(const std::string& name, TokenizerKind kind, const std::string& line,
            const std::string& says) {
    file(name, kind, kSpecials + line + "\n", ":4: " + says);
  }
};

void heads(Cases& cases) {
  const std::string expected = "not a vocabulary: expected ";
  cases.file("empty lines", characters, "\n\n\n\na\n", ":1: " + expected + "<unk>");
  cases.file("special pieces in capitals", words, "<UNK>\n<S>\n</S>\na\n",
             ":1: " + expected + "<unk>");
  cases.file("special pieces in another order", words, "<unk>\n</s>\n<s>\na\n",
             ":2: " + expected + "<s>");
  cases.file("a special piece with a space", words, "<unk> \n<s>\n</s>\na\n",
             ":1: " + expected + "<unk>");
  cases.file("<pad> first", words, "<pad>\n" + kSpecials + "a\n", ":1: " + expected + "<unk>");
  cases.file("truncated after two lines", words, "<unk>\n<s>\n", ":3: " + expected + "</s>");
  cases.file("truncated in the third line", words, "<unk>\n<s>\n</", ":3: " + expected + "</s>");
  cases.file("line endings of classic Mac OS", characters, "<unk>\r<s>\r</s>\ra\r",
             ":1: " + expected);
  cases.file("UTF-16", characters, std::string("\xFF\xFE<\0u\0", 6), ":1: invalid UTF-8");
  cases.file("all zeros", characters, std::string(4096, '\0'), ":1: NUL byte");
  cases.file("a SentencePiece model", words, "\x0A\x0E\x0A\x05<unk>\x15", ":1: ");
  cases.put_in(
      "a sparse file of a terabyte", words,
      [](const fs::path& folder) {
        put(folder / "t.vocab", kSpecials);
        fs::resize_file(folder / "t.vocab", std::uintmax_t{1} << 40);
      },
      ": longer than 67108864 bytes");
  cases.sized(
      "a line of two million bytes", words, 2'000'000,
      [](std::size_t size) { return kSpecials + std::string(size, 'a') + "\n"; },
      ":4: a line of more than 1000000 bytes");
  cases.file("a sector of zeros at the end", characters, kSpecials + "a\n" + std::string(512, '\0'),
             ":5: NUL byte");
}

void pieces(Cases& cases) {
  const std::string no_piece = "not a piece",
                    one = "this kind of tokenizer requires a single character, byte or word";
  cases.line("an escape truncated after x", characters, "\\x", no_piece);
  cases.line("an escape of four digits", characters, "\\u0041", no_piece);
  cases.line("an escape in capitals", characters, "\\X41", no_piece);
  cases.line("a backslash at the end of a word", words, "word\\", no_piece);
  cases.line("two characters, one escaped", characters, "a\\x62", one);
  cases.line("a letter and its accent", characters, "e\u0301", one);
  cases.line("half a character in an escape", characters, "\\xC3", one);
  cases.line("a lone surrogate", characters, "\\xED\\xA0\\x80", one);
  cases.line("a NUL in two escaped bytes", characters, "\\xC0\\x80", one);
  cases.line("two words separated by a tab", words, "a\\tb", one);
  cases.line("two words separated by a newline", words, "a\\nb", one);
  cases.line("a space as a word", words, "\\s", one);
  cases.line("a character as a byte", bytes, "\u00E4", one);
  cases.line("a line with a count", words, "the 1234", one);
  cases.line("a byte that is not UTF-8", bytes, "\xFF", "invalid UTF-8");
  cases.file("an empty line in the middle", characters, kSpecials + "a\n\nb\n", ":5: " + no_piece);
  cases.file("a duplicate piece, once escaped", characters, kSpecials + "a\n\\x61\n",
             ":5: duplicate piece");
  cases.sized(
      "duplicate pieces, far apart", words, 20'000,
      [](std::size_t pieces) {
        std::string many = kSpecials + "x\n";
        for (std::size_t i = 0; i < pieces; ++i) many += fmt::format("w{}\n", i);
        return many + "x\n";
      },
      ":20005: duplicate piece");
  cases.file("only special pieces and a comment", words, kSpecials + "# words\n", ":4: " + one);
}

std::string byte_lines(int from, int to) {
  std::string lines;
  for (int value = from; value < to; ++value) lines += fmt::format("\\x{:02X}\n", value);
  return lines;
}

void byte_vocabularies(Cases& cases) {
  const std::string order = "a byte vocabulary must contain the 256 bytes in order";
  cases.file("255 bytes", bytes, kSpecials + byte_lines(0, 255), ":");
  cases.file("the first byte missing", bytes, kSpecials + byte_lines(1, 256), ":");
  cases.file("257 bytes", bytes, kSpecials + byte_lines(0, 256) + "\\x00\n",
             ":260: duplicate piece");
  cases.file("two bytes exchanged", bytes, kSpecials + "\\x01\n\\x00\n" + byte_lines(2, 256), ":");
  for (BrokenCase& broken : cases.all)
    if (broken.says == std::vector<std::string>{"FOLDER/t.vocab:"}) broken.says.push_back(order);
}

void places(Cases& cases) {
  cases.put_in(
      "a folder", words, [](const fs::path& folder) { fs::create_directory(folder / "t.vocab"); },
      ": is a folder");
  cases.put_in(
      "a pipe", words, [](const fs::path& folder) { make_pipe(folder / "t.vocab"); }, ": ");
  cases.put_in(
      "an endless device", words,
      [](const fs::path& folder) { fs::create_symlink("/dev/zero", folder / "t.vocab"); }, ": ");
  cases.put_in(
      "an empty device", words,
      [](const fs::path& folder) { fs::create_symlink("/dev/null", folder / "t.vocab"); }, ":");
  const std::string packed = pack_gzip(kSpecials + "a\n");
  cases.file("compressed, with a wrong checksum", characters,
             packed.substr(0, packed.size() - 8) + "\1\2\3\4" + packed.substr(packed.size() - 4),
             ": ");
  cases.all.back().says.push_back("damaged");
}

}  // namespace

std::vector<BrokenCase> sound_vocabularies() {
  Cases cases;
  cases.file("a vocabulary of characters", characters, kSpecials + "a\n\\x01\n\\s\n\u00E4\n", "");
  cases.file("a vocabulary of words", words, kSpecials + "the\n\\n\nhou\\\\se\n", "");
  cases.file("a vocabulary of bytes", bytes, kSpecials + byte_lines(0, 256), "");
  return cases.all;
}

std::vector<BrokenCase> broken_vocabularies() {
  Cases cases;
  heads(cases);
  pieces(cases);
  byte_vocabularies(cases);
  places(cases);
  return cases.all;
}

}  // namespace heed::relcheck
