/// Unknown and duplicate keys, and values that are invalid whatever the values of other keys.
#include "tests/train/config_cases.h"

using namespace std::string_literals;

BOOST_AUTO_TEST_SUITE(config_errors)

BOOST_AUTO_TEST_CASE(unknown_and_duplicate_keys_are_refused_with_a_hint) {
  check_all({
      {copy + "train: {lable_smoothing: 0.1}\n",
       "exp.yaml:2:9: train.lable_smoothing: unknown key (did you mean label_smoothing?)"},
      {copy + "train:\n  lable_smoothing: 0.1\n",
       "exp.yaml:3:3: train.lable_smoothing: unknown key (did you mean label_smoothing?)"},
      {copy + "modle: {}\n", "exp.yaml:2:1: modle: unknown key (did you mean model?)"},
      {copy + "steps: 5\n",
       "exp.yaml:2:1: steps: unknown key (did you mean optim.schedule.steps or train.steps?)"},
      {copy + "max_length: 5\n",
       "exp.yaml:2:1: max_length: unknown key (did you mean data.synthetic.max_length or "
       "data.max_length or decode.max_length?)"},
      {copy + "frobnicate: 1\n", "exp.yaml:2:1: frobnicate: unknown key"},
      {copy + "layers: 1\n",
       "exp.yaml:2:1: layers: unknown key (did you mean model.layers or model.front_end.layers?)"},
      {copy + "Seed: 1\n", "exp.yaml:2:1: Seed: unknown key (did you mean seed?)"},
      {copy + "train: {Steps: 5}\n",
       "exp.yaml:2:9: train.Steps: unknown key (did you mean steps?)"},
      {copy + "\"a\\nb\": 1\n", "exp.yaml:2:1: a\\nb: unknown key"},
      {copy + "\"\": 1\n", "exp.yaml:2:1: \"\": unknown key"},
      {copy + "train.steps: 5\n",
       "exp.yaml:2:1: train.steps: unknown key (dotted keys are for the command line)"},
      {copy + "model: {layers: {encodr: 2}}\n",
       "exp.yaml:2:18: model.layers.encodr: unknown key (did you mean encoder?)"},
      {copy + "optim: {schedule: {nmae: noam}}\n",
       "exp.yaml:2:20: optim.schedule.nmae: unknown key (did you mean name?)"},
      {copy + "ü: 1\n", "exp.yaml:2:1: ü: unknown key"},
      {copy + "name: ü\nmodel: {ä: 1, d_modell: 3}\n",
       "exp.yaml:3:9: model.ä: unknown key\n"
       "exp.yaml:3:15: model.d_modell: unknown key (did you mean d_model?)"},
      {copy + "train: {steps: 5, steps: 6}\n",
       "exp.yaml:2:19: train.steps: duplicate key (first at exp.yaml:2:9)"},
      {copy + "seed: 1\nname: x\nseed: 2\n",
       "exp.yaml:4:1: seed: duplicate key (first at exp.yaml:2:1)"},
      {copy + "data: {max_length: 5}\n",
       "exp.yaml:2:1: data: duplicate key (first at exp.yaml:1:1)"},
      {copy + "train: {steps: 1, steps: 2, steps: 3}\n",
       "exp.yaml:2:19: train.steps: duplicate key (first at exp.yaml:2:9)\n"
       "exp.yaml:2:29: train.steps: duplicate key (first at exp.yaml:2:9)"},
      {copy + "train: {bad: {a: 1, a: 2}}\n",
       "exp.yaml:2:9: train.bad: unknown key\n"
       "exp.yaml:2:21: train.bad.a: duplicate key (first at exp.yaml:2:15)"},
      {copy + "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
              "xxxxxxxxxxxxxxxx: 1\n",
       "exp.yaml:2:1: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...: unknown "
       "key"},
  });
}

