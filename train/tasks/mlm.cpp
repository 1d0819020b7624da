/// task: mlm. A masked language model (Devlin et al. 2019): an encoder that predicts the masked
/// tokens of lines.
#include <fmt/format.h>

#include <algorithm>

#include "autograd/base/error.h"
#include "autograd/io/utf8.h"
#include "data/batches/masking.h"
#include "nn/models/classifier.h"
#include "train/decode/model_input.h"
#include "train/tasks/task.h"

HEED_BEGIN

namespace {

constexpr std::string_view mask_piece = "<mask>";
/// "▁", with which SentencePiece marks the first piece of a word.
constexpr std::string_view word_start = "\xE2\x96\x81";

/// Indexed by id: whether a piece continues the word of the preceding piece. Empty unless the
/// tokenizer is SentencePiece.
std::vector<bool> continued_words(const Tokenizer& tokenizer) {
  std::vector<bool> all;
  if (tokenizer.kind() != TokenizerKind::sentencepiece) return all;
  for (std::int32_t id = 0; id < tokenizer.size(); ++id)
    all.push_back(id >= tokenizer.first_ordinary() && !tokenizer.piece(id).starts_with(word_start));
  return all;
}

std::int32_t mask_of(const Tokenizer& tokenizer) {
  if (const auto id = tokenizer.special(mask_piece)) return *id;
  throw Error(Exit::usage, "the tokenizer has no special piece <mask> (tokenizer.specials)");
}

/// A batch of one sequence, <s> line </s>; names of special pieces in the line become their ids.
/// Throws Error(bad_input) if the line is too long.
Batch read_line(const Config& config, const Tokenizer& tokenizer, const std::string& line) {
  const std::vector<std::int32_t> ids = tokenizer.encode_with_specials(
      line, [&](std::string text) { return config.data.lowercase ? lowercase(text) : text; });
  const std::int64_t limit = model_sizes(config).positions;
  if (limit > 0 && std::ssize(ids) + 2 > limit)
    throw Error(Exit::bad_input,
                "a line of {} tokens, plus <s> and </s>, exceeds the model's {} positions",
                ids.size(), limit);
  const SpecialIds special = tokenizer.special_ids();
  std::vector<std::int32_t> rows{special.bos};
  rows.insert(rows.end(), ids.begin(), ids.end());
  rows.push_back(special.eos);
  Batch batch;
  batch.source.push(rows);
  batch.labels.assign(rows.size(), no_label);
  batch.samples = {0};
  return batch;
}

/// Replaces each <mask> in the input lines with the token that the model predicts.
class FilledLines final : public Generator {
 public:
  FilledLines(const LoadedModel& trained, const Config& config)
      : trained_(trained), config_(config) {}

  std::vector<std::string> lines(const std::vector<std::string>& input, std::int64_t) override {
    std::vector<std::string> all(input.size());
    trained_.team.run(std::ssize(input), [&](std::int64_t i) { all[i] = filled(input[i]); });
    return all;
  }

 private:
  std::string filled(const std::string& line) const {
    const Tokenizer& tokenizer = *trained_.tokenizers.source;
    const Batch batch = read_line(config_, tokenizer, line);
    std::vector<std::int32_t> ids = batch.source.ids;
    if (std::ranges::find(ids, mask_of(tokenizer)) == ids.end()) return line;
    const NoGrad no_grad;
    Pass pass;
    const auto& model = dynamic_cast<const Classifier&>(trained_.model);
    const Array logits = model.logits(model_input(batch), pass).value();
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] != mask_of(tokenizer)) continue;
      const real* const z = logits.row(static_cast<std::int64_t>(i));
      const real* const best = std::max_element(z + tokenizer.first_ordinary(), z + logits.cols());
      ids[i] = static_cast<std::int32_t>(best - z);
    }
    return one_line(tokenizer.decode(std::span(ids).subspan(1, ids.size() - 2)));
  }

  const LoadedModel trained_;
  const Config& config_;
};

class MaskedModelTask final : public Task {
 public:
  using Task::Task;

