/// Configs designed to exhaust time, memory or the stack. They have the maximum size where size
/// matters.
#include "tests/relcheck/broken_yaml.h"
#include "train/config/yaml.h"

namespace heed::relcheck {
namespace {

/// Returns a function from a number of bytes to copies of `piece` of about that size.
std::function<std::string(std::size_t)> full_of(const std::string& piece) {
  return [piece](std::size_t bytes) { return repeated(piece, bytes / piece.size()); };
}

/// Returns a function that fills a number of bytes with line(0), line(1), …
std::function<std::string(std::size_t)> numbered(std::function<std::string(std::size_t)> line) {
  return [line = std::move(line)](std::size_t bytes) {
    std::string text;
    for (std::size_t i = 0;; ++i) {
      const std::string next = line(i);
      if (text.size() + next.size() > bytes) return text;
      text += next;
    }
  };
}

void nested(YamlCases& cases) {
  const auto deep = [&](const std::string& name, const std::string& piece) {
    cases.sized(name, full_of(piece), "");
  };
  deep("full of opening brackets", "[");
  deep("full of opening braces", "{");
  deep("full of brackets and braces", "[{");
  deep("full of lists with a value", "[1,");
  deep("full of maps with a key", "{a: ");
  deep("full of maps with a quoted key", "{\"a\":");
  deep("full of brackets and line endings", "[\n");
  deep("full of dashes", "- ");
  deep("full of question marks", "? ");
  deep("full of keys on one line", "a: ");
  deep("full of anchors before a bracket", "&a [");
  deep("full of tags before a bracket", "!t [");
  deep("full of closing brackets", "]");
  const auto stairs = [](const std::string& end) {
    return numbered([end](std::size_t depth) { return std::string(depth, ' ') + end; });
  };
  cases.sized("keys, each one level deeper", stairs("a:\n"), "33:33: nested deeper than 32 levels");
  cases.sized("dashes, each one level deeper", stairs("-\n"),
              "33:33: nested deeper than 32 levels");
  cases.after("33 brackets after a key",
              "name: " + std::string(33, '[') + std::string(33, ']') + "\n", "");
  cases.all.back().says = {"FOLDER/exp.yaml:2:3", "nested deeper than 32 levels"};
  cases.after("33 braces as keys",
              "name: " + repeated("{? ", 33) + "x" + std::string(33, '}') + "\n",
              "nested deeper than 32 levels");
  cases.all.back().says = {"FOLDER/exp.yaml:2:", "nested deeper than 32 levels"};
}

void wide(YamlCases& cases) {
  const auto flat = [&](const std::string& name, const std::string& piece,
                        const std::string& says) { cases.sized(name, full_of(piece), says); };
  flat("full of empty lists", "- []\n", "");
  flat("full of empty maps", "- {}\n", "");
  flat("full of empty values", "-\n", "");
  flat("full of the same key", "a: 1\n", "");
  flat("full of keys without colons", "a\n", "");
  flat("full of words", "a ", "1:1: ");
  flat("full of commas", ",", "1:1: ");
  flat("full of colons", ": ", "");
  flat("full of quotes", "\"", "1:");
  flat("full of apostrophes", "'", "1:");
  flat("full of documents", "---\n", "2:1: text after");
  flat("full of document ends", "...\n", "");
  flat("full of directives", "%A\n", "");
  flat("full of anchors", "&a ", "");
  flat("full of aliases", "*a ", "1:");
  flat("full of tags", "!a ", "");
  flat("full of exclamation marks", "!", "1:");
  flat("full of bars", "|\n", "");
  flat("full of percent signs", "%", "");
  flat("full of empty lines", "\n", "1:1: data.train: missing");
  flat("full of comments", "#\n", "1:1: data.train: missing");
  flat("full of spaces", " ", "1:1: ");
  flat("full of tabs", "\t", "1:");
  flat("full of backslashes in quotes", "\"\\", "1:");
  flat("full of wide characters", "\U0001F600", "1:1: ");
  const std::string value(40, 'x');
  cases.sized("full of unknown keys with long values",
              numbered([&](std::size_t i) { return fmt::format("k{}: {}\n", i, value); }),
              "1:1: k0: unknown key");
  cases.sized("the maximum number of unknown keys",
              numbered([](std::size_t i) { return fmt::format("k{}: 1\n", i); }), "");
  const auto around = [&](const std::string& name, const std::string& open,
                          const std::string& filling, const std::string& close) {
    const std::size_t less = open.size() + close.size();
    const auto inside = full_of(filling);
    cases.sized(
        name, [=](std::size_t bytes) { return open + inside(bytes - less) + close; }, "1:");
  };
  around("a key of the maximum size", "", "k", ": 1");
  around("a quoted key of the maximum size", "\"", "k", "\": 1");
  around("a long list between brackets", "[", "1,", "]");
  around("a long map between braces", "{", "a: 1,", "}");
}

/// Aliases of aliases: 9, 81, … copies of the first value.
std::string laughs(const std::string& first, const std::string& open, const std::string& between,
                   const std::string& close) {
  std::string text = "a0: &a0 " + first + "\n";
  for (int i = 1; i < 10; ++i) {
    text += fmt::format("a{0}: &a{0} {1}", i, open);
    for (int k = 0; k < 9; ++k) text += fmt::format("{}*a{}", k == 0 ? "" : between, i - 1);
    text += close + "\n";
  }
  return text;
}

void exploding(YamlCases& cases) {
  cases.text("a billion laughs in maps",
             "a0: &a0 {x: 1, y: 2}\n"
             "a1: &a1 {a: *a0, b: *a0, c: *a0, d: *a0, e: *a0, f: *a0, g: *a0, h: *a0}\n"
             "a2: &a2 {a: *a1, b: *a1, c: *a1, d: *a1, e: *a1, f: *a1, g: *a1, h: *a1}\n"
             "a3: &a3 {a: *a2, b: *a2, c: *a2, d: *a2, e: *a2, f: *a2, g: *a2, h: *a2}\n"
             "a4: &a4 {a: *a3, b: *a3, c: *a3, d: *a3, e: *a3, f: *a3, g: *a3, h: *a3}\n"
             "a5: &a5 {a: *a4, b: *a4, c: *a4, d: *a4, e: *a4, f: *a4, g: *a4, h: *a4}\n",
             "6:");
  cases.text("a billion laughs without content", laughs("[]", "[", ",", "]"), "");
  const auto aliases = full_of("- *a\n");
  cases.sized(
      "the maximum number of aliases",
      [&](std::size_t bytes) {
        const std::string first = "- &a [1, 2]\n";
        return first + aliases(bytes - first.size());
      },
      "16667:3: more than 50000 values");
  cases.sized("an anchor redefined many times", full_of("- &a x\n"), "");
  cases.text("a long text aliased in maps",
             "a: &a " + std::string(100'000, 'x') +
                 "\nb: {k: *a, l: *a, m: *a, n: *a, o: *a, "
                 "p: *a, q: *a, r: *a, s: *a, t: *a, u: *a}\n",
             "2:");
  cases.text("an alias of a long text as a key",
             "- &a " + std::string(1000, 'x') + "\n" + repeated("- {*a : 1}\n", 2000),
             "aliases expand to more than");
  cases.all.back().says = {"FOLDER/exp.yaml:", "aliases expand to more than"};
  std::string anchors;
  for (int i = 0; i < 30; ++i) anchors += fmt::format("&a{} [", i);
  const auto nested_lists = [&](std::size_t bytes) {  // 49,152 values at the full size
    return anchors + repeated("1,", bytes * 3 / 8) + std::string(30, ']') + "\n";
  };
  cases.sized("nested anchors with many values", nested_lists, "1:");
  cases.text("nested anchors", repeated("&a [", 30) + "1" + std::string(30, ']') + "\n",
             "1:1: expected");
}

}  // namespace

std::vector<BrokenCase> broken_yaml_costly() {
  YamlCases cases;
  nested(cases);
  wide(cases);
  exploding(cases);
  return cases.all;
}

}  // namespace heed::relcheck
