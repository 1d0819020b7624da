/// task: tag. One label for each token of a line, with an encoder alone. Source lines hold the
/// tokens, target lines the labels.
#include <fmt/format.h>

#include <algorithm>

#include "autograd/base/error.h"
#include "train/tasks/labels.h"

HEED_BEGIN

namespace {

/// The labels are not a separate side: they belong to the rows of the source.
class LabelBatching final : public SequenceBatching {
 protected:
  Rows rows(const Dataset& data, std::int64_t sample) const override {
    return {data.source.length(sample), 0};
  }
  void add(const Dataset& data, const Draw& draw, Batch& batch) const override {
    const auto labels = data.target[draw.sample];
    batch.source.push(data.source[draw.sample]);
    batch.labels.insert(batch.labels.end(), labels.begin(), labels.end());
  }
};

const Batching& labelled() {
  static const LabelBatching rule;
  return rule;
}

class TagTask final : public LabelTask {
 public:
  using LabelTask::LabelTask;

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
    check_longest(data, what);
    if (data.target.ids.empty())
      throw Error(Exit::bad_input, fmt::format("{}: no line has a token", what));
    note_unknown(data, what);
  }

  std::string describe(const ExperimentData& data) const override {
    return describe_pairs(data, "lines");
  }

 private:
  Dataset encode_unlabelled(const std::vector<std::string>& lines, const Tokenizers& tokenizers,
                            std::int64_t first) const override {
    Dataset data;
    data.batching = &labelled();
    for (std::size_t i = 0; i < lines.size(); ++i) {
      std::vector<std::int32_t> ids = tokenizers.source->encode(lines[i]);
      shorten(ids, line_limit(), first + static_cast<std::int64_t>(i));
      data.source.push(ids);
      data.target.push(std::vector<std::int32_t>(ids.size()));  // a batch has labels
    }
    return data;
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
};

}  // namespace

std::unique_ptr<Task> make_tag_task(const Config& config) {
  return std::make_unique<TagTask>(config);
}

HEED_END
