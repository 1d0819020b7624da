/// Texts in gzip files (RFC 1952) that are truncated or damaged, or that decompress to too many
/// bytes.
#include "autograd/io/formats/gzip.h"
#include "autograd/io/lines.h"
#include "tests/relcheck/broken_case.h"

namespace heed::relcheck {
namespace {
namespace fs = std::filesystem;

/// Lines without long repetitions, which are compressed only to about half of their size.
std::string lines() {
  std::string text;
  for (std::uint32_t i = 0, x = 12345; i < 400; ++i) {
    x = x * 1664525u + 1013904223u;
    text += fmt::format("line {} {:x}\n", i, x);
  }
  return text;
}

struct Cases {
  std::vector<BrokenCase> all;

  void file(const std::string& name, const std::string& bytes, const std::string& says) {
    all.push_back({"archive: " + name,
                   [bytes](const fs::path& folder) { put(folder / "t.gz", bytes); },
                   [](const fs::path& folder) { read_lines((folder / "t.gz").string()); },
                   {"FOLDER/t.gz", says}});
  }
};

/// A copy of `bytes` in which `patch` replaces the bytes from offset `at` on.
std::string with(std::string bytes, std::size_t at, const std::string& patch) {
  return bytes.replace(at, patch.size(), patch);
}

void damages(Cases& cases) {
  const std::string whole = pack_gzip(lines());
  const std::size_t size = whole.size();
  for (const std::size_t keep :
       {std::size_t{3}, std::size_t{10}, std::size_t{11}, size / 4, size - 9, size - 5, size - 2})
    cases.file(fmt::format("truncated to {} bytes", keep), whole.substr(0, keep), "truncated");
  cases.file("another compression method", with(whole, 2, "\7"), "damaged");
  cases.file("reserved flags", with(whole, 3, "\xE0"), "damaged");
  cases.file("an unterminated name", with(whole, 3, "\x08").substr(0, 200), ": ");
  cases.file("a wrong first block", with(whole, 10, "\xFF"), "damaged");
  cases.file("wrong bytes in the middle", with(whole, size / 2, "\x55\xAA\x55"), "damaged");
  cases.file("a wrong checksum", with(whole, size - 8, "\1\2\3\4"), "damaged");
  cases.file("a wrong size", with(whole, size - 4, "\1\2\3\4"), "damaged");
  cases.file("a sector of zeros inside", with(whole, 512, std::string(512, '\0')), "damaged");
  cases.file("a truncated second member", whole + whole.substr(0, size / 2), "truncated");
  cases.file("a second member with a wrong checksum", whole + with(whole, size - 8, "\1\2\3\4"),
             "damaged");
  cases.file("a second member with a wrong magic number", whole + with(whole, 0, "\x1e"), "");
  cases.file("text after the end", whole + "more lines\nand more\n", "");
  cases.file("a sector of zeros after the end", whole + std::string(512, '\0'), "");
  cases.file("compressed twice", pack_gzip(whole), ":1: ");
  cases.file("Latin-1 inside", pack_gzip("gut\nsch\xF6n\n"), ":2: invalid UTF-8 at byte 4");
  cases.file("a NUL inside", pack_gzip(std::string("gut\na\0b\n", 8)), ":2: NUL byte at byte 2");
}

/// Members of 1 MiB each, compressed to about a thousandth: a file of about 1 MiB decompresses to
/// 1 GiB.
void bombs(Cases& cases) {
  const auto bomb = [&](const std::string& name, const std::string& piece) {
    const std::string mebibyte = repeated(piece, (1u << 20) / piece.size());
    cases.file(name, repeated(pack_gzip(mebibyte), 1024), "");
  };
  bomb("1 GiB of zeros", std::string(1, '\0'));
  bomb("1 GiB without a line ending", "a");
  bomb("1 GiB of empty lines", "\n");
  bomb("1 GiB of the same line", "the same line\n");
}

}  // namespace

std::vector<BrokenCase> sound_archives() {
  Cases cases;
  const std::string whole = pack_gzip(lines());
  cases.file("one member", whole, "");
  cases.file("three members, one empty", whole + pack_gzip("") + whole, "");
  cases.file("5 MB of the same line", pack_gzip(repeated("the same line\n", 350'000)), "");
  return cases.all;
}

std::vector<BrokenCase> broken_archives() {
  Cases cases;
  damages(cases);
  bombs(cases);
  return cases.all;
}

}  // namespace heed::relcheck
