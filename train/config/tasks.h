#pragma once
/// The tasks and the metrics, with their names in a config. train/tasks/ implements the tasks.
#include <algorithm>
#include <array>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/base/enum_names.h"
#include "autograd/base/open_enum.h"
#include "data/options.h"
#include "nn/models/architecture.h"

namespace heed {

// ---- metrics ---------------------------------------------------------------------------------

/// The metrics in the order in which they are printed. A checkpoint contains the index of the
/// metric that selected the best checkpoint, so a new metric must be added at the end.
enum class Metric {
  loss,
  perplexity,
  token_accuracy,
  exact_match,
  bleu,
  chrf,
  bits_per_byte,
  accuracy,
  f1,
  rouge_1,
  rouge_2,
  rouge_l
};

struct MetricInfo {
  std::string_view name;   ///< name in YAML and JSON
  std::string_view label;  ///< name in tables and messages
  bool higher_is_better = true;
  int digits = 2;        ///< number of digits printed after the decimal point
  bool percent = false;  ///< true: a fraction, printed as a percentage
  bool detail = false;   ///< true: printed below the other metrics, with its signature
};

inline constexpr std::array<MetricInfo, 12> metric_table{{
    {"loss", "loss", false, 4},
    {"perplexity", "perplexity", false, 3},
    {"token_accuracy", "token accuracy", true, 2, true},
    {"exact_match", "exact match", true, 2, true},
    {"bleu", "BLEU"},
    {"chrf", "chrF2"},
    {"bits_per_byte", "bits/byte", false, 3},
    {"accuracy", "accuracy", true, 2, true},
    {"f1", "macro F1", true, 4},
    {"rouge_1", "ROUGE-1", true, 2, false, true},
    {"rouge_2", "ROUGE-2", true, 2, false, true},
    {"rouge_l", "ROUGE-L", true, 2, false, true},
}};

constexpr auto names_of(Metric) { return table_names<Metric>(metric_table); }

constexpr const MetricInfo& info_of(Metric metric) {
  return metric_table.at(static_cast<std::size_t>(metric));
}

/// The metrics that compare output lines with reference lines (train/metrics/text_metric.h).
#define HEED_TEXT_METRICS(METRIC) \
  METRIC(bleu)                    \
  METRIC(chrf)                    \
  METRIC(rouge)

/// Whether a metric compares lines of text (HEED_TEXT_METRICS).
constexpr bool compares_texts(Metric metric) {
  const std::string_view name = info_of(metric).name;
#define HEED_STARTS_WITH(text_metric) name.starts_with(#text_metric) ||
  return HEED_TEXT_METRICS(HEED_STARTS_WITH) false;
#undef HEED_STARTS_WITH
}

/// Whether the lines of runs with train.best = `main` are judged as texts. Other runs, such as those
/// with lines of symbols, are judged by exact match or accuracy.
constexpr bool judges_texts(Metric main) { return compares_texts(main) || main == Metric::loss; }

/// How BLEU splits a line into words (train/metrics/bleu.h).
enum class BleuTokenizer {
  v13a,       ///< NIST's mteval-v13a; expects detokenised text
  none,       ///< splits at white space; expects tokenised text
  zh,         ///< each Chinese character is a word; the rest is split as by v13a
  characters  ///< each character is a word
};
constexpr auto names_of(BleuTokenizer) {
  return enum_names<BleuTokenizer>("13a", "none", "zh", "char");
}

// ---- tasks -----------------------------------------------------------------------------------

/// What a model predicts, as rates count it: "samples", "labels" or "tokens".
constexpr std::string_view predictions_of(Architecture architecture) {
  return architecture == Architecture::encoder_of_sequences ? "samples"
         : architecture == Architecture::encoder            ? "labels"
                                                            : "tokens";
}

/// The names of the built-in tasks in YAML. The function make_NAME_task (train/tasks/) creates the
/// task.
#define HEED_TASKS(TASK) \
  TASK(seq2seq)          \
  TASK(lm)               \
  TASK(tag)              \
  TASK(classify)         \
  TASK(mlm)              \
  TASK(text2text)        \
  TASK(denoise)

#define HEED_ENUMERATOR(name) name,
enum class TaskKind : int { HEED_TASKS(HEED_ENUMERATOR) };
#undef HEED_ENUMERATOR

/// The properties of a task on which other code, such as the checks of a config, depends.
struct TaskInfo {
  std::string_view name = {};  ///< refers to characters that exist until the program ends
  std::string_view help = {};
  Architecture architecture = Architecture::encoder_decoder;
  Reads reads = Reads::pairs;  ///< Reads::text: windows of model.context tokens
  bool inputs = false;         ///< its sources may be images, features or videos (data.input)
  bool searches = false;       ///< search or sampling generates its outputs (section decode)
  bool mixes = false;          ///< draws samples from several parts of its data (data.mixture)
  bool hides_spans = false;    ///< hides spans of the lines that it reads (data.spans)
  std::vector<Metric> metrics;
  std::vector<std::string> specials = {};  ///< special pieces that its tokenizer must contain

