#include "train/loop/trainer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "autograd/base/clock.h"
#include "nn/weights.h"
#include "optim/schedule.h"
#include "train/loop/checkpoint_content.h"
#include "train/loop/final_weights.h"
#include "train/loop/nonfinite.h"
#include "train/loop/transfer.h"
#include "train/run/average.h"
#include "train/run/outputs.h"

HEED_BEGIN

namespace {

std::int64_t steps_in_all(const Config& config, BatchStream& stream) {
  const std::int64_t steps = config.train.steps;
  if (config.train.epochs == 0) return steps;
  const auto in_epochs = static_cast<std::int64_t>(
      std::ceil(config.train.epochs * static_cast<double>(stream.batches_in(0))));
  return steps > 0 ? std::min(steps, in_epochs) : in_epochs;
}

/// Throws Error(usage) if a key names the folder of the run itself, which is being replaced or
/// continued.
void refuse_itself(const RunFolder& run, const std::string& other, const char* key) {
  std::error_code ignored;
  if (!other.empty() && std::filesystem::equivalent(run.path, other, ignored))
    throw Error(Exit::usage, fmt::format("{}: {} is the folder of the run itself", key, other));
}

/// Throws Error(usage) if the newest checkpoint is that of a pruned, quantised or imported model.
void refuse_copy(const RunFolder& run, const nlohmann::json& state) {
  const std::string made = state.value("kind", "");
  if (made != "pruned" && made != "quantised" && made != "imported") return;
  throw Error(Exit::usage,
              fmt::format("{} has no optimizer state: it is {} {} copy of {}. To train it further: "
                          "heed train CONFIG model.init_from={}",
                          run.path.string(), made == "imported" ? "an" : "a", made,
                          state.value("from", "another run"), run.path.string()));
}

/// The first message of a resumed run, which has reached `limit` or, if null, continues.
std::string resumption_text(const Progress& progress, const std::optional<std::string>& limit,
                            const RunFolder& run) {
  if (!limit) return fmt::format("continuing from step {}", progress.step);
  const std::string key = limit->substr(0, limit->find('='));
  return fmt::format(
      "already finished, at step {} ({}); the weights are chosen and tested again. To train "
      "further, raise {}: heed resume {} {}=…",
      progress.step, *limit, key, run.path.string(), key);
}

double deciding_value(const Evaluation& e, Metric metric) {
  // A model whose loss is not finite is unusable, although its outputs may have a BLEU score.
  return std::isfinite(e.loss()) ? e.value(metric) : e.loss();
}

/// The record of an evaluation in metrics.jsonl; `lines` is the checksum of the evaluated data.
nlohmann::json metrics_of(const Evaluation& e, const std::string& lines) {
  nlohmann::json metrics = e.json();
  metrics["lines"] = lines;
  return metrics;
}

/// The samples with the model's outputs; empty unless the task has one output per sample.
std::vector<SampleOutput> outputs_of(const Dataset& split, const Evaluation& e) {
  std::vector<SampleOutput> all;
  if (split.source_lines.size() != e.outputs.size()) return all;
  for (std::size_t i = 0; i < e.outputs.size(); ++i) {
    all.push_back({split.source_lines[i], split.target_lines[i], e.outputs[i], {}});
    if (!e.probabilities.empty()) all.back().probability = e.probabilities[i];
  }
  return all;
}

}  // namespace

Trainer::Trainer(const Config& config, const RunFolder& run, const ExperimentData& data,
                 RunLog& run_log, World* world)
    : config_(config),
      run_(run),
      data_(data),
      run_log_(run_log),
      replica_(config, data, world),
      total_steps_(steps_in_all(config, replica_.stream())),
      checkpoints_(run.path),
      progress_(Progress::start(config, data)) {
  refuse_itself(run, config.train.distill.teacher, "train.distill.teacher");
  refuse_itself(run, config.train.init_from, "model.init_from");
  if (config.train.ema > 0) ema_.emplace(config.train.ema, replica_.optimizer().parameters());
}

