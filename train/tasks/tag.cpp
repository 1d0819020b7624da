/// task: tag. One label for each token of a line, with an encoder alone. Source lines hold the
/// tokens, target lines the labels.
#include <fmt/format.h>

#include <algorithm>

#include "autograd/base/error.h"
#include "autograd/base/utf8.h"
#include "nn/layers/positions.h"
#include "nn/models/tagger.h"
#include "train/decode/rows.h"
#include "train/tasks/task.h"
#include "train/terminal/talk.h"

HEED_BEGIN

namespace {

constexpr std::int64_t longest_line = 4096;  // tokens

/// The labels are not a separate side: they belong to the rows of the source.
class LabelBatching final : public SequenceBatching {
 protected:
  Rows rows(const Dataset& data, std::int64_t sample) const override {
    return {data.source.length(sample), 0};
  }
  void add(const Dataset& data, std::int64_t sample, Batch& batch) const override {
    const auto labels = data.target[sample];
    batch.source.push(data.source[sample]);
    batch.labels.insert(batch.labels.end(), labels.begin(), labels.end());
  }
};

const Batching& labelled() {
  static const LabelBatching rule;
  return rule;
}

using Labels = std::vector<std::int32_t>;

/// The first id of a vocabulary that is not a special piece.
std::int32_t first_label(const Tokenizer& labels) {
  std::int32_t id = Tokenizer::eos + 1;
  while (id < labels.size() && labels.special(labels.piece(id)) == id) ++id;
  return id;
}

/// The likeliest label of each row, specials excluded, for each sample of a dataset.
std::vector<Labels> likeliest_labels(const Trained& trained, const Dataset& data,
                                     const std::vector<Batch>& batches) {
  const auto& model = dynamic_cast<const Tagger&>(trained.model);
  const std::int32_t first = first_label(*trained.tokenizers.target);
  std::vector<Labels> all(static_cast<std::size_t>(data.size()));
  trained.team.run(static_cast<std::int64_t>(batches.size()), [&](std::int64_t number) {
    const NoGrad no_grad;
    Pass pass;
    const Batch& batch = batches[number];
    if (batch.source.rows() == 0) return;
    const Array logits = model.logits(rows_of(batch), pass).value();
    for (std::int64_t i = 0; i < batch.sequences(); ++i) {
      Labels& labels = all[batch.samples[i]];
      for (std::int64_t row = batch.source.offsets[i]; row < batch.source.offsets[i + 1]; ++row) {
        const real* const z = logits.row(row);
        const real* const best =
            std::max_element(std::min(z + first, z + logits.cols() - 1), z + logits.cols());
        labels.push_back(static_cast<std::int32_t>(best - z));
      }
    }
  });
  return all;
}

class TagTask final : public Task {
 public:
  using Task::Task;

  Dataset encode(const Split& split, const Tokenizers& tokenizers, bool training) const override {
    TokenizeOptions options;
    options.end_sources = false;
    options.training = training;
    options.max_length = config_.data.max_length;
    options.keep_lines = !training;
    Dataset data = tokenize(split, *tokenizers.source, *tokenizers.target, options, threads());
    data.batching = &labelled();
    if (training) {
      if (data.left_out_long + data.left_out_empty > 0 || !is_even(data)) {
        options.training = false;  // all lines, for the number of an uneven one
        check_even(tokenize(split, *tokenizers.source, *tokenizers.target, options, threads()),
                   "data.train");
      }
      note_unknown(data, "data.train");
    }
    return data;
  }

  void check_evaluable(const Dataset& data, const std::string& what) const override {
    check_even(data, what);
    const std::int64_t limit = line_limit(config_.model);
    for (std::int64_t i = 0; i < data.size(); ++i) {
      if (data.source.length(i) <= limit) continue;
      throw Error(Exit::bad_input,
                  fmt::format("{}: line {} has {} tokens; the model takes at most {}{}", what,
                              i + 1, data.source.length(i), limit,
                              limit < longest_line ? " (model.max_positions)" : ""));
    }
    if (data.target.ids.empty())
      throw Error(Exit::bad_input, fmt::format("{}: no line has a token", what));
    note_unknown(data, what);
  }

  std::string describe(const ExperimentData& data) const override {
    return describe_pairs(data, "lines");
  }

