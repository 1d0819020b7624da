#include "train/commands/views/view_commands.h"

#include <fmt/format.h>

#include <cstdint>
#include <memory>

#include "train/commands/arguments.h"
#include "train/commands/commands.h"

namespace heed {

namespace {

using namespace arguments;

void add_attention(CLI::App& app, Job& job) {
  const auto options = std::make_shared<AttentionCommand>();
  CLI::App* const command = app.add_subcommand("attention", "what each head of a model attends to");
  CLI::Option* const output = add_choice(
      command, results, "--output", options->output, "FILE",
      "a page, or, if it ends in .svg, a drawing of one layer (default: attention.html)");
  command->callback([options, output, &job] {
    if (options->json && output->empty()) options->output = "-";
    job = [options] { return attention_command(*options); };
  });
  add_run(command, options->run, options->overrides, "decode.beam=1");
  add_choice(
      command, choices, "--input", options->input, "TEXT",
      "a line of the source; pictures and sound: the name of a file; language models: a text")
      ->required();
  add_choice(command, choices, "--target", options->target, "TEXT",
             "the output that belongs to it (default: what the model generates)");
  add_choice(command, choices, "--layer", options->layer, "NAME",
             "only layers with this in their name, such as encoder.layers.0 or multihead_attn");
  command->add_option("--head", options->head, "only this head of each layer, from 0")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 20))
      ->type_name("N")
      ->group(choices);
  add_weights(command, options->weights);
  add_json(command, options->json, "the weights");
  command->footer(
      "The page needs no network and no other file. Weights are those of evaluation, without "
      "dropout. A\n"
      "drawing shows the mean of the heads, or --head.\n"
      "Examples:\n"
      "  heed attention runs/dates --input '3 March 2021'\n"
      "  heed attention runs/captions --input 'drawing:red square 3 20 8;blue circle 18 5 10'\n"
      "  heed attention runs/multi30k-de-en --input 'ein Hund' --layer decoder.layers.0.multihead "
      "--output map.svg");
}

void add_compare(CLI::App& app, Job& job) {
  const auto options = std::make_shared<CompareCommand>();
  CLI::App* const command = add_command(app, job, "compare", "figures of several runs side by side",
                                        options, compare_command);
  command->add_option("RUN", options->runs, "run folders, the one to compare with first")
      ->required()
      ->type_name("");
  CLI::Option* const markdown =
      command->add_flag("--markdown", options->markdown, "print a table of Markdown")
          ->group(results);
  command->add_flag("--json", options->json, "print the figures as one JSON object")
      ->excludes(markdown)
      ->group(results);
  add_choice(command, results, "--output", options->output, "FILE",
             "where the table goes (default: -, standard output)");
  command->footer(
      "Runs that differ in their seed alone are one row: mean ± standard deviation. The columns "
      "are "
      "the keys\n"
      "whose values differ, and the figures of the test, or of the last validation. A difference "
      "from "
      "the first\n"
      "row is judged by whether the ranges of the two rows overlap.\n"
      "Example:\n"
      "  heed compare runs/pre-1 runs/pre-2 runs/post-1 runs/post-2");
}

void add_show(CLI::App& app, Job& job) {
  const auto options = std::make_shared<ShowCommand>();
  CLI::App* const command =
      add_command(app, job, "show", "resolved config, layers, parameters, FLOPs, memory", options,
                  show_command);
  CLI::Option* const config = command
                                  ->add_option("CONFIG|RUN", options->config,
                                               "an experiment (a YAML file), or a run folder")
                                  ->type_name("");
  add_overrides(command, options->overrides, "model.d_model=512");
  add_json(command, options->json, "all of it");
  command
      ->add_flag("--schema", options->schema,
                 "print the JSON Schema of configs, for editors, instead")
      ->excludes(config)
      ->group(results);
  command->callback([options, &job] {
    if (options->config.empty() && !options->schema) throw CLI::RequiredError("CONFIG|RUN");
    job = [options] { return show_command(*options); };
  });
  command->footer(
      "FLOPs are those of the matrix products of forward and backward, with attention counted in "
      "full. Memory\n"
      "is an estimate; so are figures that depend on missing data, and they are marked as such.\n"
      "Examples:\n"
      "  heed show configs/multi30k-de-en.yaml model.d_model=512 model.heads=8\n"
      "  heed show reference      every key with its meaning, choices and default\n"
      "  heed show --schema > heed.schema.json");
}

}  // namespace

void add_views(CLI::App& app, Job& job) {
  add_show(app, job);
  add_attention(app, job);
  add_compare(app, job);
}

}  // namespace heed
