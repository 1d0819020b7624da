#pragma once
/// The base class of the tasks that assign labels: `tag`, one label for each row of a source (a
/// token, a patch, a frame), and `classify`, one label for each source.
#include <vector>

#include "train/tasks/task.h"

HEED_BEGIN

class LabelTask : public Task {
 public:
  using Task::Task;

  Evaluation evaluate(const LoadedModel& trained, const Dataset& data,
                      const EvaluationRequest& request) const override;
  std::vector<std::string> examples(const LoadedModel& trained, const Dataset& data,
                                    const Evaluation& e) const override;
  std::unique_ptr<Generator> make_generator(const LoadedModel& trained,
                                            std::uint64_t seed) const override;
  Batch batch_of_line(const Tokenizers& tokenizers, const std::string& line,
                      const std::string& output) const override;
  std::vector<LineScore> score(const LoadedModel& trained, const std::string& source,
                               const std::string& target) const override;

  /// The labels that the model predicts for each line; `first` is the number of the first line,
  /// from 0.
  std::vector<std::string> label(const LoadedModel& trained, const std::vector<std::string>& input,
                                 std::int64_t first) const;

 protected:
  /// Encodes lines without labels as a dataset with a placeholder for each label that the model
  /// predicts. Truncates texts that are too long and prints a note. `first` is the number of the
  /// first line, from 0.
  virtual Dataset encode_unlabelled(const std::vector<std::string>& lines,
                                    const Tokenizers& tokenizers, std::int64_t first) const = 0;
  /// The maximum number of rows of a line: 4,096 or, if smaller, the limit of the model.
  std::int64_t line_limit() const;
  /// Truncates an unlabelled line of more than `limit` tokens and prints a note with its number;
  /// `line` counts from 0.
  static void shorten(std::vector<std::int32_t>& ids, std::int64_t limit, std::int64_t line);
  /// Throws Error(bad_input), naming `what` and the line, if a line has more than line_limit()
  /// rows.
  void check_longest(const Dataset& data, const std::string& what) const;
  /// Prints a note if the vocabulary lacks labels of the dataset.
  static void note_unknown(const Dataset& data, const std::string& what);
};

HEED_END
