#pragma once
/// Knowledge distillation: a run imitates the outputs of another (train.distill).
#include <memory>
#include <string>

#include "nn/models/model.h"
#include "train/config/config.h"
#include "train/loop/step.h"
#include "train/tasks/data.h"

HEED_BEGIN

/// The model of a finished run, in evaluation mode.
class Teacher {
 public:
  /// The run that the student's config names: its average, else its best weights. Throws Error(bad_input) if it
  /// has none, is damaged, or is of another kind of model or vocabulary.
  Teacher(const Config& student, const Tokenizers& tokenizers);

  /// What the student's loss compares its logits with. Computed without a graph, at the precision of the scope.
  Distillation of(const Rows& rows) const;
  const Model& model() const { return *model_; }

 private:
  DistillOptions options_;
  std::unique_ptr<Model> model_;
};

/// The options of a step, with the teacher that the config names, if any; `teacher` must outlive them.
StepOptions taught(StepOptions options, const Teacher* teacher);
/// None if the config names no teacher.
std::unique_ptr<Teacher> make_teacher(const Config& student, const Tokenizers& tokenizers);

HEED_END
