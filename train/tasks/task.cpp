#include "train/tasks/task.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "autograd/base/error.h"
#include "autograd/io/sha256.h"
#include "autograd/io/utf8.h"
#include "data/inputs/input_info.h"
#include "data/sources/corpus.h"
#include "nn/options.h"
#include "train/decode/model_input.h"
#include "train/fetch/fetch.h"
#include "train/run/run_folder.h"
#include "train/tasks/data_warnings.h"
#include "train/terminal/run_log.h"

HEED_BEGIN

#define HEED_DECLARE(name) std::unique_ptr<Task> make_##name##_task(const Config& config);
HEED_TASKS(HEED_DECLARE)
#undef HEED_DECLARE

using Tasks = OpenTable<TaskKind, TaskFactory>;

void add_task(std::string_view name, const TaskInfo& info, TaskFactory make) {
  Tasks::add(name, make);
  add_task_info(info);
}

std::unique_ptr<Task> make_task(const Config& config) {
  switch (config.task) {
#define HEED_CASE(name) \
  case TaskKind::name:  \
    return make_##name##_task(config);
    HEED_TASKS(HEED_CASE)
#undef HEED_CASE
  }
  return Tasks::of(config.task)(config);
}

namespace {

/// Throws Error(usage) if a vocabulary of another program lacks the special pieces that the task needs.
void require_specials(const Config& config, const Tokenizers& tokenizers) {
  const Architecture architecture = info_of(config.task).architecture;
  for (const auto& tokenizer : {tokenizers.source, tokenizers.target}) {
    const SpecialIds ids = tokenizer->special_ids();
    if (ids.eos < 0 || (ids.bos < 0 && architecture != Architecture::decoder))
      throw Error(Exit::usage,
                  "task {}: the tokenizer has no pieces that begin and end its sequences",
                  name_of(config.task));
    if (config.data.cutoff > 0 && ids != SpecialIds{})
      throw Error(Exit::usage,
                  "data.cutoff: requires a tokenizer that heed made; the special ids of this one "
                  "are not 0, 1 and 2");
  }
}

}  // namespace

ExperimentData Task::load(const Tokenizers* tokenizers) const {
  const Corpus corpus = read();
  ExperimentData data;
  data.tokenizers = tokenizers != nullptr ? *tokenizers : find_tokenizers(corpus.train);
  require_specials(config_, data.tokenizers);
  data.train = encode(corpus.train, data.tokenizers, true);
  const auto evaluated = [&](const Split& split, const std::string& what) {
    Dataset encoded = split.empty() ? Dataset() : encode(split, data.tokenizers, false);
    if (!split.empty()) check_evaluable(encoded, what);
    return encoded;
  };
  data.valid = evaluated(corpus.valid, "data.valid");
  data.test = evaluated(corpus.test, "data.test");
  data.sums = {digest_of_samples(data.train), digest_of_samples(data.valid),
               digest_of_samples(data.test)};
  data.valid_lines = digest_of_lines(corpus.valid, data.valid);
  data.test_lines = digest_of_lines(corpus.test, data.test);
  const BatchStream check(data.train, batch_options(config_));  // throws if there are no samples
  data.warnings = data_warnings(config_, corpus, data);
  return data;
}

namespace {

/// Marks the two tokenizers of an encoder-decoder model with a shared vocabulary: they assign the same ids.
Tokenizers with_same_ids(Tokenizers both, const Config& config) {
  both.same_ids = config.tokenizer.shared && both.source->size() == both.target->size() &&
                  has_decoder(info_of(config.task).architecture);
  return both;
}

}  // namespace

