#include "train/loop/run_progress.h"

#include "autograd/base/error.h"
#include "autograd/base/json_text.h"

HEED_BEGIN

nlohmann::json Progress::json() const {
  nlohmann::json j{{"step", step},
                   {"epoch", position.epoch},
                   {"batch", position.batch},
                   {"target_tokens", target_tokens},
                   {"seconds", seconds},
                   {"skipped", skipped},
                   {"skipped_in_a_row", skipped_in_a_row},
                   {"validation_due", validation_due},
                   {"best_step", best_step},
                   {"without_better", without_better},
                   {"judged_by", judged_by},
                   {"batches", batches},
                   {"window",
                    {{"loss", window.loss},
                     {"nll", window.nll},
                     {"tokens", window.tokens},
                     {"correct", window.correct}}},
                   {"window_seconds", window_seconds}};
  if (best) j["best"] = *best;
  return j;
}

namespace {

/// Throws nlohmann::json's exceptions if a field is missing or of the wrong type.
Progress read_progress(const nlohmann::json& state) {
  Progress p;
  p.step = whole_number(state.at("step"));
  p.position = {whole_number(state.at("epoch")), whole_number(state.at("batch"))};
  p.target_tokens = whole_number(state.at("target_tokens"));
  p.seconds = state.at("seconds");
  p.validation_due = state.value("validation_due", false);
  if (state.contains("skipped")) p.skipped = whole_number(state.at("skipped"));
  if (state.contains("skipped_in_a_row"))
    p.skipped_in_a_row = whole_number(state.at("skipped_in_a_row"));
  p.best_step = whole_number(state.at("best_step"));
  p.without_better = whole_number(state.at("without_better"));
  p.judged_by = state.value("judged_by", "");
  p.batches = state.value("batches", "");
  if (state.contains("window")) {
    const nlohmann::json& window = state.at("window");
    p.window = {window.at("loss"), window.at("nll"), whole_number(window.at("tokens")),
                whole_number(window.at("correct"))};
    p.window_seconds = state.at("window_seconds");
  }
  if (state.contains("best")) p.best = state.at("best").get<double>();
  return p;
}

}  // namespace

Progress Progress::from(const nlohmann::json& state) {
  try {
    return read_progress(state);
  } catch (const nlohmann::json::exception&) {
    throw Error(Exit::bad_input, "state.json: its \"state\" is not that of a training run");
  }
}

HEED_END
