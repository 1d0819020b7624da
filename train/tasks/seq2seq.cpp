/// Tasks seq2seq, text2text and denoise: an encoder and a decoder map inputs to lines.
#include <fmt/format.h>

#include <algorithm>

#include "autograd/base/clock.h"
#include "autograd/base/error.h"
#include "autograd/io/utf8.h"
#include "train/decode/model_input.h"
#include "train/decode/search.h"
#include "train/metrics/text_metric.h"
#include "train/tasks/task.h"

HEED_BEGIN

namespace {

/// "3 of 20 outputs were cut at 12 tokens (decode.max_length)"; empty if none was.
std::string cut_text(std::int64_t cut, std::int64_t outputs, const Config& config) {
  if (cut == 0) return "";
  const std::int64_t limit = output_limit(config.decode, model_sizes(config).positions);
  return fmt::format(
      "{} of {} outputs were cut at {} tokens ({})", cut, outputs, limit,
      limit < config.decode.max_length ? "model.max_positions" : "decode.max_length");
}

class Translations final : public Generator {
 public:
  Translations(const Task& task, const LoadedModel& trained, std::uint64_t seed)
      : task_(task),
        trained_(trained),
        model_(trained.model, task.config().decode.precision,
               trained.tokenizers.target->special_ids()),
        seed_(seed) {}

  std::vector<std::string> lines(const std::vector<std::string>& input,
                                 std::int64_t first) override {
    std::vector<std::string> all;
    for (std::vector<GeneratedText>& outputs : nbest({.input = input, .first = first}))
      all.push_back(std::move(outputs.front().text));
    return all;
  }

  std::vector<std::vector<GeneratedText>> nbest(const GenerationRequest& request) override {
    Dataset source;
    source.inputs = task_.inputs_of(request.input, "input");
    std::vector<std::vector<std::int32_t>> prefixes;
    std::vector<std::size_t> line_of;   // index in request.input of each non-empty line
    std::vector<std::int64_t> numbers;  // line numbers in the whole input, for the keys of sampling
    const auto prepared = [&](const std::string& line) { return task_.prepared(line); };
    // Whether lines and outputs may contain special pieces, which mark hidden spans.
    const bool marks = task_.info().hides_spans;
    for (std::size_t i = 0; i < request.input.size(); ++i) {
      const std::int64_t number = request.first + static_cast<std::int64_t>(i);
      if (source.inputs) {
        source.input_of.push_back(static_cast<std::int64_t>(i));
      } else {
        const Tokenizer& tokenizer = *trained_.tokenizers.source;
        std::vector<std::int32_t> ids =
            marks ? tokenizer.encode_with_specials(request.input[i], prepared)
                  : tokenizer.encode(prepared(request.input[i]));
        if (ids.empty()) continue;
        Task::shorten(ids, task_.line_limit() - 1, number, "translated");  // leaves room for </s>
        ids.push_back(tokenizer.special_ids().eos);
        source.source.push(ids);
      }
      line_of.push_back(i);
      numbers.push_back(number);
      if (request.prefixes.empty()) continue;
      prefixes.push_back(trained_.tokenizers.target->encode(prepared(request.prefixes[i])));
      const std::int64_t limit = output_limit(task_.config().decode, model_.model.position_limit());
      if (std::ssize(prefixes.back()) > limit)
        throw Error(Exit::bad_input,
                    "--prefix: line {} has {} tokens, but an output has at most {}; raise "
                    "decode.max_length (--max-length)",
                    number + 1, prefixes.back().size(), limit);
    }
    const double begin = seconds_now();
    const std::vector<std::vector<Hypothesis>> found =
        translate(model_, source, task_.config().decode, seed_, trained_.team,
                  {numbers, prefixes, request.nbest, batches()});
    GenerationSpeed speed{.seconds = seconds_now() - begin};
    for (std::int64_t i = 0; i < source.size(); ++i) speed.input_tokens += source.source_rows(i);
    std::vector<std::vector<GeneratedText>> all(
        request.input.size(), {GeneratedText{}});  // an empty line's output is empty
    for (std::size_t k = 0; k < found.size(); ++k) {
      all[line_of[k]].clear();
      for (const Hypothesis& h : found[k]) {
        ++outputs_;
        cut_ += h.cut ? 1 : 0;
        speed.output_tokens += std::ssize(h.tokens);
        const Tokenizer& tokenizer = *trained_.tokenizers.target;
        all[line_of[k]].push_back({one_line(marks ? tokenizer.decode_with_specials(h.tokens)
                                                  : tokenizer.decode(h.tokens)),
                                   h.score});
      }
    }
    speeds_.push_back(speed);
    return all;
  }

  std::string cut_outputs() const override { return cut_text(cut_, outputs_, task_.config()); }