Tokenizers Task::find_tokenizers(const Split& train) const {
  TokenizerOptions options = config_.tokenizer;
  const std::string& run = config_.train.init_from;
  const bool labels = config_.data.input != InputKind::text && !has_decoder(info().architecture);
  if (!run.empty() && !labels && options.model.empty() && options.source_model.empty()) {
    const Config init_config = read_run_config(RunFolder{run}, {}, PluginUse::leave);
    if (init_config.tokenizer.kind != options.kind) {
      throw Error(Exit::usage,
                  "model.init_from: {} has a tokenizer of kind {}; set tokenizer.kind to this kind",
                  run, name_of(init_config.tokenizer.kind));
    }
    if (init_config.tokenizer.shared &&
        path_exists(std::filesystem::path(run) / tokenizer_file("source", options.kind)))
      options.shared = false;  // two files with the same ids
    use_tokenizers_of(run, options);
  }
  const bool text = config_.data.input == InputKind::text;
  return with_same_ids(
      make_tokenizers(options, text ? learned_from(train) : Split{.target = train.target},
                      config_.seed, print_note, target_kind(config_)),
      config_);
}

void Task::use_tokenizers_of(const std::string& run, TokenizerOptions& options) const {
  const auto file = [&](const std::string& name) {
    const std::filesystem::path path =
        std::filesystem::path(run) / tokenizer_file(name, options.kind);
    return std::filesystem::exists(path) ? path.string() : "";
  };
  const std::string shared_file = file("tokenizer");
  if (options.shared || info().reads == Reads::text) {
    if (shared_file.empty())
      throw Error(Exit::usage,
                  "model.init_from: {} has two vocabularies; set tokenizer.shared to false", run);
    options.model = shared_file;
  } else {
    options.source_model = shared_file.empty() ? file("source") : shared_file;
    // The labels of an encoder have a separate vocabulary, built from the data of this run.
    if (has_decoder(info().architecture))
      options.target_model = shared_file.empty() ? file("target") : shared_file;
  }
}

Split Task::read_files(const FilesOptions& files, const std::string& name) const {
  return read_split(files, read_options(config_.data, info().reads), name);
}

RecordReader Task::read_inputs(const std::string& path) const {
  return heed::read_inputs(path, read_options(config_.data, info().reads));
}

Split Task::read_given(const FilesOptions& files) const {
  ReadOptions options = read_options(config_.data, info().reads);
  options.prefixes.clear();  // given lines contain them
  const auto both = [&](const std::string& path) { return holds_both_sides(path, options); };
  if (info().reads != Reads::pairs) {
    if (files.text.empty())
      throw Error(Exit::usage, "--text is missing: this task is evaluated on a text");
    if (!files.source.empty() || !files.target.empty())
      throw Error(Exit::usage, "--source and --target are for tasks that read pairs of lines");
  } else {
    if (!files.text.empty())
      throw Error(Exit::usage, "--text is for tasks that read text; use --source and --target");
    if (files.source.empty() || (files.target.empty() && !std::ranges::all_of(files.source, both)))
      throw Error(Exit::usage, "--source and --target must be used together");
  }
  if (std::ranges::count(files.source, "-") + std::ranges::count(files.target, "-") > 1)
    throw Error(Exit::usage, "only one file can be standard input");
  return read_split(files, options, "files");
}

Split Task::read_scored(const std::string& source, const std::string& target) const {
  if (info().reads != Reads::pairs) {
    if (!source.empty()) {
      throw Error(Exit::usage,
                  "--source is for tasks that read pairs of lines; a language model scores only "
                  "--target");
    }
    RecordReader reader = read_inputs(target);
    Split lines;
    for (std::vector<std::string> values; reader.next(values);)
      lines.target.push_back(std::move(values.front()));
    return lines;
  }
  if (source.empty())
    throw Error(Exit::usage, "--source is missing: this model scores targets given their source");
  ReadOptions options = read_options(config_.data, Reads::pairs);
  options.prefixes.clear();
  return read_split({{source}, {target}, {}}, options, "score");
}

Split Task::scored_lines(std::vector<std::string> source, std::vector<std::string> target) const {
  const bool pairs = info().reads == Reads::pairs;
  if (pairs ? source.size() != target.size() : !source.empty()) {
    throw Error(Exit::usage, "expected {}, got {} sources and {} targets",
                pairs ? "a source for each target" : "targets without sources", source.size(),
                target.size());
  }
  if (config_.data.input == InputKind::text)
    for (std::string& line : source) line = prepared(line);
  for (std::string& line : target) line = prepared(line);
  return {.source = std::move(source), .target = std::move(target)};
}

