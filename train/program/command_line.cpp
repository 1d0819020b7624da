#include "train/program/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <memory>

#include "autograd/base/error.h"
#include "autograd/io/message_text.h"
#include "train/commands/commands.h"
#include "train/program/arguments.h"
#include "train/program/help/help_commands.h"
#include "train/program/view_commands.h"

namespace heed {

namespace {

using namespace arguments;

/// Adds an option that may be repeated; each value is a file.
void add_files(CLI::App* command, const char* name, std::vector<std::string>& files,
               const char* help) {
  add_choice(command, choices, name, files, "FILE", help)->allow_extra_args(false);
}

/// Overrides and the options that set them: "decode.beam=3" and "--beam 3".
using Shortcuts = std::vector<std::pair<std::string, std::string>>;

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

void add_train(CLI::App& app, Job& job, const std::vector<std::string>& typed) {
  const auto [command, options] = add_command<TrainCommand>(
      app, job, "train", "train a model and print its final metrics", train_command);
  options->command = typed;
  add_config(command, *options, "train.steps=200");
  add_new_run(command, *options, "run folder (default: runs/<name>)");
  add_json(command, options->json, "the final metrics");
  command->footer(
      "Progress goes to standard error. Ctrl-C saves a checkpoint and stops the run; heed resume\n"
      "continues it.\n"
      "Examples:\n"
      "  heed train configs/dates.yaml\n"
      "  heed train configs/copy.yaml --run /tmp/copy train.steps=200 'model.layers={encoder: 1, "
      "decoder: 2}'");
}

void add_resume(CLI::App& app, Job& job) {
  const auto [command, options] = add_command<ResumeCommand>(
      app, job, "resume", "continue from the newest valid checkpoint", resume_command);
  add_run(command, options->run, options->overrides, "train.steps=4000");
  add_json(command, options->json, "the final metrics");
  command->footer(
      "Examples:\n"
      "  heed resume runs/dates\n"
      "  heed resume runs/dates train.steps=4000\n"
      "The keys on the command line, except threads, are written to the run's config.yaml.");
}

void add_sweep(CLI::App& app, Job& job) {
  const auto [command, options] = add_command<SweepCommand>(
      app, job, "sweep", "train a config with several values of its keys", sweep_command);
  add_argument(command, "CONFIG", options->config, "the experiment, a YAML file")->required();
  add_argument(command, "VALUES", options->arguments,
               "key=values to try, such as model.norm=pre,post; key=value applies to every run");
  add_choice(command, choices, "--seeds", options->seeds, "N",
             "number of runs per point, with consecutive seeds that start at the config's seed")
      ->check(CLI::Range(1, 10'000));
  add_choice(command, choices, "--random", options->random, "N",
             "train N random points of the grid instead of all")
      ->check(CLI::Range(1, 10'000));
  add_flag(command, choices, "--halving", options->halving,
           "successive halving: train all points for part of train.steps, keep the better "
           "half, and repeat");
  add_choice(command, choices, "--jobs", options->jobs, "N",
             "number of simultaneous runs, which share the processors (default: 1)")
      ->check(CLI::Range(1, 1024));
  add_choice(command, results, "--run", options->folder, "FOLDER",
             "folder of the runs (default: runs/<name>-sweep)");
  add_json(command, options->json, "the comparison");
  command->footer(
      "FOLDER contains one run folder per run. The same command continues an interrupted sweep:\n"
      "finished runs remain unchanged, and all others are started or resumed. A failed run does\n"
      "not stop the sweep. At the end, heed prints the table of heed compare and writes\n"
      "FOLDER/report.html. CONFIG may also contain the values:\n"
      "  sweep: {model.norm: [pre, post], seeds: 3}\n"
      "Examples:\n"
      "  heed sweep configs/reverse.yaml model.heads=1,2,4 --seeds 3 --jobs 2\n"
      "  heed sweep configs/copy.yaml optim.lr=3e-4,1e-3,3e-3,1e-2 --halving train.steps=800");
}

void add_eval(CLI::App& app, Job& job) {
  const auto [command, options] = add_command<EvalCommand>(
      app, job, "eval", "metrics on a split or on given files", eval_command);
  add_run(command, options->run, options->overrides, "decode.beam=10");
  add_choice(command, choices, "--split", options->split, "NAME",
             "valid or test (default: test, or valid if there are no test data)")
      ->check(CLI::IsMember({"valid", "test"}));
  add_files(command, "--source", options->files.source,
            "source lines to evaluate instead of a split");
  add_files(command, "--target", options->files.target,
            "targets of these lines, such as reference translations");
  add_files(command, "--text", options->files.text,
            "tasks lm, mlm and denoise: text to evaluate instead of a split");
  add_weights(command, options->weights);
  add_flag(command, choices, "--pretokenised", options->pretokenised,
           "lines are already tokenised: BLEU splits them at spaces and ignores decode.bleu");
  add_choice(command, results, "--output", options->output, "FILE",
             "write the outputs to a file (- for standard output)");
  add_json(command, options->json, "the metrics");
  command->footer(
      "The loss is the mean negative log-likelihood per token in nats, without label smoothing.\n"
      "In JSON, accuracy, exact match and macro F1 range from 0 to 1, and BLEU, chrF2 and ROUGE\n"
      "from 0 to 100.\n"
      "Files may be compressed with gzip. --source, --target and --text may be repeated.\n"
      "Examples:\n"
      "  heed eval runs/dates --json\n"
      "  heed eval runs/multi30k-de-en --source test.de --target test.en decode.beam=10");
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

void add_generate(CLI::App& app, Job& job) {
  const auto options = std::make_shared<GenerateCommand>();
  const auto shortcuts = std::make_shared<Shortcuts>();
  CLI::App* const command = app.add_subcommand(
      "generate", "translate, label or continue lines, by greedy search, beam search or sampling");
  command->callback([options, shortcuts, &job] {
    for (const auto& [override, typed] : *shortcuts) options->overrides.push_back(override);
    job = [options, shortcuts] {
      try {
        return generate_command(*options);
      } catch (const Error& error) {
        throw as_typed(error, *shortcuts);
      }
    };
  });
  add_run(command, options->run, options->overrides, "decode.length_penalty=1");
  CLI::Option* const input =
      add_choice(command, choices, "--input", options->input, "FILE",
                 "input lines, plain text or gzip (default: -, standard input)");
  add_choice(command, choices, "--prompt", options->prompt, "TEXT",
             "language models: continue this text; the output is printed unescaped")
      ->excludes(input);
  add_weights(command, options->weights);
  CLI::Option* const beam =
      add_shortcut(command, "--beam", *shortcuts, "decode.beam", {"decode.sample=false"});
  add_shortcut(command, "--max-length", *shortcuts, "decode.max_length", {});
  command
      ->add_flag_callback(
          "--sample", [shortcuts] { shortcuts->emplace_back("decode.sample=true", "--sample"); },
          "draw tokens at random instead of searching")
      ->excludes(beam)
      ->group(choices);
  const auto sampling = [&](const char* name, const char* key) {
    add_shortcut(command, name, *shortcuts, key, {"decode.sample=true"})->excludes(beam);
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
      "Examples:\n"
      "  echo '3 March 2021' | heed generate runs/dates\n"
      "  heed generate runs/multi30k-de-en --input test.de.gz --output test.en --beam 10\n"
      "  heed generate runs/tinyshakespeare --prompt 'ROMEO:' --temperature 0.8 --max-length 300");
}

void add_score(CLI::App& app, Job& job) {
  const auto [command, options] = add_command<ScoreCommand>(
      app, job, "score", "log-probability of given outputs, one per line", score_command);
  add_run(command, options->run, options->overrides, "decode.precision=bf16");
  add_choice(command, choices, "--source", options->source, "FILE",
             "source lines of the targets (not for language models)");
  add_choice(command, choices, "--target", options->target, "FILE",
             "lines to score, plain text or gzip")
      ->required();
  add_weights(command, options->weights);
  add_choice(command, results, "--output", options->output, "FILE",
             "output file (default: -, standard output)");
  add_json(command, options->json, "the lists log_prob and tokens");
  command->footer(
      "Prints, for each target line, the natural logarithm of its probability and, after a tab,\n"
      "its number of tokens. For seq2seq and text2text, both include the end token. For tag and\n"
      "classify, the tokens are the labels. For lm, each line is scored as if it followed a\n"
      "newline, and only the tokens of the line count.\n"
      "Example:\n"
      "  heed score runs/multi30k-de-en --source test.de --target test.en");
}

void add_gradcheck(CLI::App& app, Job& job) {
  const auto [command, options] = add_command<GradcheckCommand>(
      app, job, "gradcheck", "check the gradient of every model parameter in float64",
      gradcheck_command);
  add_config(command, *options, "model.norm=post");
  add_choice(
      command, choices, "--entries", options->entries, "N",
      "number of entries to check per parameter (default: 4 to 256, as many as fit in about 40 s)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  add_json(command, options->json, "the table");
  command->footer(
      "Uses three sequences of the training data, with the config's dropout and label smoothing,\n"
      "and compares the gradient with a five-point finite difference: for some entries of each\n"
      "parameter and, for large parameters, along two random directions. A gradient is correct\n"
      "if its error is at most 1e-6 of its magnitude plus 1e-8. The exit status is 1 if a gradient\n"
      "is wrong.\n"
      "Example:\n"
      "  heed gradcheck configs/dates.yaml model.norm=post model.activation=gelu");
}

void add_bench(CLI::App& app, Job& job) {
  const auto [command, options] = add_command<BenchCommand>(
      app, job, "bench",
      "time of a step, tokens/s, GFLOP/s, share of time in matrix products, time by op",
      bench_command);
  add_config(command, *options, "train.batch_tokens=8192");
  add_choice(command, choices, "--steps", options->steps, "N",
             "number of steps to measure (default: 5 to 400, as many as fit in about 10 s)")
      ->check(CLI::Range(1, 1'000'000));
  add_json(command, options->json, "the metrics");
  command->footer("Example:\n  heed bench configs/bench/nmt-small.yaml threads=2");
}

void add_prune(CLI::App& app, Job& job, const std::vector<std::string>& typed) {
  const auto options = std::make_shared<PruneCommand>();
  options->command = typed;
  CLI::App* const command =
      app.add_subcommand("prune", "prune attention heads or weights of a model");
  command->callback([options, &job] {
    if (options->heads == 0 && options->share == 0) throw CLI::RequiredError("--heads or --share");
    job = [options] { return prune_command(*options); };
  });
  add_run(command, options->run, options->overrides, "data.valid.source=other.txt");
  add_choice(command, choices, "--heads", options->heads, "N",
             "number of attention heads to remove, the least important first")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  add_choice(command, choices, "--share", options->share, "S",
             "share of the weights (in matrices) to set to zero, the smallest magnitudes first")
      ->check(CLI::Range(0.0, 1.0));
  add_weights(command, options->weights);
  add_new_run(command, *options, "the new run folder")->required();
  add_json(command, options->json, "a record of the pruning");
  command->footer(
      "The importance of heads is measured on at most 1,000 sequences of the validation data or,\n"
      "if there are none, of the training data. heed eval and heed generate read the new run like\n"
      "any other. To train it further, start a run with model.init_from; zero weights may then\n"
      "change.\n"
      "Examples:\n"
      "  heed prune runs/multi30k-de-en --heads 12 --run runs/fewer-heads\n"
      "  heed prune runs/multi30k-de-en --share 0.5 --run runs/half-zero\n"
      "  heed eval runs/half-zero");
}

void add_quantize(CLI::App& app, Job& job, const std::vector<std::string>& typed) {
  const auto [command, options] = add_command<QuantizeCommand>(
      app, job, "quantize", "quantise a model's weights to int8", quantize_command);
  options->command = typed;
  add_argument(command, "RUN", options->run, "run folder, such as runs/dates")->required();
  add_weights(command, options->weights);
  add_new_run(command, *options, "the new run folder (default: RUN-int8)");
  add_json(command, options->json, "a record of the quantisation");
  command->footer(
      "Matrices become int8 with a float32 scale for each row; vectors remain float32. heed eval\n"
      "and heed generate read the new run like any other. If its task generates text by search or\n"
      "sampling, its config sets decode.precision to int8; this setting also works for runs that\n"
      "are not quantised. The new run cannot be resumed or pruned; model.init_from loads its\n"
      "values as float32.\n"
      "Examples:\n"
      "  heed quantize runs/multi30k-de-en\n"
      "  heed eval runs/multi30k-de-en-int8");
}

void add_fetch(CLI::App& app, Job& job) {
  const auto [command, options] = add_command<FetchCommand>(
      app, job, "fetch", "download a data set and verify its checksums", fetch_command);
  add_argument(command, "NAME", options->name, "multi30k, tinyshakespeare or mnist")->required();
  add_choice(command, results, "--to", options->to, "FOLDER",
             "folder of the data set (default: data/<name>)");
  add_choice(command, choices, "--from", options->from, "FOLDER",
             "copy the files from this folder instead of downloading them");
  command->footer("Example:\n  heed fetch multi30k --to data/multi30k");
}

void print_help(CLI::App& app, const std::string& name) {
  const std::vector<const CLI::App*> all = commands_of(app);
  const auto about = std::ranges::find(all, name, &CLI::App::get_name);
  if (about == all.end() && !name.empty()) throw Error(Exit::usage, unknown_command(app, name));
  app.clear();  // else CLI11 prints the help of `help`, the parsed subcommand
  fmt::print("{}", name.empty() ? app.help() : (*about)->help(app.get_name()));
}

void add_help(CLI::App& app, Job& job) {
  const auto name = std::make_shared<std::string>();
  CLI::App* const command = add_job(app, job, "help", "the help of a command", [&app, name] {
    print_help(app, *name);
    return 0;
  });
  add_argument(command, "COMMAND", *name, "a command (default: heed itself)");
}

}  // namespace

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
}

std::string unknown_command(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands_of(app)) names.push_back(command->get_name());
  const std::string near = nearest(word, names);
  return fmt::format("{}: no such command{}\n(heed --help lists the commands)", shown(word),
                     near.empty() ? "" : fmt::format(" (did you mean {}?)", near));
}

void add_commands(CLI::App& app, Job& job, const std::vector<std::string>& typed) {
  add_train(app, job, typed);
  add_resume(app, job);
  add_sweep(app, job);
  add_eval(app, job);
  add_generate(app, job);
  add_score(app, job);
  add_gradcheck(app, job);
  add_bench(app, job);
  add_prune(app, job, typed);
  add_quantize(app, job, typed);
  add_fetch(app, job);
  add_views(app, job);
  add_help(app, job);
  add_help_commands(app, job);
}

}  // namespace heed