 private:
  /// The number of batches: in bf16, where the result depends on it, the default; otherwise, one
  /// on a single thread, or two for each of several threads, so that no thread is idle for long at
  /// the end.
  std::int64_t batches() const {
    if (task_.config().decode.precision == DecodePrecision::bf16) return usual_batches;
    return trained_.team.threads() == 1 ? 1 : 2 * trained_.team.threads();
  }

  const Task& task_;
  const LoadedModel trained_;
  FrozenModel model_;
  std::uint64_t seed_;
  std::int64_t outputs_ = 0, cut_ = 0;
};

class Seq2SeqTask : public Task {
 public:
  using Task::Task;

  Dataset encode(const Split& split, const Tokenizers& tokenizers, bool training) const override {
    TokenizeOptions options;
    options.training = training;
    options.max_length = config_.data.max_length;
    const SegmentationOptions& sample = config_.tokenizer.sample;
    const bool draws = training && sample.alpha > 0;
    options.keep_lines = !training || draws;
    options.inputs = inputs_of(split.source, training ? "data.train" : "data");
    Dataset data = tokenize(split, *tokenizers.source, *tokenizers.target, options, threads());
    data.mixture = config_.data.mixture;
    if (draws) {
      data.segmentation = {tokenizers.source, tokenizers.target, sample, config_.data.max_length};
    }
    return data;
  }

  /// Accepts lines of up to max(4,096, data.max_length) tokens plus </s>, if they do not exceed the
  /// positions of the model.
  void check_evaluable(const Dataset& data, const std::string& what) const override {
    const ModelSizes sizes = model_sizes(config_);
    EvaluationLimits limits{.positions = sizes.positions,
                            .rows_per_position = sizes.rows_per_position};
    limits.longest = std::max(limits.longest, config_.data.max_length) + 1;
    check_lengths(data, limits, what);
  }

  Evaluation evaluate(const LoadedModel& trained, const Dataset& data,
                      const EvaluationRequest& request) const override {
    Evaluation e = evaluate_loss(trained, data);
    if (request.only && e.has(*request.only)) return e;
    DecodeOptions options = config_.decode;
    if (request.only) {  // the final metrics use the config's search
      options.beam = 1;
      options.sample = false;
    }
    const double begin = seconds_now();
    const FrozenModel frozen(trained.model, options.precision,
                             trained.tokenizers.target->special_ids());
    std::int64_t cut = 0;
    for (const Hypothesis& h : translate(frozen, data, options, config_.seed, trained.workers())) {
      e.outputs.push_back(trained.tokenizers.target->decode(h.tokens));
      cut += h.cut ? 1 : 0;
    }
    const double took = seconds_now() - begin;
    e.notes["beam"] = options.beam;
    e.notes["cut_outputs"] = cut;
    if (cut > 0) e.details.push_back(cut_text(cut, std::ssize(e.outputs), config_));
    if (!e.outputs.empty()) e.notes["decode_seconds"] = took;
    judge(e, data.target_lines, request.pretokenised);
    judge_parts(e, data);
    return e;
  }

  std::unique_ptr<Generator> make_generator(const LoadedModel& trained,
                                            std::uint64_t seed) const override {
    return std::make_unique<Translations>(*this, trained, seed);
  }

  Batch batch_of_line(const Tokenizers& tokenizers, const std::string& line,
                      const std::string& output) const override {
    const Dataset data = encode({{prepared(line)}, {prepared(output)}, {}}, tokenizers, false);
    check_evaluable(data, "input");
    return make_batch(data, {0});
  }

  std::vector<LineScore> score(const LoadedModel& trained, const Split& lines) const override {
    const Dataset data = encode(lines, trained.tokenizers, false);
    check_evaluable(data, "score");
    const std::vector<double> log_probs =
        score_targets(FrozenModel(trained.model, config_.decode.precision), batches_of(data),
                      data.size(), trained.team);
    std::vector<LineScore> scores;
    for (std::int64_t i = 0; i < data.size(); ++i)
      scores.push_back({log_probs[i], data.target.length(i) + 1});  // + 1: </s>
    return scores;
  }

 private:
  void judge(Evaluation& e, const std::vector<std::string>& targets, bool pretokenised) const {
    std::int64_t exact = 0;
    for (std::size_t i = 0; i < e.outputs.size(); ++i) exact += e.outputs[i] == targets[i] ? 1 : 0;
    e.set(Metric::exact_match, static_cast<double>(exact) /
                                   static_cast<double>(std::max<std::size_t>(e.outputs.size(), 1)));
    const auto add = [&](const std::string& name, const TextScore& score) {
      for (const auto& [metric, value] : score.values) e.set(metric, value);
      e.notes[name + "_signature"] = score.signature;
      if (judges_texts(config_.train.best))
        e.details.insert(e.details.end(), score.details.begin(), score.details.end());
    };
    const ScoredLines lines{e.outputs, targets,
                            pretokenised ? BleuTokenizer::none : config_.decode.bleu};
#define HEED_ADD(name) add(#name, name##_metric(lines));
    HEED_TEXT_METRICS(HEED_ADD)
#undef HEED_ADD
  }