void Trainer::initialise() {
  if (config_.train.init_from.empty()) return;
  const TransferReport report = transfer_weights(config_.train.init_from, replica_.model());
  // Which parts a model has is visible in the report; other keys change the function of equal parts.
  constexpr std::array parts{"model.pool",           "model.segments",    "model.tie_embeddings",
                             "model.tie_output",     "model.output_bias", "model.bias",
                             "model.embedding_norm", "model.context",     "model.head_transform",
                             "model.max_positions",  "model.layers"};
  for (const std::string& changed : changed_keys(config_, report.weights)) {
    const auto names = [&](const char* part) { return changed.starts_with(part); };
    if (changed.starts_with("model.") && std::ranges::none_of(parts, names))
      run_log_.line("warning: model.init_from: " + changed);
  }
  for (const std::string& line : report.text()) run_log_.line(line);
  if (ema_) ema_->restart();
}

int Trainer::stop() const {
  return signals_ && signals_->stop() != 0 ? signals_->stop() : replica_.remote_stop_signal();
}

std::optional<std::string> Trainer::limit() {
  return reached_limit(config_.train, progress_, replica_.batches().epochs_done());
}

// ---- the loop -----------------------------------------------------------------------------------

int Trainer::train() {
  confirm_folder();
  if (!metrics_) metrics_.emplace(run_, config_, progress_.step);
  replica_.begin(progress_.position);
  if (progress_.step > 0) run_log_.line(resumption_text(progress_, limit(), run_));
  // Reading a config cannot check runs in epochs, because their steps are known only now.
  const std::int64_t warmup = config_.optim.schedule.warmup;
  const std::string too_long = long_warmup(warmup, total_steps_);
  if (progress_.step == 0 && !too_long.empty() && long_warmup(warmup, config_.train.steps).empty())
    run_log_.line("warning: optim.schedule.warmup: " + too_long);
  if (!finished()) {  // further training invalidates the average and the outputs
    remove_average(run_);
    write_outputs(run_, {});
  }
  if (progress_.validation_due) validate();
  while (!finished() && stop() == 0) {
    one_step();
    // Validates before saving, so that the checkpoint records whether it is the best.
    if (progress_.step % config_.train.validate_every == 0 || finished()) validate();
    if (progress_.step % config_.train.save_every == 0) save();
    if (signals_->consume_save_request()) save(true);
  }
  if (stop() == 0 && last_validated_ != progress_.step) validate();
  save(!finished());
  run_log_.end_progress();
  if (const std::string traffic = replica_.traffic(); !traffic.empty()) run_log_.line(traffic);
  if (progress_.skipped > 0) {
    run_log_.line(
        fmt::format("skipped {} of {} steps, because the loss or the gradients were not finite",
                    progress_.skipped, progress_.step));
  }
  const int signal = stop();
  signals_.reset();  // all state is saved: a stop signal now ends the process
  return signal;
}

void Trainer::one_step() {
  const double begin = seconds_now();
  const double lr = learning_rate(config_.optim, progress_.step + 1, total_steps_);
  StepResult result{{}, std::numeric_limits<double>::quiet_NaN()};  // NaN if the step is skipped
  try {
    result = replica_.step(progress_.step + 1, lr);
    progress_.consecutive_skips = 0;
    if (ema_) ema_->update(replica_.optimizer().steps(), replica_.team());
  } catch (const Error& error) {
    if (error.code != Exit::non_finite) throw;
    handle_nonfinite_step(error);
  }
  const double seconds = seconds_now() - begin;
  ++progress_.step;
  progress_.position = replica_.batches().position();
  progress_.target_tokens += result.counts.tokens;
  progress_.seconds += seconds;
  progress_.window_seconds += seconds;
  progress_.window.add(result.counts);
  report(result, lr);
}

void Trainer::handle_nonfinite_step(const Error& error) {
  const NonFinitePolicy policy{config_.train.on_nonfinite, progress_.consecutive_skips};
  if (!policy.skips()) {
    std::int64_t saved_step = progress_.step;
    try {
      save(true);  // the state before this step
    } catch (const Error& unsaved) {
      if (unsaved.code != Exit::non_finite) throw;
      saved_step = std::max<std::int64_t>(last_saved_, 0);  // a weight or moment is not finite
    }
    run_log_.end_progress();
    throw Error(error.code, policy.message(error.what(), saved_step, run_));
  }
  ++progress_.skipped;
  ++progress_.consecutive_skips;
  record("skipped", {{"step", progress_.step + 1}, {"reason", error.what()}});
  run_log_.line(fmt::format("skipped {}", error.what()));
}

