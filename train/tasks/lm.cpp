/// task: lm. A decoder-only language model of continuous text.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "autograd/base/clock.h"
#include "autograd/base/error.h"
#include "autograd/io/lines.h"
#include "autograd/io/utf8.h"
#include "train/decode/search.h"
#include "train/tasks/task.h"

HEED_BEGIN

namespace {

class Continuations final : public Generator {
 public:
  Continuations(const LoadedModel& trained, const Config& config, std::uint64_t seed)
      : trained_(trained),
        config_(config),
        model_(trained.model, config.decode.precision, trained.tokenizers.target->special_ids()),
        seed_(seed) {}

  std::vector<std::string> lines(const std::vector<std::string>& input,
                                 std::int64_t first) override {
    std::vector<std::string> all(input.size());
    std::vector<GenerationSpeed> speeds(input.size());
    // The threads share the products of a single line. Of several lines, each continues some.
    Team* const team = input.size() == 1 ? &trained_.team : nullptr;
    const auto continue_line = [&](std::int64_t i) {
      const Prompt prompt = prompt_of(input[i]);
      all[i] = escaped(prompt.with(continued(prompt, first + i, {}, team, speeds[i])));
    };
    if (team != nullptr) {
      continue_line(0);
    } else {
      trained_.team.run(std::ssize(input), continue_line);
    }
    speeds_.insert(speeds_.end(), speeds.begin(), speeds.end());
    return all;
  }

  std::vector<std::vector<GeneratedText>> nbest(const GenerationRequest& request) override {
    if (!request.prefixes.empty()) {
      throw Error(
          Exit::usage,
          "--prefix is for tasks with a source; a language model continues its input lines");
    }
    std::vector<std::vector<GeneratedText>> all(request.input.size());
    trained_.team.run(std::ssize(request.input), [&](std::int64_t i) {
      const Prompt prompt = prompt_of(request.input[i]);
      const std::int64_t searches = config_.decode.sample ? request.nbest : 1;
      for (std::int64_t k = 0; k < searches; ++k) {
        const std::vector<Hypothesis> found =
            continuations(model_, prompt.ids, config_.decode, seed_, request.first + i + (k << 28));
        for (const Hypothesis& h : found) {
          if (std::ssize(all[i]) < request.nbest)
            all[i].push_back({escaped(prompt.with(h.tokens)), h.score});
        }
      }
    });
    return all;
  }

  std::string continuation(const std::string& line, const TextCallback& on_text) override {
    const Prompt prompt = prompt_of(line);
    std::vector<std::int32_t> more;
    std::size_t printed = 0;
    const auto print_new = [&](bool last) {
      const std::string text = prompt.with(more);
      // The last character may be incomplete: later tokens may add its remaining bytes.
      const std::size_t end = last ? text.size() : complete_utf8(text);
      if (end > printed) on_text(std::string_view(text).substr(printed, end - printed));
      printed = std::max(printed, end);
    };
    GenerationSpeed& speed = speeds_.emplace_back();
    if (!on_text) return prompt.with(continued(prompt, 0, {}, &trained_.team, speed));
    print_new(false);
    const auto on_token = [&](std::int32_t token) {
      more.push_back(token);
      print_new(false);
    };
    const std::vector<std::int32_t> all = continued(prompt, 0, on_token, &trained_.team, speed);
    more = all;  // a search with a beam wider than one returns its tokens only at the end
    print_new(true);
    return prompt.with(all);
  }

 private:
  struct Prompt {
    const Tokenizer& tokenizer;
    std::string text;
    std::vector<std::int32_t> ids;

