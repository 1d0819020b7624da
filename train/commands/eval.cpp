#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "autograd/base/error.h"
#include "autograd/base/utf8.h"
#include "train/commands/commands.h"
#include "train/commands/output.h"
#include "train/commands/trained_model.h"
#include "train/tasks/evaluate.h"
#include "train/tasks/session.h"

namespace heed {

namespace {

[[noreturn]] void refuse(const std::string& message) { throw Error(Exit::usage, message); }

bool names_files(const FilesOptions& files) { return !files.source.empty() || !files.text.empty(); }

/// What is evaluated, and what it is called.
struct Subject {
  std::string name;
  Split split;
};

Subject files_subject(const EvalCommand& options, const Config& config) {
  const bool lm = config.task == Task::lm;
  if (!options.split.empty()) refuse("--split and files exclude one another");
  if (lm && options.text.empty()) refuse("a language model is evaluated on --text FILE");
  if (lm && (!options.source.empty() || !options.target.empty()))
    refuse("--source and --target are for task seq2seq");
  if (!lm && !options.text.empty())
    refuse("--text is for language models; give --source and --target");
  if (!lm && (options.source.empty() || options.target.empty()))
    refuse("--source and --target go together");
  if (std::ranges::count(options.source, "-") + std::ranges::count(options.target, "-") > 1)
    refuse("standard input can be one file only");
  const FilesOptions files{options.source, options.target, options.text};
  return {"files", read_split(files, lm, config.data.lowercase, "files")};
}

/// What to do where the config lacks the split that is to be evaluated.
[[noreturn]] void refuse_split(const std::string& name, bool other_exists, bool lm) {
  const std::string other = name == "test" ? "valid" : "test";
  const char* const files = lm ? "--text FILE" : "--source FILE --target FILE";
  if (other_exists)
    refuse(fmt::format("the config has no {} split: choose --split {}, or give {}", name, other,
                       files));
  refuse(fmt::format("the config has neither a valid nor a test split: give {}", files));
}

/// One split, reading no other where its files say what belongs to it.
Subject split_subject(const EvalCommand& options, const Config& config) {
  const bool lm = config.task == Task::lm;
  const DataOptions& data = config.data;
  const bool synthetic = data.synthetic.name != SyntheticKind::none;
  const bool has_test = synthetic ? data.synthetic.test > 0
                                  : names_files(data.test) || data.test_fraction > 0,
             has_valid = synthetic ? data.synthetic.valid > 0
                                   : names_files(data.valid) || data.valid_fraction > 0;
  const std::string name = !options.split.empty() ? options.split : has_test ? "test" : "valid";
  const bool test = name == "test";
  const FilesOptions& files = test ? data.test : data.valid;
  if (!synthetic && names_files(files)) return {name, read_split(files, lm, data.lowercase, name)};
  Corpus corpus;
  if (synthetic || (test ? data.test_fraction : data.valid_fraction) > 0)
    corpus = read_corpus(data, lm, config.seed);
  Split& split = test ? corpus.test : corpus.valid;
  if (split.empty()) refuse_split(name, test ? has_valid : has_test, lm);
  return {name, std::move(split)};
}

/// The files that hold what is evaluated.
std::vector<std::string> files_read(const EvalCommand& options, const Config& config) {
  std::vector<std::string> all;
  for (const auto* files : {&options.source, &options.target, &options.text})
    all.insert(all.end(), files->begin(), files->end());
  if (!all.empty()) return all;
  const DataOptions& data = config.data;  // all splits: one may be a fraction of another
  for (const FilesOptions* split : {&data.train, &data.valid, &data.test}) {
    for (const auto* files : {&split->source, &split->target, &split->text})
      all.insert(all.end(), files->begin(), files->end());
  }
  return all;
}

void print_record(const Evaluation& e, const Subject& subject, const TrainedModel& trained) {
  nlohmann::json record = e.json();
  record["split"] = subject.name;
  record.update(trained.weights.json());
  if (trained.config.task == Task::seq2seq) record["beam"] = trained.config.decode.beam;
  fmt::print("{}\n", record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

void print_for_people(const Evaluation& e, const Subject& subject) {
  fmt::print("{}  {}\n", subject.name, e.text());
  if (e.bleu) fmt::print("{}\n{}\n{}\n", e.bleu_text, e.bleu_signature, e.chrf_signature);
}

}  // namespace

int eval_command(const EvalCommand& options) {
  const TrainedModel trained = TrainedModel::open(options.run, options.overrides, options.weights);
  const Config& config = trained.config;
  const bool seq2seq = config.task == Task::seq2seq;
  if (!seq2seq && (options.pretokenised || !options.output.empty())) {
    refuse("--pretokenised and --output are for task seq2seq, where there are translations");
  }
  if (options.json && is_standard_output(options.output))
    refuse("--json and the translations cannot both go to standard output");
  if (!options.output.empty())
    refuse_output_over_input(options.output, files_read(options, config));
  const bool own_files =
      !options.source.empty() || !options.target.empty() || !options.text.empty();
  const Subject subject =
      own_files ? files_subject(options, config) : split_subject(options, config);
  const Dataset data = tokenize(subject.split, *trained.tokenizers.source,
                                *trained.tokenizers.target, {}, static_cast<int>(config.threads));
  check_evaluable(subject.split, data, evaluation_limits(config), subject.name);
  Team team(config.threads);
  Evaluation e =
      evaluate_loss(*trained.model, data, config.train.batch_tokens, context_of(config), team);
  if (seq2seq) {
    const auto translate = [&] {
      evaluate_outputs(e, *trained.model, data, trained.tokenizers, config.decode,
                       options.pretokenised, config.seed, team);
    };
    if (options.output.empty()) {
      translate();
    } else {
      write_output(options.output, [&](const Sink& sink) {  // which cannot be written fails at once
        translate();
        for (const std::string& line : e.outputs) sink(one_line(line) + "\n");
      });
    }
  }
  options.json ? print_record(e, subject, trained) : print_for_people(e, subject);
  if (!std::isfinite(e.loss)) {
    throw Error(Exit::non_finite,
                fmt::format("the loss of {} is not finite: the weights in {} are unusable",
                            subject.name, trained.weights.folder.string()));
  }
  return 0;
}

}  // namespace heed