std::string Task::describe(const ExperimentData& data) const {
  if (info().architecture == Architecture::encoder_decoder && info().reads == Reads::pairs)
    return describe_pairs(data, "pairs");
  return describe_pairs(data, config_.data.input == InputKind::text ? "lines" : "inputs");
}

std::string Task::describe_pairs(const ExperimentData& data, std::string_view noun) {
  std::vector<std::string> reasons;
  if (const auto n = data.train.skipped_long; n > 0)
    reasons.push_back(fmt::format("{} too long", n));
  if (const auto n = data.train.skipped_empty; n > 0) reasons.push_back(fmt::format("{} empty", n));
  const std::string left_out =
      reasons.empty() ? "" : fmt::format(" (left out: {})", fmt::join(reasons, ", "));
  return fmt::format(
      "data: {} {}{}, {} for validation, {} for testing; vocabulary {}{}", data.train.size(), noun,
      left_out, data.valid.size(), data.test.size(), data.tokenizers.source->size(),
      data.tokenizers.shared() ? "" : fmt::format(" and {}", data.tokenizers.target->size()));
}

std::vector<std::string> Task::examples(const LoadedModel&, const Dataset& data,
                                        const Evaluation& e) const {
  const std::size_t n = e.outputs.size(), shown = std::min<std::size_t>(n, 10);
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < shown; ++i) {
    const std::size_t k = i * n / shown;
    const std::string& expected = data.target_lines[k];
    lines.push_back(fmt::format(
        "{}  ->  {}{}", excerpt(data.source_lines[k]), excerpt(e.outputs[k]),
        e.outputs[k] == expected ? "" : fmt::format("   (expected {})", excerpt(expected))));
  }
  return lines;
}

std::vector<std::string> Task::example_lines(
    const LoadedModel& trained, std::int64_t size,
    const std::function<std::string(std::int64_t)>& line_of) const {
  const std::int64_t shown = std::min<std::int64_t>(size, 10);
  std::vector<std::string> inputs;
  for (std::int64_t i = 0; i < shown; ++i) inputs.push_back(line_of(i * size / shown));
  std::vector<std::string> lines = make_generator(trained, config_.seed)->lines(inputs, 0);
  for (std::size_t i = 0; i < lines.size(); ++i)
    lines[i] = fmt::format("{}  ->  {}", excerpt(inputs[i]), excerpt(lines[i]));
  return lines;
}

Dataset Task::encode_hidden(const Split& split, const Tokenizer& tokenizer, bool training,
                            std::int64_t min_length, std::vector<std::int64_t>& kept) const {
  const Dataset lines =
      tokenize(split, tokenizer, tokenizer, {.keep_lines = false, .end_sources = false}, threads());
  Dataset data;
  data.source_ids = data.target_ids = tokenizer.special_ids();
  for (std::int64_t i = 0; i < lines.size(); ++i) {
    const std::int64_t length = lines.source.length(i);
    const bool empty = length < min_length;
    if (empty || (training && length > config_.data.max_length)) {
      ++(empty ? data.skipped_empty : data.skipped_long);
      continue;
    }
    data.source.push(lines.source[i]);
    data.target.push({});
    kept.push_back(i);
  }
  return data;
}

std::int64_t Task::image_rows() const {
  const std::int64_t patches = fixed_rows(config_.data);
  return patches > 0 ? patches + (has_class_row(config_) ? 1 : 0) : 0;
}

std::shared_ptr<const Inputs> Task::inputs_of(std::span<const std::string> lines,
                                              const std::string& what) const {
  const auto read = info_of(config_.data.input).read;
  return read != nullptr ? read(config_.data, {lines, has_class_row(config_), what, threads()})
                         : nullptr;
}

std::string Task::prepared(const std::string& line) const {
  return config_.data.lowercase ? lowercase(line) : line;
}

std::int64_t Task::line_limit() const {
  const ModelSizes sizes = model_sizes(config_);
  return sizes.positions > 0 ? std::min(sizes.positions * sizes.rows_per_position, max_line_rows)
                             : max_line_rows;
}

