/// Resuming a run: checkpoint, config, data and files must agree.
#include <fmt/format.h>

#include <utility>

#include "autograd/base/files.h"
#include "train/loop/trainer.h"
#include "train/run/weights.h"

HEED_BEGIN

void Trainer::restore() {
  checkpoints_.check_links();
  const CheckpointFolder::Newest newest = checkpoints_.newest_valid();
  for (const std::string& skipped : newest.skipped)
    talk_.line("skipped a damaged checkpoint: " + skipped);
  checkpoints_.refuse_loss(newest);
  if (!newest.checkpoint) {
    repair_metrics();
    talk_.line("no checkpoint to continue from: starting at step 0");
    return;
  }
  const std::filesystem::path folder = newest.checkpoint->folder;
  load_weights(SafetensorsFile::read(folder / "model.safetensors"), model_->parameters(),
               (folder / "model.safetensors").string());
  load_weights(SafetensorsFile::read(folder / "training.safetensors"), optimizer_.state(),
               (folder / "training.safetensors").string());
  const Progress now = std::exchange(progress_, Progress::from(newest.checkpoint->state));
  adapt_progress(now);
  stream_.seek(progress_.position);  // before the folder is touched: the data may not be those
  optimizer_.set_steps(progress_.step - progress_.skipped);
  // Where a validation is still due, the checkpoint is made again with what it says.
  if (!progress_.validation_due) last_saved_ = last_validated_ = progress_.step;
  repair_metrics();
  // A kill may have come after the checkpoint had its name and before its links were set.
  checkpoints_.link("last", progress_.step);
  find_best();
  tell_what_stays(checkpoints_.remove_unfinished());
  if (config_.train.early_stopping.metric &&
      progress_.without_better >= config_.train.early_stopping.patience) {
    stopped_early_ = true;
  }
}

void Trainer::adapt_progress(const Progress& now) {
  Progress& p = progress_;
  if (!p.batches.empty() && p.batches != now.batches && p.position.batch > 0) {
    talk_.line(
        fmt::format("note: the data, the seed or the batch size differ, so epoch {} starts again; "
                    "{} of its batches were done",
                    p.position.epoch, p.position.batch));
    p.position.batch = 0;
  }
  p.batches = now.batches;
  if (data_.sums.valid.empty()) return;  // nothing will be judged
  if (p.best && !p.judged_by.empty() && p.judged_by != now.judged_by) {
    talk_.line(
        "note: the deciding metric or the validation data differ: the best checkpoint is chosen "
        "again, "
        "from this step on");
    p.best.reset();
    p.without_better = 0;
    p.validation_due = true;
  }
  p.judged_by = now.judged_by;
}

void Trainer::repair_metrics() {
  // What was recorded after the checkpoint will be recorded again, and so will the final figures.
  const auto keep = [this](const nlohmann::json& r) {
    const std::string kind = r.value("kind", "");
    const auto at = r.value("step", std::int64_t{0});
    return at <= progress_.step &&
           !(progress_.validation_due && at == progress_.step && kind == "valid") &&
           kind != "weights" && kind != "test" && kind != "final-valid";
  };
  const JsonlRepair repair = repair_jsonl(run_.metrics(), keep);
  if (repair.damaged_line > 0) {
    talk_.line(
        fmt::format("{}: line {} is damaged; the file ends before it now, and all of it is in "
                    "metrics.jsonl.damaged",
                    run_.metrics().string(), repair.damaged_line));
  }
  metrics_.emplace(run_.metrics());
}

void Trainer::find_best() {
  if (!progress_.best) return remove_tree(run_.path / "best");  // of a newer, damaged checkpoint
  try {
    if (progress_.best_step != progress_.step)  // that one was checked already
      open_checkpoint(checkpoints_.folder_of(progress_.best_step));
  } catch (const Error& lost) {
    if (lost.code != Exit::bad_input) throw;
    talk_.line(
        fmt::format("the best checkpoint, of step {}, is lost; the best of the next validations "
                    "replaces it, or the last checkpoint if there are none: {}",
                    progress_.best_step, lost.what()));
    progress_.best.reset();
    return remove_tree(run_.path / "best");
  }
  checkpoints_.link("best", progress_.best_step);
}

HEED_END
