#include "train/program/view_commands.h"

#include <fmt/format.h>

#include <cstdint>

#include "train/commands/commands.h"
#include "train/program/arguments.h"
#include "train/views/report/plots.h"

namespace heed {

namespace {

using namespace arguments;

void add_attention(CLI::App& app, Job& job) {
  const auto [command, options] = add_command<AttentionCommand>(
      app, job, "attention", "what each head of a model attends to", attention_command);
  CLI::Option* const output =
      add_choice(command, results, "--output", options->output, "FILE",
                 "output file: a drawing if its name ends in .svg, else a page (default: "
                 "attention.html; with --json, standard output)");
  command->parse_complete_callback([options = options, output] {
    if (options->json && output->empty()) options->output = "-";
  });
  add_run(command, options->run, options->overrides, "decode.beam=1");
  add_choice(
      command, choices, "--input", options->input, "TEXT",
      "a line of the source; for images, videos and sound, a file name; for language models, text")
      ->required();
  add_choice(command, choices, "--target", options->target, "TEXT",
             "the target of this input (default: the model's output)");
  add_choice(
      command, choices, "--layer", options->layer, "NAME",
      "only layers with these parts in their name, such as encoder.layers.0 or multihead_attn");
  add_choice(command, choices, "--head", options->head, "N",
             "only this head of each layer, counted from 0")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 20));
  add_weights(command, options->weights);
  CLI::Option* const view =
      add_choice(command, results, "--view", options->view, "VIEW",
                 "kind of drawing: map (default), lines, neurons, graph or rollout")
          ->check(CLI::IsMember({"map", "lines", "neurons", "graph", "rollout"}));
  add_choice(command, results, "--query", options->query, "N",
             "with --view neurons: the row of the query, counted from 0 (default: the last)")
      ->check(CLI::NonNegativeNumber)
      ->needs(view);
  add_choice(command, results, "--threshold", options->threshold, "T",
             "with --view graph or rollout: draw only weights of at least T (default: 0.1)")
      ->check(CLI::Range(0.0, 1.0))
      ->needs(view);
  add_choice(command, results, "--width", options->width, "MM",
             "the width of a drawing on paper, such as 84mm");
  add_json(command, options->json, "the attention weights");
  command->footer(
      "The page is self-contained. The weights are computed as in evaluation, without dropout. A\n"
      "drawing shows the mean of the heads, or the head that --head selects. The views:\n"
      "  map      the weights of the keys, one row per query; if the keys are rows of an image,\n"
      "           the weights are drawn over the image\n"
      "  lines    the weights as lines from each query to the keys\n"
      "  neurons  the elementwise products q ⊙ k of a query and each key; their sum times the\n"
      "           scale is the score, without position terms\n"
      "  graph    the weights of all layers of a stack\n"
      "  rollout  the share of each input row in the rows after the last layer, for the mean of\n"
      "           all heads (Abnar and Zuidema 2020)\n"
      "Examples:\n"
      "  heed attention runs/dates --input '3 March 2021'\n"
      "  heed attention runs/captions --input 'drawing:red square 3 20 8;blue circle 18 5 10'\n"
      "  heed attention runs/multi30k-de-en --input 'ein Hund' --layer "
      "decoder.layers.0.multihead_attn --view lines --output lines.svg --width 84mm");
}

