#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <new>
#include <system_error>

#include "autograd/error.h"
#include "train/commands.h"
#include "train/config_problems.h"
#include "train/version.h"

namespace {

using namespace heed;

/// What to do once the whole command line has been understood.
using Job = std::function<int()>;

constexpr const char* results = "Output";
constexpr const char* choices = "Choices";

/// A subcommand whose job is `run`, applied to the options that the caller binds to its arguments.
template <class Options>
CLI::App* add_command(CLI::App& app, Job& job, const char* name, const char* help,
                      const std::shared_ptr<Options>& options, int (*run)(const Options&)) {
  CLI::App* const command = app.add_subcommand(name, help);
  command->callback([options, run, &job] { job = [options, run] { return run(*options); }; });
  return command;
}

void add_overrides(CLI::App* command, std::vector<std::string>& overrides) {
  command->add_option("key=value", overrides, "config keys to change, such as threads=1 or train.steps=200")->type_name("");
}

void add_config(CLI::App* command, std::string& config, std::vector<std::string>& overrides) {
  command->add_option("CONFIG", config, "the experiment, a YAML file")->required()->type_name("");
  add_overrides(command, overrides);
}

void add_run(CLI::App* command, std::string& run, std::vector<std::string>& overrides) {
  command->add_option("RUN", run, "run folder, such as runs/dates")->required()->type_name("");
  add_overrides(command, overrides);
}

void add_weights(CLI::App* command, std::string& weights) {
  command
      ->add_option("--weights", weights, "best, last, average, a step, or a folder (default: average, else best, else last)")
      ->type_name("W")
      ->group(choices);
}

void add_json(CLI::App* command, bool& json, const char* what) {
  command->add_flag("--json", json, fmt::format("print {} as one JSON object", what))->group(results);
}

/// An option that may come several times, with one file each.
void add_files(CLI::App* command, const char* name, std::vector<std::string>& files, const char* help) {
  command->add_option(name, files, help)->allow_extra_args(false)->type_name("FILE")->group(choices);
}

/// An option that is another way to write key=value; `implied` overrides come with it.
void add_shortcut(CLI::App* command, const char* name, std::vector<std::string>& shortcuts, const char* key,
                  std::vector<std::string> implied) {
  const auto take = [&shortcuts, key, implied](const std::string& value) {
    shortcuts.insert(shortcuts.end(), implied.begin(), implied.end());
    shortcuts.push_back(fmt::format("{}={}", key, value));
  };
  command->add_option_function<std::string>(name, take, fmt::format("the same as {}=…", key))->type_name("N")->group(choices);
}

void add_train(CLI::App& app, Job& job, const std::vector<std::string>& typed) {
  const auto options = std::make_shared<TrainCommand>();
  options->command = typed;
  CLI::App* const command = add_command(app, job, "train", "train a model; ends with the test metrics", options, train_command);
  add_config(command, options->config, options->overrides);
  command->add_option("--run", options->run, "run folder (default: runs/<name>)")->type_name("FOLDER")->group(results);
  command->add_flag("--overwrite", options->overwrite, "replace a run that the folder holds")->group(results);
  add_json(command, options->json, "the final metrics");
  command->footer(
      "Progress goes to standard error. ^C saves a checkpoint and stops; heed resume goes on from there.\n"
      "Examples:\n"
      "  heed train configs/dates.yaml\n"
      "  heed train configs/copy.yaml --run /tmp/copy train.steps=200 'model.layers={encoder: 1, decoder: 2}'");
}

void add_resume(CLI::App& app, Job& job, const std::vector<std::string>& typed) {
  const auto options = std::make_shared<ResumeCommand>();
  options->command = typed;
  CLI::App* const command = add_command(app, job, "resume", "go on from the newest valid checkpoint", options, resume_command);
  add_run(command, options->run, options->overrides);
  add_json(command, options->json, "the final metrics");
  command->footer("Examples:\n  heed resume runs/dates\n  heed resume runs/dates train.steps=4000");
}

void add_eval(CLI::App& app, Job& job) {
  const auto options = std::make_shared<EvalCommand>();
  CLI::App* const command = add_command(app, job, "eval", "metrics on a split or on given files", options, eval_command);
  add_run(command, options->run, options->overrides);
  command->add_option("--split", options->split, "valid or test (default: test, or valid where there is no test)")
      ->check(CLI::IsMember({"valid", "test"}))
      ->type_name("NAME")
      ->group(choices);
  add_files(command, "--source", options->source, "lines to translate, instead of a split");
  add_files(command, "--target", options->target, "what they should become");
  add_files(command, "--text", options->text, "language models: a text, instead of a split");
  add_weights(command, options->weights);
  command->add_flag("--pretokenised", options->pretokenised, "lines are cut into words already: BLEU at spaces, not 13a")
      ->group(choices);
  command->add_option("--output", options->output, "write the translations to a file (- for standard output)")
      ->type_name("FILE")
      ->group(results);
  add_json(command, options->json, "the metrics");
  command->footer(
      "Loss is natural, a token, without label smoothing; accuracy and exact match are shares; BLEU and\n"
      "chrF2 are per cent. Files may be gzip. Options with FILE may be given several times.\n"
      "Examples:\n"
      "  heed eval runs/dates --json\n"
      "  heed eval runs/multi30k-de-en --source test.de --target test.en decode.beam=10");
}

void add_generate(CLI::App& app, Job& job) {
  const auto options = std::make_shared<GenerateCommand>();
  const auto shortcuts = std::make_shared<std::vector<std::string>>();
  CLI::App* const command = app.add_subcommand("generate", "translate lines, or continue text: greedy, beam, sampling");
  command->callback([options, shortcuts, &job] {
    options->overrides.insert(options->overrides.end(), shortcuts->begin(), shortcuts->end());
    job = [options] { return generate_command(*options); };
  });
  add_run(command, options->run, options->overrides);
  command->add_option("--input", options->input, "lines to translate or continue, plain or gzip (default: -, standard input)")
      ->type_name("FILE")
      ->group(choices);
  command->add_option("--prompt", options->prompt, "language models: continue this text, and print it as it is")
      ->type_name("TEXT")
      ->group(choices);
  add_weights(command, options->weights);
  add_shortcut(command, "--beam", *shortcuts, "decode.beam", {"decode.sample=false"});
  add_shortcut(command, "--max-length", *shortcuts, "decode.max_length", {});
  command->add_flag_callback("--sample", [shortcuts] { shortcuts->push_back("decode.sample=true"); },
                             "draw tokens at random instead of searching")
      ->group(choices);
  add_shortcut(command, "--temperature", *shortcuts, "decode.temperature", {"decode.sample=true"});
  add_shortcut(command, "--top-k", *shortcuts, "decode.top_k", {"decode.sample=true"});
  add_shortcut(command, "--top-p", *shortcuts, "decode.top_p", {"decode.sample=true"});
  command->add_option("--seed", options->seed, "of sampling (default: the config's)")->type_name("N")->group(choices);
  command->add_option("--chunk", options->chunk, "lines read before they are answered (default: 2048; 1 at a terminal)")
      ->check(CLI::Range(1, 1'000'000))
      ->type_name("N")
      ->group(choices);
  command->add_option("--output", options->output, "where the lines go (default: -, standard output)")->type_name("FILE")->group(results);
  command->footer(
      "One line of output for each line of input, always; an empty line stays empty. A language model's\n"
      "line is the prompt and what follows, with newlines shown as \\n; an empty prompt begins a text.\n"
      "--temperature, --top-k and --top-p mean --sample. Of a very long line the first 4096 tokens count.\n"
      "Examples:\n"
      "  echo '3 March 2021' | heed generate runs/dates\n"
      "  heed generate runs/multi30k-de-en --input test.de.gz --output test.en --beam 10\n"
      "  heed generate runs/tinyshakespeare --prompt 'ROMEO:' --temperature 0.8 --max-length 300");
}

void add_score(CLI::App& app, Job& job) {
  const auto options = std::make_shared<ScoreCommand>();
  CLI::App* const command = add_command(app, job, "score", "log-probability of given outputs, one per line", options, score_command);
  add_run(command, options->run, options->overrides);
  command->add_option("--source", options->source, "lines that were translated (not for language models)")
      ->type_name("FILE")
      ->group(choices);
  command->add_option("--target", options->target, "lines to score, plain or gzip")->required()->type_name("FILE")->group(choices);
  add_weights(command, options->weights);
  command->add_option("--output", options->output, "where the lines go (default: -, standard output)")->type_name("FILE")->group(results);
  command->footer(
      "Prints, for each target line, the natural logarithm of its probability and, behind a tab, its number\n"
      "of tokens. Both count the end token. A language model knows no end token: its lines are scored as if\n"
      "they stood behind a newline, and only their own tokens count.\n"
      "Example:\n"
      "  heed score runs/multi30k-de-en --source test.de --target test.en");
}

void add_gradcheck(CLI::App& app, Job& job) {
  const auto options = std::make_shared<GradcheckCommand>();
  CLI::App* const command = add_command(app, job, "gradcheck", "check every parameter gradient of that very model, in float64",
                                        options, gradcheck_command);
  add_config(command, options->config, options->overrides);
  command->add_option("--entries", options->entries, "checked of each parameter (default: as many as fit in about 40 s)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
      ->type_name("N")
      ->group(choices);
  add_json(command, options->json, "the table");
  command->footer(
      "Takes a few sequences of the training data, dropout and label smoothing on, and compares the gradient\n"
      "with the five-point stencil: some entries of each parameter, and two random directions through all of\n"
      "them. Right is within 1e-6 relative or 1e-8 absolute. Exits with 1 where a gradient is wrong.\n"
      "Example:\n"
      "  heed gradcheck configs/dates.yaml model.norm=post model.activation=gelu");
}

void add_show(CLI::App& app, Job& job) {
  const auto options = std::make_shared<ShowCommand>();
  CLI::App* const command = add_command(app, job, "show", "resolved config, layers, parameters, FLOPs, memory", options, show_command);
  command->add_option("CONFIG|RUN", options->config, "an experiment (a YAML file), or a run folder")->required()->type_name("");
  add_overrides(command, options->overrides);
  add_json(command, options->json, "all of it");
  command->footer(
      "FLOPs are those of the matrix products of forward and backward, attention counted in full. Memory is\n"
      "an estimate. What depends on data that are not there is an estimate too, and is called so.\n"
      "Example:\n"
      "  heed show configs/multi30k-de-en.yaml model.d_model=512 model.heads=8");
}

void add_bench(CLI::App& app, Job& job) {
  const auto options = std::make_shared<BenchCommand>();
  CLI::App* const command = add_command(app, job, "bench", "tokens/s, GFLOP/s, share of this machine's gemm rate, time by op",
                                        options, bench_command);
  add_config(command, options->config, options->overrides);
  command->add_option("--steps", options->steps, "steps to measure (default: about ten seconds of them)")
      ->check(CLI::Range(1, 1'000'000))
      ->type_name("N")
      ->group(choices);
  add_json(command, options->json, "the figures");
  command->footer("Example:\n  heed bench configs/bench/nmt-small.yaml threads=2");
}

void add_fetch(CLI::App& app, Job& job) {
  const auto options = std::make_shared<FetchCommand>();
  CLI::App* const command = add_command(app, job, "fetch", "get a well-known data set, and check its SHA-256", options, fetch_command);
  command->add_option("NAME", options->name, "multi30k, tinyshakespeare or mnist")->required()->type_name("");
  command->add_option("--to", options->to, "folder to put it into (default: data/<name>)")->type_name("FOLDER")->group(results);
  command->add_option("--from", options->from, "take the files from this folder instead of the network")
      ->type_name("FOLDER")
      ->group(choices);
  command->footer("Example:\n  heed fetch multi30k --to data/multi30k");
}

/// The first word is no command: what to say about it.
std::string unknown_command(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) names.push_back(command->get_name());
  const std::string near = nearest(word, names);
  return fmt::format("{}: no such command{}", shown(word), near.empty() ? "" : fmt::format(" (did you mean {}?)", near));
}

/// A closed standard stream must not become the number of a file that is opened next.
void keep_standard_streams() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(number, F_GETFD) >= 0 || errno != EBADF) continue;
    // Opened the wrong way round, so that using it is still an error.
    if (open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) std::_Exit(static_cast<int>(Exit::io));
  }
}