void Task::shorten(std::vector<std::int32_t>& ids, std::int64_t limit, std::int64_t line,
                   std::string_view verb) {
  if (std::ssize(ids) <= limit) return;
  print_message(fmt::format("heed: note: line {} has {} tokens; only its first {} are {}", line + 1,
                            ids.size(), limit, verb));
  ids.resize(static_cast<std::size_t>(limit));
}

std::vector<Batch> Task::batches_of(const Dataset& data) const {
  BatchOptions options = batch_options(config_);
  options.batch_tokens = std::min<std::int64_t>(options.batch_tokens, 4096);
  options.batch_sequences = 0;
  return evaluation_batches(data, options);
}

Evaluation Task::evaluate_loss(const LoadedModel& trained, const Dataset& data, LossCounts* totals,
                               const LossesCallback& on_losses) const {
  return evaluate_batches(trained, batches_of(data), totals, on_losses);
}

namespace {

struct BatchLoss {
  LossCounts counts;
  std::vector<double> each;  // loss of each label, if on_losses is set

  static auto members(auto& self) { return std::tie(self.counts, self.each); }
};

}  // namespace

Evaluation Task::evaluate_batches(const LoadedModel& trained, std::span<const Batch> batches,
                                  LossCounts* totals, const LossesCallback& on_losses) const {
  LossCounts total;
  Evaluation e;
  const auto evaluate_together = [&](const Workers& workers, std::span<const Batch> some,
                                     std::span<const Lanes> lanes) {
    const auto loss_of = [&](std::int64_t i) {
      BatchLoss loss;
      if (on_losses) loss.counts.each = &loss.each;
      const NoGrad no_grad;
      Pass pass;
      if (some[i].label_count() > 0)
        trained.model.loss(model_input(some[i], lanes[i]), {.counts = &loss.counts}, pass);
      loss.counts.each = nullptr;
      return loss;
    };
    const auto losses = results_of<BatchLoss>(workers, std::ssize(some), loss_of);
    for (std::size_t i = 0; i < some.size(); ++i) {
      add_counts(total, losses[i].counts);
      if (on_losses) on_losses(some[i], losses[i].each);
      e.sentences += some[i].sequences();
    }
  };
  if (std::optional<SegmentMemory> memory = trained.model.segment_memory()) {
    for (const Batch& batch : batches) {  // sequential: each batch continues the previous one
      const std::vector<Batch> parts = shard(batch, 4);
      bool interrupted = false;
      try {  // each rank evaluates all batches
        evaluate_together(trained.team, parts, lanes_of(parts, memory));
      } catch (const Team::Interrupted&) {
        interrupted = true;
      }
      if (any_rank(trained.world, interrupted)) throw Team::Interrupted();
      memory->advance();
    }
  } else {
    evaluate_together(trained.workers(), batches, LaneList(batches.size()));
  }
  const auto n = static_cast<double>(std::max<std::int64_t>(total.tokens, 1));
  e.tokens = total.tokens;
  e.set(Metric::loss, total.nll / n);
  if (info().has(Metric::perplexity)) e.set(Metric::perplexity, std::exp(total.nll / n));
  if (info().has(Metric::token_accuracy))
    e.set(Metric::token_accuracy, static_cast<double>(total.correct) / n);
  if (totals != nullptr) *totals = total;
  return e;
}

Batch Task::batch_of_line(const Tokenizers&, const std::string&, const std::string&) const {
  throw Error(Exit::usage, "task {} does not encode single lines, which this command requires",
              name_of(config_.task));
}