    /// The prompt and its continuation, decoded together, so that the tokenizer determines whether
    /// a space separates them.
    std::string with(const std::vector<std::int32_t>& more) const {
      std::vector<std::int32_t> all = ids;
      all.insert(all.end(), more.begin(), more.end());
      const std::string prefix = tokenizer.decode(ids), decoded = tokenizer.decode(all);
      return text + (text.empty() || !decoded.starts_with(prefix) ? tokenizer.decode(more)
                                                                  : decoded.substr(prefix.size()));
    }
  };
  /// The continuation of prompt `number`; sets `speed`.
  std::vector<std::int32_t> continued(const Prompt& prompt, std::int64_t number,
                                      const std::function<void(std::int32_t)>& on_token, Team* team,
                                      GenerationSpeed& speed) const {
    const double begin = seconds_now();
    const auto note_first = [&](std::int32_t token) {
      if (!speed.first_token_seconds) speed.first_token_seconds = seconds_now() - begin;
      if (on_token) on_token(token);
    };
    std::vector<std::int32_t> more =
        continue_text(model_, prompt.ids, config_.decode, seed_, number, note_first, team);
    speed.seconds = seconds_now() - begin;
    speed.input_tokens = std::ssize(prompt.ids);
    speed.output_tokens = std::ssize(more);
    return more;
  }
  Prompt prompt_of(const std::string& line) const {
    const Tokenizer& tokenizer = *trained_.tokenizers.target;
    std::string text = config_.data.lowercase ? lowercase(line) : line;
    const std::optional<std::int32_t> start = tokenizer.text_start();
    // A newline replaces an empty prompt, because lines of the training text follow a newline.
    std::vector<std::int32_t> ids = tokenizer.encode(text.empty() && !start ? "\n" : text);
    if (start) ids.insert(ids.begin(), *start);
    return {tokenizer, std::move(text), std::move(ids)};
  }
  static std::string escaped(const std::string& text) {
    std::string shown;
    for (const char c : text) c == '\n' ? shown += "\\n" : shown += c;
    return one_line(shown);
  }

  const LoadedModel trained_;
  const Config& config_;
  FrozenModel model_;
  std::uint64_t seed_;
};

/// The windows of all lines to score, packed into batches; window w is part of line lines[w].
struct Windows {
  std::vector<Batch> batches;
  std::vector<std::size_t> lines;

  /// `next`: the targets of `input`, y2 … yn for y1 … yn−1.
  void add(std::size_t line, std::span<const std::int32_t> input,
           std::span<const std::int32_t> next, std::int64_t max_tokens) {
    if (batches.empty() ||
        batches.back().target.rows() + static_cast<std::int64_t>(input.size()) > max_tokens)
      batches.emplace_back();
    Batch& batch = batches.back();
    batch.target.push(input);
    batch.labels.insert(batch.labels.end(), next.begin(), next.end());
    batch.samples.push_back(static_cast<std::int64_t>(lines.size()));
    lines.push_back(line);
  }
};

/// The mean loss at positions 1, 2, 3–4, 5–8, 9–16, … of a window. It shows the benefit of context.
class LossByPosition {
 public:
  void add(std::span<const std::int32_t> offsets, std::span<const double> losses) {
    for (std::size_t s = 0; s + 1 < offsets.size(); ++s) {
      for (std::int32_t row = offsets[s]; row < offsets[s + 1]; ++row) {
        const auto group =
            static_cast<std::size_t>(std::bit_width(static_cast<std::uint32_t>(row - offsets[s])));
        if (groups_.size() <= group) groups_.resize(group + 1);
        groups_[group].loss += losses[static_cast<std::size_t>(row)];
        ++groups_[group].tokens;
      }
    }
  }
  /// {"from": 3, "to": 4, "loss": 2.5}, …; positions are counted from 1.
  nlohmann::json json() const {
    nlohmann::json all = nlohmann::json::array();
    for (std::size_t g = 0; g < groups_.size(); ++g)
      all.push_back({{"from", first(g)}, {"to", last(g)}, {"loss", mean(g)}});
    return all;
  }
  std::string text() const {
    std::string text = "loss by position in the window:";
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      text += first(g) == last(g) ? fmt::format("  {}: {:.4f}", first(g), mean(g))
                                  : fmt::format("  {}-{}: {:.4f}", first(g), last(g), mean(g));
    }
    return text;
  }

 private:
  struct Group {
    double loss = 0;
    std::int64_t tokens = 0;
  };
  static std::int64_t first(std::size_t g) { return g == 0 ? 1 : (std::int64_t{1} << (g - 1)) + 1; }
  static std::int64_t last(std::size_t g) { return std::int64_t{1} << g; }
  double mean(std::size_t g) const {
    return groups_[g].loss / static_cast<double>(std::max<std::int64_t>(groups_[g].tokens, 1));
  }

  std::vector<Group> groups_;
};

class LanguageModelTask final : public Task {
 public:
  using Task::Task;

  Dataset encode(const Split& split, const Tokenizers& tokenizers, bool training) const override {
    Dataset data = tokenize_text(split.text, *tokenizers.target, threads());
    if (training) check_text(data, "data.train");
    return data;
  }

  void check_evaluable(const Dataset& data, const std::string& what) const override {
    check_text(data, what);
  }

