#include "train/config/fields.h"

#include <algorithm>
#include <unordered_map>

#include "train/config/fields_types.h"

namespace heed {
namespace {

using Whole = Range<std::int64_t>;
using Number = Range<double>;

/// A key and its member in one: the key is the member's path in Config.
#define HEED_KEY(member) \
#member, [](auto& config) -> auto& { return config.member; }
/// For the few keys that are called otherwise.
#define HEED_MEMBER(member) \
  [](auto& config) -> auto& { return config.member; }  // NOLINT(bugprone-macro-parentheses)

// Upper bounds stand far above any sensible value; they keep shapes and counters from overflowing.
constexpr std::int64_t million = 1'000'000, billion = 1'000 * million;
constexpr Whole steps{0, 1'000 * billion}, tokens{1, billion}, sequences{1, million};
constexpr Number fraction{0.0, 1.0, true, false}, dropout{0.0, 0.99},
    positive{.low = 0.0, .low_in = false}, not_negative{.low = 0.0};

const std::vector<std::string> metrics{"loss",        "perplexity", "token_accuracy",
                                       "exact_match", "bleu",       "chrf"};

Field name() {
  return text(HEED_KEY(name), "text, a folder's name",
              "The run's name: its folder is runs/<name>, unless --run says otherwise. By default "
              "this file's name without .yaml.");
}

Field seed() {
  const auto read = [](Config& config, const YamlNode& node) {
    return store(read_seed(node), node, config.seed);
  };
  return {"seed",
          "All randomness (weights, order, dropout, sampling) is a function of it.",
          FieldKind::whole,
          "whole number, 0 to 2^64 - 1",
          {},
          0,
          9e15,
          read,
          [](const Config& config) { return fmt::format("{}", config.seed); }};
}

Field threads() {
  const Whole range{1, 1024};
  const auto read = [range](Config& config, const YamlNode& node) -> std::optional<Complaint> {
    if (node.kind == YamlNode::Kind::scalar && node.text == "auto") {
      config.threads = 0;
      return std::nullopt;
    }
    auto read = read_whole(node, range);
    if (read.second.starts_with("expected")) read.second = expected("auto or a whole number", node);
    return store(read, node, config.threads);
  };
  const auto print = [](const Config& config) {
    return config.threads == 0 ? std::string("auto") : fmt::format("{}", config.threads);
  };
  return {"threads",
          "Worker threads; auto takes one for each core. The result does not depend on it.",
          FieldKind::whole,
          "auto, or a whole number, " + words(range),
          {},
          1,
          1024,
          read,
          print};
}

void add_data(std::vector<Field>& table) {
  const Whole pairs{1, billion}, perhaps_pairs{0, billion}, length{1, million};
  const std::string
      source = "Lines to read from, UTF-8; .gz is unpacked. Line i goes with line i of target.",
      target = "Lines to write.", text_help = "Running text, for task: lm.",
      likewise = "As in train.";
  table.insert(
      table.end(),
      {
          files(HEED_KEY(data.train.source), source),
          files(HEED_KEY(data.train.target), target),
          files(HEED_KEY(data.train.text), text_help),
          files(HEED_KEY(data.valid.source), likewise),
          files(HEED_KEY(data.valid.target), likewise),
          files(HEED_KEY(data.valid.text), likewise),
          files(HEED_KEY(data.test.source), likewise),
          files(HEED_KEY(data.test.target), likewise),
          files(HEED_KEY(data.test.text), likewise),
          number(HEED_KEY(data.valid_fraction), fraction,
                 "Share cut from the end of train for validation, where valid names no file."),
          number(HEED_KEY(data.test_fraction), fraction,
                 "Share cut from the end of train for testing, behind that of valid."),
          choice(
              HEED_KEY(data.synthetic.name),
              {"none", "copy", "reverse", "sort", "addition", "dates"},
              "A built-in task instead of files. dates: dates as people write them to ISO 8601."),
          whole(HEED_KEY(data.synthetic.train), pairs,
                "Training pairs; no source line is in two splits."),
          whole(HEED_KEY(data.synthetic.valid), perhaps_pairs, "Validation pairs."),
          whole(HEED_KEY(data.synthetic.test), perhaps_pairs, "Test pairs."),
          whole(HEED_KEY(data.synthetic.min_length), length,
                "copy, reverse, sort: fewest symbols; addition: fewest digits of a summand."),
          whole(HEED_KEY(data.synthetic.max_length), length,
                "copy, reverse, sort: most symbols; addition: most digits of a summand."),
          whole(HEED_KEY(data.synthetic.symbols), {1, 62},
                "copy, reverse, sort: size of the alphabet (a-z, A-Z, 0-9)."),
          truth(HEED_KEY(data.lowercase), "Lower-case both sides before tokenising."),
          whole(HEED_KEY(data.max_length), length,
                "Training pairs with more tokens than this on either side are left out."),
      });
}

void add_tokenizer(std::vector<Field>& table) {
  const std::string file = "a file";
  table.insert(
      table.end(),
      {
          choice(HEED_KEY(tokenizer.kind), {"sentencepiece", "char", "byte", "word"},
                 "What a token is: a trained piece of a word, a character, a byte, or a word."),
          choice(HEED_KEY(tokenizer.algorithm), {"unigram", "bpe"},
                 "sentencepiece: how pieces are found, by a unigram language model or by byte-pair "
                 "encoding."),
          whole(HEED_KEY(tokenizer.vocab_size), {5, 10 * million},
                "sentencepiece, word: most pieces, the special ones included."),
          truth(HEED_KEY(tokenizer.shared), "One vocabulary for source and target."),
          text(HEED_KEY(tokenizer.model), file,
               "A ready tokenizer (a SentencePiece .model or a vocabulary file) instead of a "
               "trained one."),
          text(HEED_KEY(tokenizer.source_model), file,
               "Likewise for the source, with shared: false."),
          text(HEED_KEY(tokenizer.target_model), file,
               "Likewise for the target, with shared: false."),
      });
}

void add_model(std::vector<Field>& table) {
  table.insert(
      table.end(),
      {
          whole(HEED_KEY(model.d_model), {1, 65'536}, "Width of the model. A multiple of heads."),
          whole(HEED_KEY(model.heads), {1, 1024}, "Attention heads."),
          whole(HEED_KEY(model.d_ff), {1, million}, "Width inside the feed-forward layers."),
          whole("model.layers.encoder", HEED_MEMBER(model.encoder_layers), {0, 1000},
                "Encoder layers. A language model has none."),
          whole("model.layers.decoder", HEED_MEMBER(model.decoder_layers), {1, 1000},
                "Decoder layers."),
          number(HEED_KEY(model.dropout.residual), dropout,
                 "Of embeddings, and of what a sublayer adds to its input."),
          number(HEED_KEY(model.dropout.attention), dropout, "Of attention's weights."),
          number(HEED_KEY(model.dropout.activation), dropout,
                 "Of values between the two feed-forward layers."),
          choice(HEED_KEY(model.activation), {"relu", "gelu", "gelu_tanh", "silu"},
                 "Between the two feed-forward layers."),
          choice(HEED_KEY(model.positions), {"sinusoidal", "learned", "none"},
                 "How a token knows its place."),
          choice(HEED_KEY(model.norm), {"pre", "post"},
                 "Norm before each sublayer, inside the residual, or after the sum."),
          choice(HEED_KEY(model.norm_kind), {"layer", "rms"}, "Layer norm or RMS norm."),
          number(HEED_KEY(model.norm_eps), {0.0, 1.0, false, true},
                 "Added to the norm's variance."),
          truth(HEED_KEY(model.tie_embeddings),
                "Source, target and output share one matrix where their vocabularies are one."),
          truth(HEED_KEY(model.scale_embeddings), "Multiply embeddings by the root of d_model."),
          choice(HEED_KEY(model.init), {"xavier", "normal"}, "How weights begin."),
          number(HEED_KEY(model.init_std), positive, "init: normal: the standard deviation."),
          whole(HEED_KEY(model.context), {1, million},
                "Language model: length of its window, in tokens."),
          whole(HEED_KEY(model.max_positions), {1, million},
                "positions: learned: the longest sequence, in tokens."),
      });
}

void add_optim(std::vector<Field>& table) {
  table.insert(
      table.end(),
      {
          choice(HEED_KEY(optim.name), {"adam", "adamw", "sgd"}, "The update rule."),
          number(HEED_KEY(optim.lr), positive,
                 "The peak learning rate, reached at the end of warmup."),
          pair(HEED_KEY(optim.betas), fraction, "adam, adamw: decay of the two running means."),
          number(HEED_KEY(optim.eps), positive,
                 "adam, adamw: added to the root of the second mean."),
          number(HEED_KEY(optim.weight_decay), not_negative,
                 "adamw: decoupled; sgd: L2; adam: none."),
          number(HEED_KEY(optim.momentum), fraction,
                 "sgd: the share of the last update that is kept."),
          number(HEED_KEY(optim.clip_norm), not_negative,
                 "Longer gradients are scaled down to this norm; 0: never."),
          choice(HEED_KEY(optim.schedule.name),
                 {"noam", "inverse_sqrt", "cosine", "linear", "constant"},
                 "The learning rate after warmup."),
          whole(HEED_KEY(optim.schedule.warmup), steps, "Steps of rising learning rate."),
          whole(HEED_KEY(optim.schedule.steps), steps,
                "cosine, linear: the step where the decay ends; 0: train.steps."),
          number(HEED_KEY(optim.schedule.min_lr), not_negative,
                 "cosine, linear: the learning rate where the decay ends."),
      });
}

void add_train(std::vector<Field>& table) {
  std::vector<std::string> none_or_metric = metrics;
  none_or_metric.insert(none_or_metric.begin(), "none");
  const Whole every{1, billion};
  table.insert(
      table.end(),
      {
          whole(HEED_KEY(train.steps), steps,
                "Updates. The first of steps, epochs and minutes ends the run; 0: no such limit."),
          number(HEED_KEY(train.epochs), not_negative,
                 "Passes over the training data; 0: no such limit."),
          number(HEED_KEY(train.minutes), not_negative, "Time spent training; 0: no such limit."),
          whole(HEED_KEY(train.batch_tokens), tokens,
                "Tokens in a batch, on the larger side; for a language model, target tokens."),
          whole(
              HEED_KEY(train.batch_sequences), {0, million},
              "Sequences in a batch, whatever their length, instead of batch_tokens; 0: not used."),
          whole(HEED_KEY(train.shards), {1, 4096},
                "Parts of a batch that run alone, on up to as many threads. Part of the result's "
                "bits."),
          choice(
              HEED_KEY(train.precision), {"float32", "bf16"},
              "Operands of training's matrix products; bf16 needs oneDNN and a processor that has "
              "it."),
          choice(HEED_KEY(train.on_nonfinite), {"stop", "skip"},
                 "When the loss or the gradients of a step are not finite: end the run with status "
                 "5, or leave the step out."),
          number(HEED_KEY(train.label_smoothing), fraction,
                 "Weight taken from the right token and spread over all."),
          whole(HEED_KEY(train.log_every), every, "Steps from one line of the log to the next."),
          whole(HEED_KEY(train.validate_every), every, "Steps from one validation to the next."),
          whole(HEED_KEY(train.save_every), every, "Steps from one checkpoint to the next."),
          whole(HEED_KEY(train.keep), {1, million},
                "Checkpoints kept, besides the best; two at least."),
          optional_choice(
              HEED_KEY(train.early_stopping.metric), none_or_metric,
              "Stop when this has not become better for a while. It also chooses the best."),
          whole(HEED_KEY(train.early_stopping.patience), {1, million},
                "Validations that it may take to become better."),
          choice(HEED_KEY(train.best), metrics,
                 "What makes a checkpoint the best, unless early_stopping has a metric."),
          whole(HEED_KEY(train.average), {1, 1000},
                "Average the last so many checkpoints of the last fifth of the run, if that beats "
                "the best."),
      });
}

void add_decode(std::vector<Field>& table) {
  table.insert(
      table.end(),
      {
          whole(HEED_KEY(decode.beam), {1, 1000}, "Hypotheses kept by beam search; 1: greedy."),
          number(HEED_KEY(decode.length_penalty), {0.0, 100.0}, "alpha in ((5 + n) / 6)^alpha."),
          whole(HEED_KEY(decode.max_length), {1, million}, "Most tokens of an output."),
          whole(HEED_KEY(decode.batch_sequences), sequences,
                "Hypotheses decoded together, at most: lines times beam."),
          choice(HEED_KEY(decode.precision), {"float32", "bf16"},
                 "Operands of decoding's matrix products, as train.precision."),
          truth(HEED_KEY(decode.cached),
                "Keep keys and values of earlier tokens; false: compute all anew at each step, to "
                "check."),
          truth(HEED_KEY(decode.sample), "Draw tokens instead of searching."),
          number(HEED_KEY(decode.temperature), positive, "sample: divides the logits."),
          whole(HEED_KEY(decode.top_k), {0, 10 * million},
                "sample: only the k likeliest tokens; 0: all."),
          number(HEED_KEY(decode.top_p), {0.0, 1.0, false, true},
                 "sample: only the likeliest tokens that make up this probability."),
      });
}

void add_bench(std::vector<Field>& table) {
  table.insert(table.end(),
               {
                   whole(HEED_KEY(bench.sequences), {0, million},
                         "Sequences a step; 0: batches of the config's own data."),
                   whole(HEED_KEY(bench.source_length), tokens, "Tokens of each source sequence."),
                   whole(HEED_KEY(bench.target_length), tokens, "Tokens of each target sequence."),
                   whole(HEED_KEY(bench.vocabulary), {4, 10 * million}, "Different tokens."),
               });
}

std::vector<Field> make_table() {
  std::vector<Field> table{
      name(), seed(), threads(),
      choice(HEED_KEY(task), {"seq2seq", "lm"},
             "seq2seq: lines to lines, encoder and decoder; lm: a language model, decoder only.")};
  add_data(table);
  add_tokenizer(table);
  add_model(table);
  add_optim(table);
  add_train(table);
  add_decode(table);
  add_bench(table);
  return table;
}

template <class Row>
const Row* find_row(const std::vector<Row>& rows, std::string_view key) {
  const auto found = std::ranges::find(rows, key, &Row::key);
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace

const std::vector<Field>& fields() {
  static const std::vector<Field> table = make_table();
  return table;
}

const std::vector<Section>& sections() {
  static const std::vector<Section> table{
      {"data", "What is trained on: train, valid and test files, or a synthetic task."},
      {"data.train", "Several files are read one after the other."},
      {"data.valid", "For validation while training."},
      {"data.test", "For the metrics at the end."},
      {"data.synthetic", "Pairs made up from the seed."},
      {"tokenizer", "How text becomes tokens. Trained on the training files."},
      {"model", "The Transformer."},
      {"model.layers", "One number may stand for both, as in layers: 3.", true},
      {"model.dropout",
       "Shares of values dropped while training. One number may stand for all three, as in "
       "dropout: 0.1.",
       true},
      {"optim", "How weights are updated."},
      {"optim.schedule", "The learning rate from step to step."},
      {"train", "How the run goes."},
      {"train.early_stopping", "When to stop before the end."},
      {"decode",
       "How outputs are made. Validation while training is greedy (beam 1), whatever stands here."},
      {"bench", "What heed bench runs on instead of data: random tokens."},
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
