#pragma once
/// A run folder opened for use: evaluation, generation, scoring.
#include <filesystem>
#include <memory>
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
  bool quantised = false;  ///< its matrices are int8 in the file

  /// `name` as in find_weights. Reports the weights on standard error. Throws Error(bad_input) if
  /// something is missing or does not fit.
  static TrainedModel open(const std::string& run, const std::vector<std::string>& overrides,
                           const std::string& name);

  LoadedModel with(Team& team) const { return {*model, tokenizers, team}; }
};

HEED_END
