#include <fmt/format.h>

#include <cmath>
#include <csignal>
#include <cstdio>
#include <filesystem>

#include "autograd/base/error.h"
#include "autograd/base/files.h"
#include "train/commands/commands.h"
#include "train/loop/trainer.h"
#include "train/run/run_lock.h"
#include "train/run/run_record.h"

namespace heed {

namespace {

std::string data_summary(const Config& config, const ExperimentData& data) {
  if (config.task == Task::lm) {
    return fmt::format("data: {} tokens of text, {} to validate on, {} to test on; vocabulary {}",
                       data.train.stream.size(), data.valid.stream.size(), data.test.stream.size(),
                       data.tokenizers.target->size());
  }
  std::string left_out;
  if (data.train.left_out_long + data.train.left_out_empty > 0) {
    left_out = fmt::format(" ({} too long and {} empty ones left out)", data.train.left_out_long,
                           data.train.left_out_empty);
  }
  return fmt::format(
      "data: {} pairs{}, {} to validate on, {} to test on; vocabulary {}{}", data.train.size(),
      left_out, data.valid.size(), data.test.size(), data.tokenizers.source->size(),
      data.tokenizers.shared() ? "" : fmt::format(" and {}", data.tokenizers.target->size()));
}

/// "1 thread", "2 threads"
std::string counted(std::int64_t n, std::string_view noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

bool has_test(const ExperimentData& data) {
  return data.test.size() > 0 || !data.test.stream.empty();
}

std::int64_t count_values(const Parameters& parameters) {
  std::int64_t n = 0;
  for (const NamedTensor& p : parameters) n += p.tensor.size();
  return n;
}

/// A few test lines with what the model makes of them, evenly picked.
void show_samples(const Dataset& split, const Evaluation& e, Talk& talk) {
  const std::size_t n = e.outputs.size(), shown = std::min<std::size_t>(n, 10);
  if (shown > 0) talk.line("examples:");
  for (std::size_t i = 0; i < shown; ++i) {
    const std::size_t k = i * n / shown;
    const bool right = e.outputs[k] == split.target_lines[k];
    talk.line(fmt::format("  {}  ->  {}{}", split.source_lines[k], e.outputs[k],
                          right ? "" : fmt::format("   (expected {})", split.target_lines[k])));
  }
}

void explain_precision(const Config& config, Talk& talk) {
  for (const std::string& note : {precision_note(config.train.precision, "train.precision"),
                                  precision_note(config.decode.precision, "decode.precision")}) {
    if (!note.empty()) talk.line(note);
  }
}

/// Does it, and writes a failure into the log as well.
template <class Work>
int logged(Talk& talk, const Work& work) {
  try {
    return work();
  } catch (const Error& e) {
    talk.end_progress();
    try {
      talk.log(fmt::format("ended by an error: {}", e.what()));
    } catch (const Error&) {  // a full disk, perhaps; the first error is what matters
    }
    throw;
  }
}

/// What --json prints: without validation and test data, what there is all the same.
void print_record(const std::optional<Evaluation>& e, const WeightsInfo& weights,
                  const RunFolder& run, const ExperimentData& data) {
  nlohmann::json record = e ? e->json() : nlohmann::json::object();
  if (e) record["split"] = has_test(data) ? "test" : "valid";
  record.update(weights.json());
  record["run"] = run.path.string();
  fmt::print("{}\n", record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

/// From a trainer that stands where it shall begin, to the end.
int run_to_end(Trainer& trainer, const Config& config, const RunFolder& run,
               const ExperimentData& data, Talk& talk, bool json) {
  if (const int signal = trainer.train(); signal != 0) {
    talk.line(fmt::format("stopped by {}; to continue: heed resume {}", signal_text(signal),
                          run.path.string()));
    return 128 + signal;
  }
  const WeightsInfo weights = trainer.choose_weights();
  const std::optional<Evaluation> e = trainer.final_evaluation();
  if (json) print_record(e, weights, run, data);
  if (e) {
    const bool test = has_test(data);
    talk.line(fmt::format("{}  {}", test ? "test" : "valid", e->text()));
    if (config.task == Task::seq2seq) show_samples(test ? data.test : data.valid, *e, talk);
    if (!std::isfinite(e->loss)) {
      throw Error(Exit::non_finite,
                  fmt::format("the loss of the {} split is not finite: the weights are unusable; "
                              "the run is in {}",
                              test ? "test" : "validation", run.path.string()));
    }
  }
  talk.line(fmt::format("the run is in {}", run.path.string()));
  return 0;
}

/// The keys in which the config of a resumed run differs from its own, except the number of threads,
/// which depends on the machine. Throws where the weights would not fit the model any longer.
std::vector<std::string> changed_keys(const Config& config, const RunFolder& run) {
  std::vector<std::string> changed;
  const Config own = read_run_config(run);
  for (const std::string& key : differences(config, own)) {
    if (key == "threads") continue;
    const bool fixed = key == "task" || key.starts_with("tokenizer.") ||
                       (key.starts_with("model.") && !key.starts_with("model.dropout"));
    const bool other_moments = key == "optim.name" && (config.optim.name == OptimizerKind::sgd) !=
                                                          (own.optim.name == OptimizerKind::sgd);
    if (other_moments)
      throw Error(Exit::usage,
                  "optim.name: a run keeps its moments, which Adam and SGD do not share; start a "
                  "new run with "
                  "heed train");
    if (fixed)
      throw Error(
          Exit::usage,
          fmt::format("{}: a run keeps its {}, because its weights fit no other; start a new run "
                      "with heed train",
                      key, key.substr(0, key.find('.'))));
    changed.push_back(key);
  }
  return changed;
}

int go_on(const Config& config, const RunFolder& run, const ResumeCommand& options, Talk& talk) {
  const std::vector<std::string> changed = changed_keys(config, run);
  for (const std::string& note : check_files(run)) talk.line("warning: " + note);
  const Tokenizers tokenizers = Tokenizers::load(run.path, config.tokenizer.kind);
  const ExperimentData data = load_data(config, &tokenizers);
  for (const std::string& change : changed_surroundings(run, config, data)) {
    talk.line(fmt::format(
        "warning: differs from what the run was started with, so its bits may differ: {}", change));
  }
  explain_precision(config, talk);
  Trainer trainer(config, run, data, talk);
  trainer.restore();
  for (const std::string& key : changed)
    talk.line(
        fmt::format("note: {} changes from this step on, also in the run's config.yaml", key));
  if (!changed.empty()) adopt_config(run, config, data);
  return run_to_end(trainer, config, run, data, talk, options.json);
}

}  // namespace

int train_command(const TrainCommand& options) {
  std::signal(SIGUSR1, SIG_IGN);  // until there is something to save
  const Config config = read_config(options.config, options.overrides);
  const RunFolder run{options.run.empty() ? std::filesystem::path("runs") / config.name
                                          : std::filesystem::path(options.run)};
  RunLock::refuse_if_held(run.path);
  options.overwrite ? refuse_foreign_folder(run) : refuse_existing_run(run);
  Talk talk;
  const ExperimentData data = load_data(config);  // first: bad data leaves nothing behind
  Trainer trainer(config, run, data, talk);       // and a model that does not fit, no less
  create_folders(run.path);
  const RunLock lock(run.path);
  if (options.overwrite) {
    clear_run(run);
  } else {
    refuse_existing_run(run);  // another process may have been faster
  }
  begin_run(run, config, data, options.command);
  talk.log_to(run.log());
  talk.line(data_summary(config, data));
  talk.line(
      fmt::format("model: {} parameters; {}, {}; run folder {}",
                  format_quantity(static_cast<double>(count_values(trainer.model().parameters()))),
                  counted(trainer.team().threads(), "thread"),
                  counted(config.train.shards, "shard"), run.path.string()));
  explain_precision(config, talk);
  return logged(talk, [&] { return run_to_end(trainer, config, run, data, talk, options.json); });
}

int resume_command(const ResumeCommand& options) {
  std::signal(SIGUSR1, SIG_IGN);
  const RunFolder run{options.run};
  if (!RunLock::left_in(run.path, false)) require_run(run);
  const RunLock lock(run.path);  // before reading: a run that is being replaced has no config
  const Config config = read_run_config(run, options.overrides);
  Talk talk;
  talk.log_to(run.log());
  return logged(talk, [&] { return go_on(config, run, options, talk); });
}

}  // namespace heed