void add_trace(CLI::App& app, Job& job) {
  const auto [command, options] = add_command<TraceCommand>(
      app, job, "trace", "one attention head, step by step", trace_command);
  add_argument(command, "CONFIG|RUN", options->config,
               "an experiment (a YAML file), or a run folder")
      ->required();
  add_overrides(command, options->overrides, "model.heads=2");
  add_choice(
      command, choices, "--input", options->input, "TEXT",
      "a line of the source; for images, videos and sound, a file name; for language models, text")
      ->required();
  add_choice(command, choices, "--target", options->target, "TEXT",
             "the output or the labels of this input (default: what the model of a RUN predicts)");
  add_choice(command, choices, "--layer", options->layer, "NAME",
             "the first attention layer with these parts in its name (default: the model's first)");
  add_choice(command, choices, "--head", options->head, "N",
             "the head, counted from 0 (default: 0)")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 20));
  add_weights(command, options->weights);
  add_flag(command, choices, "--backward", options->backward,
           "also show the gradients of the loss of this line, without dropout");
  add_choice(
      command, results, "--output", options->output, "FILE",
      "output file: a page if its name ends in .html, else text (default: -, standard output)");
  add_json(command, options->json, "every matrix in full");
  command->footer(
      "Shows softmax(Q Kᵀ / √d) V (Vaswani et al. 2017, eq. 1) with its numbers: each matrix, its\n"
      "shape, and its formula in terms of earlier matrices. The model of a CONFIG has its initial\n"
      "weights and, without --target, reads an empty target.\n"
      "Examples:\n"
      "  heed trace configs/reverse.yaml model.d_model=8 model.heads=2 --input 'a b c'\n"
      "  heed trace runs/reverse --input 'a b c' --layer multihead_attn --backward --output "
      "head.html");
}

void add_compare(CLI::App& app, Job& job) {
  const auto [command, options] = add_command<CompareCommand>(
      app, job, "compare", "metrics of several runs side by side", compare_command);
  add_argument(command, "RUN", options->runs, "run folders; each is compared with the first")
      ->required();
  CLI::Option* const markdown =
      add_flag(command, results, "--markdown", options->markdown, "print the table as Markdown");
  add_flag(command, results, "--json", options->json, "print the metrics as one JSON object")
      ->excludes(markdown);
  add_choice(command, results, "--output", options->output, "FILE",
             "output file of the table (default: -, standard output)");
  command->footer(
      "Runs that differ only in their seed share a row: mean ± standard deviation. The columns\n"
      "are the keys whose values differ, and the metrics on the test data or, if there was no\n"
      "test, in the last validation. Each row after the first is judged by whether its range\n"
      "(minimum to maximum) overlaps with that of the first row.\n"
      "Example:\n"
      "  heed compare runs/pre-1 runs/pre-2 runs/post-1 runs/post-2");
}

void add_show(CLI::App& app, Job& job) {
  const auto [command, options] = add_command<ShowCommand>(
      app, job, "show", "resolved config, layers, parameters, FLOPs, memory", show_command);
  CLI::Option* const config = add_argument(command, "CONFIG|RUN", options->config,
                                           "an experiment (a YAML file), or a run folder");
  add_overrides(command, options->overrides, "model.d_model=512");
  add_json(command, options->json, "the config and its summary");
  add_choice(command, results, "--output", options->output, "FILE",
             "output file: a drawing if its name ends in .svg, else text (default: -, standard "
             "output)");
  add_flag(command, results, "--tape", options->tape,
           "with --output NAME.svg: draw the tape of a training step instead of the model");
  add_flag(command, results, "--schema", options->schema,
           "print the JSON Schema of configs, for editors, instead of a config")
      ->excludes(config);
  command->callback([options = options, &job] {
    if (options->config.empty() && !options->schema) throw CLI::RequiredError("CONFIG|RUN");
    job = [options] { return show_command(*options); };
  });
  command->footer(
      "FLOPs are those of the matrix products of forward and backward, including attention\n"
      "scores that are masked. Memory is an estimate. If the data or a SentencePiece tokenizer is\n"
      "missing, the numbers that depend on it are estimates too and are marked as such.\n"
      "Examples:\n"
      "  heed show configs/multi30k-de-en.yaml model.d_model=512 model.heads=8\n"
      "  heed show configs/dates.yaml --output dates.svg\n"
      "  heed show configs/dates.yaml model.layers=1 --tape --output tape.svg\n"
      "  heed show reference      every key with its meaning, choices and default\n"
      "  heed show --schema > heed.schema.json");
}

