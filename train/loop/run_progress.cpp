#include "train/loop/run_progress.h"

#include "autograd/base/error.h"
#include "autograd/io/formats/json_text.h"

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

}  // namespace

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

HEED_END
