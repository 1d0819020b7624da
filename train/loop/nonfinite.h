#pragma once
/// What a run does about a step that is not finite (train.on_nonfinite).
#include <fmt/format.h>

#include "train/run/run_folder.h"

namespace heed {

struct NonFinitePolicy {
  static constexpr std::int64_t max_consecutive_skips = 20;

  OnNonFinite option = OnNonFinite::stop;
  std::int64_t consecutive_skips = 0;  ///< number of consecutive skips before this step

  bool is_exhausted() const { return consecutive_skips >= max_consecutive_skips; }
  bool skips() const { return option == OnNonFinite::skip && !is_exhausted(); }
  /// The error message of a run that does not skip the step. `reason`: the error of the step;
  /// `saved_step`: step of the last checkpoint, 0: no step has been saved.
  std::string message(const std::string& reason, std::int64_t saved_step,
                      const RunFolder& run) const {
    std::string text;
    if (is_exhausted())
      text = fmt::format("{} steps in a row were not finite; the last was ",
                         max_consecutive_skips + 1);
    text += reason + "\n";
    if (saved_step > 0) {
      text += fmt::format(
          "to continue from step {}: heed resume {} with a smaller optim.lr{}\nif that fails in "
          "the same way, the weights of this step are unusable; ",
          saved_step, run.path.string(),
          is_exhausted() ? "" : ", or train.on_nonfinite=skip to skip such steps");
    }
    return text + "start again: heed train with --overwrite and a smaller optim.lr";
  }
};

}  // namespace heed