void Trainer::report(const StepResult& result, double lr) {
  const LossCounts& window = progress_.window;
  if (window.tokens == 0) return;  // all steps since the last record were skipped
  const double tokens = static_cast<double>(window.tokens),
               tokens_per_second = tokens / progress_.window_seconds;
  const double epochs = replica_.batches().epochs_done(),
               done = std::min(share_done(config_.train, progress_, epochs), 1.0);
  run_log_.progress({.step = progress_.step,
                     .total = total_steps_,
                     .loss = window.loss / tokens,
                     .learning_rate = lr,
                     .tokens_per_second = tokens_per_second,
                     .seconds_left = done > 0 ? std::optional(progress_.seconds * (1 - done) / done)
                                              : std::nullopt,
                     .unit = predictions_of(info_of(config_.task).architecture),
                     .loss_name = config_.train.label_smoothing > 0 ? "smoothed loss" : "loss"});
  if (progress_.step % config_.train.log_every != 0) return;
  record("train", {{"epoch", epochs},
                   {"loss", window.loss / tokens},
                   {"nll", window.nll / tokens},
                   {"lr", lr},
                   {"gradient_norm", result.gradient_norm},
                   {"gradient_norms", replica_.steps().gradient_norms()},
                   {"target_tokens", progress_.target_tokens},
                   {"tokens_per_s", tokens_per_second}});
  run_log_.add_to_curve(window.loss / tokens);
  progress_.window = {};
  progress_.window_seconds = 0;
}

// ---- validation ---------------------------------------------------------------------------------

void Trainer::validate() {
  last_validated_ = progress_.step;
  progress_.validation_due = false;
  if (data_.valid.empty()) return;
  std::optional<Evaluation> e;
  {
    const ScopedEma ema(ema_);
    share_weights();
    e = validation_metrics();
  }
  if (ema_) share_weights();
  progress_.validation_due = !e;
  if (!e) return;
  const Metric metric = deciding_metric(config_.train);
  const bool better = progress_.add_validation(metric, deciding_value(*e, metric));
  record("valid", metrics_of(*e, data_.valid_lines));
  run_log_.line(fmt::format("step {:>6}  valid  {}{}{}", progress_.step,
                            config_.train.label_smoothing > 0 ? "unsmoothed " : "", e->text(),
                            better ? "  (best)" : ""));
  if (better) save();
  if (out_of_patience(config_.train, progress_)) {
    run_log_.line(fmt::format(
        "step {:>6}  stopping early: no improvement in {} validation{} (best at step {})",
        progress_.step, progress_.validations_without_improvement,
        progress_.validations_without_improvement == 1 ? "" : "s", progress_.best_step));
  }
}

std::optional<Evaluation> Trainer::validation_metrics() {
  Team& team = replica_.team();
  team.interrupt_when([this] { return signals_ && signals_->stop() != 0; });
  std::optional<Evaluation> e;
  try {
    e = replica_.evaluate(false, {.only = deciding_metric(config_.train)}, signals_.has_value());
  } catch (const Team::Interrupted&) {  // e remains empty
  }
  team.interrupt_when({});
  return e;
}

void Trainer::share_weights() {
  // A step updates the weights of every rank, but the means of train.ema and the running statistics
  // of batch norm only on rank 0 (which has shard 0).
  if (ema_ || !replica_.model().statistics().empty()) replica_.share_weights();
}

// ---- checkpoints --------------------------------------------------------------------------------

void Trainer::save(bool on_request) {
  if (last_saved_ == progress_.step) return;
  confirm_folder();
  const std::vector<CheckpointFile> files = checkpoint_of(replica_, ema_, progress_.step);
  metrics_->sync();
  nlohmann::json state = progress_.json();
  state["trained_with"] = trained_with(run_, config_);
  if (on_request) state["on_request"] = true;
  checkpoints_.save(progress_.step, files, state,
                    progress_.best && progress_.best_step == progress_.step,
                    [&] { confirm_folder(); });
  warn_undeleted(checkpoints_.prune(std::max(config_.train.keep, config_.train.average)));
  last_saved_ = progress_.step;
}

void Trainer::warn_undeleted(const std::vector<std::string>& reasons) {
  for (const std::string& reason : reasons)
    if (undeleted_warnings_.insert(reason).second)
      run_log_.line("warning: an old checkpoint was not removed: " + reason);
}

void Trainer::confirm_folder() const {
  if (lock_ != nullptr) lock_->confirm();
}

void Trainer::record(const std::string& kind, const nlohmann::json& fields) {
  confirm_folder();
  nlohmann::json r{{"kind", kind}, {"step", progress_.step}, {"seconds", progress_.seconds}};
  r.update(fields);
  metrics_->append(r);
}

