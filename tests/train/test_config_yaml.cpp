/// Invalid YAML, and valid YAML that a config must not contain.
#include "tests/train/config_cases.h"

using namespace std::string_literals;

BOOST_AUTO_TEST_SUITE(config_yaml)

BOOST_AUTO_TEST_CASE(undefined_anchor_is_refused_with_line_and_column) {
  const std::string message = refusal(copy + "name: *nobody\n", {});
  // yaml-cpp 0.8 appends the name of the anchor.
  BOOST_TEST(
      message.starts_with("exp.yaml:2:7: not valid YAML: the referenced anchor is not defined"));
}

BOOST_AUTO_TEST_CASE(invalid_yaml_is_refused_with_line_and_column) {
  check_all({
      {"",
       "exp.yaml:1:1: data.train: missing: nothing to train on (give source and target files, or "
       "data.synthetic.name)"},
      {"# nothing\n",
       "exp.yaml:1:1: data.train: missing: nothing to train on (give source and target files, or "
       "data.synthetic.name)"},
      {"just text", "exp.yaml:1:1: expected keys and values, such as name: ..., got \"just text\""},
      {"- a\n- b\n", "exp.yaml:1:1: expected keys and values, such as name: ..., got a list"},
      {"[", "exp.yaml:1:1: not valid YAML: end of sequence flow not found"},
      {"{", "exp.yaml:1:1: not valid YAML: end of map flow not found"},
      {"]", "exp.yaml:1:1: not valid YAML: illegal flow end"},
      {copy + "a: b: c\n", "exp.yaml:2:5: not valid YAML: illegal map value"},
      {copy + "seed: 1\n  x: 2\n", "exp.yaml:3:4: not valid YAML: illegal map value"},
      {copy + "name: \"open\n", "exp.yaml:2:7: a quote that is never closed"},
      {copy + "name: 'open\n", "exp.yaml:2:7: a quote that is never closed"},
      {copy + "name: \"\\q\"\n", "exp.yaml:2:10: not valid YAML: unknown escape character: q"},
      {copy + "name: @x\n", "exp.yaml:2:7: not valid YAML: unknown token"},
      {copy + "name: [a\n", "exp.yaml:3:1: not valid YAML: end of sequence flow not found"},
      {copy + "train: {steps 5\n", "exp.yaml:3:1: not valid YAML: end of map flow not found"},
      {copy + "name: \"a\" b\n", "exp.yaml:2:11: not valid YAML: end of map not found"},
      {"%YAML 1.2\n%YAML 1.2\n---\ndata: {synthetic: {name: copy}}\n",
       "exp.yaml:2:1: not valid YAML: repeated YAML directive"},
      {copy + "train:\n\tsteps: 5\n",
       "exp.yaml:3:7: not valid YAML: illegal map value (indent with spaces, not tabs)"},
      {",", "exp.yaml:1:1: text after the end of the document (a config is one document)"},
      {copy + "name: &x \"open\n", "exp.yaml:2:7: a quote that is never closed"},
      {copy + "\"name: 1\n", "exp.yaml:2:1: a quote that is never closed"},
      // Escaped and doubled quotes, quotes after anchors, text after a closing quote.
      {copy + "name: \"a\\\"b\" c\n", "exp.yaml:2:14: not valid YAML: end of map not found"},
      {copy + "name: \"a\\\n", "exp.yaml:2:7: a quote that is never closed"},
      {copy + "'na''me' : 1\n", "exp.yaml:2:1: na'me: unknown key (did you mean name?)"},
      {copy + "train: {'a''b', steps: 1}\n",
       "exp.yaml:2:9: train.a'b: expected a colon after the key"},
      {copy + "'na\\' : 1\n", "exp.yaml:2:1: na\\: unknown key"},
      {copy + "&x \"a\\\"b\" : 1\n", "exp.yaml:2:1: a\"b: unknown key"},
      {copy + "name: &x\n", "exp.yaml:2:1: name: expected text, got nothing"},
      // Columns are counted in characters.
      {"name: ä日, data: 1\n", "exp.yaml:1:15: not valid YAML: illegal map value"},
      {copy + "seed: 1\ntrain\n", "exp.yaml:3:1: train: expected a colon after the key"},
      {copy + "train: {steps: 1, keep}\n",
       "exp.yaml:2:19: train.keep: expected a colon after the key"},
      {"data: {synthetic: {name: copy},,}\n", "exp.yaml:1:32: data: a key must be text"},
      {"data: {synthetic: {name: copy}} x\n",
       "exp.yaml:1:33: not valid YAML: end of map not found"},
      {copy + "train:\n  steps: 1\n epochs: 2\n",
       "exp.yaml:4:2: not valid YAML: end of map not found"},
      {"seed:1\n", "exp.yaml:1:1: expected keys and values, such as name: ..., got \"seed:1\""},
  });
}

BOOST_AUTO_TEST_CASE(yaml_that_a_config_must_not_contain_is_refused) {
  check_all({
      {copy + "---\nseed: 2\n",
       "exp.yaml:2:1: text after the end of the document (a config is one document)"},
      {copy + "...\nseed: 2\n",
       "exp.yaml:3:1: text after the end of the document (a config is one document)"},
      {copy + "name: !!str x\n", "exp.yaml:2:7: name: tags (such as !!str) are not allowed"},
      {copy + "name: ! x\n", "exp.yaml:2:7: name: tags (such as !!str) are not allowed"},
      {copy + "name: !mine x\n", "exp.yaml:2:7: name: tags (such as !!str) are not allowed"},
      {copy + "train: !!map {steps: 5}\n",
       "exp.yaml:2:8: train: tags (such as !!str) are not allowed"},
      {"data: !!map\n  train: {source: a, target: b}\n",
       "exp.yaml:1:7: data: tags (such as !!str) are not allowed"},
      {copy + "train: &a {early_stopping: *a}\n", "exp.yaml:2:28: an alias inside its own anchor"},
      {copy + "? [a, b]\n: 1\n", "exp.yaml:2:3: a key must be text"},
      {copy + "~: 1\n", "exp.yaml:2:1: a key must be text"},
      {copy + "{a: 1}: 2\n", "exp.yaml:2:1: a key must be text"},
      {copy + "name: \"a\000b\"\n"s, "exp.yaml:2:9: control character 0x00"},
      {copy + "name: a\000b\n"s, "exp.yaml:2:8: control character 0x00"},
      {copy + "name: a\007b\n", "exp.yaml:2:8: control character 0x07"},
      {copy + "name: a\015b\n", "exp.yaml:2:8: control character 0x0d"},
      {copy + "name: \177\n", "exp.yaml:2:7: control character 0x7f"},
      {"name: \377\n", "exp.yaml:1:7: invalid UTF-8"},
      {"name: x\nseed: 1 # ä\303\n", "exp.yaml:2:12: invalid UTF-8"},
      {"name: \355\240\200\n", "exp.yaml:1:7: invalid UTF-8"},
      {"\377\376n\000a\000"s, "exp.yaml:1:1: invalid UTF-8"},
      {"name: \300\257\n", "exp.yaml:1:7: invalid UTF-8"},
      {"name: \364\220\200\200\n", "exp.yaml:1:7: invalid UTF-8"},
      {"name: \342\202", "exp.yaml:1:7: invalid UTF-8"},
      {copy + "name: \"\\ud800\"\n", "exp.yaml:2:14: not valid YAML: invalid unicode: 55296"},
      {copy + "train: {<<: {steps: 5}}\n", "exp.yaml:2:9: train.<<: unknown key"},
  });
}

BOOST_AUTO_TEST_SUITE_END()
