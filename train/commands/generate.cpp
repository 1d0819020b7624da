#include <fmt/format.h>

#include <cstdio>

#include "autograd/base/error.h"
#include "autograd/base/lines.h"
#include "autograd/base/utf8.h"
#include "train/commands/commands.h"
#include "train/commands/output.h"
#include "train/commands/trained_model.h"
#include "train/run/run_folder.h"

namespace heed {

namespace {

constexpr std::size_t chunk_bytes = std::size_t{8} << 20;

/// Fills `lines` with the next chunk; false if there is none.
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

void answer_all(Answers& answers, LineReader& reader, std::int64_t chunk, const Sink& sink) {
  if (chunk == 0) chunk = reader.terminal() ? 1 : 2048;
  std::vector<std::string> lines;
  for (std::int64_t first = 0; next_chunk(reader, chunk, lines);
       first += static_cast<std::int64_t>(lines.size())) {
    std::string text;
    for (const std::string& line : answers.lines(lines, first)) text += line + "\n";
    sink(text);
  }
}

void answer_prompt(Answers& answers, const std::string& prompt, const Sink& sink) {
  std::string text = answers.continuation(prompt);
  if (!text.ends_with('\n')) text += '\n';
  sink(text);
}

}  // namespace

int generate_command(const GenerateCommand& options) {
  if (options.prompt && invalid_utf8(*options.prompt) != std::string::npos) {
    throw Error(Exit::bad_input, "--prompt: invalid UTF-8");
  }
  const TrainedModel trained = TrainedModel::open(options.run, options.overrides, options.weights);
  std::vector<std::string> read = files_of({options.run});
  if (!options.prompt) read.push_back(options.input);
  refuse_output_over_input(options.output, read);
  Team team(trained.config.threads);
  const std::unique_ptr<Answers> answers =
      trained.task->answers(trained.with(team), options.seed.value_or(trained.config.seed));
  if (options.prompt) {
    write_output(options.output,
                 [&](const Sink& sink) { answer_prompt(*answers, *options.prompt, sink); });
    return 0;
  }
  LineReader reader(options.input);  // before the output: a missing file leaves nothing behind
  write_output(options.output,
               [&](const Sink& sink) { answer_all(*answers, reader, options.chunk, sink); });
  return 0;
}

}  // namespace heed
