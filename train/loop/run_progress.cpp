#include "train/loop/run_progress.h"

#include <fmt/format.h>

#include <algorithm>

#include "autograd/io/formats/json_text.h"
#include "train/tasks/evaluation.h"

HEED_BEGIN

namespace {

using Pointer = nlohmann::json::json_pointer;

/// Calls visit(path in state.json, member, whether all versions of heed wrote the member).
template <class P, class Visit>
void visit_members(P& p, Visit visit) {
  visit("/step", p.step, true);
  visit("/epoch", p.position.epoch, true);
  visit("/batch", p.position.batch, true);
  visit("/target_tokens", p.target_tokens, true);
  visit("/seconds", p.seconds, true);
  visit("/skipped", p.skipped, false);
  visit("/skipped_in_a_row", p.consecutive_skips, false);
  visit("/validation_due", p.validation_due, false);
  visit("/best_step", p.best_step, true);
  visit("/without_better", p.validations_without_improvement, true);
  visit("/judged_by", p.best_criterion, false);
  visit("/batches", p.batches, false);
  visit("/window/loss", p.window.loss, false);
  visit("/window/nll", p.window.nll, false);
  visit("/window/tokens", p.window.tokens, false);
  visit("/window/correct", p.window.correct, false);
  visit("/window_seconds", p.window_seconds, false);
}

void read(const nlohmann::json& value, std::int64_t& member) { member = whole_number(value); }
void read(const nlohmann::json& value, auto& member) { value.get_to(member); }

/// All values that determine the n-th batch, as text for comparison.
std::string batches_of(const Config& config, const ExperimentData& data) {
  const BatchOptions options = batch_options(config);
  return fmt::format("{} seed {} tokens {} sequences {} context {}{}", data.sums.train,
                     options.seed, options.batch_tokens, options.batch_sequences, options.context,
                     options.lanes ? " lanes" : "");
}

}  // namespace

Progress Progress::start(const Config& config, const ExperimentData& data) {
  Progress p;
  p.batches = batches_of(config, data);
  p.best_criterion =
      fmt::format("{} {}", static_cast<int>(deciding_metric(config.train)), data.sums.valid);
  return p;
}

bool Progress::add_validation(Metric metric, double value) {
  const bool better = is_better(metric, value, best);
  ++validations_without_improvement;
  if (!better) return false;
  best = value;
  best_step = step;
  validations_without_improvement = 0;
  return true;
}

nlohmann::json Progress::json() const {
  nlohmann::json state;
  visit_members(*this,
                [&](const char* path, const auto& member, bool) { state[Pointer(path)] = member; });
  if (best) state["best"] = *best;
  return state;
}

Progress Progress::from(const nlohmann::json& state) {
  Progress p;
  try {
    visit_members(p, [&](const char* path, auto& member, bool always) {
      if (always || state.contains(Pointer(path))) read(state.at(Pointer(path)), member);
    });
    if (state.contains("best")) p.best = state.at("best").get<double>();
  } catch (const nlohmann::json::exception&) {
    throw Error(Exit::bad_input, "state.json: \"state\" is not the state of a training run");
  }
  return p;
}

Metric deciding_metric(const TrainOptions& train) {
  return train.early_stopping.metric.value_or(train.best);
}

bool out_of_patience(const TrainOptions& train, const Progress& p) {
  return train.early_stopping.metric &&
         p.validations_without_improvement >= train.early_stopping.patience;
}

std::optional<std::string> reached_limit(const TrainOptions& train, const Progress& p,
                                         double epochs_done) {
  if (out_of_patience(train, p))
    return fmt::format("train.early_stopping.patience={}", train.early_stopping.patience);
  if (train.steps > 0 && p.step >= train.steps) return fmt::format("train.steps={}", train.steps);
  if (train.epochs > 0 && epochs_done >= train.epochs)
    return fmt::format("train.epochs={}", train.epochs);
  if (train.minutes > 0 && p.seconds / 60 >= train.minutes)
    return fmt::format("train.minutes={}", train.minutes);
  return std::nullopt;
}

double share_done(const TrainOptions& train, const Progress& p, double epochs_done) {
  double share = 0;
  if (train.steps > 0) share = static_cast<double>(p.step) / static_cast<double>(train.steps);
  if (train.epochs > 0) share = std::max(share, epochs_done / train.epochs);
  if (train.minutes > 0) share = std::max(share, p.seconds / 60 / train.minutes);
  return share;
}

AdaptedProgress adapted(Progress p, const Progress& start, bool validates) {
  std::vector<std::string> notes;
  if (!p.batches.empty() && p.batches != start.batches && p.position.batch > 0) {
    notes.push_back(fmt::format(
        "note: the data, the seed or the batch size has changed, so epoch {} starts again ({} "
        "of its batches had been trained on)",
        p.position.epoch, p.position.batch));
    p.position.batch = 0;
  }
  p.batches = start.batches;
  if (!validates) return {std::move(p), std::move(notes)};
  if (p.best && !p.best_criterion.empty() && p.best_criterion != start.best_criterion) {
    notes.emplace_back(
        "note: the deciding metric or the validation data have changed, so the best checkpoint is "
        "chosen again from this step on");
    p.best.reset();
    p.validations_without_improvement = 0;
    p.validation_due = true;
  }
  p.best_criterion = start.best_criterion;
  return {std::move(p), std::move(notes)};
}

HEED_END
