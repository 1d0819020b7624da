#pragma once
/// The task of an experiment. The trainer, the checkpoints and the commands know only this
/// interface; each task is one file, train/tasks/NAME.cpp, and one row of train/config/tasks.h.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "autograd/base/message_text.h"
#include "autograd/base/team.h"
#include "nn/models/model.h"
#include "train/distributed/workers.h"
#include "train/tasks/data.h"
#include "train/tasks/evaluation.h"

HEED_BEGIN

/// A model that is ready for use, with its tokenizers and threads. All must outlive the call.
struct LoadedModel {
  const Model& model;
  const Tokenizers& tokenizers;
  Team& team;
  World* world = nullptr;  ///< the other ranks, if they evaluate the same model at the same time

  Workers workers() const { return {team, world}; }
};

/// How much an evaluation computes.
struct EvaluationRequest {
  /// Validation during training: only what this metric needs, with greedy search. Unset: all.
  std::optional<Metric> only = std::nullopt;
  bool pretokenised = false;  ///< BLEU of text that is already tokenised
};

/// log p of a line, and its number of tokens.
struct LineScore {
  double log_prob = 0;
  std::int64_t tokens = 0;
};

/// One output of a generator. score: as in Hypothesis (train/decode/search.h).
struct GeneratedText {
  std::string text;
  double score = 0;
};

struct GenerationRequest {
  std::span<const std::string> input;
  std::span<const std::string> prefixes = {};  ///< the beginning of each line's outputs
  std::int64_t first = 0;                      ///< number of the first line, from 0
  std::int64_t nbest = 1;                      ///< outputs of each line, at most
};

using TextCallback = std::function<void(std::string_view)>;

/// Generates the outputs of a model: what `heed generate` runs.
class Generator {
 public:
  virtual ~Generator() = default;
  /// One output line per input line; `first` is the number of the first, from 0.
  virtual std::vector<std::string> lines(const std::vector<std::string>& input,
                                         std::int64_t first) = 0;
  /// Several outputs for each line, the best first. Throws Error(usage) if the task has one only.
  virtual std::vector<std::vector<GeneratedText>> nbest(const GenerationRequest& request);
  /// The prompt and its continuation. `on_text`, if given, receives the text in parts, each as soon
  /// as it is final. Throws Error(usage) if the task has no prompts.
  virtual std::string continuation(const std::string& prompt, const TextCallback& on_text);
};

class Task {
 public:
  explicit Task(const Config& config) : config_(config) {}
  virtual ~Task() = default;
  const Config& config() const { return config_; }
  const TaskInfo& info() const { return info_of(config_.task); }

  // ---- data
  /// All data of training. `tokenizers`, if given, are used unchanged. Throws Error(bad_input) for
  /// data that cannot be trained or evaluated on.
  ExperimentData load(const Tokenizers* tokenizers) const;
  virtual Corpus read() const { return read_corpus(config_.data, info().reads, config_.seed); }
  /// The tokenizers that the config names, those of model.init_from, or new ones, learned from the
  /// training split.
  Tokenizers find_tokenizers(const Split& train) const;
  /// One split from its files; `name` is for messages.
  Split read_files(const FilesOptions& files, const std::string& name) const;
  /// Files named on the command line instead of a split. Throws Error(usage) if they are not of the
  /// kind that this task reads.
  Split read_given(const FilesOptions& files) const;
  /// What tokenizers of text are learned from.
  virtual Split learned_from(const Split& train) const { return train; }
  /// A split as token ids; training skips samples that it cannot use, evaluation none.
  virtual Dataset encode(const Split& split, const Tokenizers& tokenizers, bool training) const = 0;
  /// Throws Error(bad_input), naming `what` and the line, if the model cannot process it.
  virtual void check_evaluable(const Dataset& data, const std::string& what) const = 0;
  /// "data: 50000 pairs, …", for messages.
  virtual std::string describe(const ExperimentData& data) const = 0;
  /// Synthetic sequences of equal length: `id(n)` gives a token id below n. For benchmarks. A model
  /// that reads grids of patches (Swin, a front end of convolutions) gets whole pictures, whatever
  /// the source length.
  Batch random_batch(std::int64_t sequences, std::int64_t source_length, std::int64_t target_length,
                     const VocabularySizes& vocabulary,
                     const std::function<std::int32_t(std::int64_t)>& id) const;
  [[deprecated("use random_batch")]] Batch made_up_batch(
      std::int64_t sequences, std::int64_t source_length, std::int64_t target_length,
      const VocabularySizes& vocabulary,
      const std::function<std::int32_t(std::int64_t)>& id) const {
    return random_batch(sequences, source_length, target_length, vocabulary, id);
  }
  /// Rows of a source, if sources are pictures or clips; else 0.
  std::int64_t picture_rows() const;

