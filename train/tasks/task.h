#pragma once
/// The task of an experiment. The trainer, the checkpoints and the commands use only this
/// interface. A built-in task NAME consists of the function make_NAME_task in train/tasks/ and a
/// row of train/config/tasks.h.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "autograd/base/team.h"
#include "autograd/io/message_text.h"
#include "nn/models/model.h"
#include "train/distributed/workers.h"
#include "train/tasks/data.h"
#include "train/tasks/evaluation.h"

HEED_BEGIN

/// A loaded model with its tokenizers and threads, which must outlive this object.
struct LoadedModel {
  const Model& model;
  const Tokenizers& tokenizers;
  Team& team;
  World* world = nullptr;  ///< the ranks, if all evaluate the same model at the same time

  Workers workers() const { return {team, world}; }
};

/// The options of an evaluation.
struct EvaluationRequest {
  /// The metric that a validation during training requires; outputs are then decoded by greedy
  /// search. Unset: all metrics.
  std::optional<Metric> only = std::nullopt;
  bool pretokenised = false;  ///< whether outputs and references are already tokenised for BLEU
};

/// log p of a line, and the number of its tokens or labels that were scored.
struct LineScore {
  double log_prob = 0;
  std::int64_t tokens = 0;
};

/// One output of a generator, with the score of its Hypothesis (train/decode/search.h).
struct GeneratedText {
  std::string text;
  double score = 0;
};

/// The tokens of one prompt, or of a chunk of lines that are decoded together, and the time that
/// they took. Tokenisation is excluded.
struct GenerationSpeed {
  std::int64_t input_tokens = 0, output_tokens = 0;  ///< output_tokens: without </s>
  double seconds = 0;
  /// Language models, with a beam of one: the part of `seconds` until the first output token, in
  /// which the model reads the prompt.
  std::optional<double> first_token_seconds = std::nullopt;
};

struct GenerationRequest {
  std::span<const std::string> input;
  std::span<const std::string> prefixes = {};  ///< the beginning of each line's outputs
  std::int64_t first = 0;                      ///< number of the first line, from 0
  std::int64_t nbest = 1;                      ///< maximum number of outputs per line
};

/// The maximum number of rows of a line that a model reads.
inline constexpr std::int64_t max_line_rows = 4096;

using TextCallback = std::function<void(std::string_view)>;

/// Generates the outputs of a model for `heed generate`.
class Generator {
 public:
  virtual ~Generator() = default;
  /// One output line per input line; `first` is the number of the first line, from 0.
  virtual std::vector<std::string> lines(const std::vector<std::string>& input,
                                         std::int64_t first) = 0;
  /// Up to request.nbest outputs for each line: the best first or, with decode.sample, in the order
  /// in which they were drawn. Throws Error(usage) if the task has only one output per line, or if
  /// it does not accept the prefixes of the request.
  virtual std::vector<std::vector<GeneratedText>> nbest(const GenerationRequest& request);
  /// The prompt and its continuation. `on_text`, if set, receives the text in pieces, each as soon
  /// as it is final. Throws Error(usage) if the task does not continue prompts.
  virtual std::string continuation(const std::string& prompt, const TextCallback& on_text);
  /// A sentence if outputs so far were cut at their maximum length; otherwise empty. Language models
  /// generate up to the maximum length, so their outputs do not count.
  virtual std::string cut_outputs() const { return ""; }
  /// The speeds measured since the last call; only tasks that search or sample their outputs
  /// measure them.
  std::vector<GenerationSpeed> take_speeds() { return std::exchange(speeds_, {}); }

 protected:
  std::vector<GenerationSpeed> speeds_;
};

class Task {
 public:
  explicit Task(const Config& config) : config_(config) {}
  virtual ~Task() = default;
  const Config& config() const { return config_; }
  const TaskInfo& info() const { return info_of(config_.task); }

  // ---- data
  /// Loads all data of an experiment. `tokenizers`, if not null, are used unchanged. Throws
  /// Error(bad_input) for data that cannot be used for training or evaluation.
  ExperimentData load(const Tokenizers* tokenizers) const;
  virtual Corpus read() const { return read_corpus(config_.data, info().reads, config_.seed); }
  /// The tokenizers that the config names, the tokenizers of model.init_from, or tokenizers trained
  /// on the training split.
  Tokenizers find_tokenizers(const Split& train) const;
  /// Reads one split from its files; `name` appears in messages.
  Split read_files(const FilesOptions& files, const std::string& name) const;
  /// Opens the inputs of `heed generate`: the lines of a file, or values of a table.
  RecordReader read_inputs(const std::string& path) const;
  /// Reads files named on the command line instead of a split. Throws Error(usage) if the task does
  /// not read files of this kind.
  Split read_given(const FilesOptions& files) const;
  /// The text that tokenizers are trained on.
  virtual Split learned_from(Split train) const { return train; }
  /// Encodes a split as token ids. Training skips samples that it cannot use. Evaluation uses every
  /// line, except lines without tokens (mlm) or with fewer than two tokens (denoise).
  virtual Dataset encode(const Split& split, const Tokenizers& tokenizers, bool training) const = 0;
  /// Throws Error(bad_input), naming `what`, if the model cannot process a line or if there is
  /// nothing to evaluate.
  virtual void check_evaluable(const Dataset& data, const std::string& what) const = 0;
  /// A summary for messages: "data: 50000 pairs, …".
  virtual std::string describe(const ExperimentData& data) const;
  /// A batch of random sequences of equal length, for benchmarks: `id(n)` returns a token id below
  /// n. A model that reads grids of patches (Swin, a convolutional front end) receives whole
  /// images, whatever the source length.
  Batch random_batch(std::int64_t sequences, std::int64_t source_length, std::int64_t target_length,
                     const VocabularySizes& vocabulary,
                     const std::function<std::int32_t(std::int64_t)>& id) const;
  [[deprecated("use random_batch")]] Batch made_up_batch(
      std::int64_t sequences, std::int64_t source_length, std::int64_t target_length,
      const VocabularySizes& vocabulary,
      const std::function<std::int32_t(std::int64_t)>& id) const {
    return random_batch(sequences, source_length, target_length, vocabulary, id);
  }
  /// The number of rows of a source, including the class token, if sources are images or videos;
  /// otherwise 0.
  std::int64_t image_rows() const;
  /// The inputs that the lines name (images, videos, sounds, features); null if the lines are text.
  /// `what` appears in messages.
  std::shared_ptr<const Inputs> inputs_of(std::span<const std::string> lines,
                                          const std::string& what) const;
  /// Preprocesses a line as the training data were preprocessed.
  std::string prepared(const std::string& line) const;
  /// The maximum number of rows of a line: 4,096 or, if smaller, the limit of the model. The time of
  /// attention is quadratic in the length, so one very long line would delay all lines.
  std::int64_t line_limit() const;
  /// Truncates a line of more than `limit` tokens and prints a note with its number; `line` counts
  /// from 0. `verb` completes the note: "only its first N are read".
  static void shorten(std::vector<std::int32_t>& ids, std::int64_t limit, std::int64_t line,
                      std::string_view verb);