  Evaluation evaluate(const Trained& trained, const Dataset& data,
                      const EvaluationRequest& request) const override {
    Evaluation e = evaluate_loss(trained, data);
    if (request.only && e.has(*request.only)) return e;
    const std::vector<Labels> found = likeliest_labels(trained, data, batches_of(data));
    std::int64_t exact = 0, lines = 0;  // of lines with tokens
    for (std::int64_t i = 0; i < data.size(); ++i) {
      e.outputs.push_back(trained.tokenizers.target->decode(found[i]));
      if (found[i].empty()) continue;
      ++lines;
      exact += std::ranges::equal(found[i], data.target[i]) ? 1 : 0;
    }
    e.set(Metric::exact_match,
          static_cast<double>(exact) / static_cast<double>(std::max<std::int64_t>(lines, 1)));
    return e;
  }

  std::vector<std::string> examples(const Trained&, const Dataset& data,
                                    const Evaluation& e) const override {
    return example_pairs(data, e);
  }

  std::unique_ptr<Answers> answers(const Trained& trained, std::uint64_t) const override {
    class LabelledLines final : public Answers {
     public:
      LabelledLines(const TagTask& task, const Trained& trained) : task_(task), trained_(trained) {}
      std::vector<std::string> lines(const std::vector<std::string>& input,
                                     std::int64_t first) override {
        return task_.label(trained_, input, first);
      }

     private:
      const TagTask& task_;
      const Trained trained_;
    };
    return std::make_unique<LabelledLines>(*this, trained);
  }

  std::vector<LineScore> score(const Trained& trained, const std::string& source,
                               const std::string& target) const override {
    const Dataset data = encode(read_scored(source, target), trained.tokenizers, false);
    check_evaluable(data, "score");
    std::vector<LineScore> scores(static_cast<std::size_t>(data.size()));
    trained.team.run(data.size(), [&](std::int64_t i) {
      const NoGrad no_grad;
      Pass pass;
      LossCounts counts;
      const Batch one = make_batch(data, {i});
      if (!one.labels.empty()) trained.model.loss(rows_of(one), {.counts = &counts}, pass);
      scores[i] = {0 - counts.nll, counts.tokens};  // 0, not -0, for an empty line
    });
    return scores;
  }

 private:
  static std::int64_t line_limit(const ModelOptions& model) {
    return model.positions == PositionKind::learned ? std::min(model.max_positions, longest_line)
                                                    : longest_line;
  }

  static void note_unknown(const Dataset& data, const std::string& what) {
    const auto unknown = std::ranges::count(data.target.ids, Tokenizer::unk);
    if (unknown == 0) return;
    tell_note(
        fmt::format("{}: {} of {} labels are not in the vocabulary of labels, so the model "
                    "cannot predict them",
                    what, unknown, data.target.ids.size()));
  }

  static bool is_even(const Dataset& data) { return data.source.offsets == data.target.offsets; }

  static void check_even(const Dataset& data, const std::string& what) {
    for (std::int64_t i = 0; i < data.size(); ++i) {
      const std::int64_t tokens = data.source.length(i), labels = data.target.length(i);
      if (tokens == labels) continue;
      throw Error(Exit::bad_input,
                  fmt::format("{}: line {} has {} tokens but {} labels: each token needs "
                              "one label; with tokenizer.kind: word, both are separated by spaces",
                              what, i + 1, tokens, labels));
    }
  }

  /// The labels of lines of text.
  std::vector<std::string> label(const Trained& trained, const std::vector<std::string>& input,
                                 std::int64_t first) const {
    Dataset data;
    data.batching = &labelled();
    const auto limit = static_cast<std::size_t>(line_limit(config_.model));
    for (std::size_t i = 0; i < input.size(); ++i) {
      std::vector<std::int32_t> ids = trained.tokenizers.source->encode(prepared(input[i]));
      if (ids.size() > limit) {
        tell(fmt::format("heed: note: line {} has {} tokens; only its first {} are labelled",
                         first + static_cast<std::int64_t>(i) + 1, ids.size(), limit));
        ids.resize(limit);
      }
      data.source.push(ids);
      data.target.push(std::vector<std::int32_t>(ids.size()));  // a batch has labels
    }
    std::vector<std::string> lines;
    for (const Labels& labels : likeliest_labels(trained, data, batches_of(data)))
      lines.push_back(one_line(trained.tokenizers.target->decode(labels)));
    return lines;
  }
};

}  // namespace

std::unique_ptr<Task> make_tag_task(const Config& config) {
  return std::make_unique<TagTask>(config);
}

HEED_END
