#include "train/tasks/labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "autograd/base/error.h"
#include "autograd/io/message_text.h"
#include "autograd/io/utf8.h"
#include "nn/models/classifier.h"
#include "train/decode/model_input.h"
#include "train/metrics/confusion.h"
#include "train/terminal/run_log.h"

HEED_BEGIN

namespace {

using Labels = std::vector<std::int32_t>;

double probability_of(const real* chosen, const real* z, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += std::exp(double{z[i]} - double{*chosen});
  return 1 / sum;
}

struct Labelled {
  Labels labels;
  double probability = 0;  // probability of the last label

  static auto members(auto& self) { return std::tie(self.labels, self.probability); }
};

/// The most probable labels of each sample of a dataset, special tokens excluded: one per row or,
/// for a classifier of sequences, one per sample.
std::vector<Labelled> likeliest_labels(const LoadedModel& trained, const Dataset& data,
                                       const std::vector<Batch>& batches) {
  const auto& model = dynamic_cast<const Classifier&>(trained.model);
  const std::int32_t first = trained.tokenizers.target->first_ordinary();
  using OfBatch = std::vector<Labelled>;
  const auto label = [&](std::int64_t number) {
    const NoGrad no_grad;
    Pass pass;
    const Batch& batch = batches[number];
    OfBatch found(batch.samples.size());
    if (batch.source.rows() == 0) return found;
    const Array logits = model.logits(model_input(batch), pass).value();
    std::int64_t row = 0;
    for (std::int64_t i = 0; i < batch.sequences(); ++i) {
      const std::int64_t length = batch.source.offsets[i + 1] - batch.source.offsets[i],
                         end = row + (model.of_sequences() ? 1 : length);
      for (; row < end; ++row) {
        const real* const z = logits.row(row);
        const real* const best =
            std::max_element(std::min(z + first, z + logits.cols() - 1), z + logits.cols());
        found[i].labels.push_back(static_cast<std::int32_t>(best - z));
        found[i].probability = probability_of(best, z, logits.cols());
      }
    }
    return found;
  };
  std::vector<Labelled> all(static_cast<std::size_t>(data.size()));
  const auto found = results_of<OfBatch>(trained.workers(), std::ssize(batches), label);
  for (std::size_t b = 0; b < found.size(); ++b)
    for (std::size_t i = 0; i < found[b].size(); ++i) all[batches[b].samples[i]] = found[b][i];
  return all;
}

class LabelBatching final : public SequenceBatching {
 protected:
  Rows rows(const Dataset& data, std::int64_t sample) const override {
    return {data.source_rows(sample), 0};
  }
  void add(const Dataset& data, const Draw& draw, Batch& batch) const override {
    const auto labels = data.target[draw.sample];
    data.push_source(draw, batch.source);
    batch.labels.insert(batch.labels.end(), labels.begin(), labels.end());
    batch.labels.resize(static_cast<std::size_t>(batch.source.rows()), no_label);
  }
};

}  // namespace

const Batching& LabelTask::labelled() {
  static const LabelBatching rule;
  return rule;
}

Evaluation LabelTask::evaluate(const LoadedModel& trained, const Dataset& data,
                               const EvaluationRequest& request) const {
  Evaluation e = evaluate_loss(trained, data);
  if (request.only && e.has(*request.only)) return e;
  const std::vector<Labelled> all = likeliest_labels(trained, data, batches_of(data));
  Confusion confusion;
  std::int64_t exact = 0, lines = 0;  // empty lines are not counted
  for (std::int64_t i = 0; i < data.size(); ++i) {
    const Labels& found = all[i].labels;
    if (of_sequences()) e.probabilities.push_back(all[i].probability);
    e.outputs.push_back(trained.tokenizers.target->decode(found));
    if (found.empty()) continue;
    const auto right = data.target[i];
    for (std::size_t k = 0; k < right.size(); ++k) confusion.add(right[k], found[k]);
    ++lines;
    exact += std::ranges::equal(found, right) ? 1 : 0;
  }
  const auto name = [&](std::int32_t label) { return trained.tokenizers.target->piece(label); };
  e.notes.update(confusion.json(name));
  e.details = confusion.text(name);
  e.set(Metric::f1, confusion.macro_f1());
  if (info().has(Metric::accuracy)) e.set(Metric::accuracy, confusion.accuracy());
  if (info().has(Metric::exact_match)) {
    e.set(Metric::exact_match,
          static_cast<double>(exact) / static_cast<double>(std::max<std::int64_t>(lines, 1)));
  }
  return e;
}