  bool has(Metric metric) const { return std::ranges::find(metrics, metric) != metrics.end(); }
};

/// The sentinel tokens that mark hidden spans: "<extra_id_0>", "<extra_id_1>", …
inline std::vector<std::string> span_mark_names() {
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < span_marks; ++i)
    names.push_back("<extra_id_" + std::to_string(i) + ">");
  return names;
}

/// The built-in tasks, in the order of HEED_TASKS.
inline std::deque<TaskInfo> built_in_tasks() {
  using enum Metric;
  return {
      {.name = "seq2seq",
       .help = "a target line for each source line, or for each source that is not text, encoder "
               "and decoder",
       .architecture = Architecture::encoder_decoder,
       .inputs = true,
       .searches = true,
       .metrics = {loss, perplexity, token_accuracy, exact_match, bleu, chrf, rouge_1, rouge_2,
                   rouge_l}},
      {.name = "lm",
       .help = "a language model, decoder only",
       .architecture = Architecture::decoder,
       .reads = Reads::text,
       .searches = true,
       .metrics = {loss, perplexity, token_accuracy, bits_per_byte}},
      {.name = "tag",
       .help = "a label for each token of a line, or for each row of a source that is not text, "
               "encoder only",
       .architecture = Architecture::encoder,
       .inputs = true,
       .metrics = {loss, perplexity, token_accuracy, exact_match, f1}},
      {.name = "classify",
       .help = "a label for each line (one text, or two with a tab between them) or for each "
               "source that is not text, encoder only",
       .architecture = Architecture::encoder_of_sequences,
       .inputs = true,
       .metrics = {loss, accuracy, f1}},
      {.name = "mlm",
       .help = "a masked language model of lines of text, encoder only",
       .architecture = Architecture::encoder_of_tokens,
       .reads = Reads::lines,
       .metrics = {loss, perplexity, token_accuracy},
       .specials = {"<mask>"}},
      {.name = "text2text",
       .help = "several tasks in one model, selected by the prefix of each line",
       .architecture = Architecture::encoder_decoder,
       .searches = true,
       .mixes = true,
       .metrics = {loss, perplexity, token_accuracy, exact_match, bleu, chrf, rouge_1, rouge_2,
                   rouge_l}},
      {.name = "denoise",
       .help = "span corruption (T5), in which the decoder generates the hidden spans of a line",
       .architecture = Architecture::encoder_decoder,
       .reads = Reads::lines,
       .searches = true,
       .hides_spans = true,
       .metrics = {loss, perplexity, token_accuracy},
       .specials = span_mark_names()},
  };
}

/// The built-in tasks, then the registered ones. References to rows remain valid.
const std::deque<TaskInfo>& task_table();
/// Adds the row of a newly registered task (add_task, train/tasks/task.h).
void add_task_info(const TaskInfo& info);
inline const TaskInfo& info_of(TaskKind task) {
  return task_table().at(static_cast<std::size_t>(task));
}

OpenNames& open_names(TaskKind);
inline const std::vector<std::string_view>& names_of(TaskKind task) {
  return open_names(task).all();
}

}  // namespace heed