  // ---- a trained model
  virtual Evaluation evaluate(const LoadedModel& trained, const Dataset& data,
                              const EvaluationRequest& request) const = 0;
  /// Examples of the model's outputs, one per line, human-readable; `e` is its evaluation.
  virtual std::vector<std::string> examples(const LoadedModel& trained, const Dataset& data,
                                            const Evaluation& e) const = 0;
  virtual std::unique_ptr<Generator> make_generator(const LoadedModel& trained,
                                                    std::uint64_t seed) const = 0;
  /// A batch of one line as the model reads it, with the output that belongs to it: the target, or
  /// labels (empty: any labels). Throws Error(usage) if the task cannot tell, Error(bad_input) if the
  /// model cannot process the line.
  virtual Batch batch_of_line(const Tokenizers& tokenizers, const std::string& line,
                              const std::string& output) const;
  /// Throws Error(usage) if the files are not of the kind that this task scores.
  virtual std::vector<LineScore> score(const LoadedModel& trained, const std::string& source,
                                       const std::string& target) const = 0;

 protected:
  /// The pairs to score. Throws Error(usage) if a file is not given.
  Split read_scored(const std::string& source, const std::string& target) const;
  /// "data: 50000 pairs, …"
  static std::string describe_pairs(const ExperimentData& data, std::string_view noun);
  /// Some lines with the model's outputs, evenly spaced.
  static std::vector<std::string> example_pairs(const Dataset& data, const Evaluation& e);
  /// The sources of lines that are not text, with `what` for messages; none if they are.
  std::shared_ptr<const Inputs> inputs_of(std::span<const std::string> lines,
                                          const std::string& what) const;
  /// Whether a class-token row precedes the rows of a source that is not text.
  bool has_class_row() const;
  /// A line as the model saw it in training.
  std::string prepared(const std::string& line) const;
  /// Receives a batch and −log p of each of its labels.
  using LossesCallback = std::function<void(const Batch& batch, std::span<const double> losses)>;
  /// Teacher-forced loss, and perplexity and token accuracy if the task has them. `totals`, if
  /// given, receives the sums.
  Evaluation evaluate_loss(const LoadedModel& trained, const Dataset& data,
                           LossCounts* totals = nullptr,
                           const LossesCallback& on_losses = {}) const;
  /// The same for given batches.
  Evaluation evaluate_batches(const LoadedModel& trained, std::span<const Batch> batches,
                              LossCounts* totals = nullptr,
                              const LossesCallback& on_losses = {}) const;
  /// Sets the files of a run's tokenizers.
  void use_tokenizers_of(const std::string& run, TokenizerOptions& options) const;
  /// The batches of an evaluation.
  std::vector<Batch> batches_of(const Dataset& data) const;
  int threads() const { return static_cast<int>(config_.threads); }

  const Config config_;
};

using TaskFactory = std::unique_ptr<Task> (*)(const Config& config);

/// Adds a task by name; info.name is the same one. Throws Error(bad_input) if the name is taken or
/// has no dot.
void add_task(std::string_view name, const TaskInfo& info, TaskFactory make);
std::unique_ptr<Task> make_task(const Config& config);

// ---- former names, for one release ---------------------------------------------------------

using Trained [[deprecated("use LoadedModel")]] = LoadedModel;
using Answer [[deprecated("use GeneratedText")]] = GeneratedText;
using AnswerRequest [[deprecated("use GenerationRequest")]] = GenerationRequest;
using Answers [[deprecated("use Generator")]] = Generator;

HEED_END