BOOST_AUTO_TEST_CASE(values_of_wrong_type_are_refused) {
  check_all({
      {copy + "train: {steps: many}\n",
       "exp.yaml:2:16: train.steps: expected a whole number, got \"many\""},
      {copy + "train: {steps: 1.5}\n",
       "exp.yaml:2:16: train.steps: expected a whole number, got \"1.5\""},
      {copy + "train: {steps: 1.5e0}\n",
       "exp.yaml:2:16: train.steps: expected a whole number, got \"1.5e0\""},
      {copy + "train: {steps: 1e-3}\n",
       "exp.yaml:2:16: train.steps: expected a whole number, got \"1e-3\""},
      {copy + "train: {steps: 1e15}\n",
       "exp.yaml:2:16: train.steps: 1e15 is out of range (allowed: 0 to 1000000000000)"},
      {copy + "train: {steps: 1e999}\n",
       "exp.yaml:2:16: train.steps: 1e999 is out of range (allowed: 0 to 1000000000000)"},
      {copy + "train: {steps: 010}\n",
       "exp.yaml:2:16: train.steps: expected a whole number, got \"010\""},
      {copy + "train: {steps: 0x10}\n",
       "exp.yaml:2:16: train.steps: expected a whole number, got \"0x10\""},
      {copy + "train: {steps: 1_000}\n",
       "exp.yaml:2:16: train.steps: expected a whole number, got \"1_000\""},
      {copy + "train: {steps: +5}\n",
       "exp.yaml:2:16: train.steps: expected a whole number, got \"+5\""},
      {copy + "train: {steps: \"5\"}\n",
       "exp.yaml:2:16: train.steps: expected a whole number, got the quoted text \"5\""},
      {copy + "train: {steps: }\n",
       "exp.yaml:2:9: train.steps: expected a whole number, got nothing"},
      {copy + "train: {steps: ~}\n",
       "exp.yaml:2:9: train.steps: expected a whole number, got nothing"},
      {copy + "train: {steps: [5]}\n",
       "exp.yaml:2:16: train.steps: expected a whole number, got a list"},
      {copy + "train: {steps: {a: 5}}\n",
       "exp.yaml:2:16: train.steps: expected a whole number, got keys and values"},
      {copy + "train: {steps: true}\n",
       "exp.yaml:2:16: train.steps: expected a whole number, got \"true\""},
      {copy + "train: {steps: 12:30}\n",
       "exp.yaml:2:16: train.steps: expected a whole number, got \"12:30\""},
      {copy + "train: {steps: |\n  5\n  }\n", "exp.yaml:2:16: not valid YAML: unknown token"},
      {copy + "train: {minutes: .inf}\n",
       "exp.yaml:2:18: train.minutes: expected a number, got \".inf\""},
      {copy + "train: {minutes: .nan}\n",
       "exp.yaml:2:18: train.minutes: expected a number, got \".nan\""},
      {copy + "train: {minutes: -.inf}\n",
       "exp.yaml:2:18: train.minutes: expected a number, got \"-.inf\""},
      {copy + "train: {minutes: .5}\n",
       "exp.yaml:2:18: train.minutes: expected a number, got \".5\""},
      {copy + "train: {minutes: 5.}\n",
       "exp.yaml:2:18: train.minutes: expected a number, got \"5.\""},
      {copy + "train: {minutes: 1e}\n",
       "exp.yaml:2:18: train.minutes: expected a number, got \"1e\""},
      {copy + "train: {minutes: 1,5}\n", "exp.yaml:2:20: train.5: expected a colon after the key"},
      {copy + "train: {minutes: inf}\n",
       "exp.yaml:2:18: train.minutes: expected a number, got \"inf\""},
      {copy + "train: {minutes: nan}\n",
       "exp.yaml:2:18: train.minutes: expected a number, got \"nan\""},
      {copy + "train: {minutes: 00.5}\n",
       "exp.yaml:2:18: train.minutes: expected a number, got \"00.5\""},
      {copy + "train: {minutes: 0x1p3}\n",
       "exp.yaml:2:18: train.minutes: expected a number, got \"0x1p3\""},
      {copy + "train: {minutes: -}\n",
       "exp.yaml:2:18: train.minutes: expected a number, got \"-\""},
      {copy + "train: {minutes: 1d5}\n",
       "exp.yaml:2:18: train.minutes: expected a number, got \"1d5\""},
      {"data: {train: {source: a, target: b}, lowercase: yes}\n",
       "exp.yaml:1:50: data.lowercase: expected true or false, got \"yes\""},
      {copy + "decode: {sample: True}\n",
       "exp.yaml:2:18: decode.sample: expected true or false, got \"True\""},
      {copy + "decode: {sample: on}\n",
       "exp.yaml:2:18: decode.sample: expected true or false, got \"on\""},
      {copy + "decode: {sample: 1}\n",
       "exp.yaml:2:18: decode.sample: expected true or false, got \"1\""},
      {copy + "decode: {sample: \"true\"}\n",
       "exp.yaml:2:18: decode.sample: expected true or false, got the quoted text \"true\""},
      {copy + "name: [a]\n", "exp.yaml:2:7: name: expected text, got a list"},
      {copy + "name:\n", "exp.yaml:2:1: name: expected text, got nothing"},
      {copy + "name: \"a\\tb\"\n",
       "exp.yaml:2:7: name: expected one line without control characters, got the quoted text "
       "\"a\\x09b\""},
      {copy + "name: \"a\\x7fb\"\n",
       "exp.yaml:2:7: name: expected one line without control characters, got the quoted text "
       "\"a\\u007fb\""},
      {copy + "name: |\n  two\n  lines\n",
       "exp.yaml:2:7: name: expected one line without control characters, got the quoted text "
       "\"two\\nlines\\n\""},
      {"data: {train: {source: {a: 1}, target: b}}\n",
       "exp.yaml:1:24: data.train.source: expected a file or a list of files, got keys and values"},
      {"data: {train: {source: [a, [b]], target: [c, d]}}\n",
       "exp.yaml:1:28: data.train.source: expected text, got a list"},
      {"data: {train: {source: [a, \"\"], target: [c, d]}}\n",
       "exp.yaml:1:28: data.train.source: expected a name, got empty text"},
      {"data: {train: {source: , target: d}}\n",
       "exp.yaml:1:16: data.train.source: expected a file or a list of files, got nothing"},
      {copy + "optim: {betas: 0.9}\n",
       "exp.yaml:2:16: optim.betas: expected two numbers, as in [0.9, 0.98], got \"0.9\""},
      {copy + "optim: {betas: [0.9]}\n",
       "exp.yaml:2:16: optim.betas: expected two numbers, got a list of 1"},
      {copy + "optim: {betas: [0.9, 0.98, 1]}\n",
       "exp.yaml:2:16: optim.betas: expected two numbers, got a list of 3"},
      {copy + "optim: {betas: [0.9, x]}\n",
       "exp.yaml:2:22: optim.betas: expected a number, got \"x\""},
      {copy + "train: 5\n",
       "exp.yaml:2:8: train: expected keys and values, such as steps: ..., got \"5\""},
      {copy + "train: [steps]\n",
       "exp.yaml:2:8: train: expected keys and values, such as steps: ..., got a list"},
      {copy + "optim: {schedule: cosine}\n",
       "exp.yaml:2:19: optim.schedule: expected keys and values, such as name: ..., got "
       "\"cosine\""},
      {copy + "model: {layers: many}\n",
       "exp.yaml:2:17: model.layers: expected a whole number, got \"many\""},
      {copy + "model: {layers: [3, 3]}\n",
       "exp.yaml:2:17: model.layers: expected keys and values, such as encoder: ..., got a list"},
      {copy + "threads: all\n",
       "exp.yaml:2:10: threads: expected auto or a whole number, got \"all\""},
      {copy + "threads: [1]\n",
       "exp.yaml:2:10: threads: expected auto or a whole number, got a list"},
      {copy + "seed: abc\n", "exp.yaml:2:7: seed: expected a whole number, got \"abc\""},
      {copy + "seed: 1.25\n", "exp.yaml:2:7: seed: expected a whole number, got \"1.25\""},
      {copy + "seed: -1e3\n", "exp.yaml:2:7: seed: -1e3 is out of range (allowed: 0 to 2^64 - 1)"},
  });
}

