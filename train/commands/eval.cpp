#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "autograd/base/error.h"
#include "autograd/io/sha256.h"
#include "autograd/io/utf8.h"
#include "train/commands/command_line.h"
#include "train/commands/output.h"
#include "train/commands/trained_model.h"
#include "train/config/fields.h"
#include "train/distributed/launch.h"
#include "train/loop/rank_start.h"
#include "train/results/comparison.h"
#include "train/run/jsonl.h"
#include "train/run/run_record.h"
#include "train/terminal/run_log.h"

namespace heed {

namespace {

struct EvalCommand : RunArguments {
  std::string split;          ///< valid or test; empty: test, or valid if there are no test data
  FilesOptions files;         ///< read instead of a split
  bool pretokenised = false;  ///< whether the lines are already tokenised for BLEU
  bool json = false;
  std::string output;  ///< file for the outputs; empty: none
};

std::vector<std::string> files_in(std::initializer_list<FilesOptions> splits) {
  std::vector<std::string> all;
  for (const FilesOptions& split : splits)
    for (const auto* files : {&split.source, &split.target, &split.text})
      all.insert(all.end(), files->begin(), files->end());
  return all;
}

bool names_files(const FilesOptions& split) { return !files_in({split}).empty(); }

/// The data to evaluate, and the name of their split: "files" for the files on the command line.
struct Subject {
  std::string name;
  Split split;
};

/// Throws Error(usage), because the config lacks the requested split. The message lists the
/// alternatives.
[[noreturn]] void refuse_split(const std::string& name, bool alternative_exists, Reads reads) {
  const std::string alternative = name == "test" ? "valid" : "test";
  const char* const files = reads == Reads::pairs ? "--source FILE --target FILE" : "--text FILE";
  if (alternative_exists)
    throw Error(Exit::usage, "the config has no {} split: choose --split {}, or give {}",
                name == "test" ? "test" : "validation", alternative, files);
  throw Error(Exit::usage, "the config has neither a validation nor a test split: give {}", files);
}

/// Reads the split to evaluate. Reads the whole corpus only if this split is synthetic or a
/// fraction of the training data. Throws Error(usage) if the config has no such split.
Subject split_subject(const EvalCommand& options, const Task& task) {
  const DataOptions& data = task.config().data;
  const bool synthetic = data.synthetic.name != SyntheticKind::none;
  const auto exists = [&](bool test) {
    if (synthetic) return (test ? data.synthetic.test : data.synthetic.valid) > 0;
    return names_files(test ? data.test : data.valid) ||
           (test ? data.test_fraction : data.valid_fraction) > 0;
  };
  const bool test = options.split.empty() ? exists(true) : options.split == "test";
  const std::string name = test ? "test" : "valid";
  const FilesOptions& files = test ? data.test : data.valid;
  if (!synthetic && names_files(files)) return {name, task.read_files(files, name)};
  Corpus corpus;
  if (exists(test)) corpus = task.read();
  Split& split = test ? corpus.test : corpus.valid;
  if (split.empty()) refuse_split(name, exists(!test), task.info().reads);
  return {name, std::move(split)};
}

/// The metrics, what they were measured on, and the weights.
nlohmann::json record_of(const Evaluation& e, const Subject& subject, const TrainedModel& trained) {
  nlohmann::json record = e.json();
  record["split"] = subject.name;
  record.update(trained.weights.json());
  return record;
}

/// Appends the record to the run's evaluations. A folder that cannot be written causes a note.
void keep_record(const EvalCommand& options, nlohmann::json record, const std::string& lines) {
  std::vector<std::string> settings;
  for (const std::string& setting : options.overrides)
    if (changes_results(setting.substr(0, setting.find('=')))) settings.push_back(setting);
  if (!options.weights.empty()) settings.push_back("--weights " + options.weights);
  if (options.pretokenised) settings.emplace_back("--pretokenised");
  record["settings"] = fmt::format("{}", fmt::join(settings, " "));
  record["files"] = files_in({options.files});
  record["lines"] = lines;
  try {
    JsonlWriter evaluations(RunFolder{options.run}.evaluations());
    evaluations.append(record);
    evaluations.sync();
  } catch (const Error& error) {
    print_note(fmt::format("the result is not recorded in the run: {}", error.what()));
  }
}

void print_for_people(const Evaluation& e, const Subject& subject) {
  print_text(fmt::format("{}  {}\n", subject.name, e.text()));
  for (const std::string& line : e.details) print_text(line + "\n");
}

void refuse_contradictions(const EvalCommand& options, const Config& config, const Task& task) {
  if (options.pretokenised && !task.info().has(Metric::bleu))
    throw Error(Exit::usage, "--pretokenised is for BLEU, which task {} does not compute",
                task.info().name);
  if (!options.output.empty() && task.info().reads != Reads::pairs)
    throw Error(Exit::usage,
                "--output is for tasks whose evaluation produces one output line per input line");
  if (options.json && is_standard_output(options.output))
    throw Error(Exit::usage, "--json and the outputs cannot both go to standard output");
  if (!options.output.empty()) {
    check_output(options.output, files_in({options.files}));
    check_output(options.output, named_files(config));
  }
}

/// Warns if a split of the config is not the one that the run has recorded. No warning for a run
/// without a record of the split, or if the command line changes the data.
void warn_of_changed_split(const EvalCommand& options, const Subject& subject, const Dataset& data,
                           const Config& config) {
  const SplitSums sums = recorded_sums(RunFolder{options.run});
  const std::string& before = subject.name == "test" ? sums.test : sums.valid;
  const bool given = std::ranges::any_of(options.overrides, [](const std::string& setting) {
    return setting.starts_with("data") || setting.starts_with("seed=");
  });
  if (given || subject.name == "files" || before.empty() || before == digest_of_samples(data))
    return;
  const FilesOptions& files = subject.name == "test" ? config.data.test : config.data.valid;
  const std::vector<std::string> names = files_in({names_files(files) ? files : config.data.train});
  print_note(fmt::format(
      "warning: data.{}: its samples are not those of the run's training (run.json), so the metrics cannot be compared with earlier ones; restore {}",
      subject.name, names.empty() ? "the data" : fmt::format("{}", fmt::join(names, ", "))));
}

Subject subject_of(const EvalCommand& options, const Task& task) {
  if (!names_files(options.files)) return split_subject(options, task);
  if (!options.split.empty()) throw Error(Exit::usage, "--split and files cannot be combined");
  return {"files", task.read_given(options.files)};
}

bool reads_standard_input(const EvalCommand& options) {
  const std::vector<std::string> files = files_in({options.files});
  return std::ranges::find(files, "-") != files.end();
}

/// The facts that must be equal on all ranks.
std::vector<Fact> facts_of(const TrainedModel& trained, const Split& split) {
  std::string all = split.text;
  for (const auto* side : {&split.source, &split.target})
    for (const std::string& line : *side) all += line + '\n';
  return {{"the SHA-256 of the weights", sha256_file(trained.weights.folder / "model.safetensors")},
          {"the SHA-256 of the data", sha256_hex(all)}};
}

int eval_command(const EvalCommand& options) {
  World* const world = process_world("eval");
  const bool first = world == nullptr || world->first();
  if (!first) silence();
  std::optional<TrainedModel> opened;
  Subject subject;
  Dataset data;
  together(world, [&] {
    opened.emplace(TrainedModel::open(options.run, options.overrides, options.weights));
    refuse_contradictions(options, opened->config, *opened->task);
    if (world != nullptr && reads_standard_input(options))
      throw Error(Exit::usage, "only one of several processes can read standard input: give files");
    subject = subject_of(options, *opened->task);
    data = opened->task->encode(subject.split, opened->tokenizers, false);
    opened->task->check_evaluable(data, subject.name);
    warn_of_changed_split(options, subject, data, opened->config);
  });
  const TrainedModel& trained = *opened;
  const Task& task = *trained.task;
  if (world != nullptr) {
    world->set_timeout(trained.config.distributed.timeout);
    require_equal_ranks(*world, trained.config, facts_of(trained, subject.split));
  }
  Team team(threads_of(trained.config.threads, world));
  Evaluation e;
  const auto evaluate = [&] {
    LoadedModel all = trained.with(team);
    all.world = world;
    e = task.evaluate(all, data, {.pretokenised = options.pretokenised});
  };
  if (options.output.empty() || !first) {
    evaluate();
  } else {
    write_output(options.output,
                 [&](const Sink& sink) {  // opens the output first: it may be unwritable
                   evaluate();
                   for (const std::string& line : e.outputs) sink(one_line(line) + "\n");
                 });
  }
  if (world != nullptr) world->confirm_end();
  if (!first) return std::isfinite(e.loss()) ? 0 : static_cast<int>(Exit::non_finite);
  const nlohmann::json record = record_of(e, subject, trained);
  if (options.json)
    print_text(record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  else
    print_for_people(e, subject);
  keep_record(options, record, digest_of_lines(subject.split, data));
  if (!std::isfinite(e.loss())) {
    throw Error(Exit::non_finite, "{}: the loss is not finite: the weights in {} are unusable",
                subject.name, trained.weights.folder.string());
  }
  return 0;
}

/// Adds an option that may be repeated; each value is a file.
void add_files(CLI::App* command, const char* name, std::vector<std::string>& files,
               const char* help) {
  add_choice(command, choices, name, files, "FILE", help)->allow_extra_args(false);
}

}  // namespace

void add_eval(CommandLine& line) {
  const auto [command, options] = add_command<EvalCommand>(
      line, "eval", Needs::ranks, "metrics on a split or on given files", eval_command);
  add_run(command, options->run, options->overrides, "decode.beam=10");
  add_choice(command, choices, "--split", options->split, "NAME",
             "valid or test (default: test, or valid if there are no test data)")
      ->check(CLI::IsMember({"valid", "test"}));
  add_files(command, "--source", options->files.source,
            "source lines to evaluate instead of a split");
  add_files(command, "--target", options->files.target,
            "targets of these lines, such as reference translations");
  add_files(command, "--text", options->files.text,
            "tasks lm, mlm and denoise: text to evaluate instead of a split");
  add_weights(command, options->weights);
  add_flag(command, choices, "--pretokenised", options->pretokenised,
           "lines are already tokenised: BLEU splits them at spaces and ignores decode.bleu");
  add_choice(command, results, "--output", options->output, "FILE",
             "write the outputs to a file (- for standard output)");
  add_json(command, options->json, "the metrics");
  command->footer(
      "The loss is the mean negative log-likelihood per token in nats, without label smoothing.\n"
      "In JSON, accuracy, exact match and macro F1 range from 0 to 1, and BLEU, chrF2 and ROUGE\n"
      "from 0 to 100.\n"
      "The run's evaluations.jsonl keeps the result; heed compare shows that of a pruned or\n"
      "quantised copy.\n"
      "Files may be tables (docs/DATA.md), which contain both sides, and compressed with gzip.\n"
      "--source, --target and --text may be repeated.\n"
      "Examples:\n"
      "  heed eval runs/dates --json\n"
      "  heed eval runs/multi30k-de-en --source test.de --target test.en decode.beam=10");
}

}  // namespace heed