Batch Task::random_batch(std::int64_t sequences, std::int64_t source_length,
                         std::int64_t target_length, const VocabularySizes& vocabulary,
                         const std::function<std::int32_t(std::int64_t)>& id) const {
  const auto ids = [&](std::int64_t n, std::int64_t vocabulary_size) {
    std::vector<std::int32_t> all;
    for (std::int64_t i = 0; i < n; ++i) all.push_back(id(vocabulary_size));
    return all;
  };
  const std::int64_t width = config_.model->input_width;
  const auto side = [&](std::int64_t length, std::int64_t vocabulary_size, bool features = false) {
    Side made;
    if (features) {
      made.width = width;
      for (std::int64_t i = 0; i < sequences * length * width; ++i)
        made.features.push_back(static_cast<float>(id(256)) / 128 - 1);
    } else {
      made.ids = ids(sequences * length, vocabulary_size);
    }
    for (std::int64_t i = 0; i <= sequences; ++i)
      made.offsets.push_back(static_cast<std::int32_t>(i * length));
    return made;
  };
  const bool fixed_rows =
      config_.model->kind == ModelKind::swin || config_.model->front_end.kind == FrontEndKind::conv;
  if (fixed_rows && source_length > 0 && image_rows() > 0) source_length = image_rows();
  Batch batch;
  if (has_encoder(info().architecture))
    batch.source = side(source_length, vocabulary.source, width > 0);
  if (has_decoder(info().architecture)) batch.target = side(target_length, vocabulary.target);
  batch.labels = ids(batch.labelled().rows(), vocabulary.target);
  const Architecture architecture = info().architecture;
  for (std::int64_t row = 0; row < std::ssize(batch.labels); ++row) {
    const bool labelled =
        architecture == Architecture::encoder_of_sequences ? row % source_length == 0
        : architecture == Architecture::encoder_of_tokens  ? row % 7 == 0  // about 15 %
                                                           : true;
    if (!labelled) batch.labels[row] = no_label;
  }
  batch.samples.resize(static_cast<std::size_t>(sequences));
  return batch;
}

std::vector<std::vector<GeneratedText>> Generator::nbest(const GenerationRequest&) {
  throw Error(Exit::usage,
              "--nbest and --prefix are for tasks that generate text; this task has one output "
              "for each line");
}

std::string Generator::continuation(const std::string&, const TextCallback&) {
  throw Error(Exit::usage,
              "--prompt is for language models; this model processes the lines of --input");
}

HEED_END

namespace heed {

std::string digest_of_samples(const Dataset& data) {
  if (data.empty()) return "";
  Sha256 sum;
  for (const Sequences* side : {&data.source, &data.target}) {
    sum.update(std::as_bytes(std::span(side->ids)));
    sum.update(std::as_bytes(std::span(side->offsets)));
  }
  sum.update(std::as_bytes(std::span(data.stream)));
  for (const std::int64_t input : data.input_of) data.inputs->add_to(sum, input);
  return sum.hex();
}

std::string digest_of_lines(const Split& split, const Dataset& encoded) {
  if (split.empty()) return "";
  Sha256 sum;
  const auto add = [&](const std::vector<std::string>& lines) {
    for (const std::string& line : lines) {
      const std::string with_newline = line + '\n';
      sum.update(std::as_bytes(std::span(with_newline)));
    }
  };
  if (encoded.inputs)
    for (const std::int64_t input : encoded.input_of) encoded.inputs->add_to(sum, input);
  else
    add(split.source);
  add(split.target);
  sum.update(std::as_bytes(std::span(split.text)));
  return sum.hex().substr(0, 16);
}

ExperimentData load_data(const Config& config, const Tokenizers* tokenizers) {
  try {
    return make_task(config)->load(tokenizers);
  } catch (const MissingFiles& missing) {
    const std::string hint = fetch_hint(missing.paths);
    throw Error(missing.code, missing.what() + (hint.empty() ? "" : "\n" + hint));
  }
}

TokenizerKind target_kind(const Config& config) {
  const bool labels = info_of(config.task).architecture == Architecture::encoder_of_sequences;
  return labels ? TokenizerKind::words : config.tokenizer.kind;
}

Tokenizers load_tokenizers(const std::filesystem::path& folder, const Config& config) {
  return with_same_ids(Tokenizers::load(folder, config.tokenizer.kind, target_kind(config)),
                       config);
}

VocabularySizes sizes_of(const Tokenizers& tokenizers) {
  return {tokenizers.source->size(), tokenizers.target->size(), tokenizers.shared()};
}

BatchOptions batch_options(const Config& config) {
  BatchOptions options;
  options.batch_tokens = config.train.batch_tokens;
  options.batch_sequences = config.train.batch_sequences;
  options.context = info_of(config.task).reads == Reads::text ? config.model->context : 0;
  options.lanes = config.model->memory > 0;
  options.seed = config.seed;
  return options;
}

}  // namespace heed
