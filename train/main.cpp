#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <new>

#include "autograd/error.h"
#include "train/commands.h"
#include "train/version.h"

int main(int argc, char** argv) {
  using namespace heed;
  CLI::App app{"heed trains Transformers from a YAML file, on the CPU."};
  app.require_subcommand(1);
  app.set_version_flag("--version", fmt::format("heed {}", version));
  app.failure_message(CLI::FailureMessage::simple);
  int status = 0;

  TrainCommand train;
  CLI::App* const train_app = app.add_subcommand("train", "train a model; ends with the test metrics");
  train_app->add_option("config", train.config, "the experiment, a YAML file")->required();
  train_app->add_option("overrides", train.overrides, "key=value, such as train.steps=200");
  train_app->add_option("--run", train.run, "run folder (default: runs/<name>)");
  train_app->add_flag("--overwrite", train.overwrite, "replace a run that the folder holds");
  train_app->add_flag("--json", train.json, "print the final metrics as one JSON object");
  train_app->callback([&] {
    train.command.assign(argv, argv + argc);
    status = train_command(train);
  });

  ResumeCommand resume;
  CLI::App* const resume_app = app.add_subcommand("resume", "go on from the newest valid checkpoint");
  resume_app->add_option("run", resume.run, "run folder")->required();
  resume_app->add_option("overrides", resume.overrides, "key=value, such as train.steps=20000");
  resume_app->add_flag("--json", resume.json, "print the final metrics as one JSON object");
  resume_app->callback([&] {
    resume.command.assign(argv, argv + argc);
    status = resume_command(resume);
  });

  BenchCommand bench;
  CLI::App* const bench_app = app.add_subcommand("bench", "time training steps");
  bench_app->add_option("config", bench.config, "the experiment, a YAML file")->required();
  bench_app->add_option("overrides", bench.overrides, "key=value");
  bench_app->add_option("--steps", bench.steps, "steps to measure (default: about ten seconds of them)");
  bench_app->add_flag("--json", bench.json, "print one JSON object");
  bench_app->callback([&] { status = bench_command(bench); });

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : static_cast<int>(Exit::usage);
  } catch (const Error& e) {
    fmt::print(stderr, "heed: {}\n", e.what());
    return static_cast<int>(e.code);
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "heed: out of memory\n");
    return static_cast<int>(Exit::io);
  } catch (const std::exception& e) {
    fmt::print(stderr, "heed: {}\n", e.what());
    return static_cast<int>(Exit::failed);
  }
  return status;
}