// ---- resuming: the checkpoint, the config, the data and the files must agree --------------------

void Trainer::restore() {
  confirm_folder();
  checkpoints_.check_links();
  const CheckpointFolder::Newest newest = checkpoints_.newest_valid();
  for (const std::string& skipped : newest.skipped)
    run_log_.line("skipped a damaged checkpoint: " + skipped);
  checkpoints_.refuse_loss(newest);
  if (!newest.checkpoint) {
    continue_metrics();
    run_log_.line("no checkpoint to continue from: starting at step 0");
    return initialise();
  }
  const nlohmann::json& state = newest.checkpoint->state;
  refuse_copy(run_, state);
  require_fit(run_, config_, *newest.checkpoint);
  restore_from(newest.checkpoint->folder, replica_, ema_);
  AdaptedProgress saved = adapted(Progress::from(state), progress_, !data_.sums.valid.empty());
  progress_ = std::move(saved.progress);
  for (const std::string& note : saved.notes) run_log_.line(note);
  // Throws, before the folder is changed, if the data do not have this position.
  replica_.stream().seek(progress_.position);
  replica_.optimizer().set_steps(progress_.step - progress_.skipped);
  // If a validation is still due, the checkpoint is saved again with its result.
  if (!progress_.validation_due) last_saved_ = last_validated_ = progress_.step;
  continue_metrics();
  // The process may have been killed after renaming the checkpoint and before updating the links.
  checkpoints_.link("last", progress_.step);
  find_best();
  warn_undeleted(checkpoints_.remove_unfinished());
}

void Trainer::continue_metrics() {
  const std::string damage = repair_metrics(run_, progress_.step, progress_.validation_due);
  if (!damage.empty()) run_log_.line(damage);
  metrics_.emplace(run_, config_, progress_.step);
}

void Trainer::find_best() {
  try {
    if (progress_.best && progress_.best_step != progress_.step)  // else newest_valid() checked it
      open_checkpoint(checkpoints_.folder_of(progress_.best_step));
  } catch (const Error& lost) {
    if (lost.code != Exit::bad_input) throw;
    run_log_.line(fmt::format(
        "the best checkpoint (step {}) is lost and will be replaced by the best from this step "
        "on or, without validations, by the last: {}",
        progress_.best_step, lost.what()));
    progress_.best.reset();
  }
  if (progress_.best) return checkpoints_.link("best", progress_.best_step);
  // The link, if any, points at the lost checkpoint or at the best of a former criterion.
  remove_tree(run_.path / "best");
}

// ---- the end of a run ---------------------------------------------------------------------------

WeightsInfo Trainer::choose_weights() {
  WeightsChoice choice{deciding_metric(config_.train), progress_.best, progress_.best_step};
  const Parameters state = replica_.model().state();
  if (config_.train.average > 1) {
    std::vector<std::string> notes;
    choice.mean_of_steps = load_average(checkpoints_, config_.train, progress_.step, state, notes);
    for (const std::string& note : notes) run_log_.line(note);
  }
  if (!choice.mean_of_steps.empty() && !data_.valid.empty()) {
    replica_.share_weights();
    choice.mean = deciding_value(validation_metrics().value(), choice.metric);
    run_log_.line(choice.text());
  }
  confirm_folder();
  choice.is_mean() ? write_average(run_, state, choice.mean_of_steps, trained_with(run_, config_))
                   : remove_average(run_);
  const std::filesystem::path folder = find_weights(run_, "");
  WeightsInfo weights(folder, check_file(folder, "model.safetensors"));
  if (!choice.is_mean()) load_weights(folder / "model.safetensors", state);
  nlohmann::json fields = choice.json();
  fields.update({{"weights_name", weights.name}, {"weights_steps", weights.steps}});
  record("weights", fields);
  run_log_.line("weights: " + weights.text());
  return weights;
}

std::optional<Evaluation> Trainer::final_evaluation() {
  const bool test = !data_.test.empty();
  const Dataset& split = test ? data_.test : data_.valid;
  if (split.empty()) return std::nullopt;
  replica_.share_weights();
  Evaluation e = replica_.evaluate(test, {});
  confirm_folder();
  write_outputs(run_, outputs_of(split, e));
  record(test ? "test" : "final-valid", metrics_of(e, test ? data_.test_lines : data_.valid_lines));
  metrics_->sync();
  return e;
}

HEED_END
