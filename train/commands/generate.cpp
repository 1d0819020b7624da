#include <fmt/format.h>

#include "autograd/base/error.h"
#include "autograd/io/lines.h"
#include "autograd/io/utf8.h"
#include "train/commands/commands.h"
#include "train/commands/output.h"
#include "train/commands/trained_model.h"
#include "train/run/run_folder.h"

namespace heed {

namespace {

constexpr std::size_t chunk_bytes = std::size_t{8} << 20;

/// The next chunk of the input: `count` lines, or fewer if the input ends or their size reaches
/// chunk_bytes.
std::vector<std::string> next_chunk(LineReader& reader, std::int64_t count) {
  std::vector<std::string> lines;
  std::size_t bytes = 0;
  for (std::string line; std::ssize(lines) < count && bytes < chunk_bytes && reader.next(line);) {
    bytes += line.size();
    lines.push_back(line);
  }
  return lines;
}

/// The next `count` lines of the file of --prefix.
std::vector<std::string> next_prefixes(LineReader& reader, const std::string& file,
                                       std::size_t count) {
  std::vector<std::string> lines;
  for (std::string line; lines.size() < count && reader.next(line);) lines.push_back(line);
  if (lines.size() < count)
    throw Error(Exit::bad_input, "--prefix: {} has fewer lines ({}) than the input", file,
                reader.number());
  return lines;
}

/// The lines "number<tab>score<tab>text" of --nbest.
std::string nbest_lines(const std::vector<std::vector<GeneratedText>>& all, std::int64_t first) {
  std::string text;
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const GeneratedText& output : all[i])
      text += fmt::format("{}\t{:.6f}\t{}\n", first + static_cast<std::int64_t>(i) + 1,
                          output.score, output.text);
  }
  return text;
}

void generate_lines(Generator& generator, LineReader& reader, const GenerateCommand& options,
                    const Sink& sink) {
  const std::int64_t chunk = options.chunk > 0 ? options.chunk : reader.terminal() ? 1 : 2048;
  std::optional<LineReader> prefixes;
  if (!options.prefix.empty()) prefixes.emplace(options.prefix);
  std::int64_t first = 0;
  for (std::vector<std::string> lines; !(lines = next_chunk(reader, chunk)).empty();
       first += std::ssize(lines)) {
    std::vector<std::string> begin;
    if (prefixes) begin = next_prefixes(*prefixes, options.prefix, lines.size());
    std::string text;
    if (options.nbest > 0) {
      text = nbest_lines(generator.nbest({lines, begin, first, options.nbest}), first);
    } else if (prefixes) {
      for (const std::vector<GeneratedText>& found : generator.nbest({lines, begin, first, 1}))
        text += found.front().text + "\n";
    } else {
      for (const std::string& line : generator.lines(lines, first)) text += line + "\n";
    }
    sink(text);
  }
  std::string extra;
  if (prefixes && prefixes->next(extra))
    throw Error(Exit::bad_input, "--prefix: {} has more lines than the input ({})", options.prefix,
                first);
}

void continue_prompt(Generator& generator, const std::string& prompt, std::int64_t nbest,
                     const Sink& sink) {
  if (nbest > 0)
    return sink(nbest_lines(generator.nbest({std::span(&prompt, 1), {}, 0, nbest}), 0));
  if (!generator.continuation(prompt, sink).ends_with('\n')) sink("\n");
}

}  // namespace

int generate_command(const GenerateCommand& options) {
  if (options.prompt && invalid_utf8(*options.prompt) != std::string::npos) {
    throw Error(Exit::bad_input, "--prompt: invalid UTF-8");
  }
  const TrainedModel trained = TrainedModel::open(options.run, options.overrides, options.weights);
  const DecodeOptions& decode = trained.config.decode;
  if (options.nbest > decode.beam && !decode.sample) {
    throw Error(Exit::usage, "--nbest {}: decode.beam is only {}; add --beam {}", options.nbest,
                decode.beam, options.nbest);
  }
  std::vector<std::string> read = files_of({options.run});
  if (!options.prompt) read.push_back(options.input);
  if (!options.prefix.empty()) read.push_back(options.prefix);
  refuse_output_over_input(options.output, read);
  Team team(trained.config.threads);
  const std::unique_ptr<Generator> generator =
      trained.task->make_generator(trained.with(team), options.seed.value_or(trained.config.seed));
  if (options.prompt) {
    write_output(options.output, [&](const Sink& sink) {
      continue_prompt(*generator, *options.prompt, options.nbest, sink);
    });
    return 0;
  }
  LineReader reader(options.input);  // opened first: if it is missing, no output is created
  write_output(options.output,
               [&](const Sink& sink) { generate_lines(*generator, reader, options, sink); });
  return 0;
}

}  // namespace heed
