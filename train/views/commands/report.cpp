#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <thread>

#include "autograd/base/error.h"
#include "autograd/io/utf8.h"
#include "data/inputs/input_info.h"
#include "train/commands/command_line.h"
#include "train/commands/output.h"
#include "train/commands/trained_model.h"
#include "train/config/fields.h"
#include "train/run/run_lock.h"
#include "train/run/run_record.h"
#include "train/terminal/run_log.h"
#include "train/views/commands/bench.h"
#include "train/views/commands/report.h"
#include "train/views/commands/view_file.h"
#include "train/views/draw/heat_map.h"
#include "train/views/report/attention/page.h"
#include "train/views/report/model_summary.h"
#include "train/views/report/runs/report_page.h"

namespace heed {

namespace {

struct ReportCommand {
  std::vector<std::string> runs;
  std::vector<std::string> csv;  ///< names of curves to print instead of a page
  bool follow = false;           ///< rewrite the page while the runs are in progress
  std::int64_t every = 10;       ///< interval between rewrites, in seconds
  bool profile = false;          ///< measure the time of each op
  std::string output;            ///< empty: reports/report.html of the first folder
};

/// The layer whose attention a report shows: the last layer with cross-attention or, if there is
/// none, the last layer.
LayerWeights shown_layer(const AttentionMaps& maps) {
  const LayerWeights* chosen = &maps.layers.back();
  for (const LayerWeights& layer : maps.layers)
    if (!layer.self) chosen = &layer;
  return *chosen;
}

/// The held-out data of a run, which a page may reveal. The config of a run that comes from a
/// stranger may name any file, but only someone who has read this file can record its sum. Throws
/// Error(bad_input) unless the SHA-256 of the data is that in run.json. The message reveals nothing
/// of the data, because the page contains it.
Split held_out(const History& history) {
  const RunFolder run{history.result.folder};
  const Config& config = history.result.config;
  Split split;
  bool same = false, none = false;
  try {
    const std::unique_ptr<Task> task = make_task(config);
    Corpus corpus = task->read();
    none = corpus.test.empty() && corpus.valid.empty();
    const char* const sum_of_run = corpus.test.empty() ? "/data/valid" : "/data/test";
    split = std::move(corpus.test.empty() ? corpus.valid : corpus.test);
    const nlohmann::json record = read_run_json(run);
    const nlohmann::json::json_pointer at(sum_of_run);
    same = !split.empty() && record.contains(at) &&
           record.at(at) ==
               digest_of_samples(task->encode(split, load_tokenizers(run.path, config), false));
  } catch (const Error& error) {
    print_note(fmt::format("the page does not show data: {}", error.what()));
  }
  if (none) throw Error(Exit::bad_input, "the run has no held-out data");
  if (!same) {
    throw Error(Exit::bad_input,
                "the held-out data that config.yaml names cannot be read or are not those of the "
                "run (their SHA-256 is not that in run.json)");
  }
  return split;
}

/// Continuations of the beginning of a language model's held-out text, as HTML.
std::string sample_of(const History& history, const Split& split) {
  constexpr std::size_t prompt_tokens = 32, text_tokens = 160, max_bytes = 4096;
  const TrainedModel trained = TrainedModel::open(history.result.folder, {}, "");
  const std::string text = split.text.substr(0, max_bytes);
  std::vector<std::int32_t> ids =
      trained.tokenizers.target->encode(text.substr(0, complete_utf8(text)));
  ids.resize(std::min(ids.size(), text_tokens));
  const std::string original = trained.tokenizers.target->decode(ids);
  ids.resize(std::min(ids.size(), prompt_tokens));
  std::string prompt = trained.tokenizers.target->decode(ids);
  prompt.resize(complete_utf8(prompt));
  const auto shown = [&](const std::string& title, const std::string& full) {
    return fmt::format("<h3>{}</h3>\n<pre class=\"sample\"><b>{}</b>{}</pre>\n", title,
                       xml_text(prompt),
                       xml_text(full.substr(std::min(prompt.size(), full.size()))));
  };
  Team team(trained.config.threads);
  const auto generated = [&](bool sample) {
    Config config = trained.config;
    config.decode.sample = sample;
    config.decode.beam = 1;
    config.decode.max_length = text_tokens - prompt_tokens;
    const std::unique_ptr<Task> task = make_task(config);
    return task->make_generator(trained.with(team), config.seed)->continuation(prompt, {});
  };
  return "<p>The first tokens of the held-out text (bold) and their continuations.</p>\n" +
         shown("Greedy: the most probable token at each step", generated(false)) +
         shown(fmt::format("Sampled, temperature {}, seed {}", trained.config.decode.temperature,
                           trained.config.seed),
               generated(true)) +
         shown("The text", original);
}

/// A heat map of the entropy of each head, one row per layer, as HTML.
std::string entropies(const AttentionMaps& maps) {
  HeatMap map{std::ssize(maps.layers), 0, {}, 0};
  for (const LayerWeights& layer : maps.layers)
    map.columns = std::max(map.columns, std::ssize(layer.heads));
  std::vector<std::string> rows, columns;
  for (const LayerWeights& layer : maps.layers) {
    rows.push_back(layer.name);
    for (std::int64_t head = 0; head < map.columns; ++head) {
      const bool exists = head < std::ssize(layer.heads);
      map.values.push_back(exists ? static_cast<float>(layer.heads[head].entropy) : 0);
      map.largest = std::max(map.largest, map.values.back());
    }
  }
  for (std::int64_t head = 0; head < map.columns; ++head)
    columns.push_back(fmt::format("head {}", head));
  return fmt::format(
      "<h3>Entropy of each head, in nats (maximum {:.2f})</h3>\n{}", map.largest,
      svg_element(labelled_map(map, rows, columns,
                               {"layers", "heads", "entropy in nats, mean over the queries"})));
}

std::string attention_of(const History& history) {
  const TrainedModel trained = TrainedModel::open(history.result.folder, {}, "");
  Team team(trained.config.threads);
  const SampleOutput& sample = history.outputs.front();
  AttentionMaps maps =
      attention_maps(trained.with(team), trained.config,
                     trained.task->batch_of_line(trained.tokenizers, sample.source, sample.output));
  const std::string entropy = maps.nonnegative ? entropies(maps) : "";
  const LayerWeights layer = shown_layer(maps);
  maps.layers = {layer};
  return fmt::format(
      "<p>First sample: {} → {}. The map shows the mean of the heads of {}; <code>heed attention "
      "{} --input …</code> shows all layers and heads.</p>\n<div class=\"wide\">{}</div>\n{}",
      xml_text(sample.source), xml_text(sample.output), xml_text(layer.name),
      xml_text(history.result.folder), svg_element(attention_drawing(maps)), entropy);
}

/// Returns a function that loads the image of a source line of `split` and returns nullopt for any
/// other line, and if the file cannot be read. The function is empty if the sources are not images.
std::function<std::optional<Image>(const std::string&)> images_of(const History& history,
                                                                  const Split& split) {
  const Config& config = history.result.config;
  if (info_of(config.data.input).grid == nullptr) return {};
  const auto tokenizers =
      std::make_shared<Tokenizers>(load_tokenizers(history.result.folder, config));
  const std::shared_ptr<Task> task = make_task(config);
  const std::set<std::string> lines(split.source.begin(), split.source.end());
  return [tokenizers, task, lines](const std::string& source) -> std::optional<Image> {
    if (!lines.contains(source)) return std::nullopt;
    try {
      const Batch batch = task->batch_of_line(*tokenizers, source, "");
      const std::optional<PatchGrid> grid = grid_of(batch.source, task->config());
      return grid ? std::optional(grid->image) : std::nullopt;
    } catch (const Error&) {  // for example, the file has been moved
      return std::nullopt;
    }
  };
}

/// Runs `make` for an optional part of the report. An Error becomes a note in the report.
template <class Make>
void try_part(ReportExtras& extras, const std::string& what, const Make& make) {
  try {
    make();
  } catch (const Error& error) {
    extras.notes.push_back(fmt::format("{}: {}", what, error.what()));
  }
}

ReportExtras extras_of(const ReportCommand& options, const History& history, bool running) {
  ReportExtras extras;
  if (running && options.follow) extras.refresh = static_cast<int>(options.every);
  if (running) return extras;  // the page must be written quickly, and the weights are changing
  const Config& config = history.result.config;
  const bool text = config.data.input == InputKind::text;
  Split split;
  if (!text || info_of(config.task).architecture == Architecture::decoder) {
    try_part(extras, "data", [&] {
      split = held_out(history);
      if (text) extras.sample = sample_of(history, split);
      extras.image = images_of(history, split);
    });
  }
  if (!history.outputs.empty()) {
    try_part(extras, "attention", [&] {
      const std::string& first = history.outputs.front().source;
      if (!text && std::ranges::find(split.source, first) == split.source.end())
        throw Error(Exit::bad_input, "{} is not shown: it is not a line of the run's data", first);
      extras.attention = attention_of(history);
    });
  }
  try_part(extras, "model", [&] {
    extras.model = summarize_model(config, load_tokenizers(history.result.folder, config)).text();
  });
  if (options.profile) try_part(extras, "time by op", [&] { extras.profile = time_by_op(config); });
  return extras;
}

std::vector<History> read_all(const ReportCommand& options) {
  std::vector<History> histories(options.runs.size());
  Team team(0);
  team.run(std::ssize(histories),
           [&](std::int64_t i) { histories[i] = read_history(options.runs[i]); });
  for (const History& history : histories)
    check_output(options.output, named_files(history.result.config));
  return histories;
}

std::string page_of(const ReportCommand& options, const std::vector<History>& histories,
                    bool running) {
  return report_page(histories, extras_of(options, histories.front(), running));
}

bool any_is_running(const std::vector<std::string>& runs) {
  return std::ranges::any_of(runs, [](const std::string& run) { return RunLock::is_held(run); });
}

/// `folder` is the one in whose reports/ the page is written by default.
void write_page(const ReportCommand& options, const std::string& folder, bool running) {
  const std::vector<History> histories = read_all(options);
  write_view(options.output.empty() ? report_file(folder, "report.html") : options.output,
             names_drawing(options.output) ? svg_file(arranged(report_curves(histories), 2))
                                           : page_of(options, histories, running));
}

int report_command(const ReportCommand& named) {
  ReportCommand options = named;
  options.runs = run_folders(named.runs);
  if (!names_drawing(options.output))
    refuse_other_formats(options.output, "heed report",
                         "a page, or curves to a file whose name ends in .svg, .png or .pdf");
  check_output(options.output, {});
  if (!options.csv.empty()) {
    const std::string text = curves_csv(read_all(options), options.csv);
    write_output(options.output, [&](const Sink& sink) { sink(text); });
    return 0;
  }
  bool running = any_is_running(options.runs);
  write_page(options, named.runs.front(), running);
  while (options.follow && running) {
    std::this_thread::sleep_for(std::chrono::seconds(options.every));
    running = any_is_running(options.runs);  // checked before reading, so the last page is final
    write_page(options, named.runs.front(), running);
  }
  return 0;
}

}  // namespace

std::string report_of(const std::vector<std::string>& runs, bool profile) {
  ReportCommand options;
  options.runs = run_folders(runs);
  options.profile = profile;
  return page_of(options, read_all(options), any_is_running(options.runs));
}

void add_report(CommandLine& line) {
  const auto [command, options] = add_command<ReportCommand>(
      line, "report", Needs::model, "a page with the curves, results and outputs of runs",
      report_command);
  add_argument(command, "RUN", options->runs,
               "run folders, or the folder of a sweep; each run is compared with the first")
      ->required();
  CLI::Option* const output = add_choice(
      command, results, "--output", options->output, "FILE",
      "output file: the curves of loss and metric if its name ends in .svg, .png or .pdf, "
      "else a page (default: reports/report.html in the first run's folder); with --csv, "
      "a table (default: -, standard output)");
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
  add_trust(command);
  command->parse_complete_callback([options = options, output, csv] {
    if (!csv->empty() && output->empty()) options->output = "-";
  });
  command->footer(
      "The page is self-contained. Runs that differ only in their seed are drawn as one line,\n"
      "their mean, with a band from the minimum to the maximum. Outputs are those of the final\n"
      "evaluation. Attention is shown only if the first run's weights are available, images and\n"
      "the sample of a language model only if its data are too, and have the SHA-256 in run.json.\n"
      "Examples:\n"
      "  heed report runs/dates\n"
      "  heed report runs/pre-1 runs/pre-2 runs/post-1 runs/post-2 --output norms.html\n"
      "  heed report runs/dates --output curves.svg\n"
      "  heed report runs/dates --csv train.nll --csv valid.loss > curves.csv");
}

}  // namespace heed
