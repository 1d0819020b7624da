/// Configs with wrong keys or values.
#include "tests/relcheck/broken_yaml.h"

namespace heed::relcheck {
namespace {

void keys(YamlCases& cases) {
  cases.after("a key with a homoglyph", "s\u0435ed: 1\n", "2:1: s\u0435ed: unknown");
  cases.after("a key with a trailing space", "\"seed \": 1\n", "2:1: seed : unknown key");
  cases.after("a zero-width key", "\u200B: 1\n", "2:1: \u200B: unknown key");
  cases.after("a number as a key", "1: 2\n", "2:1: 1: unknown key");
  cases.after("a Boolean value as a key", "true: 1\n", "2:1: true: unknown key");
  cases.after("a path as a key", "../../etc/passwd: 1\n", "2:1: ../../etc/passwd: unknown key");
  cases.after("a key of several lines", "? |\n  a\n  b\n: 1\n", "2:3: a\\nb\\n: unknown key");
  cases.after("a list as a key", "? [seed]\n: 1\n", "2:3: a key must be text");
  cases.after("a key inside a value", "seed: {seed: 1}\n", "2:7: seed: expected");
  cases.after("a list instead of a section", "train: [steps, 5]\n", "2:8: train: expected keys");
  cases.after("a list of maps instead of a section", "train:\n  - steps: 5\n",
              "3:3: train: expected keys");
  cases.after("a map instead of a path", "tokenizer: {model: {a: b}}\n", "2:20: tokenizer.model");
  cases.after("an unknown key with a map", "train: {seed: {x: 1}}\n", "2:9: train.seed");
  cases.text("a duplicate section", kRuns + "train: {steps: 5}\ntrain: {keep: 3}\n",
             "3:1: train: duplicate key");
}

void whole_numbers(YamlCases& cases) {
  const auto steps = [&](const std::string& name, const std::string& value) {
    cases.after(name, "train: {steps: " + value + "}\n", "2:16: train.steps: ");
  };
  steps("octal as in YAML 1.2", "0o17");
  steps("binary", "0b11");
  steps("two underscores", "1__0");
  steps("thousands separated by dots", "1.000.000");
  steps("thousands separated by an apostrophe", "1'000");
  steps("thousands separated by a space", "1 000");
  steps("full-width digits", "\uFF15");
  steps("Arabic digits", "\u0665");
  steps("a superscript", "5\u00B2");
  steps("a half", "\u00BD");
  steps("two signs", "--5");
  steps("a typographic minus sign", "\u22125");
  steps("a fraction", "5.5");
  steps("a negative exponent", "5e-1");
  steps("a unit", "5k");
  steps("a percentage", "5%");
  steps("a sum", "2+3");
  steps("a date", "2026-01-01");
  steps("2^63", "9223372036854775808");
  steps("-2^63 - 1", "-9223372036854775809");
  steps("a number of a thousand digits", std::string(1000, '9'));
  steps("a variable", "$STEPS");
  steps("a command", "$(nproc)");
  steps("a number sign without a space", "5#10");
  steps("a quoted number", "'5'");
  steps("infinity", ".inf");
  steps("a number below the minimum", "-1");
  cases.after("a seed of 2^64", "seed: 18446744073709551616\n", "2:7: seed: ");
  cases.after("a negative seed", "seed: -1\n", "2:7: seed: ");
}

void fractions(YamlCases& cases) {
  const auto lr = [&](const std::string& name, const std::string& value) {
    cases.after(name, "optim: {lr: " + value + "}\n", "2:13: optim.lr: ");
  };
  lr("NaN as in YAML", ".NaN");
  lr("infinity with a plus sign", "+.inf");
  lr("infinity as a word", "Infinity");
  lr("a number above the maximum", "1e400");
  lr("a fraction below the minimum", "1e-400");
  lr("an exponent without digits", "1e+");
  lr("two decimal points", "1.2.3");
  lr("a decimal point in an exponent", "1e2.5");
  lr("a decimal comma in quotes", "\"0,1\"");
  lr("a C float", "0.1f");
  lr("a Fortran exponent", "1D-3");
  lr("hexadecimal with an exponent", "0x1.8p1");
  lr("hours and minutes", "1:30.5");
  lr("a fraction bar", "1/3");
  lr("a number as a word", "one");
  lr("an exponent of ten digits", "1e9999999999");
}

void truth_values(YamlCases& cases) {
  for (const char* value : {"y", "n", "off", "TRUE", "False", "t", "0", "~", "[true]", "wahr"}) {
    cases.after(fmt::format("true or false as {}", value),
                fmt::format("decode: {{sample: {}}}\n", value), "decode.sample: ");
    cases.all.back().says = {"FOLDER/exp.yaml:2:", "decode.sample: expected true or false"};
  }
}

}  // namespace

std::vector<BrokenCase> broken_yaml_values() {
  YamlCases cases;
  keys(cases);
  whole_numbers(cases);
  fractions(cases);
  truth_values(cases);
  return cases.all;
}

}  // namespace heed::relcheck
