/// Text pairs and continuous texts that cannot be trained on.
#include "data/sources/corpus.h"
#include "tests/relcheck/broken_case.h"

namespace heed::relcheck {
namespace {
namespace fs = std::filesystem;
using namespace std::string_literals;
using Make = std::function<void(const fs::path&)>;

const std::string kSource = "ein Haus\nzwei Haeuser\ndrei\n";
const std::string kTarget = "a house\ntwo houses\nthree\n";

/// Options for the pairs train.src and train.tgt of a folder, and for valid and test if they exist.
DataOptions pairs_in(const fs::path& folder) {
  DataOptions options;
  const auto files = [&](FilesOptions& split, const std::string& name) {
    const fs::path source = folder / (name + ".src"), target = folder / (name + ".tgt");
    if (name != "train" && !fs::exists(source)) return;
    split.source = {source.string()};
    split.target = {target.string()};
  };
  files(options.train, "train");
  files(options.valid, "valid");
  files(options.test, "test");
  return options;
}

struct Cases {
  std::vector<BrokenCase> all;

  void pairs(const std::string& name, Make make, std::vector<std::string> says) {
    all.push_back({"pairs: " + name, std::move(make),
                   [](const fs::path& folder) { read_corpus(pairs_in(folder), Reads::pairs, 1); },
                   std::move(says)});
  }
  /// Adds a source with these bytes and a valid target.
  void source(const std::string& name, const std::string& bytes, const std::string& says) {
    pairs(name,
          [bytes](const fs::path& folder) {
            put(folder / "train.src", bytes);
            put(folder / "train.tgt", kTarget);
          },
          {"FOLDER/train.src" + says});
  }
  /// Adds the source bytes(size), and its shorter form bytes(size / 8).
  void sized(const std::string& name, std::size_t size,
             const std::function<std::string(std::size_t)>& bytes, const std::string& says) {
    source(name, bytes(size), says);
    all.back().make_eighth = [small = bytes(size / 8)](const fs::path& folder) {
      put(folder / "train.src", small);
      put(folder / "train.tgt", kTarget);
    };
  }
  /// Adds a valid source with a target that cannot be read or is empty.
  void target(const std::string& name, Make make, const std::string& says) {
    pairs(name,
          [make](const fs::path& folder) {
            put(folder / "train.src", kSource);
            make(folder / "train.tgt");
          },
          {"FOLDER/train.tgt" + says});
  }
  void text(const std::string& name, const std::string& bytes, const std::string& says) {
    all.push_back({"text: " + name,
                   [bytes](const fs::path& folder) { put(folder / "text", bytes); },
                   [](const fs::path& folder) {
                     DataOptions options;
                     options.train.text = {(folder / "text").string()};
                     options.valid_fraction = 0.25;
                     read_corpus(options, Reads::text, 1);
                   },
                   {says}});
  }
};

void lengths(Cases& cases) {
  const auto two = [&](const std::string& name, const std::string& source,
                       const std::string& target, const std::string& counts) {
    cases.pairs(name,
                [=](const fs::path& folder) {
                  put(folder / "train.src", source);
                  put(folder / "train.tgt", target);
                },
                {"the number of lines: ", " in FOLDER/train.src, ", counts});
  };
  two("one line fewer", "ein Haus\nzwei\n", kTarget, "lines: 2 in FOLDER/train.src");
  two("one line more", kSource + "vier\n", kTarget, "lines: 4 in FOLDER/train.src");
  two("an empty line at the end", kSource + "\n", kTarget, "lines: 4 in FOLDER/train.src");
  two("truncated in the penultimate line", kSource, "a house\ntwo ho", ", 2 in FOLDER/train.tgt");
  two("line endings of classic Mac OS", kSource, "a house\rtwo houses\rthree\r",
      ", 1 in FOLDER/train.tgt");
  two("a newline inside a line", kSource, "a\nhouse\ntwo houses\nthree\n",
      ", 4 in FOLDER/train.tgt");
  two("a thousand lines fewer", repeated("x\n", 20'000), repeated("y\n", 19'000),
      ", 19000 in FOLDER/train.tgt");
  cases.pairs("a validation target with one line fewer",
              [](const fs::path& folder) {
                put(folder / "train.src", kSource);
                put(folder / "train.tgt", kTarget);
                put(folder / "valid.src", kSource);
                put(folder / "valid.tgt", "one\ntwo\n");
              },
              {"lines: 3 in FOLDER/valid.src, ", "2 in FOLDER/valid.tgt"});
}

void characters(Cases& cases) {
  const std::string at2 = ":2: invalid UTF-8 at byte ";
  cases.source("Latin-1", "ein Haus\nzwei H\xE4user\ndrei\n", at2 + "7 of the line (0xE4)");
  cases.source("Windows-1252 quotation marks", "ein Haus\n\x93zwei\x94\ndrei\n",
               at2 + "1 of the line (0x93)");
  cases.source("Shift JIS", "ein\n\x83n\x83\x45\x83X\ndrei\n", at2 + "1 of the line (0x83)");
  cases.source("an overlong slash", "ein\na\xC0\xAF\ndrei\n", at2 + "2 of the line (0xC0)");
  cases.source("an overlong euro sign", "ein\n\xF0\x82\x82\xAC\ndrei\n", at2 + "1");
  cases.source("a lone surrogate", "ein\n\xED\xA0\x80\ndrei\n", at2 + "1 of the line (0xED)");
  cases.source("a code point beyond Unicode", "ein\nx\xF4\x90\x80\x80\ndrei\n",
               at2 + "2 of the line (0xF4)");
  cases.source("a character truncated by the end of a line", "ein\nHa\xE2\x82\ndrei\n", at2 + "3");
  cases.source("a character truncated by the end of the file", "ein\nzwei\nHa\xC3",
               ":3: invalid UTF-8 at byte 3");
  cases.source("UTF-16, little-endian",
               "\xFF\xFE"
               "e\0i\0n\0\n\0"s,
               ":1: invalid UTF-8 at byte 1");
  cases.source("UTF-16, big-endian", "\xFE\xFF\0e\0i\0n\0\n"s, ":1: invalid UTF-8 at byte 1");
  cases.source("UTF-16 without a byte-order mark", "e\0i\0n\0\n\0"s, ":1: NUL byte at byte 2");
  cases.source("UTF-32", "\xFF\xFE\0\0e\0\0\0"s, ":1: invalid UTF-8 at byte 1");
  cases.source("a NUL in a line", "ein Haus\nzwei\0Haeuser\ndrei\n"s, ":2: NUL byte at byte 5");
  cases.source("a sector of zeros at the end", kSource + std::string(512, '\0'),
               ":4: NUL byte at byte 1");
  cases.source("all zeros", std::string(100'000, '\0'), ":1: NUL byte at byte 1");
  cases.sized(
      "an invalid byte late in a line", 900'000,
      [](std::size_t size) { return "ein\n" + std::string(size, 'x') + "\xFF\ndrei\n"; },
      at2 + "900001");
  cases.sized(
      "an invalid byte late in the file", 20'000,
      [](std::size_t lines) { return repeated("gut\n", lines) + "\xFF\n"; },
      ":20001: invalid UTF-8 at byte 1");
  cases.source("a program",
               "\x7F"
               "ELF\2\1\1\0\0\0\0\0"s,
               ":1: NUL byte at byte 8");
  cases.source("a zip file", "PK\3\4\x14\0\0\0\b\0"s, ":1: NUL byte at byte 6");
  cases.source("an xz file",
               "\xFD"
               "7zXZ\0\0\4"s,
               ":1: invalid UTF-8 at byte 1");
  cases.source("a zstd file", "\x28\xB5\x2F\xFD\4\0"s, ":1: invalid UTF-8 at byte 2");
  cases.source("a bzip2 file", "BZh91AY&SY\xA0\xA1", ":1: invalid UTF-8 at byte 11");
  cases.source("a line one byte too long", "ein\n" + std::string(1'000'001, 'x') + "\ndrei\n",
               ":2: a line of more than 1000000 bytes");
  cases.sized(
      "a text without line endings", 300'000,
      [](std::size_t words) { return repeated("ein Haus ", words); },
      ":1: a line of more than 1000000 bytes");
}

void places(Cases& cases) {
  const auto link = [](const std::string& to) {
    return [to](const fs::path& file) { fs::create_symlink(to, file); };
  };
  cases.target(
      "no file", [](const fs::path&) {}, ": no such file");
  cases.target(
      "a folder", [](const fs::path& file) { fs::create_directory(file); },
      ": is a folder, not a file");
  cases.target("a link to a folder", link("."), ": is a folder, not a file");
  cases.target("a link to itself", link("train.tgt"), ": Too many levels of symbolic links");
  cases.target("a file used as a folder", link("train.src/x"), ": Not a directory");
  cases.target(
      "an empty file", [](const fs::path& file) { put(file, ""); }, ": empty file");
  cases.target("an empty device", link("/dev/null"), ": ");
  cases.target(
      "only a byte-order mark", [](const fs::path& file) { put(file, "\xEF\xBB\xBF"); },
      ": empty file");
  cases.target("an endless device", link("/dev/zero"), "");
  cases.target("a name that is too long", link(std::string(300, 'x')), ": File name too long");
}

void running_texts(Cases& cases) {
  cases.text("empty", "", "FOLDER/text: empty file");
  cases.text("an invalid byte in the third line", "a\nb\nc\xE4\nd\n",
             "FOLDER/text:3: invalid UTF-8 at byte 2");
  cases.text("a NUL at the end", "a\nb\n\0"s, "FOLDER/text:3: NUL byte at byte 1");
  cases.text("too short to split", "a", "data.train: too few bytes (1)");
}

}  // namespace

std::vector<BrokenCase> sound_texts() {
  Cases cases;
  cases.source("three lines", kSource, "");
  cases.source("a byte-order mark, Windows line endings, no final line ending",
               "\xEF\xBB\xBF"
               "a\r\nb\r\nc",
               "");
  cases.source("a line of the maximum length", "a\n" + std::string(1'000'000, 'x') + "\nb\n", "");
  cases.text("four bytes", "abc\n", "");
  return cases.all;
}

std::vector<BrokenCase> broken_texts() {
  Cases cases;
  lengths(cases);
  characters(cases);
  places(cases);
  running_texts(cases);
  return cases.all;
}

}  // namespace heed::relcheck
