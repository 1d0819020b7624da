#include "train/loop/teacher.h"

#include <fmt/format.h>

#include <algorithm>

#include "autograd/base/error.h"
#include "nn/options.h"
#include "nn/weights.h"
#include "train/config/fields.h"
#include "train/run/checkpoint_folder.h"
#include "train/run/run_folder.h"
#include "train/tasks/model.h"
#include "train/terminal/run_log.h"

HEED_BEGIN

namespace {

/// Keys that decide which rows a line becomes. (Augmentation may differ: a student's teacher sees
/// its pictures.)
constexpr const char* what_a_model_reads[] = {"data.input",          "data.lowercase",
                                              "data.image.height",   "data.image.width",
                                              "data.image.channels", "data.image.patch",
                                              "data.image.mean",     "data.image.deviation",
                                              "data.video.frames",   "data.video.tubelet",
                                              "data.features.width", "data.features.stack",
                                              "data.features.rate",  "data.features.window",
                                              "data.features.hop",   "data.features.normalise"};

bool same_pieces(const Tokenizer& a, const Tokenizer& b) {
  if (a.size() != b.size()) return false;
  for (std::int32_t id = 0; id < a.size(); ++id)
    if (a.piece(id) != b.piece(id)) return false;
  return true;
}

[[noreturn]] void refuse(const Config& student, const std::string& why) {
  throw Error(Exit::bad_input,
              fmt::format("train.distill.teacher: {} {}", student.train.distill.teacher, why));
}

/// Positions of the longest sequence in training, to a model whose source has so many rows per
/// position.
std::int64_t longest_sequence(const Config& student, const Dataset& data, std::int64_t rows) {
  if (!data.stream.empty()) return student.model->context;
  std::int64_t longest = 0;
  for (std::int64_t i = 0; i < data.size(); ++i)
    longest =
        std::max({longest, (data.source_rows(i) + rows - 1) / rows, data.target.length(i) + 1});
  return longest;
}

void require_alike(const Config& student, const Tokenizers& own, const Config& teacher,
                   const Tokenizers& taught) {
  if (info_of(teacher.task).architecture != info_of(student.task).architecture)
    refuse(student, fmt::format("is a run of task: {}, not {}", info_of(teacher.task).name,
                                info_of(student.task).name));
  for (const char* key : what_a_model_reads) {
    const Field& field = *find_field(key);
    if (field.get(teacher) != field.get(student))
      refuse(student,
             fmt::format("has {}: {}, not {}", key, field.print(teacher), field.print(student)));
  }
  if (teacher.data.input != InputKind::text && teacher.model->pool != student.model->pool)
    refuse(student, fmt::format("has model.pool: {}, not {}, so a class token only on one side",
                                name_of(teacher.model->pool), name_of(student.model->pool)));
  if (!same_pieces(*taught.source, *own.source) || !same_pieces(*taught.target, *own.target))
    refuse(
        student,
        "has another vocabulary; tokenizer.model (or source_model and target_model) may name its "
        "tokenizer's file");
}

}  // namespace

Teacher::Teacher(const Config& student, const ExperimentData& data)
    : options_(student.train.distill) {
  const RunFolder run{options_.teacher};
  const Config config = read_run_config(run);
  const Tokenizers taught = load_tokenizers(run.path, config);
  require_alike(student, data.tokenizers, config, taught);
  model_ = build_uninitialised(config, sizes_of(taught));
  const std::int64_t limit = model_->position_limit(),
                     longest =
                         longest_sequence(student, data.train, rows_per_position(config.model));
  if (limit > 0 && longest > limit)
    refuse(student,
           fmt::format("reads at most {} positions, but a sequence has {}", limit, longest));
  const std::filesystem::path folder = find_weights(run, ""), file = folder / "model.safetensors";
  const WeightsInfo weights(folder, check_file(folder, "model.safetensors"));
  print_message("heed: teacher: " + weights.text());
  load_weights(SafetensorsFile::read(file), model_->state(), file.string());
}

Distillation Teacher::of(const ModelInput& input) const {
  const NoGrad no_grad;
  Pass evaluation;
  return {model_->deferred_logits(input, evaluation), options_.weight, options_.temperature};
}

StepOptions with_teacher(StepOptions options, const Teacher* teacher) {
  if (teacher != nullptr)
    options.teacher = [teacher](const ModelInput& input) { return teacher->of(input); };
  return options;
}

std::unique_ptr<Teacher> make_teacher(const Config& student, const ExperimentData& data) {
  if (student.train.distill.teacher.empty()) return nullptr;
  return std::make_unique<Teacher>(student, data);
}

HEED_END
