#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "autograd/base/error.h"
#include "autograd/base/utf8.h"
#include "train/commands/commands.h"
#include "train/commands/output.h"
#include "train/commands/trained_model.h"

namespace heed {

namespace {

[[noreturn]] void refuse(const std::string& message) { throw Error(Exit::usage, message); }

bool names_files(const FilesOptions& files) { return !files.source.empty() || !files.text.empty(); }

/// What is evaluated, and what it is called.
struct Subject {
  std::string name;
  Split split;
};

/// One split, reading no other where its files say what belongs to it.
Subject split_subject(const EvalCommand& options, const Task& task) {
  const DataOptions& data = task.config().data;
  const bool synthetic = data.synthetic.name != SyntheticKind::none;
  const bool has_test =
      synthetic ? data.synthetic.test > 0 : names_files(data.test) || data.test_fraction > 0;
  const std::string name = !options.split.empty() ? options.split : has_test ? "test" : "valid";
  const bool test = name == "test";
  const FilesOptions& files = test ? data.test : data.valid;
  if (!synthetic && names_files(files)) return {name, task.read_files(files, name)};
  Corpus corpus;
  if (synthetic || (test ? data.test_fraction : data.valid_fraction) > 0) corpus = task.read();
  Split& split = test ? corpus.test : corpus.valid;
  if (split.empty())
    refuse(fmt::format("the config has no {} split: choose another with --split, or name files",
                       name));
  return {name, std::move(split)};
}

void print_record(const Evaluation& e, const Subject& subject, const TrainedModel& trained) {
  nlohmann::json record = e.json();
  record["split"] = subject.name;
  record["weights"] = std::filesystem::weakly_canonical(trained.weights).string();
  fmt::print("{}\n", record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

void print_for_people(const Evaluation& e, const Subject& subject) {
  fmt::print("{}  {}\n", subject.name, e.text());
  for (const std::string& line : e.details) fmt::print("{}\n", line);
}

}  // namespace

int eval_command(const EvalCommand& options) {
  const TrainedModel trained = TrainedModel::open(options.run, options.overrides, options.weights);
  const Task& task = *trained.task;
  if (options.pretokenised && !task.info().has(Metric::bleu))
    refuse(fmt::format("--pretokenised is about BLEU, which task {} has not", task.info().name));
  if (!options.output.empty() && task.info().reads_text)
    refuse("--output is for tasks whose evaluation gives a line for each line");
  if (options.json && is_standard_output(options.output))
    refuse("--json and the outputs cannot both go to standard output");
  const FilesOptions given{options.source, options.target, options.text};
  const bool own_files = names_files(given) || !given.target.empty();
  if (own_files && !options.split.empty()) refuse("--split and files exclude one another");
  const Subject subject =
      own_files ? Subject{"files", task.read_given(given)} : split_subject(options, task);
  const Dataset data = task.encode(subject.split, trained.tokenizers, false);
  task.check_evaluable(data, subject.name);
  Team team(trained.config.threads);
  Evaluation e;
  const auto evaluate = [&] {
    e = task.evaluate(trained.with(team), data, {.pretokenised = options.pretokenised});
  };
  if (options.output.empty()) {
    evaluate();
  } else {
    write_output(options.output, [&](const Sink& sink) {  // which cannot be written fails at once
      evaluate();
      for (const std::string& line : e.outputs) sink(one_line(line) + "\n");
    });
  }
  options.json ? print_record(e, subject, trained) : print_for_people(e, subject);
  if (!std::isfinite(e.loss())) {
    throw Error(Exit::non_finite,
                fmt::format("the loss of {} is not finite: the weights in {} are of no use",
                            subject.name, trained.weights.string()));
  }
  return 0;
}

}  // namespace heed
