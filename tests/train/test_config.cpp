/// Reading whole configs: defaults, overrides, the shipped configs and the reference page.
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "autograd/base/error.h"
#include "nn/layers/activations.h"
#include "nn/layers/patterns.h"
#include "nn/layers/positions.h"
#include "tests/train/schema_cases.h"
#include "train/config/config.h"
#include "train/essentials/experiment.h"

BOOST_AUTO_TEST_SUITE(config)

namespace fs = std::filesystem;
using heed::Config;
using Strings = std::vector<std::string>;

namespace {

const std::string minimal = "data: {train: {source: a.txt, target: b.txt}}\n";

Config parse(const std::string& text, const Strings& overrides = {}) {
  const Config config = heed::parse_config(text, "exp.yaml", overrides);
  // A schema describes only a file: it cannot express that overrides reset keys or shorten the
  // warmup.
  if (overrides.empty()) heed::SchemaCase(text).record("accepted");
  return config;
}

std::string slurp(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

const fs::path configs = fs::path(HEED_SOURCE_DIR) / "configs";

}  // namespace

BOOST_AUTO_TEST_CASE(missing_keys_have_the_default_values_of_the_struct) {
  const Config config = parse(minimal);
  Config expected;
  expected.name = "exp";
  expected.data.train.source = {"a.txt"};
  expected.data.train.target = {"b.txt"};
  expected.optim.schedule.warmup = 1000;  // auto, for the default number of steps
  BOOST_TEST(heed::differences(config, expected).empty());
  BOOST_TEST(config.train.label_smoothing == heed::TrainOptions{}.label_smoothing);
}

BOOST_AUTO_TEST_CASE(reference_program_has_the_same_defaults) {
  const Config config = parse(minimal);
  const heed::reference::Experiment essentials;
  BOOST_TEST(essentials.task == "seq2seq");
  BOOST_TEST((config.task == heed::TaskKind::seq2seq));
  BOOST_TEST(essentials.seed == config.seed);
  BOOST_TEST(essentials.model.d_model == config.model->d_model);
  BOOST_TEST(essentials.model.heads == config.model->heads);
  BOOST_TEST(essentials.model.d_ff == config.model->d_ff);
  BOOST_TEST(essentials.model.encoder_layers == config.model->encoder_layers);
  BOOST_TEST(essentials.model.decoder_layers == config.model->decoder_layers);
  BOOST_TEST(essentials.context == config.model->context);
  BOOST_TEST(essentials.lr == config.optim.lr);
  BOOST_TEST(essentials.warmup == Config().optim.schedule.warmup);
  BOOST_TEST(essentials.steps == config.train.steps);
  BOOST_TEST(essentials.batch_tokens == config.train.batch_tokens);
  BOOST_TEST(essentials.label_smoothing == config.train.label_smoothing);
  BOOST_TEST(essentials.max_length == config.decode.max_length);
}

BOOST_AUTO_TEST_CASE(every_section_is_read_into_the_config) {
  const Config config = parse(R"(
name: translate
seed: 18446744073709551615
threads: 3
task: seq2seq
data:
  train: {source: [a, "b c"], target: [c, d]}
  valid: {source: e, target: f}
  test_fraction: 0.25
  lowercase: true
  max_length: 99
tokenizer: {kind: word, vocab_size: 100, shared: false, source_model: s.txt, target_model: t.txt}
model: {d_model: 24, heads: 3, d_ff: 7, layers: {encoder: 1, decoder: 5}, dropout: 0.25,
        activation: gelu_tanh, positions: learned, norm: post, final_norm: false, norm_kind: rms, norm_eps: 1.0e-6,
        tie_embeddings: false, scale_embeddings: false, init: normal, init_std: 0.5,
        max_positions: 300,
        attention: {pattern: window, window: 40}}
optim: {name: adamw, lr: 5E-4, betas: [0.8, 0.9], eps: 1.0e-7, weight_decay: 0.01, clip_norm: 0,
        schedule: {name: linear, warmup: 7, steps: 90, min_lr: 1.0e-5}}
train: {steps: 0, epochs: 1.5, minutes: 2, batch_tokens: 10, batch_sequences: 11, shards: 12,
        label_smoothing: 0, log_every: 13, validate_every: 14, save_every: 15, keep: 16,
        early_stopping: {metric: bleu, patience: 17}, best: chrf, average: 18}
decode: {beam: 19, length_penalty: 0, max_length: 20, batch_sequences: 21, sample: true,
         temperature: 0.5, top_k: 22, top_p: 0.5}
)");
  BOOST_TEST(config.name == "translate");
  BOOST_TEST(config.seed == 18446744073709551615ULL);
  BOOST_TEST(config.threads == 3);
  BOOST_TEST((config.data.train.source == Strings{"a", "b c"}));
  BOOST_TEST((config.data.valid.target == Strings{"f"}));
  BOOST_TEST(config.data.test_fraction == 0.25);
  BOOST_TEST(config.data.lowercase);
  BOOST_TEST(config.data.max_length == 99);
  BOOST_TEST((config.tokenizer.kind == heed::TokenizerKind::words));
  BOOST_TEST(config.tokenizer.target_model == "t.txt");
  BOOST_TEST(config.model->encoder_layers == 1);
  BOOST_TEST(config.model->decoder_layers == 5);
  BOOST_TEST((config.model->activation == heed::Activation::gelu_tanh));
  BOOST_TEST((config.model->positions == heed::PositionKind::learned));
  BOOST_TEST((config.model->attention.pattern == heed::PatternKind::window));
  BOOST_TEST(config.model->attention.window == 40);
  BOOST_TEST((config.model->norm == heed::NormPlace::post));
  BOOST_TEST(!config.model->final_norm);
  BOOST_TEST((config.model->norm_kind == heed::NormKind::rms));
  BOOST_TEST((config.model->init == heed::InitKind::normal));
  BOOST_TEST((config.optim.name == heed::OptimizerKind::adamw));
  BOOST_TEST(config.optim.lr == 5e-4);
  BOOST_TEST(config.optim.betas[1] == 0.9);
  BOOST_TEST((config.optim.schedule.name == heed::ScheduleKind::linear));
  BOOST_TEST(config.optim.schedule.min_lr == 1e-5);
  BOOST_TEST(config.train.epochs == 1.5);
  BOOST_TEST((config.train.early_stopping.metric == heed::Metric::bleu));
  BOOST_TEST((config.train.best == heed::Metric::chrf));
  BOOST_TEST(config.decode.top_p == 0.5);
}

BOOST_AUTO_TEST_CASE(choices_map_to_their_enum_values) {
  const auto task = [](const char* name) {
    return parse(std::string("data: {synthetic: {name: ") + name + "}}").data.synthetic.name;
  };
  BOOST_TEST((task("copy") == heed::SyntheticKind::copy));
  BOOST_TEST((task("reverse") == heed::SyntheticKind::reverse));
  BOOST_TEST((task("sort") == heed::SyntheticKind::sort));
  BOOST_TEST((task("addition") == heed::SyntheticKind::addition));
  BOOST_TEST((task("dates") == heed::SyntheticKind::dates));
  const auto kind = [](const char* name) {
    return parse(minimal, {std::string("tokenizer.kind=") + name}).tokenizer.kind;
  };
  BOOST_TEST((kind("sentencepiece") == heed::TokenizerKind::sentencepiece));
  BOOST_TEST((kind("char") == heed::TokenizerKind::characters));
  BOOST_TEST((kind("byte") == heed::TokenizerKind::bytes));
  BOOST_TEST((kind("word") == heed::TokenizerKind::words));
  const auto schedule = [](const char* name) {
    return parse(minimal, {std::string("optim.schedule.name=") + name}).optim.schedule.name;
  };
  BOOST_TEST((schedule("noam") == heed::ScheduleKind::noam));
  BOOST_TEST((schedule("inverse_sqrt") == heed::ScheduleKind::inverse_sqrt));
  BOOST_TEST((schedule("cosine") == heed::ScheduleKind::cosine));
  BOOST_TEST((schedule("linear") == heed::ScheduleKind::linear));
  BOOST_TEST((schedule("constant") == heed::ScheduleKind::constant));
  const auto metric = [](const char* name) {
    return parse(minimal, {std::string("train.best=") + name}).train.best;
  };
  BOOST_TEST((metric("loss") == heed::Metric::loss));
  BOOST_TEST((metric("perplexity") == heed::Metric::perplexity));
  BOOST_TEST((metric("token_accuracy") == heed::Metric::token_accuracy));
  BOOST_TEST((metric("exact_match") == heed::Metric::exact_match));
  BOOST_TEST((metric("bleu") == heed::Metric::bleu));
  BOOST_TEST((metric("chrf") == heed::Metric::chrf));
  const auto activation = [](const char* name) {
    return parse(minimal, {std::string("model.activation=") + name}).model->activation;
  };
  BOOST_TEST((activation("relu") == heed::Activation::relu));
  BOOST_TEST((activation("gelu") == heed::Activation::gelu));
  BOOST_TEST((activation("silu") == heed::Activation::silu));
}

BOOST_AUTO_TEST_CASE(whole_number_is_accepted_in_decimal_and_exponent_notation) {
  for (const char* text : {"10000", "1e4", "1E4", "1.0e4", "10000.0", "1.0e+4", "1000000e-2"})
    BOOST_TEST(parse(minimal, {std::string("train.steps=") + text}).train.steps == 10000, text);
  BOOST_TEST(parse(minimal, {"seed=1e3"}).seed == 1000u);
  BOOST_TEST(parse(minimal, {"train.steps=-0.0", "train.epochs=1"}).train.steps == 0);
}

BOOST_AUTO_TEST_CASE(anchors_empty_sections_and_crlf_are_accepted) {
  const Config config = parse(
      "\xEF\xBB\xBF%YAML 1.2\r\n---\r\ntrain:\r\n  # steps: 3\r\ndata:\r\n  train: &files\r\n"
      "    source: ü.txt\r\n    target: b\r\n  valid: *files\r\ndecode:\r\n...\r\n");
  BOOST_TEST((config.data.valid.source == Strings{"ü.txt"}));
  BOOST_TEST(config.train.steps == heed::TrainOptions{}.steps);
}

BOOST_AUTO_TEST_CASE(config_with_a_bench_section_needs_no_data) {
  BOOST_TEST(heed::parse_config("bench: {sequences: 4}\n", "x.yaml", {}).bench.sequences == 4);
}

BOOST_AUTO_TEST_CASE(layers_of_a_language_model_are_decoder_layers) {
  const Config config =
      parse("task: lm\ndata: {train: {text: t}}\nmodel: {layers: 4, context: 64}");
  BOOST_TEST(config.model->encoder_layers == 0);
  BOOST_TEST(config.model->decoder_layers == 4);
  BOOST_TEST(config.model->context == 64);
}

BOOST_AUTO_TEST_CASE(dropout_is_read_as_one_rate_or_as_a_rate_for_each_place) {
  const heed::DropoutRates shared = parse(minimal + "model: {dropout: 0.25}\n").model->dropout;
  BOOST_TEST(shared.residual == 0.25);
  BOOST_TEST(shared.attention == 0.25);
  BOOST_TEST(shared.activation == 0.25);
  const std::string text = minimal + "model: {dropout: {residual: 0.3, attention: 0}}\n";
  const heed::DropoutRates separate = parse(text, {"model.dropout.activation=0.2"}).model->dropout;
  BOOST_TEST(separate.residual == 0.3);
  BOOST_TEST(separate.attention == 0);
  BOOST_TEST(separate.activation == 0.2);
  BOOST_TEST(parse(text, {"model.dropout=0"}).model->dropout.residual == 0);
}

BOOST_AUTO_TEST_CASE(overrides_replace_values_of_the_file) {
  const std::string text = minimal + "model: {layers: 6, d_model: 512}\ntrain: {steps: 5}\n";
  BOOST_TEST(parse(text, {"train.steps=200"}).train.steps == 200);
  BOOST_TEST(parse(text, {"train.steps=200", "train.steps=300"}).train.steps == 300);
  BOOST_TEST(parse(text, {"model.layers=2"}).model->encoder_layers == 2);
  BOOST_TEST(parse(text, {"model.layers={encoder: 1, decoder: 2}"}).model->decoder_layers == 2);
  const Config one = parse(text, {"model.layers.decoder=1"});
  BOOST_TEST(one.model->decoder_layers == 1);
  BOOST_TEST(one.model->encoder_layers == 6);
  BOOST_TEST(one.model->d_model == 512);
  BOOST_TEST(
      (parse(text, {"data.train.source=[a, b]", "data.train.target=[c,d]"}).data.train.source ==
       Strings{"a", "b"}));
  BOOST_TEST(parse(text, {"optim.schedule.warmup=9"}).optim.schedule.warmup == 9);
  BOOST_TEST(parse(text, {"name=a=b"}).name == "a=b");
  BOOST_TEST((parse(text, {"optim.betas=[0.5, 0.6]"}).optim.betas[0] == 0.5));
  BOOST_TEST(parse(text, {"tokenizer.model=\"\""}).tokenizer.model.empty());
  // An override of a section replaces the whole section of the file.
  BOOST_TEST(parse(text, {"model={heads: 2}"}).model->d_model == heed::ModelOptions{}.d_model);
  // With an empty file, the command line can supply every key.
  BOOST_TEST(parse("", {"data.synthetic.name=copy"}).name == "exp");
}

BOOST_AUTO_TEST_CASE(keys_made_ineffective_by_an_override_are_reset) {
  const std::string text = minimal +
                           "optim: {name: adamw, betas: [0.9, 0.99], weight_decay: 0.1}\n"
                           "model: {positions: learned, max_positions: 200}\n";
  const Config config = parse(text, {"optim.name=sgd", "model.positions=sinusoidal"});
  BOOST_TEST(config.optim.betas[1] == heed::OptimOptions{}.betas[1]);
  BOOST_TEST(config.optim.weight_decay == 0.1);
  BOOST_TEST(config.model->max_positions == heed::ModelOptions{}.max_positions);
  const Config again = parse(heed::write_yaml(config));  // the resolved config is valid
  BOOST_TEST(heed::differences(config, again).empty());
}

BOOST_AUTO_TEST_CASE(differences_lists_the_changed_keys) {
  const Config a = parse(minimal);
  Config b = a;
  BOOST_TEST(heed::differences(a, b).empty());
  b.model->encoder_layers = 9;
  b.seed = 7;
  b.train.early_stopping.metric = heed::Metric::loss;
  BOOST_TEST((heed::differences(a, b) ==
              Strings{"seed", "model.layers.encoder", "train.early_stopping.metric"}));
}

BOOST_AUTO_TEST_CASE(changes_on_resume_are_reported_refused_or_ignored) {
  const std::string text = minimal + "optim: {schedule: {warmup: 4}}\n";
  const Config run = parse(text);
  const auto changes = [&](const Strings& overrides) -> Strings {
    try {
      return heed::changes_on_resume(run, parse(text, overrides));
    } catch (const heed::Error& error) {
      BOOST_TEST((error.code == heed::Exit::usage));
      return {error.what()};
    }
  };
  BOOST_TEST(changes({}).empty());
  BOOST_TEST(changes({"threads=7"}).empty());
  BOOST_TEST(
      (changes({"train.steps=20", "model.dropout.attention=0", "optim.name=adamw"}) ==
       Strings{"model.dropout.attention is now 0 (it was 0.1)",
               "optim.name is now adamw (it was adam)", "train.steps is now 20 (it was 10000)"}));
  BOOST_TEST((changes({"model.heads=8"}) ==
              Strings{"model.heads: a run keeps its model, because its weights fit no other; to "
                      "change it, start a new run with heed train"}));
  BOOST_TEST(
      (changes({"tokenizer.kind=char"}) ==
       Strings{"tokenizer.kind: a run keeps its tokenizer, because its weights fit no other; "
               "to change it, start a new run with heed train"}));
  BOOST_TEST((changes({"optim.name=sgd"}) ==
              Strings{"optim.name: a run keeps its moments, which Adam and SGD do not share; to "
                      "change it, start a new run with heed train"}));
}

BOOST_AUTO_TEST_CASE(shipped_reference_page_equals_the_printed_page_and_is_valid) {
  const bool same = slurp(configs / "reference.yaml") == heed::reference_yaml();
  BOOST_TEST(same, "configs/reference.yaml is outdated: regenerate it with heed show reference");
  const Config config = heed::read_config(configs / "reference.yaml");
  BOOST_TEST((config.data.synthetic.name == heed::SyntheticKind::dates));
  BOOST_TEST(config.name == "reference");
}

BOOST_AUTO_TEST_CASE(every_shipped_config_begins_with_a_comment_and_is_valid) {
  std::size_t count = 0;
  for (const auto& entry : fs::recursive_directory_iterator(configs)) {
    if (entry.path().extension() != ".yaml") continue;
    ++count;
    BOOST_TEST_CONTEXT(entry.path().filename().string()) {
      const Config config = heed::read_config(entry.path());
      heed::SchemaCase(slurp(entry.path())).record("shipped: " + entry.path().filename().string());
      BOOST_TEST(config.name.ends_with(entry.path().stem().string()));
      BOOST_TEST(slurp(entry.path()).starts_with("# "));
      const std::string all = heed::write_yaml(config),
                        effective = heed::write_effective_yaml(config);
      BOOST_TEST(heed::differences(config, parse(all)).empty());
      // Keys without effect have their defaults.
      BOOST_TEST(heed::differences(config, parse(effective)).empty());
      BOOST_TEST(std::ranges::count(effective, '\n') < std::ranges::count(all, '\n') - 20);
    }
  }
  BOOST_TEST(count >= 12u);
}

BOOST_AUTO_TEST_CASE(keys_without_effect_are_not_among_the_effective_ones) {
  const auto shown = [](const std::string& text, const std::string& key) {
    const std::string yaml = heed::write_effective_yaml(parse(minimal + text));
    return yaml.find("\n  " + key + ":") != std::string::npos;
  };
  BOOST_TEST(!shown("", "max_positions"));
  BOOST_TEST(shown("model: {positions: learned}\n", "max_positions"));
  BOOST_TEST(!shown("", "video"));  // a section without keys
  BOOST_TEST(shown("optim: {name: sgd}\n", "momentum"));
  BOOST_TEST(!shown("", "momentum"));
  BOOST_TEST(shown("", "lr"));
  // keys of other tasks
  for (const char* key : {"mask", "spans", "mixture", "head_transform", "context"})
    BOOST_TEST(!shown("", key), key);
  const std::string masked =
      heed::write_effective_yaml(parse("task: mlm\ndata: {train: {text: a}}\n"));
  BOOST_TEST(masked.find("\n  mask:") != std::string::npos);
  // switched off, or none
  for (const char* key : {"distill", "temperature", "top_k", "top_p", "source_length", "specials"})
    BOOST_TEST(!shown("", key), key);
  BOOST_TEST(shown("train: {distill: {teacher: a}}\n", "distill"));
  BOOST_TEST(shown("decode: {sample: true}\n", "top_k"));
  BOOST_TEST(shown("decode: {top_k: 5}\n", "top_k"));
  BOOST_TEST(shown("bench: {sequences: 3}\n", "source_length"));
}

BOOST_AUTO_TEST_CASE(unreadable_file_is_reported_with_its_full_path) {
  const auto message = [](const std::string& path) -> std::string {
    try {
      heed::read_config(path);
    } catch (const heed::Error& error) {
      BOOST_TEST((error.code == heed::Exit::usage));
      return error.what();
    }
    return "nothing was thrown";
  };
  const std::string folder = fs::current_path();
  BOOST_TEST(message("no-such.yaml") ==
             "cannot read the config: " + folder + "/no-such.yaml: no such file");
  BOOST_TEST(message("/") == "cannot read the config: /: is a folder, not a file");
  BOOST_TEST(message("/dev/null/x.yaml") ==
             "cannot read the config: /dev/null/x.yaml: Not a directory");
  const std::string long_name(300, 'x');
  BOOST_TEST(message("/" + long_name) ==
             "cannot read the config: /" + long_name + ": File name too long");
  try {  // a file that opens but cannot be read is an I/O error
    heed::read_config("/proc/self/mem");
    BOOST_ERROR("nothing was thrown");
  } catch (const heed::Error& error) {
    BOOST_TEST((error.code == heed::Exit::io));
    BOOST_TEST(
        error.what() ==
        std::string("cannot read the config: cannot read /proc/self/mem: Input/output error"));
  }
}

BOOST_AUTO_TEST_SUITE_END()