/// Runs the job and says what went wrong, if anything did; also when the last bytes cannot be written.
int run(const Job& job) {
  try {
    const int status = job();
    if (std::fflush(stdout) != 0) throw std::system_error(errno, std::generic_category());
    return status;
  } catch (const Error& e) {
    fmt::print(stderr, "heed: {}\n", e.what());
    return static_cast<int>(e.code);
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "heed: out of memory\n");
    return static_cast<int>(Exit::io);
  } catch (const std::filesystem::filesystem_error& e) {
    fmt::print(stderr, "heed: {}\n", e.what());
    return static_cast<int>(Exit::io);
  } catch (const std::system_error& e) {   // from fmt::print
    fmt::print(stderr, "heed: cannot write standard output: {}\n", e.code().message());
    return static_cast<int>(Exit::io);
  } catch (const std::exception& e) {
    fmt::print(stderr, "heed: {}\n", e.what());
    return static_cast<int>(Exit::failed);
  }
}

}  // namespace

int main(int argc, char** argv) {
  keep_standard_streams();
  std::signal(SIGPIPE, SIG_IGN);   // a reader that has gone is an error like any other
  CLI::App app{"heed trains Transformers from a YAML file, on the CPU.", "heed"};
  app.require_subcommand(1);
  app.set_version_flag("--version", fmt::format("heed {}", version));
  app.failure_message([](const CLI::App*, const CLI::Error& e) {
    return fmt::format("heed: {}\n(heed --help lists the commands, heed COMMAND --help their options)\n", e.what());
  });
  app.footer(
      "heed COMMAND --help says more. Data go to standard output, talk to standard error.\n"
      "Exit status: 0 done, 1 failed, 2 usage or config, 3 bad input file, 4 disk, memory or I/O,\n"
      "5 loss or gradient not finite, 6 run folder locked, 130 and 143 stopped by a signal, after saving.");
  Job job;
  const std::vector<std::string> typed(argv, argv + argc);
  add_train(app, job, typed);
  add_resume(app, job, typed);
  add_eval(app, job);
  add_generate(app, job);
  add_score(app, job);
  add_gradcheck(app, job);
  add_show(app, job);
  add_bench(app, job);
  add_fetch(app, job);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() != 0 && argc > 1 && argv[1][0] != '-' && app.get_subcommands().empty()) {
      fmt::print(stderr, "heed: {}\n(heed --help lists the commands)\n", unknown_command(app, argv[1]));
      return static_cast<int>(Exit::usage);
    }
    return app.exit(e) == 0 ? 0 : static_cast<int>(Exit::usage);
  }
  return run(job);
}