  std::string describe(const ExperimentData& data) const override {
    return fmt::format("data: {} tokens of text, {} for validation, {} for testing; vocabulary {}",
                       data.train.stream.size(), data.valid.stream.size(), data.test.stream.size(),
                       data.tokenizers.target->size());
  }

  Evaluation evaluate(const LoadedModel& trained, const Dataset& data,
                      const EvaluationRequest&) const override {
    LossCounts total;
    LossByPosition positions;
    Evaluation e = evaluate_loss(trained, data, &total,
                                 [&](const Batch& batch, std::span<const double> losses) {
                                   positions.add(batch.target.offsets, losses);
                                 });
    e.notes["loss_by_position"] = positions.json();
    e.details = {positions.text()};
    if (data.text_bytes > 0) {
      e.set(Metric::bits_per_byte,
            total.nll / std::log(2.0) / static_cast<double>(data.text_bytes));
    }
    return e;
  }

  /// A few lines of generated text.
  std::vector<std::string> examples(const LoadedModel& trained, const Dataset&,
                                    const Evaluation&) const override {
    constexpr std::size_t max_lines = 10;
    constexpr std::int64_t max_tokens = 400;
    Config shorter = config_;
    shorter.decode.max_length = std::min(config_.decode.max_length, max_tokens);
    const std::string text = Continuations(trained, shorter, config_.seed).continuation("", {});
    std::vector<std::string> shown;
    for (std::size_t at = 0; at < text.size() && shown.size() < max_lines;) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      shown.push_back(excerpt(std::string_view(text).substr(at, end - at)));
      at = end + 1;
    }
    return shown;
  }

  std::unique_ptr<Generator> make_generator(const LoadedModel& trained,
                                            std::uint64_t seed) const override {
    return std::make_unique<Continuations>(trained, config_, seed);
  }

  /// The last window of the text. The label of each row but the last is the next token.
  Batch batch_of_line(const Tokenizers& tokenizers, const std::string& line,
                      const std::string&) const override {
    std::vector<std::int32_t> ids = tokenizers.target->encode(prepared(line));
    const auto max_tokens = static_cast<std::ptrdiff_t>(model_sizes(config_).context);
    if (std::ssize(ids) > max_tokens) ids.erase(ids.begin(), ids.end() - max_tokens);
    Batch batch;
    batch.target.push(ids);
    batch.labels.assign(ids.size(), no_label);
    std::copy(ids.begin() + std::min<std::ptrdiff_t>(1, std::ssize(ids)), ids.end(),
              batch.labels.begin());
    batch.samples = {0};
    return batch;
  }

  /// A newline (or </s>, if the tokenizer drops newlines, or Tokenizer::text_start) precedes each line,
  /// so that its first token is also scored. Lines longer than the context are cut into windows, as
  /// in evaluation.
  std::vector<LineScore> score(const LoadedModel& trained, const Split& split) const override {
    const std::vector<std::string>& lines = split.target;
    const auto context = static_cast<std::size_t>(model_sizes(config_).context);
    const Tokenizer& tokenizer = *trained.tokenizers.target;
    std::vector<LineScore> scores(lines.size());
    Windows windows;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const std::optional<std::int32_t> start = tokenizer.text_start();
      std::vector<std::int32_t> ids = start ? std::vector{*start} : tokenizer.encode("\n");
      const std::size_t prefix = ids.size();
      const std::vector<std::int32_t> line_ids = tokenizer.encode(prepared(lines[i]));
      ids.insert(ids.end(), line_ids.begin(), line_ids.end());
      scores[i].tokens = static_cast<std::int64_t>(line_ids.size());
      if (prefix == 0 && !ids.empty())
        ids.insert(ids.begin(), tokenizer.special_ids().eos);  // the tokenizer drops newlines
      for (std::size_t at = std::max<std::size_t>(prefix, 1) - 1; at + 1 < ids.size();
           at += context) {
        const std::size_t n = std::min(context, ids.size() - 1 - at);
        windows.add(i, std::span(ids).subspan(at, n), std::span(ids).subspan(at + 1, n), 4096);
      }
    }
    const std::vector<double> log_probs =
        score_targets(FrozenModel(trained.model, config_.decode.precision), windows.batches,
                      static_cast<std::int64_t>(windows.lines.size()), trained.team);
    for (std::size_t w = 0; w < log_probs.size(); ++w)
      scores[windows.lines[w]].log_prob += log_probs[w];
    return scores;
  }
};

}  // namespace

std::unique_ptr<Task> make_lm_task(const Config& config) {
  return std::make_unique<LanguageModelTask>(config);
}

HEED_END