BOOST_AUTO_TEST_CASE(numbers_out_of_range_are_refused) {
  check_all({
      {copy + "train: {label_smoothing: 1}\n",
       "exp.yaml:2:26: train.label_smoothing: 1 is out of range (allowed: 0 to below 1)"},
      {copy + "train: {label_smoothing: -0.1}\n",
       "exp.yaml:2:26: train.label_smoothing: -0.1 is out of range (allowed: 0 to below 1)"},
      {copy + "model: {dropout: 1.0}\n",
       "exp.yaml:2:18: model.dropout: 1.0 is out of range (allowed: 0 to 0.99)"},
      {copy + "model: {d_model: 0}\n",
       "exp.yaml:2:18: model.d_model: 0 is out of range (allowed: 1 to 65536)"},
      {copy + "model: {heads: -4}\n",
       "exp.yaml:2:16: model.heads: -4 is out of range (allowed: 1 to 1024)"},
      {copy + "model: {d_ff: 99999999999999999999}\n",
       "exp.yaml:2:15: model.d_ff: 99999999999999999999 is out of range (allowed: 1 to 1000000)"},
      {copy + "model: {layers: 0}\n",
       "exp.yaml:2:17: model.layers.encoder: 0 is " +
           only_for([](const heed::TaskInfo& task) { return !has_encoder(task.architecture); }) +
           "\n"
           "exp.yaml:2:17: model.layers.decoder: 0 is " +
           only_for([](const heed::TaskInfo& task) { return !has_decoder(task.architecture); })},
      {copy + "model: {layers: {encoder: -1, decoder: 1001}}\n",
       "exp.yaml:2:27: model.layers.encoder: -1 is out of range (allowed: 0 to 1000)\n"
       "exp.yaml:2:40: model.layers.decoder: 1001 is out of range (allowed: 0 to 1000)"},
      {copy + "optim: {lr: 0}\n", "exp.yaml:2:13: optim.lr: 0 is out of range (allowed: above 0)"},
      {copy + "optim: {lr: 1e999}\n", "exp.yaml:2:13: optim.lr: 1e999 is too large or too small"},
      {copy + "optim: {lr: 1e-999}\n", "exp.yaml:2:13: optim.lr: 1e-999 is too large or too small"},
      {copy + "optim: {betas: [0.9, 1]}\n",
       "exp.yaml:2:22: optim.betas: 1 is out of range (allowed: 0 to below 1)"},
      {copy + "seed: -1\n", "exp.yaml:2:7: seed: -1 is out of range (allowed: 0 to 2^64 - 1)"},
      {copy + "seed: 18446744073709551616\n",
       "exp.yaml:2:7: seed: 18446744073709551616 is out of range (allowed: 0 to 2^64 - 1)"},
      {copy + "threads: 0\n", "exp.yaml:2:10: threads: 0 is out of range (allowed: 1 to 1024)"},
      {copy + "threads: -2\n", "exp.yaml:2:10: threads: -2 is out of range (allowed: 1 to 1024)"},
      {"data: {synthetic: {name: copy, symbols: 63}}\n",
       "exp.yaml:1:41: data.synthetic.symbols: 63 is out of range (allowed: 1 to 62)"},
      {copy + "decode: {top_p: 0}\n",
       "exp.yaml:2:17: decode.top_p: 0 is out of range (allowed: above 0 to 1)"},
      {copy + "decode: {top_p: 1.01}\n",
       "exp.yaml:2:17: decode.top_p: 1.01 is out of range (allowed: above 0 to 1)"},
      {copy + "decode: {beam: 0}\n",
       "exp.yaml:2:16: decode.beam: 0 is out of range (allowed: 1 to 1000)"},
      {copy + "model: {norm_eps: 0}\n",
       "exp.yaml:2:19: model.norm_eps: 0 is out of range (allowed: above 0 to 1)"},
      {copy + "train: {minutes: -1}\n",
       "exp.yaml:2:18: train.minutes: -1 is out of range (allowed: at least 0)"},
      {copy + "tokenizer: {vocab_size: 1}\n",
       "exp.yaml:2:25: tokenizer.vocab_size: 1 is out of range (allowed: 5 to 10000000)"},
  });
}