void add_report(CLI::App& app, Job& job) {
  const auto [command, options] = add_command<ReportCommand>(
      app, job, "report", "a page with the curves, results and outputs of runs", report_command);
  add_argument(command, "RUN", options->runs, "run folders; each is compared with the first")
      ->required();
  CLI::Option* const output =
      add_choice(command, results, "--output", options->output, "FILE",
                 "output file: the curves of loss and metric if its name ends in .svg, else a page "
                 "(default: report.html); with --csv, a table (default: -, standard output)");
  CLI::Option* const csv =
      add_choice(command, results, "--csv", options->csv, "NAME",
                 "print this curve, such as train.loss or valid.bleu, as CSV instead; may be "
                 "repeated")
          ->allow_extra_args(false);
  CLI::Option* const follow = add_flag(command, choices, "--follow", options->follow,
                                       "rewrite the page while the runs are in progress")
                                  ->excludes(csv);
  add_choice(command, choices, "--every", options->every, "S",
             "interval between rewrites, in seconds (default: 10)")
      ->check(CLI::Range(1, 86'400))
      ->needs(follow);
  add_flag(command, choices, "--profile", options->profile,
           "measure the time of each op in a step of the first run's config")
      ->excludes(csv);
  command->parse_complete_callback([options = options, output, csv] {
    if (!csv->empty() && output->empty()) options->output = "-";
  });
  command->footer(
      "The page is self-contained. Runs that differ only in their seed are drawn as one line,\n"
      "their mean, with a band from the minimum to the maximum. Outputs are those of the final\n"
      "evaluation. Attention is shown only if the first run's weights are available, images only\n"
      "if its data are.\n"
      "Examples:\n"
      "  heed report runs/dates\n"
      "  heed report runs/pre-1 runs/pre-2 runs/post-1 runs/post-2 --output norms.html\n"
      "  heed report runs/dates --output curves.svg\n"
      "  heed report runs/dates --csv train.nll --csv valid.loss > curves.csv");
}

void add_plot(CLI::App& app, Job& job) {
  const auto [command, options] = add_command<PlotCommand>(
      app, job, "plot", "drawings of positions, schedules, softmax, masks or activations",
      plot_command);
  add_argument(command, "WHAT", options->what, "positions, schedule, softmax, masks or activations")
      ->required()
      ->check(CLI::IsMember(plot_names()));
  add_argument(command, "CONFIG", options->config, "a config (default: the defaults of all keys)");
  add_overrides(command, options->overrides, "model.heads=8");
  add_choice(command, choices, "--length", options->length, "N",
             "number of positions to draw (default: 64)")
      ->check(CLI::Range(std::int64_t{4}, std::int64_t{4096}));
  add_choice(command, results, "--output", options->output, "FILE",
             "the drawing, an SVG file (default: WHAT.svg)");
  command->footer(
      "Examples:\n"
      "  heed plot positions model.d_model=128 --length 100\n"
      "  heed plot schedule configs/multi30k-de-en.yaml\n"
      "  heed plot masks 'model.attention={pattern: window, window: 8}' --length 32 --output "
      "masks.svg");
}

void add_runs(CLI::App& app, Job& job) {
  const auto [command, options] = add_command<RunsCommand>(
      app, job, "runs", "list the runs below a folder, the most recent last", runs_command);
  add_argument(command, "FOLDER", options->folder, "folder to search (default: runs)");
  add_json(command, options->json, "the list");
  command->footer(
      "The figure is the metric that selects the best checkpoint, on the test data or, if there\n"
      "was no test, in the last validation. heed resume continues a stopped run.\n"
      "Examples:\n"
      "  heed runs\n"
      "  heed runs --json | jq -r '.runs[] | select(.state == \"stopped\") | .run'");
}

}  // namespace

void add_views(CLI::App& app, Job& job) {
  add_show(app, job);
  add_attention(app, job);
  add_trace(app, job);
  add_compare(app, job);
  add_report(app, job);
  add_plot(app, job);
  add_runs(app, job);
}

}  // namespace heed
