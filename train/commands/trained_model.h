#pragma once
/// A run opened to use its model, for example to evaluate or prune it.
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "train/run/checkpoint_folder.h"
#include "train/tasks/task.h"

HEED_BEGIN

struct TrainedModel {
  Config config;
  Tokenizers tokenizers;
  WeightsInfo weights;
  std::unique_ptr<Task> task;
  std::unique_ptr<Model> model;
  bool quantised = false;  ///< whether the weights file contains int8 matrices

  /// Opens a run with the weights `name`, as in find_weights. Prints notes and the name of the
  /// weights to standard error. Throws Error(usage) if the folder contains no config, if the
  /// config is invalid, or if an override changes a key that a run keeps (changes_on_resume);
  /// Error(bad_input) if another file is missing, damaged or inconsistent with the config, or if the
  /// weights were trained with other keys or tokenizers (require_fit).
  static TrainedModel open(const std::string& run, const std::vector<std::string>& overrides,
                           const std::string& name);

  LoadedModel with(Team& team) const { return {*model, tokenizers, team}; }
  /// Throws Error(non_finite), naming the line, if a log-probability is not finite.
  void require_finite(std::span<const LineScore> scores) const;
};

HEED_END
