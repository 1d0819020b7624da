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
  std::unique_ptr<Generator> make_generator(const LoadedModel& trained,
                                            std::uint64_t seed) const override;
  Batch batch_of_line(const Tokenizers& tokenizers, const std::string& line,
                      const std::string& output) const override;
  std::vector<LineScore> score(const LoadedModel& trained, const Split& lines) const override;

 protected:
  /// The ids of an unlabelled line of text.
  virtual std::vector<std::int32_t> ids_of(const Tokenizer& tokenizer,
                                           const std::string& line) const = 0;
  /// The rule of datasets whose labels belong to the rows of their sources. A sample has labels for
  /// its first rows; its other rows have no_label.
  static const Batching& labelled();
  /// Throws Error(bad_input), naming `what` and the line, if a line has more than line_limit()
  /// rows.
  void check_longest(const Dataset& data, const std::string& what) const;
  /// Prints a note if the vocabulary lacks labels of the dataset. If the dataset keeps its lines, the
  /// note names the first such label and its line.
  static void note_unknown(const Dataset& data, const std::string& what);
  /// Whether a sample has one label instead of one for each row.
  bool of_sequences() const { return info().architecture == Architecture::encoder_of_sequences; }

 private:
  /// Encodes lines without labels as a dataset with a placeholder for each label that the model
  /// predicts. Truncates texts that are too long and prints a note. `first` is the number of the
  /// first line, from 0.
  Dataset encode_unlabelled(const std::vector<std::string>& lines, const Tokenizers& tokenizers,
                            std::int64_t first) const;
};

HEED_END