  // ---- a trained model
  virtual Evaluation evaluate(const LoadedModel& trained, const Dataset& data,
                              const EvaluationRequest& request) const = 0;
  /// Examples of the model's outputs for display, one per line; `e` is the evaluation of `data`. By
  /// default, up to ten evenly spaced lines with their outputs.
  virtual std::vector<std::string> examples(const LoadedModel& trained, const Dataset& data,
                                            const Evaluation& e) const;
  virtual std::unique_ptr<Generator> make_generator(const LoadedModel& trained,
                                                    std::uint64_t seed) const = 0;
  /// A batch of one line, encoded for the model. `output` is its target or its labels (not used by
  /// lm and mlm). If `output` is empty, tag and classify use placeholders. Throws Error(usage) if
  /// the task does not support this, Error(bad_input) if the model cannot process the line.
  virtual Batch batch_of_line(const Tokenizers& tokenizers, const std::string& line,
                              const std::string& output) const;
  /// The scores of `lines.target`, given `lines.source` if the task reads pairs (read_scored,
  /// scored_lines). Throws Error(usage) if the task defines no scores.
  virtual std::vector<LineScore> score(const LoadedModel& trained, const Split& lines) const = 0;
  /// Reads lines to score from files. Throws Error(usage) if `source` is missing or if the task reads
  /// only `target`.
  Split read_scored(const std::string& source, const std::string& target) const;
  /// Lines in memory to score. Throws Error(usage) if the task does not read `source`, or if it does
  /// and the numbers of lines differ.
  Split scored_lines(std::vector<std::string> source, std::vector<std::string> target) const;

 protected:
  /// A summary such as "data: 50000 pairs, …".
  static std::string describe_pairs(const ExperimentData& data, std::string_view noun);
  /// Up to ten of `size` samples, evenly spaced, with the model's outputs; line_of(i) is the input of
  /// sample i.
  std::vector<std::string> example_lines(
      const LoadedModel& trained, std::int64_t size,
      const std::function<std::string(std::int64_t)>& line_of) const;
  /// Encodes lines whose tokens a batching hides: without </s> and without targets. Leaves out lines
  /// of fewer than `min_length` tokens and, in training, of more than data.max_length. `kept`
  /// receives the indices of the others.
  Dataset encode_hidden(const Split& split, const Tokenizer& tokenizer, bool training,
                        std::int64_t min_length, std::vector<std::int64_t>& kept) const;
  /// Receives a batch and −log p of each of its labels.
  using LossesCallback = std::function<void(const Batch& batch, std::span<const double> losses)>;
  /// The teacher-forced loss, and perplexity and token accuracy if the task has them. `totals`, if
  /// not null, receives the sums.
  Evaluation evaluate_loss(const LoadedModel& trained, const Dataset& data,
                           LossCounts* totals = nullptr,
                           const LossesCallback& on_losses = {}) const;
  /// As evaluate_loss, but for the given batches.
  Evaluation evaluate_batches(const LoadedModel& trained, std::span<const Batch> batches,
                              LossCounts* totals = nullptr,
                              const LossesCallback& on_losses = {}) const;
  /// Sets the file names in `options` to the tokenizer files of a run.
  void use_tokenizers_of(const std::string& run, TokenizerOptions& options) const;
  /// Cuts a dataset into the batches of an evaluation.
  std::vector<Batch> batches_of(const Dataset& data) const;
  int threads() const { return static_cast<int>(config_.threads); }

  const Config config_;
};

using TaskFactory = std::unique_ptr<Task> (*)(const Config& config);

/// Registers a task; `info.name` must equal `name`. Throws Error(bad_input) if the name is already
/// registered or does not consist of words joined by dots, as in mine.task.
void add_task(std::string_view name, const TaskInfo& info, TaskFactory make);
std::unique_ptr<Task> make_task(const Config& config);

// ---- former names, for one release ---------------------------------------------------------

using Trained [[deprecated("use LoadedModel")]] = LoadedModel;
using Answer [[deprecated("use GeneratedText")]] = GeneratedText;
using AnswerRequest [[deprecated("use GenerationRequest")]] = GenerationRequest;
using Answers [[deprecated("use Generator")]] = Generator;

HEED_END