BOOST_AUTO_TEST_CASE(unknown_choices_are_refused_with_a_hint) {
  check_all({
      {copy + "task: seq2sq\n", "exp.yaml:2:7: task: expected one of " + tasks() +
                                    ", got \"seq2sq\" (did you mean seq2seq?)"},
      {copy + "task: LM\n",
       "exp.yaml:2:7: task: expected one of " + tasks() + ", got \"LM\" (did you mean lm?)"},
      {copy + "task: translate\n",
       "exp.yaml:2:7: task: expected one of " + tasks() + ", got \"translate\""},
      {copy + "task: [lm]\n", "exp.yaml:2:7: task: expected one of " + tasks() + ", got a list"},
      {copy + "model: {activation: geluu}\n", "exp.yaml:2:21: model.activation: expected one of " +
                                                  choices_of("model.activation") +
                                                  ", got \"geluu\" (did you mean gelu?)"},
      {copy + "model: {norm: layer}\n",
       "exp.yaml:2:15: model.norm: expected one of pre, post, none, got \"layer\" (did you mean "
       "norm_kind: layer?)"},
      {copy + "optim: {name: adamm}\n",
       "exp.yaml:2:15: optim.name: expected one of adam, adamw, sgd, got \"adamm\" (did you mean "
       "adam?)"},
      {copy + "optim: {schedule: {name: cosin}}\n",
       "exp.yaml:2:26: optim.schedule.name: expected one of noam, inverse_sqrt, cosine, linear, "
       "constant, got \"cosin\" (did you mean cosine?)"},
      {"data: {synthetic: {name: date}}\n", "exp.yaml:1:26: data.synthetic.name: expected one of " +
                                                choices_of("data.synthetic.name") +
                                                ", got \"date\" (did you mean dates?)"},
      {copy + "tokenizer: {kind: bpe}\n",
       "exp.yaml:2:19: tokenizer.kind: expected one of sentencepiece, char, byte, word, imported, got "
       "\"bpe\" (did you mean algorithm: bpe?)"},
      {copy + "train: {early_stopping: {metric: BLEU}}\n",
       "exp.yaml:2:34: train.early_stopping.metric: expected one of " +
           choices_of("train.early_stopping.metric") + ", got \"BLEU\" (did you mean bleu?)"},
      {copy + "train: {best: accuracy}\n",
       "exp.yaml:2:15: train.best: accuracy is only for task: classify"},
      {copy + "train: {best: ruge}\n",
       "exp.yaml:2:15: train.best: expected one of " + choices_of("train.best") + ", got \"ruge\""},
      {copy + "model: {positions: }\n", "exp.yaml:2:9: model.positions: expected one of " +
                                            choices_of("model.positions") + ", got nothing"},
  });
}

