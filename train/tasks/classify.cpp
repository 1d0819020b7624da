/// task: classify. An encoder predicts one label for each line. A source line is one text or two
/// texts separated by a tab, or it identifies an image, a video, a sound or features; the target
/// line is its label.

#include <algorithm>

#include "autograd/base/error.h"
#include "autograd/io/message_text.h"
#include "train/tasks/labels.h"

HEED_BEGIN

namespace {

/// The first and the second text of each line; the second is empty for a line of one text.
struct Texts {
  std::vector<std::string> first, second;

  explicit Texts(std::span<const std::string> lines) {
    for (const std::string& line : lines) {
      const std::size_t tab = line.find('\t');
      first.push_back(line.substr(0, tab));
      second.push_back(tab == std::string::npos ? "" : line.substr(tab + 1));
    }
  }
};

/// The ids of one or two texts: <s> A </s>, or <s> A </s> B </s>.
std::vector<std::int32_t> joined(std::span<const std::int32_t> a, std::span<const std::int32_t> b,
                                 const SpecialIds& special) {
  std::vector<std::int32_t> ids{special.bos};
  for (const auto text : {a, b}) {
    if (text.empty() && ids.size() > 1) break;
    ids.insert(ids.end(), text.begin(), text.end());
    ids.push_back(special.eos);
  }
  return ids;
}

class ClassifyTask final : public LabelTask {
 public:
  using LabelTask::LabelTask;

  /// Joins the two words of a motion label: "left-2".
  Corpus read() const override {
    Corpus corpus = LabelTask::read();
    if (config_.data.synthetic.name != SyntheticKind::motion) return corpus;
    for (Split* const split : {&corpus.train, &corpus.valid, &corpus.test})
      for (std::string& label : split->target) std::ranges::replace(label, ' ', '-');
    return corpus;
  }

  Dataset encode(const Split& split, const Tokenizers& tokenizers, bool training) const override {
    const std::string what = training ? "data.train" : "data";
    if (config_.data.input != InputKind::text) {
      TokenizeOptions options{.keep_lines = !training};
      options.inputs = inputs_of(split.source, what);
      Dataset data = tokenize(split, *tokenizers.source, *tokenizers.target, options, threads());
      data.batching = &labelled();
      for (std::int64_t i = 0; i < data.size(); ++i) require_one_label(data, i, what, split);
      if (training) {
        check_longest(data, what);
        note_unknown(data, what);
      }
      return data;
    }
    const Texts texts(split.source);
    const TokenizeOptions options{.keep_lines = false, .end_sources = false};
    const Dataset first = tokenize({texts.first, split.target, {}}, *tokenizers.source,
                                   *tokenizers.target, options, threads()),
                  second = tokenize({texts.second, {}, {}}, *tokenizers.source, *tokenizers.target,
                                    options, threads());
    Dataset data;
    data.batching = &labelled();
    for (std::int64_t i = 0; i < first.size(); ++i) {
      require_one_label(first, i, what, split);
      const std::int64_t length = first.source.length(i) + second.source.length(i);
      if (training && length == 0) {
        ++data.skipped_empty;
        continue;
      }
      if (training && length > config_.data.max_length) {
        ++data.skipped_long;
        continue;
      }
      data.source.push(joined(first.source[i], second.source[i], first.source_ids));
      data.target.push(first.target[i]);
      if (training) continue;
      data.source_lines.push_back(split.source[i]);
      data.target_lines.push_back(split.target[i]);
    }
    if (data.skipped_empty + data.skipped_long == 0) data.target_origins = split.target_origins;
    if (training) note_unknown(data, what);
    return data;
  }

  Split learned_from(Split train) const override {
    Texts texts(train.source);
    Split parts{.source = std::move(texts.first), .target = std::move(train.target)};
    for (std::string& line : texts.second)
      if (!line.empty()) parts.source.push_back(std::move(line));
    return parts;
  }

  void check_evaluable(const Dataset& data, const std::string& what) const override {
    check_longest(data, what);
    note_unknown(data, what);
  }

 private:
  static void require_one_label(const Dataset& data, std::int64_t i, const std::string& what,
                                const Split& split) {
    if (data.target.length(i) == 1) return;
    throw Error(Exit::bad_input,
                "{}: {} labels: each line of the target, or folder of a class, must be one label, "
                "without spaces; got \"{}\"",
                split.target_origins.of(i, what), data.target.length(i), shown(split.target[i]));
  }

  std::vector<std::int32_t> ids_of(const Tokenizer& tokenizer,
                                   const std::string& line) const override {
    const Texts texts({&line, 1});
    return joined(tokenizer.encode(texts.first[0]), tokenizer.encode(texts.second[0]),
                  tokenizer.special_ids());
  }
};

}  // namespace

std::unique_ptr<Task> make_classify_task(const Config& config) {
  return std::make_unique<ClassifyTask>(config);
}

HEED_END
