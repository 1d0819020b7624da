#include "train/loop/teacher.h"

#include <fmt/format.h>

#include <algorithm>

#include "autograd/base/error.h"
#include "nn/weights.h"
#include "train/config/fields.h"
#include "train/run/run_record.h"
#include "train/tasks/model.h"
#include "train/terminal/run_log.h"

HEED_BEGIN

namespace {

/// Keys that determine the input rows of a sample and must have the same values for student and
/// teacher. Augmentation may differ, because the teacher receives the student's images.
constexpr const char* input_keys[] = {"data.input",          "data.lowercase",
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
  throw Error(Exit::bad_input, "train.distill.teacher: {} {}", student.train.distill.teacher, why);
}

/// The number of positions of the longest training sequence, for a model with `rows` source rows
/// per position; for a text, the length of the student's windows.
std::int64_t longest_sequence(const Config& student, const Dataset& data, std::int64_t rows) {
  if (!data.stream.empty()) return model_sizes(student).context;
  std::int64_t longest = 0;
  for (std::int64_t i = 0; i < data.size(); ++i)
    longest =
        std::max({longest, (data.source_rows(i) + rows - 1) / rows, data.target.length(i) + 1});
  return longest;
}

void require_compatible(const Config& student, const Tokenizers& student_tokenizers,
                        const Config& teacher, const Tokenizers& teacher_tokenizers) {
  if (info_of(teacher.task).architecture != info_of(student.task).architecture)
    refuse(student, fmt::format("is a run of task {}, but this run has task {}",
                                info_of(teacher.task).name, info_of(student.task).name));
  const auto require_equal = [&](const char* key, std::string_view consequence = "") {
    const Field& field = *find_field(key);
    if (field.get(teacher) != field.get(student))
      refuse(student, fmt::format("has {}: {}, but this run has {}{}", key, field.print(teacher),
                                  field.print(student), consequence));
  };
  for (const char* key : input_keys) require_equal(key);
  if (teacher.data.input != InputKind::text)
    require_equal("model.pool", ", so only one of the models has a class token");
  if (!same_pieces(*teacher_tokenizers.source, *student_tokenizers.source) ||
      !same_pieces(*teacher_tokenizers.target, *student_tokenizers.target))
    refuse(student,
           "has another vocabulary; to use its tokenizer, set tokenizer.model (or source_model and "
           "target_model) to its file");
}

}  // namespace

Teacher::Teacher(const Config& student, const ExperimentData& data)
    : options_(student.train.distill) {
  const RunFolder run{options_.teacher};
  const Config config = read_run_config(run);
  const std::filesystem::path folder = find_weights(run, ""), file = folder / "model.safetensors";
  const Checkpoint weights = check_file(folder, "model.safetensors");
  for (const std::string& note : check_files(run)) print_note("note: teacher: " + note);
  require_fit(run, config, weights);
  print_message("heed: teacher: " + WeightsInfo(folder, weights).text());
  const Tokenizers tokenizers = load_tokenizers(run.path, config);
  require_compatible(student, data.tokenizers, config, tokenizers);
  model_ = build_uninitialised(config, sizes_of(tokenizers));
  const std::int64_t limit = model_->position_limit(),
                     longest = longest_sequence(student, data.train,
                                                model_sizes(config).rows_per_position);
  if (limit > 0 && longest > limit)
    refuse(student,
           fmt::format("reads a maximum of {} positions, but a sequence has {}", limit, longest));
  load_weights(SafetensorsFile::read(file), model_->state(), file.string());
}

Distillation Teacher::of(const ModelInput& input) const {
  const NoGrad no_grad;
  Pass evaluation;
  return {model_->deferred_logits(input, evaluation), options_.weight, options_.temperature};
}

StepOptions training_options(const Config& config, const ExperimentData& data) {
  StepOptions options = step_options(config);
  if (config.train.distill.teacher.empty()) return options;
  const auto teacher = std::make_shared<const Teacher>(config, data);
  options.teacher = [teacher](const ModelInput& input) { return teacher->of(input); };
  return options;
}

HEED_END
