/// Configs with wrong characters or a wrong structure.
#include "tests/relcheck/broken_yaml.h"
#include "train/config/config.h"
#include "train/config/yaml.h"

namespace heed::relcheck {
namespace fs = std::filesystem;
using namespace std::string_literals;

void YamlCases::text(const std::string& name, const std::string& text, const std::string& says) {
  all.push_back({name,
                 [text](const fs::path& folder) { put(folder / "exp.yaml", text); },
                 [](const fs::path& folder) { read_config((folder / "exp.yaml").string()); },
                 {"FOLDER/exp.yaml:" + (says.empty() ? "#" : says)}});
}

void YamlCases::sized(const std::string& name,
                      const std::function<std::string(std::size_t bytes)>& of_size,
                      const std::string& says) {
  text(name, of_size(yaml_max_bytes), says);
  all.back().make_eighth = [small = of_size(yaml_max_bytes / 8)](const fs::path& folder) {
    put(folder / "exp.yaml", small);
  };
}

void YamlCases::other(const std::string& name, std::function<void(const fs::path&)> make,
                      const std::string& says) {
  all.push_back({name,
                 std::move(make),
                 [](const fs::path& folder) { read_config((folder / "exp.yaml").string()); },
                 {"FOLDER/exp.yaml:", says}});
}

namespace {

/// Text with a NUL after every byte, or before every byte if big-endian.
std::string utf16(const std::string& text, bool big_endian) {
  std::string wide;
  for (const char c : text) wide += big_endian ? "\0"s + c : c + "\0"s;
  return wide;
}

void characters(YamlCases& cases) {
  cases.text("UTF-16, big-endian", "\xFE\xFF" + utf16(kRuns, true), "1:1: invalid UTF-8");
  cases.text("UTF-16 without a byte-order mark", utf16(kRuns, false),
             "1:2: control character 0x00");
  cases.text("UTF-32", "\0\0\xFE\xFF\0\0\0d"s, "1:1: control character 0x00");
  cases.text("Latin-1", kRuns + "name: M\xFCller\n", "2:8: invalid UTF-8");
  cases.text("encoded surrogate pairs (CESU-8)", kRuns + "name: \xED\xA0\xBD\xED\xB8\x80\n",
             "2:7: invalid UTF-8");
  cases.text("a NUL encoded in two bytes", kRuns + "name: a\xC0\x80\n", "2:8: invalid UTF-8");
  cases.text("a character of five bytes", kRuns + "name: \xF8\x88\x80\x80\x80\n",
             "2:7: invalid UTF-8");
  cases.text("a lone continuation byte", kRuns + "# \x80\n", "2:3: invalid UTF-8");
  cases.text("a truncated character in a comment", kRuns + "# \xF0\x9F\x98", "2:3: invalid UTF-8");
  cases.text("a character truncated by the end of a line", kRuns + "name: \xE2\x82\nseed: 1\n",
             "2:7: invalid UTF-8");
  cases.text("terminal colours", kRuns + "name: \x1B[31mred\n", "2:7: control character 0x1b");
  cases.text("a form feed", kRuns + "\fseed: 1\n", "2:1: control character 0x0c");
  cases.text("a vertical tab", kRuns + "seed:\v1\n", "2:6: control character 0x0b");
  cases.text("line endings of classic Mac OS", "seed: 1\rdata: {synthetic: {name: copy}}\r",
             "1:8: control character 0x0d");
  cases.text("a sector of zeros at the end", kRuns + std::string(512, '\0'),
             "2:1: control character 0x00");
  cases.text("all zeros", std::string(4096, '\0'), "1:1: control character 0x00");
  cases.text("a gzip file", "\x1F\x8B\x08\0\0\0\0\0"s, "1:1: control character 0x1f");
  cases.text("an ELF program", "\x7F"s + "ELF\2\1\1", "1:1: control character 0x7f");
  cases.text("a PNG image", "\x89PNG\r\n\x1A\n", "1:1: invalid UTF-8");
  cases.text("a byte-order mark in the middle", kRuns + "\xEF\xBB\xBFseed: 1\n", "2:1: ");
  cases.text("no-break spaces as indentation", kRuns + "train:\n\u00A0\u00A0steps: 5\n", "3:");
}

void places(YamlCases& cases) {
  const auto link = [](const char* target) {
    return [target](const fs::path& folder) { fs::create_symlink(target, folder / "exp.yaml"); };
  };
  cases.other(
      "no file", [](const fs::path&) {}, "no such file");
  cases.other(
      "a folder", [](const fs::path& folder) { fs::create_directory(folder / "exp.yaml"); },
      "is a folder");
  cases.other("a link to itself", link("exp.yaml"), "Too many levels");
  cases.other("an endless device", link("/dev/zero"), "larger than ");
  cases.other(
      "a sparse file of a terabyte",
      [](const fs::path& folder) {
        put(folder / "exp.yaml", "");
        fs::resize_file(folder / "exp.yaml", std::uintmax_t{1} << 40);
      },
      "larger than ");
  cases.text("a file one byte too large",
             kRuns + "#" + std::string(yaml_max_bytes - kRuns.size(), 'x'), "1:1: larger than ");
}

void syntax(YamlCases& cases) {
  cases.text("a list of sections", "- data: {synthetic: {name: copy}}\n- seed: 1\n",
             "1:1: expected");
  cases.text("truncated JSON", R"({"data": {"synthetic": {"name": "copy"}, "seed": )", "1:");
  cases.text("a quoted config", "\"seed: 1\"\n", "1:1: expected keys and values");
  cases.text("a block scalar", "|\n  seed: 1\n", "1:1: expected keys and values");
  cases.after("an extra brace at the end", "train: {steps: 5}}\n", "2:");
  cases.after("crossed brackets", "name: {a: [1}]\n", "2:");
  cases.after("a brace that closes nothing", "}\n", "2:1: ");
  cases.after("a tab after the indentation", "train:\n  \tsteps: 5\n", "3:");
  cases.after("indentation reduced by half", "train:\n    steps: 5\n  keep: 3\n", "4:");
  cases.after("a map below a value", "seed: 1\n  2: 3\n", "3:");
  cases.after("two values on a line", "seed: 1 keep: 3\n", "2:");
  cases.after("two colons", "seed: : 1\n", "2:");
  cases.after("a question mark alone", "?\n", "");
  cases.after("a value without a key", ": 1\n", "2:");
  cases.after("a backquote", "name: `ls`\n", "2:7: not valid YAML");
  cases.after("a percent sign", "name: %x\n", "2:");
  cases.after("a block scalar with indentation 0", "name: |0\n  x\n", "2:");
  cases.after("a block scalar with an invalid header", "name: |x\n  y\n", "2:");
  cases.after("a block scalar instead of a number", "seed: |\n  1\n", "2:7: seed: expected");
  cases.after("a truncated escape", "name: \"\\x4\"\n", "2:");
  cases.after("an escape that is not hexadecimal", "name: \"\\xZZ\"\n", "2:");
  cases.after("an escape beyond Unicode", "name: \"\\U00110000\"\n", "2:");
  cases.after("an escape at the end", "name: \"\\", "2:10: not valid YAML");
  cases.after("an escaped NUL in a name", "name: \"a\\0b\"\n", "2:7: name: ");
  cases.text("an escaped NUL in a path", "data: {train: {source: \"a\\0b\", target: c}}\n",
             "1:24: data.train.source: ");
  cases.after("an unclosed quote in a list", "name: [\"a, b]\n", "2:8: a quote that is never");
  cases.after("an unclosed apostrophe after a doubled one", "name: 'it''s\nseed: 1\n",
              "2:7: a quote that");
}

void documents(YamlCases& cases) {
  cases.text("two documents with markers", "---\n" + kRuns + "---\nseed: 1\n", "3:1: text after");
  cases.text("a document after an end marker", kRuns + "...\n---\nseed: 1\n", "3:1: text after");
  cases.text("an empty second document", kRuns + "---\n", "2:1: text after");
  cases.text("a future YAML version", "%YAML 9.9\n---\n" + kRuns, "1:");
  cases.text("an invalid YAML version", "%YAML x\n---\n" + kRuns, "1:");
  cases.text("a tag directive in use", "%TAG ! tag:x,2000:\n---\n" + kRuns + "name: !y x\n",
             "4:7: name: tags");
  cases.after("a tagged number", "seed: !!int 5\n", "2:7: seed: tags");
  cases.after("a tag that runs a program", "name: !!python/object/apply:os.system [ls]\n",
              "2:7: name: tags");
  cases.after("a tag that includes a file", "name: !include /etc/passwd\n", "2:7: name: tags");
  cases.after("a verbatim tag", "name: !<tag:yaml.org,2002:str> x\n", "2:7: name: tags");
  cases.after("tagged binary data", "name: !!binary aGVlZA==\n", "2:7: name: tags");
  cases.after("a key with a tag", "!!str seed: 1\n", "2:1: ");
  cases.after("a list with a tag", "name: !!omap [a: 1]\n", "2:7: name: tags");
}

void anchors(YamlCases& cases) {
  cases.after("a list that contains itself", "name: &a [*a]\n",
              "2:11: an alias inside its own anchor");
  cases.after("a map that contains itself, deeply nested", "name: &a {b: {c: [1, *a]}}\n",
              "2:22: an alias inside its own anchor");
  cases.after("a map as its own key", "name: &a {*a : 1}\n", "2:");
  cases.after("an alias before its anchor", "name: *later\nseed: &later 1\n",
              "2:7: not valid YAML: the referenced anchor");
  cases.after("an anchor on an alias", "seed: &a 1\nname: &b *a\n", "3:");
  cases.after("two anchors on one value", "name: &a &b x\n", "2:");
  cases.after("an anchor without a name", "name: & x\n", "2:");
  cases.after("an alias without a name", "name: * x\n", "2:");
  cases.after("a duplicate key, once as an alias", "name: &k seed\nseed: 1\n*k : 2\n",
              "4:1: seed: duplicate key");
  cases.after("a duplicate key, once escaped", "seed: 1\n\"se\\x65d\": 2\n",
              "3:1: seed: duplicate key");
  cases.after("a duplicate key, once with a question mark", "seed: 1\n? seed\n: 2\n",
              "3:3: seed: duplicate key");
  cases.after("a merge key with an alias", "train: &t {steps: 5}\nbench:\n  <<: *t\n",
              "4:3: bench.<<: unknown key");
  cases.after("merge keys in a list", "train: {<<: [{steps: 5}]}\n", "2:9: train.<<: unknown key");
}

}  // namespace

std::vector<BrokenCase> sound_yaml() {
  YamlCases cases;
  cases.text("one line", kRuns, "");
  cases.text("a byte-order mark, document markers, Windows line endings",
             "\xEF\xBB\xBF---\r\n" + kRuns + "seed: 3\r\n...\r\n", "");
  cases.text("anchors and aliases", kRuns + "train: {steps: &n 5, keep: *n}\n", "");
  cases.text("a file of the maximum size",
             kRuns + "#" + std::string(yaml_max_bytes - kRuns.size() - 1, 'x'), "");
  cases.text("brackets in quotes and comments",
             kRuns + "name: '" + std::string(100, '[') + "' # " + std::string(100, '{') + "\n", "");
  return cases.all;
}

std::vector<BrokenCase> broken_yaml_text() {
  YamlCases cases;
  characters(cases);
  places(cases);
  syntax(cases);
  documents(cases);
  anchors(cases);
  return cases.all;
}

}  // namespace heed::relcheck
