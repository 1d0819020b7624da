#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "autograd/base/error.h"
#include "autograd/base/utf8.h"
#include "train/commands/commands.h"
#include "train/commands/line_reader.h"
#include "train/commands/output.h"
#include "train/commands/trained_model.h"
#include "train/decode/search.h"
#include "train/terminal/talk.h"

namespace heed {

namespace {

/// Attention takes time and memory with the square of the length, so a line that is a whole book
/// would stop all others: this much of it is translated.
constexpr std::int64_t longest_source = 4096;  // tokens
constexpr std::size_t chunk_bytes = std::size_t{8} << 20;

class Generator {
 public:
  Generator(const TrainedModel& trained, std::uint64_t seed)
      : trained_(trained), model_(*trained.model), seed_(seed), team_(trained.config.threads) {}

  /// One line of output for each of input; `first` is the number of the first, from 0.
  std::vector<std::string> answer(const std::vector<std::string>& lines, std::int64_t first) {
    return trained_.config.task == Task::lm ? continuations(lines, first)
                                            : translations(lines, first);
  }

  /// prompt and continuation, as the tokenizer spells it.
  std::string continuation(const std::string& prompt, std::int64_t number) const {
    const Tokenizer& tokenizer = *trained_.tokenizers.target;
    const std::string text = trained_.prepared(prompt);
    // A text begins as its lines do: behind a newline.
    const std::vector<std::int32_t> ids = tokenizer.encode(text.empty() ? "\n" : text);
    const std::vector<std::int32_t> more =
        continue_text(model_, ids, trained_.config.decode, seed_, number);
    // Decoded together, for whether a space stands between two tokens is the tokenizer's business.
    std::vector<std::int32_t> all = ids;
    all.insert(all.end(), more.begin(), more.end());
    const std::string before = tokenizer.decode(ids), whole = tokenizer.decode(all);
    return text + (text.empty() || !whole.starts_with(before) ? tokenizer.decode(more)
                                                              : whole.substr(before.size()));
  }

 private:
  std::vector<std::string> continuations(const std::vector<std::string>& prompts,
                                         std::int64_t first) {
    std::vector<std::string> all(prompts.size());
    team_.run(static_cast<std::int64_t>(prompts.size()), [&](std::int64_t i) {
      const std::string text = continuation(prompts[static_cast<std::size_t>(i)], first + i);
      std::string& shown = all[static_cast<std::size_t>(i)];
      for (const char c : text) c == '\n' ? shown += "\\n" : shown += c;
      shown = one_line(shown);
    });
    return all;
  }

  std::vector<std::string> translations(const std::vector<std::string>& lines, std::int64_t first) {
    Sequences source;
    std::vector<std::size_t> places;    // of the lines that hold something
    std::vector<std::int64_t> numbers;  // and of all input: a sample must not depend on the chunk
    for (std::size_t i = 0; i < lines.size(); ++i) {
      std::vector<std::int32_t> ids =
          trained_.tokenizers.source->encode(trained_.prepared(lines[i]));
      if (ids.empty()) continue;
      shorten(ids, first + static_cast<std::int64_t>(i));
      ids.push_back(Tokenizer::eos);
      source.push(ids);
      places.push_back(i);
      numbers.push_back(first + static_cast<std::int64_t>(i));
    }
    const std::vector<Hypothesis> found =
        translate(model_, source, trained_.config.decode, seed_, team_, numbers, batches());
    std::vector<std::string> all(lines.size());
    for (std::size_t k = 0; k < found.size(); ++k) {
      all[places[k]] = one_line(trained_.tokenizers.target->decode(found[k].tokens));
    }
    return all;
  }

  /// Two for each thread, so that none waits long for the last; one thread takes all at once.
  std::int64_t batches() const {
    if (trained_.config.decode.precision == Precision::bf16) return usual_batches;
    return team_.threads() == 1 ? 1 : 2 * team_.threads();
  }

  void shorten(std::vector<std::int32_t>& ids, std::int64_t number) const {
    const std::int64_t positions = trained_.model->position_limit();
    const std::int64_t limit =
        (positions > 0 ? std::min(positions, longest_source) : longest_source) - 1;
    if (static_cast<std::int64_t>(ids.size()) <= limit) return;
    tell(fmt::format("heed: note: line {} has {} tokens; only its first {} are translated",
                     number + 1, ids.size(), limit));
    ids.resize(static_cast<std::size_t>(limit));
  }

  const TrainedModel& trained_;
  FrozenModel model_;
  std::uint64_t seed_;
  Team team_;
};

/// Fills `lines` with the next chunk; false where there is none.
bool next_chunk(LineReader& reader, std::int64_t count, std::vector<std::string>& lines) {
  lines.clear();
  std::size_t bytes = 0;
  for (std::string line; static_cast<std::int64_t>(lines.size()) < count && bytes < chunk_bytes &&
                         reader.next(line);) {
    bytes += line.size();
    lines.push_back(line);
  }
  return !lines.empty();
}

void answer_all(Generator& generator, LineReader& reader, std::int64_t chunk, const Sink& sink) {
  if (chunk == 0) chunk = reader.terminal() ? 1 : 2048;
  std::vector<std::string> lines;
  for (std::int64_t first = 0; next_chunk(reader, chunk, lines);
       first += static_cast<std::int64_t>(lines.size())) {
    std::string text;
    for (const std::string& line : generator.answer(lines, first)) text += line + "\n";
    sink(text);
  }
}

void answer_prompt(const Generator& generator, const std::string& prompt, const Sink& sink) {
  std::string text = generator.continuation(prompt, 0);
  if (!text.ends_with('\n')) text += '\n';
  sink(text);
}

}  // namespace

int generate_command(const GenerateCommand& options) {
  if (options.prompt && invalid_utf8(*options.prompt) != std::string::npos) {
    throw Error(Exit::bad_input, "--prompt: invalid UTF-8");
  }
  const TrainedModel trained = TrainedModel::open(options.run, options.overrides, options.weights);
  if (options.prompt && trained.config.task != Task::lm) {
    throw Error(Exit::usage,
                "--prompt is for language models; this model translates the lines of --input");
  }
  if (!options.prompt) refuse_output_over_input(options.output, {options.input});
  Generator generator(trained, options.seed.value_or(trained.config.seed));
  if (options.prompt) {
    write_output(options.output,
                 [&](const Sink& sink) { answer_prompt(generator, *options.prompt, sink); });
    return 0;
  }
  LineReader reader(options.input);  // before the output: a missing file leaves nothing behind
  write_output(options.output,
               [&](const Sink& sink) { answer_all(generator, reader, options.chunk, sink); });
  return 0;
}

}  // namespace heed