  Dataset encode(const Split& split, const Tokenizers& tokenizers, bool training) const override {
    const Tokenizer& tokenizer = *tokenizers.source;
    std::vector<std::int64_t> kept;
    Dataset data = encode_hidden(split, tokenizer, training, 1, kept);
    data.skipped_empty = 0;  // an empty line separates documents
    data.batching = &masked_lines();
    Masking& masking = data.masking.emplace();
    masking.options = config_.data.mask;
    masking.mask = mask_of(tokenizer);
    masking.first = tokenizer.first_ordinary();
    masking.vocabulary = static_cast<std::int32_t>(tokenizer.size());
    masking.continues = continued_words(tokenizer);
    for (std::size_t k = 0; k < kept.size(); ++k)
      masking.followed.push_back(k + 1 < kept.size() && kept[k + 1] == kept[k] + 1);
    return data;
  }

  void check_evaluable(const Dataset& data, const std::string& what) const override {
    if (data.size() == 0) throw Error(Exit::bad_input, "{}: no line has a token", what);
    const std::int64_t texts = config_.data.mask.next_sentence ? 2 : 1,
                       longest = data.source.longest(), rows = texts * (longest + 1) + 1,
                       limit = model_sizes(config_).positions;
    if (limit == 0 || rows <= limit) return;
    throw Error(Exit::bad_input,
                "{}: the longest line has {} tokens; {} special tokens do not fit "
                "into {} positions (model.max_positions)",
                what, longest, texts == 1 ? "such a line and its" : "two such lines and their",
                limit);
  }

  Evaluation evaluate(const LoadedModel& trained, const Dataset& data,
                      const EvaluationRequest& request) const override {
    Evaluation e = evaluate_loss(trained, data);
    if (!config_.data.mask.next_sentence || request.only) return e;
    std::vector<Batch> batches = batches_of(data);
    for (Batch& batch : batches) {
      std::vector<std::int32_t> firsts(batch.labels.size(), no_label);
      for (const std::int32_t row : std::span(batch.source.offsets).first(batch.sequences()))
        firsts[row] = batch.labels[row];
      batch.labels = std::move(firsts);
    }
    LossCounts counts;
    evaluate_batches(trained, batches, &counts);
    e.notes["next_sentence_accuracy"] =
        static_cast<double>(counts.correct) /
        static_cast<double>(std::max<std::int64_t>(counts.tokens, 1));
    e.details = {fmt::format("next sentence: {:.2f} % correct",
                             100 * e.notes["next_sentence_accuracy"].get<double>())};
    return e;
  }

  /// Lines whose middle token is masked, with the model's predictions.
  std::vector<std::string> examples(const LoadedModel& trained, const Dataset& data,
                                    const Evaluation&) const override {
    const Tokenizer& tokenizer = *trained.tokenizers.source;
    return example_lines(trained, data.size(), [&](std::int64_t i) {
      const auto ids = data.source[i];
      const auto middle = ids.begin() + std::ssize(ids) / 2;
      const std::string begin = tokenizer.decode({ids.begin(), middle}),
                        end = tokenizer.decode({middle + 1, ids.end()});
      return fmt::format("{}{}<mask> {}", begin, begin.empty() ? "" : " ", end);
    });
  }

  std::unique_ptr<Generator> make_generator(const LoadedModel& trained,
                                            std::uint64_t) const override {
    return std::make_unique<FilledLines>(trained, config_);
  }

  Batch batch_of_line(const Tokenizers& tokenizers, const std::string& line,
                      const std::string&) const override {
    return read_line(config_, *tokenizers.source, line);
  }

  /// Pseudo-log-likelihoods (Salazar et al., "Masked language model scoring", 2020): the sum of the
  /// log-probabilities of the tokens of a line, each of which is hidden in turn.
  std::vector<LineScore> score(const LoadedModel& trained, const Split& lines) const override {
    const Tokenizer& tokenizer = *trained.tokenizers.source;
    std::vector<LineScore> scores(lines.target.size());
    trained.team.run(std::ssize(scores), [&](std::int64_t i) {
      const NoGrad no_grad;
      Pass pass;
      LossCounts counts;
      const Batch line = read_line(config_, tokenizer, lines.target[i]);
      for (std::size_t at = 1; at + 1 < line.source.ids.size(); ++at) {
        Batch hidden = line;
        hidden.labels[at] = std::exchange(hidden.source.ids[at], mask_of(tokenizer));
        trained.model.loss(model_input(hidden), {.counts = &counts}, pass);
      }
      scores[i] = {0 - counts.nll, counts.tokens};  // `0 -` avoids -0 for an empty line
    });
    return scores;
  }
};

}  // namespace

std::unique_ptr<Task> make_mlm_task(const Config& config) {
  return std::make_unique<MaskedModelTask>(config);
}

HEED_END
