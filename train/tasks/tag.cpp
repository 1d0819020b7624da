/// task: tag. An encoder predicts one label for each row of a source, such as a token of a line, a
/// patch of an image or a frame of a sound. Target lines contain the labels.

#include "autograd/base/error.h"
#include "train/tasks/labels.h"

HEED_BEGIN

namespace {

class TagTask final : public LabelTask {
 public:
  using LabelTask::LabelTask;

  Dataset encode(const Split& split, const Tokenizers& tokenizers, bool training) const override {
    TokenizeOptions options;
    options.end_sources = false;
    options.training = training;
    options.max_length = config_.data.max_length;
    options.keep_lines = !training;
    options.inputs = inputs_of(split.source, training ? "data.train" : "data");
    Dataset data = tokenize(split, *tokenizers.source, *tokenizers.target, options, threads());
    data.batching = &labelled();
    if (training) {
      if (data.skipped_long + data.skipped_empty > 0) {
        options.training = false;  // keeps all lines, so that an error names the correct line
        check_even(tokenize(split, *tokenizers.source, *tokenizers.target, options, threads()),
                   "data.train");
      } else {
        check_even(data, "data.train");
      }
      note_unknown(data, "data.train");
    }
    return data;
  }

  void check_evaluable(const Dataset& data, const std::string& what) const override {
    check_even(data, what);
    check_longest(data, what);
    if (data.target.ids.empty()) throw Error(Exit::bad_input, "{}: no line has a token", what);
    note_unknown(data, what);
  }

 private:
  std::vector<std::int32_t> ids_of(const Tokenizer& tokenizer,
                                   const std::string& line) const override {
    return tokenizer.encode(line);
  }

  void check_even(const Dataset& data, const std::string& what) const {
    const bool text = config_.data.input == InputKind::text;
    for (std::int64_t i = 0; i < data.size(); ++i) {
      const std::int64_t rows = data.source_rows(i), labels = data.target.length(i);
      if (rows == labels) continue;
      throw Error(Exit::bad_input,
                  "{}: the numbers of {} ({}) and labels ({}) differ: each {} requires one label; "
                  "with tokenizer.kind: word, {} separated by spaces",
                  data.target_origins.of(i, what), text ? "tokens" : "rows", rows, labels,
                  text ? "token" : "row", text ? "both are" : "labels are");
    }
  }
};

}  // namespace

std::unique_ptr<Task> make_tag_task(const Config& config) {
  return std::make_unique<TagTask>(config);
}

HEED_END