std::unique_ptr<Generator> LabelTask::make_generator(const LoadedModel& trained,
                                                     std::uint64_t) const {
  struct LabelledLines final : Generator {
    LabelledLines(const LabelTask& t, const LoadedModel& m) : task(t), trained(m) {}
    std::vector<std::string> lines(const std::vector<std::string>& input,
                                   std::int64_t first) override {
      std::vector<std::string> prepared, labels;
      for (const std::string& line : input) prepared.push_back(task.prepared(line));
      const Dataset data = task.encode_unlabelled(prepared, trained.tokenizers, first);
      for (const Labelled& line : likeliest_labels(trained, data, task.batches_of(data)))
        labels.push_back(one_line(trained.tokenizers.target->decode(line.labels)));
      return labels;
    }
    const LabelTask& task;
    const LoadedModel trained;
  };
  return std::make_unique<LabelledLines>(*this, trained);
}

Dataset LabelTask::encode_unlabelled(const std::vector<std::string>& lines,
                                     const Tokenizers& tokenizers, std::int64_t first) const {
  Dataset data;
  data.batching = &labelled();
  data.inputs = inputs_of(lines, "input");
  for (std::int64_t i = 0; i < std::ssize(lines); ++i) {
    if (data.inputs) {
      data.input_of.push_back(i);
    } else {
      std::vector<std::int32_t> ids = ids_of(*tokenizers.source, lines[i]);
      shorten(ids, line_limit(), first + i, "read");
      data.source.push(ids);
    }
    const std::int64_t labels = of_sequences() ? 1 : data.source_rows(i);
    data.target.push(std::vector<std::int32_t>(labels, Tokenizer::unk));
  }
  return data;
}

Batch LabelTask::batch_of_line(const Tokenizers& tokenizers, const std::string& line,
                               const std::string& output) const {
  if (output.empty()) return make_batch(encode_unlabelled({prepared(line)}, tokenizers, 0), {0});
  const Dataset data = encode({{prepared(line)}, {output}, {}}, tokenizers, false);
  check_evaluable(data, "input");
  return make_batch(data, {0});
}

std::vector<LineScore> LabelTask::score(const LoadedModel& trained, const Split& lines) const {
  const Dataset data = encode(lines, trained.tokenizers, false);
  check_evaluable(data, "score");
  std::vector<LineScore> scores(static_cast<std::size_t>(data.size()));
  trained.team.run(data.size(), [&](std::int64_t i) {
    const NoGrad no_grad;
    Pass pass;
    LossCounts counts;
    const Batch one = make_batch(data, {i});
    if (one.label_count() > 0) trained.model.loss(model_input(one), {.counts = &counts}, pass);
    scores[i] = {0 - counts.nll, counts.tokens};  // `0 -` avoids -0 for an empty line
  });
  return scores;
}

void LabelTask::check_longest(const Dataset& data, const std::string& what) const {
  const std::int64_t limit = line_limit();
  for (std::int64_t i = 0; i < data.size(); ++i) {
    if (data.source_rows(i) <= limit) continue;
    throw Error(Exit::bad_input, "{}: line {} has {} tokens; the model accepts a maximum of {}{}",
                what, i + 1, data.source_rows(i), limit,
                limit < max_line_rows ? " (model.max_positions)" : "");
  }
}

void LabelTask::note_unknown(const Dataset& data, const std::string& what) {
  const auto unknown = std::ranges::count(data.target.ids, Tokenizer::unk);
  if (unknown == 0) return;
  const auto& offsets = data.target.offsets;
  const auto first = std::ranges::find(data.target.ids, Tokenizer::unk) - data.target.ids.begin();
  const auto sample = std::ranges::upper_bound(offsets, first) - offsets.begin() - 1;
  std::string example;
  if (!data.target_lines.empty()) {
    std::istringstream labels(data.target_lines[sample]);
    for (auto i = offsets[sample]; i <= first; ++i) labels >> example;
    example = fmt::format(", such as \"{}\" ({})", excerpt(example, 40),
                          data.target_origins.of(sample, what));
  }
  print_note(fmt::format(
      "{}: the vocabulary lacks {} of {} labels{}, which the model therefore cannot predict", what,
      unknown, data.target.ids.size(), example));
}

HEED_END
