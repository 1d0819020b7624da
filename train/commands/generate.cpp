#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "autograd/base/error.h"
#include "autograd/io/lines.h"
#include "autograd/io/utf8.h"
#include "data/sources/records.h"
#include "train/commands/command_line.h"
#include "train/commands/output.h"
#include "train/commands/trained_model.h"
#include "train/config/fields.h"
#include "train/run/run_folder.h"
#include "train/terminal/run_log.h"

namespace heed {

namespace {

/// Overrides and the options that set them: "decode.beam=3" and "--beam 3".
using Shortcuts = std::vector<std::pair<std::string, std::string>>;

struct GenerateCommand : RunArguments {
  Shortcuts shortcuts;
  std::string input = "-", output = "-";
  std::optional<std::string> prompt;  ///< lm: the text to continue, instead of lines of input
  std::optional<std::uint64_t> seed;  ///< seed of sampling; unset: the config's seed
  std::string speed;                  ///< file for the speeds as JSON lines; empty: none
  std::string prefix;                 ///< file whose line i begins output i; empty: none
  std::int64_t nbest = 0;  ///< number of outputs per line, with scores; 0: one, without a score
  std::int64_t chunk = 0;  ///< number of lines read per chunk; 0: 1 at a terminal, else 2048
};

constexpr std::size_t chunk_bytes = std::size_t{8} << 20;

/// The next chunk of the input: `count` lines, or fewer if the input ends or their size reaches
/// chunk_bytes.
std::vector<std::string> next_chunk(RecordReader& reader, std::int64_t count) {
  std::vector<std::string> lines, values;
  std::size_t bytes = 0;
  while (std::ssize(lines) < count && bytes < chunk_bytes && reader.next(values)) {
    bytes += values.front().size();
    lines.push_back(std::move(values.front()));
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

void generate_lines(Generator& generator, RecordReader& reader, const GenerateCommand& options,
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

/// A line of --speed, a JSON object.
std::string speed_line(const GenerationSpeed& speed) {
  nlohmann::json record{{"input_tokens", speed.input_tokens},
                        {"output_tokens", speed.output_tokens},
                        {"seconds", speed.seconds}};
  if (speed.first_token_seconds) record["first_token_seconds"] = *speed.first_token_seconds;
  return record.dump() + "\n";
}

void write_speeds(Generator& generator, const std::string& file) {
  if (file.empty()) return;
  write_output(file, [&](const Sink& sink) {
    for (const GenerationSpeed& speed : generator.take_speeds()) sink(speed_line(speed));
  });
}

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
  std::vector<std::string> read = named_files(trained.config);
  if (!options.prompt) read.push_back(options.input);
  if (!options.prefix.empty()) read.push_back(options.prefix);
  check_output(options.output, read);
  if (!options.speed.empty()) {
    if (!trained.task->info().searches)
      throw Error(Exit::usage, "--speed is for tasks whose outputs are searched or sampled, not {}",
                  trained.task->info().name);
    if (options.speed == options.output)
      throw Error(Exit::usage, "--speed and --output name the same file: {}", options.speed);
    check_output(options.speed, read);
  }
  Team team(trained.config.threads);
  const std::unique_ptr<Generator> generator =
      trained.task->make_generator(trained.with(team), options.seed.value_or(trained.config.seed));
  if (options.prompt) {
    write_output(options.output, [&](const Sink& sink) {
      continue_prompt(*generator, *options.prompt, options.nbest, sink);
    });
    write_speeds(*generator, options.speed);
    return 0;
  }
  RecordReader reader = trained.task->read_inputs(options.input);  // before output is created
  write_output(options.output,
               [&](const Sink& sink) { generate_lines(*generator, reader, options, sink); });
  write_speeds(*generator, options.speed);
  if (const std::string cut = generator->cut_outputs(); !cut.empty()) print_note("note: " + cut);
  return 0;
}

/// Replaces overrides in an error message with the options as typed.
Error as_typed(const Error& error, const Shortcuts& shortcuts) {
  std::string message = error.what();
  for (const auto& [override, typed] : shortcuts) {
    const std::string place = fmt::format("command line: {}:", override);
    if (const std::size_t at = message.find(place); at != std::string::npos)
      message.replace(at, place.size(), typed + ":");
  }
  return {error.code, message};
}

int generate_with_shortcuts(const GenerateCommand& options) {
  GenerateCommand all = options;
  for (const auto& [override, typed] : options.shortcuts) all.overrides.push_back(override);
  try {
    return generate_command(all);
  } catch (const Error& error) {
    throw as_typed(error, options.shortcuts);
  }
}

/// Adds an option equivalent to key=value, which also sets the `implied` overrides.
CLI::Option* add_shortcut(CLI::App* command, const char* name, Shortcuts& shortcuts,
                          const char* key, const std::vector<std::string>& implied) {
  const auto take = [&shortcuts, name, key, implied](const std::string& value) {
    const std::string typed = fmt::format("{} {}", name, value);
    for (const std::string& override : implied) shortcuts.emplace_back(override, typed);
    shortcuts.emplace_back(fmt::format("{}={}", key, value), typed);
  };
  return command
      ->add_option_function<std::string>(name, take, fmt::format("shorthand for {}=…", key))
      ->type_name("N")
      ->group(choices);
}

}  // namespace

void add_generate(CommandLine& line) {
  const auto [command, options] = add_command<GenerateCommand>(
      line, "generate", Needs::model,
      "translate, label or continue lines, by greedy search, beam search or sampling",
      generate_with_shortcuts);
  Shortcuts& shortcuts = options->shortcuts;
  add_run(command, options->run, options->overrides, "decode.length_penalty=1");
  CLI::Option* const input =
      add_choice(command, choices, "--input", options->input, "FILE",
                 "input lines, plain text or gzip, or a table (default: -, standard input)");
  add_choice(command, choices, "--prompt", options->prompt, "TEXT",
             "language models: continue this text; the output is printed unescaped")
      ->excludes(input);
  add_weights(command, options->weights);
  CLI::Option* const beam =
      add_shortcut(command, "--beam", shortcuts, "decode.beam", {"decode.sample=false"});
  add_shortcut(command, "--max-length", shortcuts, "decode.max_length", {});
  command
      ->add_flag_callback(
          "--sample", [&shortcuts] { shortcuts.emplace_back("decode.sample=true", "--sample"); },
          "draw tokens at random instead of searching")
      ->excludes(beam)
      ->group(choices);
  const auto sampling = [&, command = command](const char* name, const char* key) {
    add_shortcut(command, name, shortcuts, key, {"decode.sample=true"})->excludes(beam);
  };
  sampling("--temperature", "decode.temperature");
  sampling("--top-k", "decode.top_k");
  sampling("--top-p", "decode.top_p");
  add_choice(command, choices, "--seed", options->seed, "N",
             "seed of sampling (default: the config's seed)")
      ->check([](const std::string& text) {
        std::uint64_t value = 0;
        const char* const end = text.data() + text.size();
        const auto [at, error] = std::from_chars(text.data(), end, value);
        return error == std::errc() && at == end ? ""
                                                 : "expected a whole number from 0 to 2^64 - 1";
      });
  add_choice(command, choices, "--nbest", options->nbest, "N",
             "the N best outputs of each line, as LINE-NUMBER<tab>SCORE<tab>TEXT")
      ->check(CLI::Range(1, 1000));
  add_choice(command, choices, "--prefix", options->prefix, "FILE",
             "file with the beginning of each output, one line for each line of input")
      ->excludes("--prompt");
  add_choice(command, choices, "--chunk", options->chunk, "N",
             "number of lines read before outputs are generated (default: 2048; 1 at a terminal)")
      ->check(CLI::Range(1, 1'000'000));
  add_choice(command, results, "--output", options->output, "FILE",
             "output file (default: -, standard output)");
  add_choice(command, results, "--speed", options->speed, "FILE",
             "also write the numbers of tokens and the seconds that they took, as JSON lines");
  command->footer(
      "Without --nbest, each line of input produces one line of output. A language model prints\n"
      "the line, which is the prompt, and its continuation, with newlines as \\n; an empty prompt\n"
      "starts a new text. In all other tasks except classify, an empty line of text produces an\n"
      "empty line. Tasks seq2seq, text2text, denoise, tag and classify read at most the first\n"
      "4,096 tokens of a line, including the end token.\n"
      "--beam 1 always chooses the most probable token. --temperature, --top-k and --top-p imply\n"
      "--sample. --nbest prints the N best hypotheses of the beam, or N samples; SCORE is the\n"
      "log-probability divided by the length penalty. With --prompt and --beam 1 or --sample,\n"
      "text is printed token by token.\n"
      "--speed writes an object for each chunk of lines or, for a language model, for each prompt:\n"
      "input_tokens, output_tokens (without the end token), seconds (of decoding, without loading\n"
      "and tokenisation) and, for a language model with a beam of one, first_token_seconds: the part\n"
      "in which it reads the prompt. The first object includes the packing of the weights.\n"
      "Examples:\n"
      "  echo '3 March 2021' | heed generate runs/dates\n"
      "  heed generate runs/multi30k-de-en --input test.de.gz --output test.en --beam 10\n"
      "  heed generate runs/tinyshakespeare --prompt 'ROMEO:' --temperature 0.8 --max-length 300");
}

}  // namespace heed
