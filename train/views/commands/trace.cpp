#include <fmt/format.h>

#include <filesystem>

#include "autograd/base/error.h"
#include "train/commands/command_line.h"
#include "train/commands/output.h"
#include "train/config/fields.h"
#include "train/tasks/model.h"
#include "train/terminal/run_log.h"
#include "train/views/commands/line.h"
#include "train/views/commands/view_file.h"
#include "train/views/report/attention/trace_page.h"

namespace heed {

namespace {

/// `config` may also be a run folder.
struct TraceCommand : ConfigArguments {
  std::string weights;
  std::string input, target;
  std::string layer;  ///< dot-separated parts of a layer name; empty: the first attention layer
  std::int64_t head = 0;
  bool backward = false;
  std::string output = "-";
};

/// The initial model of a config, with the tokenizers with which it would be trained.
TrainedModel untrained(const std::string& path, const std::vector<std::string>& overrides) {
  TrainedModel made;
  made.config = read_config(path, overrides);
  made.task = make_task(made.config);
  made.tokenizers = made.task->find_tokenizers(made.task->read().train);
  made.model = build_model(made.config, sizes_of(made.tokenizers));
  return made;
}

/// The default of --target: the output or the labels that the model of a run predicts. Empty for a
/// language model and an untrained model, and for a model that labels tokens unless --backward
/// requires the labels. Throws Error(usage) if --backward requires the output of an untrained
/// model.
std::string default_target(const TrainedModel& trained, const LoadedModel& model,
                           const TraceCommand& options, bool is_run) {
  const bool labels = trained.task->info().architecture == Architecture::encoder;
  if (trained.task->info().architecture == Architecture::decoder) return "";
  if (!is_run && options.backward)
    throw Error(Exit::usage,
                "--backward needs --target: the model of a CONFIG is untrained and has no output");
  if (!is_run || (labels && !options.backward)) return "";
  return trained.task->make_generator(model, trained.config.seed)
      ->lines({options.input}, 0)
      .front();
}

int trace_command(const TraceCommand& options) {
  require_utf8("--input", options.input);
  require_utf8("--target", options.target);
  const bool page = options.output.ends_with(".html");
  const std::string writes = "text, or a page to a file whose name ends in .html";
  if (options.output.ends_with(".svg"))
    throw Error(Exit::usage, "--output {}: heed trace writes {}", options.output, writes);
  refuse_other_formats(options.output, "heed trace", writes);
  const bool is_run = std::filesystem::is_directory(options.config);
  if (!is_run && !options.weights.empty())
    throw Error(Exit::usage, "--weights is for run folders; " + options.config + " is not one");
  check_output(options.output, {options.config, options.input});
  const TrainedModel trained =
      is_run ? TrainedModel::open(options.config, options.overrides, options.weights)
             : untrained(options.config, options.overrides);
  check_output(options.output, named_files(trained.config));
  if (!options.target.empty() && trained.task->info().architecture == Architecture::decoder)
    throw Error(Exit::usage,
                "--target is for models that read a source; this one reads --input alone");
  const std::string layer =
      chosen_layers(*trained.model, trained.config, options.layer, options.head).front();
  Team team(trained.config.threads);
  const LoadedModel model = trained.with(team);
  const std::string target =
      options.target.empty() ? default_target(trained, model, options, is_run) : options.target;
  const Batch batch = trained.task->batch_of_line(trained.tokenizers, options.input, target);
  const AttentionTrace trace =
      trace_attention(model, trained.config, batch, {layer, options.head, options.backward});
  const std::string weights =
      is_run ? trained.weights.text()
             : fmt::format("freshly initialised, seed {}", trained.config.seed);
  PageHead head{fmt::format("An attention head of {}", trained.config.name),
                {{"input", options.input}}};
  if (!target.empty()) head.lines.emplace_back("target", target);
  if (const std::string read = tokens_read(trained, options.input); !read.empty())
    head.lines.emplace_back("tokens", read);
  head.lines.emplace_back("weights", weights);
  if (page && !options.json) {
    write_view(options.output, trace_page(trace, head));
    return 0;
  }
  write_output(options.output, [&](const Sink& sink) {
    if (!options.json) return sink(trace_text(trace, head));
    nlohmann::json record = json_of(trace);
    record["input"] = options.input;
    record["target"] = target;
    record["weights"] = weights;
    if (is_run) record.update(trained.weights.json());
    sink(record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  });
  if (!is_standard_output(options.output))
    print_message("heed: output written to " + options.output);
  return 0;
}

}  // namespace

void add_trace(CommandLine& line) {
  const auto [command, options] = add_command<TraceCommand>(
      line, "trace", Needs::model, "one attention head, step by step", trace_command);
  add_argument(command, "CONFIG|RUN", options->config,
               "an experiment (a YAML file), or a run folder")
      ->required();
  add_overrides(command, options->overrides, "model.heads=2");
  add_choice(
      command, choices, "--input", options->input, "TEXT",
      "a source line; for images, videos and sound, a file name; for language models, a text")
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

}  // namespace heed