BOOST_AUTO_TEST_CASE(names_unsuitable_for_a_folder_are_refused) {
  check_all({
      {copy + "name: a/b\n",
       "exp.yaml:2:7: name: \"a/b\" cannot be a folder's name: expected 1 to 200 bytes, without "
       "slashes, control characters, or a leading dot or dash"},
      {copy + "name: ..\n",
       "exp.yaml:2:7: name: \"..\" cannot be a folder's name: expected 1 to 200 bytes, without "
       "slashes, control characters, or a leading dot or dash"},
      {copy + "name: -x\n",
       "exp.yaml:2:7: name: \"-x\" cannot be a folder's name: expected 1 to 200 bytes, without "
       "slashes, control characters, or a leading dot or dash"},
      {copy + "name: "
              "\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
              "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
              "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"\n",
       "exp.yaml:2:7: name: \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...\" "
       "cannot be a folder's name: expected 1 to 200 bytes, without slashes, control "
       "characters, or a leading dot or dash"},
  });
  // The default name is the name of the config file without its extension.
  for (const auto& [file, shown] :
       {std::pair("", ""), std::pair("a\x07.yaml", "a\\x07"), std::pair("a\nb.yaml", "a\\nb")}) {
    try {
      heed::parse_config(copy, file, {});
      BOOST_ERROR("the config was accepted");
    } catch (const heed::Error& error) {
      BOOST_TEST(std::string(error.what()).find(std::string("name: \"") + shown + "\" cannot be") !=
                 std::string::npos);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
