#include "train/views/report/model_summary.h"

#include <fmt/format.h>

#include "autograd/base/error.h"
#include "autograd/base/team.h"
#include "data/batches/batcher.h"
#include "nn/layer_name.h"
#include "train/tasks/task.h"
#include "train/terminal/progress.h"
#include "train/terminal/run_log.h"

namespace heed {

namespace {

constexpr std::int64_t max_batches = 16;     // maximum number of batches that are averaged
constexpr std::int64_t guessed_length = 32;  // assumed number of tokens per sequence
constexpr std::int64_t guessed_characters = 100;
constexpr std::int64_t guessed_labels = 10;

// ---- the vocabulary -------------------------------------------------------------------------

/// Whether a SentencePiece tokenizer has yet to be trained, which is slow. The other kinds are
/// trained quickly, and an existing model needs no training.
bool learns_slowly(const TokenizerOptions& t) {
  return t.kind == TokenizerKind::sentencepiece && t.model.empty() &&
         (t.source_model.empty() || t.target_model.empty());
}

/// The vocabulary of data that cannot be read, as stated in the first line of `why`.
Vocabulary bound(const Config& config, const std::string& message) {
  const std::string why = message.substr(0, message.find('\n'));
  const Architecture architecture = info_of(config.task).architecture;
  if (architecture == Architecture::encoder_of_sequences && config.data.input != InputKind::text) {
    const std::int64_t pieces = guessed_labels + Tokenizer::eos + 1;  // <unk>, <s> and </s>, too
    return {{pieces, pieces, true}, fmt::format("a guess, {} labels: {}", guessed_labels, why)};
  }
  // A character vocabulary contains all characters of the text and ignores vocab_size.
  const bool listed = config.tokenizer.kind == TokenizerKind::characters;
  const std::int64_t size = listed ? guessed_characters : config.tokenizer.vocab_size;
  return {{size, size, config.tokenizer.shared},
          fmt::format("{}: {}", listed ? "a guess" : "tokenizer.vocab_size, an upper bound", why)};
}

// ---- the work of a step ---------------------------------------------------------------------

void add_batch(StepWork& work, const Batch& batch, double share) {
  work.sequences += share * static_cast<double>(batch.sequences());
  work.source_tokens += share * static_cast<double>(batch.source.rows());
  work.target_tokens += share * static_cast<double>(batch.target.rows());
}

StepWork equal_sequences(const Task& task, std::int64_t count, std::int64_t source_length,
                         std::int64_t target_length, std::string basis) {
  StepWork work;
  work.basis = std::move(basis);
  add_batch(
      work,
      task.random_batch(count, source_length, target_length, {}, [](std::int64_t) { return 0; }),
      1);
  return work;
}

StepWork guessed_work(const Task& task) {
  const Config& config = task.config();
  const std::int64_t window = batch_options(config).context,
                     length = window > 0 ? window : guessed_length;
  const std::int64_t count = config.train.batch_sequences > 0
                                 ? config.train.batch_sequences
                                 : std::max<std::int64_t>(config.train.batch_tokens / length, 1);
  return equal_sequences(task, count, length, length,
                         window > 0 ? fmt::format("windows of {} tokens", length)
                                    : fmt::format("a guess: {} tokens in each sequence", length));
}

StepWork real_work(const Task& task, const Split& train, const Tokenizers& tokenizers) {
  const Dataset data = task.encode(train, tokenizers, true);
  BatchStream stream(data, batch_options(task.config()));
  const std::int64_t n = std::min(max_batches, stream.batches_in(0));
  StepWork work;
  work.basis = fmt::format("number of averaged training batches: {}", n);
  for (std::int64_t i = 0; i < n; ++i) {
    add_batch(work, stream.next(), 1 / static_cast<double>(n));
  }
  return work;
}

/// Sets the vocabulary, from the run's tokenizers if given, and the work from the data. Estimates
/// what requires data that are unavailable or a tokenizer that would take long to train.
void measure_data(const Task& task, const std::optional<Tokenizers>& run_tokenizers,
                  ModelSummary& summary) {
  const Config& config = task.config();
  std::string why = "SentencePiece is trained on the training files when training begins";
  std::optional<Tokenizers> tokenizers = run_tokenizers;
  if (run_tokenizers) summary.vocabulary = {sizes_of(*run_tokenizers), "the run's tokenizer"};
  try {
    if (!run_tokenizers && learns_slowly(config.tokenizer)) throw Error(Exit::failed, why);
    const Split train = task.read().train;
    if (!run_tokenizers) {
      tokenizers = task.find_tokenizers(train);
      summary.vocabulary = {sizes_of(*tokenizers), "from the training data"};
    }
    summary.work = real_work(task, train, *tokenizers);
  } catch (const Error& e) {
    if (!tokenizers) summary.vocabulary = bound(config, e.what());
    summary.work = guessed_work(task);
  }
}

// ---- layers ---------------------------------------------------------------------------------

std::vector<LayerSummary> layers_of(const Parameters& parameters) {
  std::vector<LayerSummary> layers;
  for (const NamedTensor& p : parameters) {
    const std::string layer = layer_of(p.name);
    const std::size_t cut = layer.size();
    if (layers.empty() || layers.back().name != layer) layers.push_back({layer, {}, 0});
    layers.back().parameters.push_back(fmt::format(
        "{} {}", cut < p.name.size() ? p.name.substr(cut + 1) : p.name, p.tensor.shape()));
    layers.back().values += p.tensor.size();
  }
  return layers;
}

// ---- the table ------------------------------------------------------------------------------

/// Wraps "a, b, c, …" at about 100 columns; continuation lines are aligned with the first.
std::string wrapped(const std::vector<std::string>& words, std::size_t indent) {
  std::string text;
  std::size_t column = indent;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += ",";
    if (i > 0 && column + words[i].size() > 98) {
      text += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (i > 0) {
      text += " ";
    }
    text += words[i];
    column += words[i].size() + 2;
  }
  return text;
}

/// One entry per layer. Consecutive layers with the same parameter names and shapes share an entry.
std::string layer_table(const std::vector<LayerSummary>& layers) {
  std::string t = fmt::format("{:<24} {:>12}  parameters\n", "layer", "values");
  for (std::size_t i = 0, next = 0; i < layers.size(); i = next) {
    for (next = i + 1; next < layers.size() && layers[next].parameters == layers[i].parameters;)
      ++next;
    const std::string last = layers[next - 1].name;
    std::string name = layers[i].name;
    if (next - i > 1) name += " to " + last.substr(last.rfind('.') + 1);
    t += fmt::format("{:<24} {:>12}  {}\n", name,
                     next - i > 1 ? fmt::format("{} x {}", next - i, layers[i].values)
                                  : std::to_string(layers[i].values),
                     wrapped(layers[i].parameters, 39));
  }
  return t;
}

std::string megabytes(double bytes) { return fmt::format("{:10.1f} MB", bytes / 1e6); }

}  // namespace

ModelSummary summarize_model(const Config& config,
                             const std::optional<Tokenizers>& run_tokenizers) {
  ModelSummary s;
  const std::unique_ptr<Task> task = make_task(config);
  if (!run_tokenizers && config.bench.sequences > 0) {
    s.vocabulary = {{config.bench.vocabulary, config.bench.vocabulary, true}, "bench.vocabulary"};
    s.work = equal_sequences(*task, config.bench.sequences, config.bench.source_length,
                             config.bench.target_length, "the synthetic batch of heed bench");
  } else {
    measure_data(*task, run_tokenizers, s);
  }
  {
    const std::unique_ptr<Model> model = build_uninitialised(config, s.vocabulary.sizes);
    s.layers = layers_of(model->parameters());
    s.memory = at_least(config, *model);
  }  // frees this model: the model below reuses its memory
  for (const LayerSummary& layer : s.layers) s.parameters += layer.values;
  s.machine = machine_memory();
  if (s.memory.total() <= s.machine) {  // else running a shard would exhaust the memory
    const std::unique_ptr<Model> model = build_model(config, s.vocabulary.sizes);
    s.memory = probe_training(*task, *model, s.vocabulary.sizes, s.work);
  }
  return s;
}

nlohmann::json ModelSummary::json() const {
  nlohmann::json rows = nlohmann::json::array();
  for (const LayerSummary& layer : layers) {
    rows.push_back(
        {{"name", layer.name}, {"params", layer.values}, {"parameters", layer.parameters}});
  }
  return {
      {"params", parameters},
      {"gflop_per_step", work.flops ? nlohmann::json(*work.flops / 1e9) : nullptr},
      {"source_tokens_per_step", work.source_tokens},
      {"target_tokens_per_step", work.target_tokens},
      {"step_basis", work.basis},
      {"source_vocabulary", vocabulary.sizes.source},
      {"target_vocabulary", vocabulary.sizes.target},
      {"vocabulary_basis", vocabulary.basis},
      {"memory_mb",
       {{"program", memory.program / 1e6},
        {"weights", memory.weights / 1e6},
        {"gradients", memory.gradients / 1e6},
        {"moments", memory.moments / 1e6},
        {"activations", memory.activations ? nlohmann::json(*memory.activations / 1e6) : nullptr},
        {"total", memory.total() / 1e6},
        {"machine", machine / 1e6}}},
      {"layers", rows}};
}

std::string ModelSummary::text() const {
  std::string t = layer_table(layers);
  t += fmt::format("{:<24} {:>12}  ({})\n\n", "all", parameters,
                   format_quantity(static_cast<double>(parameters)));
  const auto& [source, target, shared] = vocabulary.sizes;
  t += source == target
           ? fmt::format("vocabulary    {} ({})\n", source, vocabulary.basis)
           : fmt::format("vocabulary    {} and {} ({})\n", source, target, vocabulary.basis);
  const bool decodes = work.target_tokens > 0;
  t += fmt::format("training step {}, {:.0f} {} tokens ({})\n",
                   work.flops ? fmt::format("{:.4g} GFLOP of matrix products", *work.flops / 1e9)
                              : "matrix products not counted",
                   decodes ? work.target_tokens : work.source_tokens, decodes ? "target" : "source",
                   work.basis);
  t += fmt::format("memory of training, {} {:.1f} MB{}\n",
                   memory.activations ? "about" : "at least", memory.total() / 1e6,
                   memory.total() > machine
                       ? fmt::format("; this machine has {:.1f} MB", machine / 1e6)
                   : decodes ? "; decoding a test set may need more"
                             : "");
  t += fmt::format(
      "  program     {}\n  weights     {}\n  gradients   {}{}\n  moments     {}\n  activations "
      "{}\n",
      megabytes(memory.program), megabytes(memory.weights), megabytes(memory.gradients),
      memory.activations ? "  of shards in memory at the same time" : "  of one shard",
      megabytes(memory.moments),
      memory.activations ? megabytes(*memory.activations) + "  while shards run"
                         : "  not measured: not enough memory to run a shard");
  return t;
}

}  // namespace heed
