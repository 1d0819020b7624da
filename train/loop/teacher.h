#pragma once
/// Knowledge distillation: a run learns from the outputs of another run (train.distill).
#include <memory>

#include "nn/models/model.h"
#include "train/config/config.h"
#include "train/loop/step.h"
#include "train/tasks/data.h"

HEED_BEGIN

/// The model of another run, in evaluation mode.
class Teacher {
 public:
  /// Loads the model of the run that the student's config names, with the weights that find_weights
  /// selects without a name. Throws the errors of read_run_config, and Error(bad_input) if the run
  /// has no weights or is damaged, or if its model has another architecture, vocabulary or input
  /// format, or fewer positions than the longest training sequence. Prints the origin of the
  /// weights.
  Teacher(const Config& student, const ExperimentData& data);

  /// The teacher's deferred logits for this input, computed without a graph and in the caller's
  /// precision (Bf16Scope), with the weight of the divergence and the temperature.
  Distillation of(const ModelInput& input) const;

 private:
  DistillOptions options_;
  std::unique_ptr<Model> model_;
};

/// The step_options of the config, with the teacher that it names, if any.
StepOptions training_options(const Config& config, const ExperimentData& data);

HEED_END
