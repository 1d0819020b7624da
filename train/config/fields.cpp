#include "train/config/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "nn/layers/patterns.h"
#include "nn/layers/positions.h"

namespace heed {
namespace {

// ---- members by type -------------------------------------------------------------------------

template <class T>
nlohmann::json json_of(const T& value) {
  if constexpr (std::is_enum_v<T>)
    return std::string(name_of(value));
  else if constexpr (std::is_same_v<T, double>)
    return number_json(value);
  else
    return value;
}
template <class E>
nlohmann::json json_of(const std::optional<E>& value) {
  return value ? json_of(*value) : nlohmann::json("none");
}
nlohmann::json json_of(const std::array<double, 2>& pair) {
  return {number_json(pair[0]), number_json(pair[1])};
}

template <class T>
void set_from(const nlohmann::json& json, T& value) {
  if constexpr (std::is_enum_v<T>) {
    const auto names = names_of(T{});
    value = static_cast<T>(std::ranges::find(names, json.get<std::string>()) - names.begin());
  } else {
    value = json.get<T>();
  }
}
template <class E>
void set_from(const nlohmann::json& json, std::optional<E>& value) {
  value.reset();
  if (json != "none") set_from(json, value.emplace());
}

FieldKind kind_of(double) { return FieldKind::number; }
FieldKind kind_of(bool) { return FieldKind::truth; }
FieldKind kind_of(const std::string&) { return FieldKind::text; }
FieldKind kind_of(const std::vector<std::string>&) { return FieldKind::files; }
FieldKind kind_of(const std::array<double, 2>&) { return FieldKind::pair; }
template <class T>
FieldKind kind_of(T) {
  return std::is_integral_v<T> ? FieldKind::whole : FieldKind::choice;
}

template <class T>
std::vector<std::string> choices_of(const T&) {
  if constexpr (std::is_enum_v<T>) {
    const auto names = names_of(T{});
    return {names.begin(), names.end()};
  }
  return {};
}
template <class E>
std::vector<std::string> choices_of(const std::optional<E>&) {
  std::vector<std::string> names = choices_of(E{});
  names.insert(names.begin(), "none");
  return names;
}

/// A row for the member that `get` finds in a Config (const or not); its type determines the kind.
template <class Get>
Field row(std::string key, Get get, Range range, std::string help) {
  const Config defaults;
  const auto& member = get(defaults);
  Field field;
  field.key = std::move(key);
  field.help = std::move(help);
  field.kind = kind_of(member);
  field.range = range;
  field.choices = choices_of(member);
  field.get = [=](const Config& config) { return json_of(get(config)); };
  field.set = [=](Config& config, const nlohmann::json& json) { set_from(json, get(config)); };
  return field;
}
template <class Get>
Field row(std::string key, Get get, std::string help) {
  return row(std::move(key), get, Range(), std::move(help));
}

/// What a value may be, in words.
std::string type_of(const Field& field) {
  switch (field.kind) {
    case FieldKind::whole:
      return (field.choices.empty() ? "" : field.choices[0] + ", or a ") + "whole number, " +
             field.range_text();
    case FieldKind::number:
      return "number, " + field.range_text();
    case FieldKind::truth:
      return "true or false";
    case FieldKind::text:
      return "text";
    case FieldKind::files:
      return "a file or a list of files";
    case FieldKind::choice:
      return fmt::format("{}", fmt::join(field.choices, " | "));
    case FieldKind::pair:
      return "two numbers, each " + field.range_text();
  }
  return "";
}

// ---- the table -------------------------------------------------------------------------------

/// Expands to a key and an accessor of its member; the key is the member's path in Config.
#define HEED_KEY(member) \
#member, [](auto& config) -> auto& { return config.member; }
/// Only the accessor, for the few keys that differ from their member's path.
#define HEED_MEMBER(member) \
  [](auto& config) -> auto& { return config.member; }  // NOLINT(bugprone-macro-parentheses)

// Upper bounds are far above any sensible value; they keep shapes and counters from overflowing.
constexpr double million = 1e6, billion = 1e9;
constexpr Range steps{0, 1e12}, tokens{1, billion}, sequences{1, million},
    fraction{0.0, 1.0, true, false}, dropout{0.0, 0.99}, positive{.low_in = false}, not_negative;

Field& find(std::vector<Field>& table, std::string_view key) {
  return *std::ranges::find(table, key, &Field::key);
}

std::vector<std::string> all_but(const Field& field, const std::string& value) {
  std::vector<std::string> others = field.choices;
  std::erase(others, value);
  return others;
}

std::string fits_no_other(const std::string& part) {
  return fmt::format("a run keeps its {}, because its weights fit no other", part);
}

/// The table under construction.
using Table = std::vector<Field>;

void add(Table& table, std::initializer_list<Field> rows) {
  table.insert(table.end(), rows.begin(), rows.end());
}

void add_run(Table& table) {
  std::string tasks;
  for (const TaskInfo& task : task_table())
    tasks += fmt::format("{}{}: {}", tasks.empty() ? "" : "; ", task.name, task.help);
  add(table,
      {
          row(HEED_KEY(name),
              "The run's name. Its folder is runs/<name>, unless --run gives another. By default "
              "this file's name without .yaml.")
              .in_words("text, a folder's name"),
          row(HEED_KEY(seed), Range{0, 0x1p64},
              "All randomness (weights, order, dropout, sampling) is a function of it."),
          row(HEED_KEY(threads), Range{1, 1024},
              "Worker threads; auto takes one per core. The result does not depend on "
              "it."),
          row(HEED_KEY(task), tasks + ".").keep_on_resume(fits_no_other("task")),
      });
  Field& threads = find(table, "threads");
  threads.told_on_resume = false;
  threads.choices = {"auto"};
  threads.get = [](const Config& config) -> nlohmann::json {
    return config.threads == 0 ? nlohmann::json("auto") : nlohmann::json(config.threads);
  };
  threads.set = [](Config& config, const nlohmann::json& json) {
    config.threads = json == "auto" ? 0 : json.get<std::int64_t>();
  };
}

void add_data(Table& table) {
  const Range pairs{1, billion}, pairs_or_none{0, billion}, length{1, million};
  const std::string source =
                        "Input lines, UTF-8; .gz is unpacked. Line i belongs to line i of target.",
                    target = "Output lines.", text_help = "Running text.",
                    likewise = "As in train.";
  const std::string name = "data.synthetic.name";
  add(table,
      {
          row(HEED_KEY(data.train.source), source),
          row(HEED_KEY(data.train.target), target),
          row(HEED_KEY(data.train.text), text_help),
          row(HEED_KEY(data.valid.source), likewise),
          row(HEED_KEY(data.valid.target), likewise),
          row(HEED_KEY(data.valid.text), likewise),
          row(HEED_KEY(data.test.source), likewise),
          row(HEED_KEY(data.test.target), likewise),
          row(HEED_KEY(data.test.text), likewise),
          row(HEED_KEY(data.valid_fraction), fraction,
              "Share cut from the end of train for validation, if valid names no file.")
              .only(name, {"none"}, "set data.synthetic.valid"),
          row(HEED_KEY(data.test_fraction), fraction,
              "Share cut from the end of train for testing, after the share for validation.")
              .only(name, {"none"}, "set data.synthetic.test"),
          row(HEED_KEY(data.synthetic.name),
              "Generated data instead of files. dates: dates as people write them to ISO 8601; "
              "brackets: the nesting depth of each bracket."),
          row(HEED_KEY(data.synthetic.train), pairs,
              "Training pairs; no source line is in two splits."),
          row(HEED_KEY(data.synthetic.valid), pairs_or_none, "Validation pairs."),
          row(HEED_KEY(data.synthetic.test), pairs_or_none, "Test pairs."),
          row(HEED_KEY(data.synthetic.min_length), length,
              "copy, reverse, sort: fewest symbols; addition: fewest digits of a summand; "
              "brackets: fewest pairs."),
          row(HEED_KEY(data.synthetic.max_length), length,
              "copy, reverse, sort: most symbols; addition: most digits of a summand; brackets: "
              "most pairs."),
          row(HEED_KEY(data.synthetic.symbols), Range{1, 62},
              "copy, reverse, sort: size of the alphabet (a-z, A-Z, 0-9)."),
          row(HEED_KEY(data.lowercase), "Lower-case both sides before tokenizing."),
          row(HEED_KEY(data.max_length), length,
              "Training pairs with more tokens than this on either side are left out."),
      });
  for (const char* key : {"train", "valid", "test", "min_length", "max_length", "symbols"}) {
    Field& field = find(table, fmt::format("data.synthetic.{}", key));
    field.only(name, all_but(find(table, name), "none"));
  }
}

void add_tokenizer(Table& table) {
  const std::string file = "a file", kind = "tokenizer.kind", shared = "tokenizer.shared";
  const std::vector<std::string> with_file{"sentencepiece", "char", "word"};
  add(table,
      {
          row(HEED_KEY(tokenizer.kind),
              "What a token is: a learned piece of a word, a character, a byte, or a word."),
          row(HEED_KEY(tokenizer.algorithm),
              "How pieces are learned: by a unigram language model or by byte-pair encoding.")
              .only(kind, {"sentencepiece"}),
          row(HEED_KEY(tokenizer.vocab_size), Range{5, 10 * million},
              "sentencepiece, word: maximum number of pieces, special ones included."),
          row(HEED_KEY(tokenizer.specials),
              "Further special pieces, such as <pad> and <mask>, with ids from 3 on. Most models "
              "need none.")
              .in_words("a name or a list of names"),
          row(HEED_KEY(tokenizer.shared),
              "One vocabulary for source and target. Labels always have their own."),
          row(HEED_KEY(tokenizer.model),
              "An existing tokenizer (a SentencePiece .model or a vocabulary file) instead of a "
              "learned one.")
              .in_words(file)
              .only(kind, with_file)
              .only(shared, {"true"}, "give source_model and target_model"),
          row(HEED_KEY(tokenizer.source_model), "An existing tokenizer for the source.")
              .in_words(file)
              .only(kind, with_file)
              .only(shared, {"false"}, "or give model"),
          row(HEED_KEY(tokenizer.target_model), "An existing tokenizer for the target.")
              .in_words(file)
              .only(kind, with_file)
              .only(shared, {"false"}, "or give model"),
      });
}

void add_model(Table& table) {
  const Range layers{0, 1000};
  add(table,
      {
          row(HEED_KEY(model.d_model), Range{1, 65'536},
              "Width of the model. A multiple of heads."),
          row(HEED_KEY(model.heads), Range{1, 1024}, "Attention heads."),
          row(HEED_KEY(model.d_ff), Range{1, million}, "Width inside the feed-forward layers."),
          row("model.layers.encoder", HEED_MEMBER(model.encoder_layers), layers, "Encoder layers."),
          row("model.layers.decoder", HEED_MEMBER(model.decoder_layers), layers, "Decoder layers."),
          row(HEED_KEY(model.dropout.residual), dropout,
              "Of embeddings, and of what a sublayer adds to its input."),
          row(HEED_KEY(model.dropout.attention), dropout, "Of attention weights."),
          row(HEED_KEY(model.dropout.activation), dropout,
              "Of values between the two feed-forward layers."),
          row(HEED_KEY(model.activation), "Between the two feed-forward layers."),
          row(HEED_KEY(model.positions),
              "How positions are encoded. alibi: in the scores of self-attention, which decrease "
              "with the distance (in an encoder, on both sides)."),
          row(HEED_KEY(model.attention.pattern),
              "Which tokens of its own sequence a token attends to: all (in a decoder, those up to "
              "itself), or those in a window."),
          row(HEED_KEY(model.attention.window), Range{1, billion},
              "Tokens in the window: the token itself and those before it; in an encoder, as many "
              "after it.")
              .only("model.attention.pattern", {"window"}),
          row(HEED_KEY(model.norm),
              "pre: before each sublayer, inside the residual; post: after the sum."),
          row(HEED_KEY(model.final_norm),
              "A norm after the last layer of encoder and decoder. The post-norm models of Vaswani "
              "et al., BERT and Marian have none.")
              .only("model.norm", {"post"}),
          row(HEED_KEY(model.norm_kind), "Layer norm or RMS norm."),
          row(HEED_KEY(model.norm_eps), {0.0, 1.0, false, true}, "Added to the norm's variance."),
          row(HEED_KEY(model.tie_embeddings),
              "Source, target and output share one matrix where they share a vocabulary."),
          row(HEED_KEY(model.scale_embeddings),
              "Multiply embeddings by the square root of d_model."),
          row(HEED_KEY(model.init), "How weights are initialised."),
          row(HEED_KEY(model.init_std), positive, "Standard deviation of initial weights.")
              .only("model.init", {"normal"}),
          row(HEED_KEY(model.context), Range{1, million},
              "Tokens of text that the model reads at once."),
          row(HEED_KEY(model.max_positions), Range{1, million},
              "Length of the longest sequence, in tokens.")
              .only("model.positions", {"learned"}),
      });
}

void add_optim(Table& table) {
  const std::string name = "optim.name", schedule = "optim.schedule.name";
  const std::vector<std::string> adam{"adam", "adamw"}, decays{"cosine", "linear"};
  add(table,
      {
          row(HEED_KEY(optim.name), "The update rule.")
              .keep_on_resume("a run keeps its moments, which Adam and SGD do not share", adam),
          row(HEED_KEY(optim.lr), positive,
              "The peak learning rate, reached at the end of warmup."),
          row(HEED_KEY(optim.betas), fraction, "Decay of the two running means.").only(name, adam),
          row(HEED_KEY(optim.eps), positive, "Added to the root of the second mean.")
              .only(name, adam),
          row(HEED_KEY(optim.weight_decay), not_negative,
              "Weight decay: decoupled (adamw) or L2 (sgd).")
              .only(name, {"adamw", "sgd"}),
          row(HEED_KEY(optim.decay),
              "What weight_decay shrinks: weights and embeddings, or norms and biases too.")
              .only(name, {"adamw", "sgd"}),
          row(HEED_KEY(optim.momentum), fraction, "Share of the last update that is kept.")
              .only(name, {"sgd"}),
          row(HEED_KEY(optim.clip_norm), not_negative,
              "Longer gradients are scaled down to this norm; 0: never."),
          row(HEED_KEY(optim.schedule.name), "The learning rate after warmup."),
          row(HEED_KEY(optim.schedule.warmup), steps, "Steps of rising learning rate."),
          row(HEED_KEY(optim.schedule.steps), steps,
              "The step where the decay ends; 0: train.steps.")
              .only(schedule, decays),
          row(HEED_KEY(optim.schedule.min_lr), not_negative,
              "The learning rate where the decay ends.")
              .only(schedule, decays),
      });
}

void add_train(Table& table) {
  const Range every{1, billion};
  add(table,
      {
          row(HEED_KEY(train.steps), steps,
              "Updates. The first of steps, epochs and minutes ends the run; 0: no such limit."),
          row(HEED_KEY(train.epochs), not_negative,
              "Passes over the training data; 0: no such limit."),
          row(HEED_KEY(train.minutes), not_negative, "Time spent training; 0: no such limit."),
          row(HEED_KEY(train.batch_tokens), tokens,
              "Tokens in a batch, on the larger side; for a language model, target tokens."),
          row(HEED_KEY(train.batch_sequences), Range{0, million},
              "Sequences in a batch, whatever their length, instead of batch_tokens; 0: not "
              "used."),
          row(HEED_KEY(train.shards), Range{1, 4096},
              "Parts of a batch that are computed separately, on up to as many threads. The "
              "result's bits depend on it."),
          row(HEED_KEY(train.precision),
              "Operands of training's matrix products; bf16 needs oneDNN and a processor that "
              "has it."),
          row(HEED_KEY(train.on_nonfinite),
              "If the loss or the gradients of a step are not finite: end the run with status "
              "5, or leave the step out."),
          row(HEED_KEY(train.label_smoothing), fraction,
              "Probability taken from the right token and spread over all."),
          row(HEED_KEY(train.log_every), every,
              "Steps from one training record in metrics.jsonl to the next."),
          row(HEED_KEY(train.validate_every), every, "Steps from one validation to the next."),
          row(HEED_KEY(train.save_every), every, "Steps from one checkpoint to the next."),
          row(HEED_KEY(train.keep), Range{1, million},
              "Checkpoints kept besides the best; never fewer than two."),
          row(HEED_KEY(train.early_stopping.metric),
              "Stop when this has not improved for `patience` validations. It also selects the "
              "best checkpoint."),
          row(HEED_KEY(train.early_stopping.patience), Range{1, million},
              "Validations without an improvement before the run stops."),
          row(HEED_KEY(train.best),
              "What makes a checkpoint the best, unless early_stopping has a metric."),
          row(HEED_KEY(train.average), Range{1, 1000},
              "How many of the last checkpoints to average, within the last fifth of the run; the "
              "mean is used if it beats the best."),
      });
  const Field& metric = find(table, "train.early_stopping.metric");
  find(table, "train.early_stopping.patience").only(metric.key, all_but(metric, "none"));
}

void add_decode(Table& table) {
  add(table,
      {
          row(HEED_KEY(decode.beam), Range{1, 1000}, "Hypotheses kept by beam search; 1: greedy."),
          row(HEED_KEY(decode.length_penalty), {0.0, 100.0},
              "alpha: log-probabilities of n tokens are divided by ((5 + n) / 6)^alpha."),
          row(HEED_KEY(decode.max_length), Range{1, million},
              "Maximum number of tokens in an output."),
          row(HEED_KEY(decode.batch_sequences), sequences,
              "Maximum number of hypotheses decoded together: lines times beam."),
          row(HEED_KEY(decode.precision),
              "Operands of decoding's matrix products, as in train.precision."),
          row(HEED_KEY(decode.cached),
              "Keep keys and values of earlier tokens; false: recompute all of them at each "
              "step, as a check."),
          row(HEED_KEY(decode.sample), "Draw tokens instead of searching."),
          row(HEED_KEY(decode.temperature), positive, "sample: divides the logits."),
          row(HEED_KEY(decode.top_k), Range{0, 10 * million},
              "sample: only the k most likely tokens; 0: all."),
          row(HEED_KEY(decode.top_p), {0.0, 1.0, false, true},
              "sample: only the most likely tokens that make up this probability."),
      });
}

void add_bench(Table& table) {
  add(table, {
                 row(HEED_KEY(bench.sequences), Range{0, million},
                     "Sequences in a step; 0: batches of the config's own data."),
                 row(HEED_KEY(bench.source_length), tokens, "Tokens in each source sequence."),
                 row(HEED_KEY(bench.target_length), tokens, "Tokens in each target sequence."),
                 row(HEED_KEY(bench.vocabulary), Range{4, 10 * million}, "Distinct tokens."),
             });
}

/// The conditions that follow from the table of tasks (train/config/tasks.h).
void add_task_conditions(Table& table) {
  // The key, or its value `of`, is only for the tasks for which `holds` is true.
  const auto needs = [&table](const std::string& key, const auto& holds, std::string_view of = "") {
    std::vector<std::string> tasks;
    for (const TaskInfo& task : task_table()) {
      if (holds(task)) tasks.emplace_back(task.name);
    }
    if (tasks.size() == task_table().size()) return;
    std::vector<Condition>& conditions = find(table, key).conditions;
    const auto same = std::ranges::find(conditions, tasks, &Condition::values);
    if (of.empty() || same == conditions.end()) {
      conditions.push_back({"task", tasks, "", {}});
      if (!of.empty()) conditions.back().of.emplace_back(of);
    } else {
      same->of.emplace_back(of);
    }
  };
  const auto text = [](const TaskInfo& task) { return task.reads_text; };
  const auto pairs = [](const TaskInfo& task) { return !task.reads_text; };
  const auto searches = [](const TaskInfo& task) { return task.searches; };
  const auto encodes = [](const TaskInfo& task) { return has_encoder(task.architecture); };
  const auto decodes = [](const TaskInfo& task) { return has_decoder(task.architecture); };
  for (const std::string split : {"data.train", "data.valid", "data.test"}) {
    needs(split + ".source", pairs);
    needs(split + ".target", pairs);
    needs(split + ".text", text);
  }
  needs("data.synthetic.name", pairs);
  needs("tokenizer.shared", pairs);
  needs("model.context", text);
  needs("model.tie_embeddings", decodes);
  needs("model.layers.encoder", std::not_fn(encodes), "0");
  needs("model.layers.decoder", std::not_fn(decodes), "0");
  for (const std::string key : {"train.best", "train.early_stopping.metric"}) {
    for (std::size_t i = 0; i < metric_table.size(); ++i) {
      const auto metric = static_cast<Metric>(i);
      needs(
          key, [=](const TaskInfo& task) { return task.has(metric); }, name_of(metric));
    }
  }
  for (const Field& field : table) {
    if (field.key.starts_with("decode.")) needs(field.key, searches);
  }
}

Table make_table() {
  Table table;
  add_run(table);
  add_data(table);
  add_tokenizer(table);
  add_model(table);
  add_optim(table);
  add_train(table);
  add_decode(table);
  add_bench(table);
  add_task_conditions(table);
  find(table, "optim.decay").in_old_runs = "all";
  find(table, "model.activation").choices.resize(activation_count);
  for (Field& field : table) {
    if (field.type.empty()) field.type = type_of(field);
    if (field.kind == FieldKind::files || field.key == "data.synthetic.name")
      field.resettable = false;
    for (const std::string part : {"tokenizer", "model"}) {
      if (field.key.starts_with(part + ".") && !field.key.starts_with("model.dropout."))
        field.keep_on_resume(fits_no_other(part));
    }
  }
  return table;
}

template <class Row>
const Row* find_row(const std::vector<Row>& rows, std::string_view key) {
  const auto found = std::ranges::find(rows, key, &Row::key);
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace

bool Field::is_default(const Config& config) const {
  static const Config defaults;
  return get(config) == get(defaults);
}

std::string Field::sentence(const Condition& condition) const {
  const std::size_t section = key.rfind('.') + 1;
  const bool neighbours = condition.chooser.rfind('.') + 1 == section &&
                          condition.chooser.starts_with(key.substr(0, section));
  if (condition.values.empty()) return "not for any " + condition.chooser;
  return fmt::format("only for {}: {}{}", condition.chooser.substr(neighbours ? section : 0),
                     either(condition.values),
                     condition.remark.empty() ? "" : " (" + condition.remark + ")");
}

Field& Field::only(std::string chooser, std::vector<std::string> values, std::string remark) {
  conditions.push_back({std::move(chooser), std::move(values), std::move(remark)});
  return *this;
}

Field& Field::keep_on_resume(std::string reason, std::vector<std::string> values) {
  kept_because = std::move(reason);
  alike = std::move(values);
  return *this;
}

Field& Field::in_words(std::string words) {
  type = std::move(words);
  return *this;
}

std::string either(const std::vector<std::string>& words) {
  if (words.size() < 2) return fmt::format("{}", fmt::join(words, ""));
  return fmt::format("{} or {}", fmt::join(words.begin(), words.end() - 1, ", "), words.back());
}

const std::vector<Field>& fields() {
  static const std::vector<Field> table = make_table();
  return table;
}

const std::vector<Section>& sections() {
  static const std::vector<Section> table{
      {"data", "What to train on: train, valid and test files, or a synthetic task."},
      {"data.train", "Several files are read one after the other."},
      {"data.valid", "For validation during training."},
      {"data.test", "For the metrics at the end."},
      {"data.synthetic", "Pairs generated from the seed."},
      {"tokenizer", "How text becomes tokens. Learned from the training files."},
      {"model", "The Transformer."},
      {"model.layers", "One number may stand for both, as in layers: 3.", true},
      {"model.dropout", "Rates of dropout. One number may stand for all three, as in dropout: 0.1.",
       true},
      {"model.attention", "What self-attention attends to."},
      {"optim", "How weights are updated."},
      {"optim.schedule", "The learning rate as a function of the step."},
      {"train", "How long to train, on what batches, and what to log and keep."},
      {"train.early_stopping", "When to stop before the end."},
      {"decode",
       "How outputs are decoded. Validation during training is greedy (beam 1) in any case."},
      {"bench", "Random tokens that heed bench runs on instead of data."},
  };
  return table;
}

const Field* find_field(std::string_view key) { return find_row(fields(), key); }
const Section* find_section(std::string_view key) { return find_row(sections(), key); }

std::vector<std::string> names_in(std::string_view section) {
  const std::string prefix = section.empty() ? "" : std::string(section) + ".";
  std::vector<std::string> names;
  const auto add = [&](const std::string& key) {
    if (!key.starts_with(prefix)) return;
    const std::string name = key.substr(prefix.size());
    const std::string first = name.substr(0, name.find('.'));
    if (std::ranges::find(names, first) == names.end()) names.push_back(first);
  };
  for (const Field& field : fields()) add(field.key);
  return names;
}

}  // namespace heed
