#include "train/loop/teacher.h"

#include <fmt/format.h>

#include "autograd/base/error.h"
#include "nn/weights.h"
#include "train/run/checkpoint_folder.h"
#include "train/run/run_folder.h"
#include "train/tasks/model.h"

HEED_BEGIN

namespace {

bool same_pieces(const Tokenizer& a, const Tokenizer& b) {
  if (a.size() != b.size()) return false;
  for (std::int32_t id = 0; id < a.size(); ++id)
    if (a.piece(id) != b.piece(id)) return false;
  return true;
}

void require_alike(const Config& student, const Tokenizers& own, const Config& teacher,
                   const Tokenizers& taught) {
  const auto refuse = [&](const std::string& why) {
    throw Error(Exit::bad_input,
                fmt::format("train.distill.teacher: {} {}", student.train.distill.teacher, why));
  };
  if (info_of(teacher.task).architecture != info_of(student.task).architecture)
    refuse(fmt::format("is a run of task: {}, not {}", info_of(teacher.task).name,
                       info_of(student.task).name));
  if (teacher.model.input_width != student.model.input_width)
    refuse(fmt::format("reads rows of {} values, not {}", teacher.model.input_width,
                       student.model.input_width));
  if (!same_pieces(*taught.source, *own.source) || !same_pieces(*taught.target, *own.target))
    refuse(
        "has another vocabulary; tokenizer.model (or source_model and target_model) may name its "
        "tokenizer's file");
}

}  // namespace

Teacher::Teacher(const Config& student, const Tokenizers& tokenizers)
    : options_(student.train.distill) {
  const RunFolder run{options_.teacher};
  const Config config = read_run_config(run);
  const Tokenizers taught = load_tokenizers(run.path, config);
  require_alike(student, tokenizers, config, taught);
  model_ = build_unfilled(config, sizes_of(taught));
  const std::filesystem::path folder = find_weights(run, ""), file = folder / "model.safetensors";
  check_file(folder, "model.safetensors");
  load_weights(SafetensorsFile::read(file), model_->state(), file.string());
}

Distillation Teacher::of(const Rows& rows) const {
  const NoGrad no_grad;
  Pass evaluation;
  return {model_->projected(rows, evaluation), options_.weight, options_.temperature};
}

StepOptions taught(StepOptions options, const Teacher* teacher) {
  if (teacher != nullptr)
    options.teacher = [teacher](const Rows& rows) { return teacher->of(rows); };
  return options;
}

std::unique_ptr<Teacher> make_teacher(const Config& student, const Tokenizers& tokenizers) {
  if (student.train.distill.teacher.empty()) return nullptr;
  return std::make_unique<Teacher>(student, tokenizers);
}

HEED_END