  /// The exact match of each part of a mixture.
  static void judge_parts(Evaluation& e, const Dataset& data) {
    std::size_t line = 0;
    for (const Split::Part& part : data.parts) {
      std::size_t exact = 0;
      for (const std::size_t end = line + part.size; line < end; ++line)
        exact += e.outputs[line] == data.target_lines[line] ? 1 : 0;
      const double share =
          static_cast<double>(exact) / static_cast<double>(std::max<std::size_t>(part.size, 1));
      e.notes["parts"][part.name] = {{"sentences", part.size}, {"exact_match", share}};
      e.details.push_back(
          fmt::format("{}: exact match {:.2f} % of {}", part.name, 100 * share, part.size));
    }
  }
};

/// Span corruption (data/batches/spans.h).
class DenoiseTask final : public Seq2SeqTask {
 public:
  using Seq2SeqTask::Seq2SeqTask;

  Dataset encode(const Split& split, const Tokenizers& tokenizers, bool training) const override {
    const Tokenizer& tokenizer = *tokenizers.source;
    std::vector<std::int64_t> kept;
    Dataset data = encode_hidden(split, tokenizer, training, 2, kept);
    data.batching = &hidden_spans();
    data.spans = {config_.data.spans, first_mark(tokenizer)};
    return data;
  }

  void check_evaluable(const Dataset& data, const std::string& what) const override {
    if (data.size() == 0)
      throw Error(Exit::bad_input, "{}: every line has fewer than two tokens", what);
    // The number of spans grows with the length, whichever tokens are hidden.
    const std::int64_t longest = data.source.longest();
    Random random({.stream = Stream::check});
    const std::vector<bool> hidden = hidden_tokens(longest, config_.data.spans, random);
    std::int64_t spans = 0;
    for (std::size_t i = 1; i < hidden.size(); ++i) spans += hidden[i] && !hidden[i - 1];
    if (spans > span_marks)
      throw Error(Exit::bad_input,
                  "{}: a line of {} tokens has {} hidden spans, but there are only {} sentinels "
                  "<extra_id_...> (data.spans)",
                  what, longest, spans, span_marks);
    Seq2SeqTask::check_evaluable(data, what);
  }

  Evaluation evaluate(const LoadedModel& trained, const Dataset& data,
                      const EvaluationRequest&) const override {
    return evaluate_loss(trained, data);
  }

  /// Source lines with hidden spans, and the model's outputs.
  std::vector<std::string> examples(const LoadedModel& trained, const Dataset& data,
                                    const Evaluation&) const override {
    return example_lines(trained, data.size(), [&](std::int64_t i) {
      return trained.tokenizers.source->decode_with_specials(make_batch(data, {i}).source.ids);
    });
  }

  Batch batch_of_line(const Tokenizers& tokenizers, const std::string& line,
                      const std::string& output) const override {
    const auto prepare = [&](const std::string& text) { return prepared(text); };
    std::vector<std::int32_t> ids = tokenizers.source->encode_with_specials(line, prepare);
    Dataset data;
    data.source_ids = tokenizers.source->special_ids();
    data.target_ids = tokenizers.target->special_ids();
    ids.push_back(data.source_ids.eos);
    data.source.push(ids);
    data.target.push(tokenizers.target->encode_with_specials(output, prepare));
    Seq2SeqTask::check_evaluable(data, "input");
    return make_batch(data, {0});
  }

  std::vector<LineScore> score(const LoadedModel&, const Split&) const override {
    throw Error(Exit::usage, "a denoising model defines no probability of a whole line");
  }

 private:
  static std::int32_t first_mark(const Tokenizer& tokenizer) {
    const std::vector<std::string> names = span_mark_names();
    std::optional<std::int32_t> first;
    for (const std::string& name : names) {
      const auto id = tokenizer.special(name);
      const auto number = static_cast<std::int32_t>(&name - names.data());
      if (id && !first) first = *id - number;
      if (!id || *id != *first + number)
        throw Error(Exit::usage,
                    "the tokenizer lacks {}, or its id does not follow "
                    "that of the preceding sentinel (tokenizer.specials)",
                    name);
    }
    return *first;
  }
};

}  // namespace

std::unique_ptr<Task> make_seq2seq_task(const Config& config) {
  return std::make_unique<Seq2SeqTask>(config);
}

std::unique_ptr<Task> make_text2text_task(const Config& config) {
  return std::make_unique<Seq2SeqTask>(config);
}

std::unique_ptr<Task> make_denoise_task(const Config& config) {
  return std::make_unique<DenoiseTask>(config);
}

HEED_END
