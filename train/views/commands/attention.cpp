#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "autograd/base/error.h"
#include "train/commands/command_line.h"
#include "train/commands/output.h"
#include "train/config/fields.h"
#include "train/terminal/run_log.h"
#include "train/views/commands/attention.h"
#include "train/views/commands/line.h"
#include "train/views/commands/view_file.h"

namespace heed {

namespace {

struct AttentionCommand : RunArguments, AttentionRequest, FigureRequest {
  std::string output;  ///< empty: reports/attention.html of the run
  bool json = false;
  std::string width;  ///< width of a drawing on paper: "84mm"; empty: in pixels
};

/// Removes all layers except `layers` and, if `head` is set, all heads except this one.
void select(AttentionMaps& maps, const std::vector<std::string>& layers,
            std::optional<std::int64_t> head) {
  std::erase_if(maps.layers, [&](const LayerWeights& layer) {
    return std::ranges::find(layers, layer.name) == layers.end();
  });
  if (!head) return;
  for (LayerWeights& layer : maps.layers) layer.heads = {layer.heads[*head]};
}

/// The value of --width in millimetres; 0 without the option. Throws Error(usage) if it is invalid.
double millimetres(const std::string& text) {
  if (text.empty()) return 0;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, text.data() + text.size() - end);
  if (error != std::errc() || (!unit.empty() && unit != "mm") || !(value >= 1 && value <= 10000))
    throw Error(Exit::usage, "--width {}: expected 1 to 10000 millimetres, such as 84mm", text);
  return value;
}

/// Throws Error(usage) if a view or a width is given for an output that is not a drawing.
void check_drawing(const AttentionCommand& options, bool drawing) {
  for (const auto& [name, given] :
       {std::pair("--view", options.view != "map"), {"--width", !options.width.empty()}}) {
    if (given && !drawing)
      throw Error(
          Exit::usage,
          "{} is for drawings: give --output a name that ends in .svg, .png or .pdf (a page "
          "contains all views)",
          name);
  }
}

/// Throws Error(usage) if an option does not fit the view, if one that the view requires is missing,
/// or if there are more layers than the view can draw.
void check_figure(const FigureRequest& options, bool one_head,
                  const std::vector<std::string>& layers) {
  const bool graph = options.view == "graph" || options.view == "rollout";
  const auto stack = [](const std::string& name) { return name.substr(0, name.find(".layers.")); };
  if (graph && std::ranges::any_of(layers, [&](const std::string& name) {
        return stack(name) != stack(layers.front());
      }))
    throw Error(Exit::usage, "--view {} draws one stack; give --layer encoder or decoder",
                options.view);
  if (!graph && layers.size() > 1) {
    throw Error(Exit::usage,
                "a drawing contains one layer, but {} are chosen; give --layer with one of {}",
                layers.size(), fmt::join(layers, ", "));
  }
  if (options.view == "neurons" && !one_head)
    throw Error(Exit::usage, "--view neurons needs --head");
  if (options.view == "rollout" && one_head)
    throw Error(Exit::usage, "--view rollout uses the mean of the heads: leave out --head");
  if (options.query && options.view != "neurons")
    throw Error(Exit::usage, "--query is for --view neurons");
  if (options.threshold && !graph)
    throw Error(Exit::usage, "--threshold is for --view graph and rollout");
}

int attention_command(const AttentionCommand& options) {
  require_utf8("--input", options.input);
  require_utf8("--target", options.target);
  const bool drawing = names_drawing(options.output) && !options.json;
  if (!options.json && !drawing)
    refuse_other_formats(options.output, "heed attention",
                         "a page, or a drawing to a file whose name ends in .svg, .png or .pdf");
  const TrainedModel trained = TrainedModel::open(options.run, options.overrides, options.weights);
  check_output(options.output, {options.input});
  check_output(options.output, named_files(trained.config));
  const std::vector<std::string> layers =
      chosen_layers(*trained.model, trained.config, options.layer, options.head);
  check_drawing(options, drawing);
  if (drawing) check_figure(options, options.head.has_value(), layers);
  const double width = millimetres(options.width);
  Team team(trained.config.threads);
  const LineAttention found = attention_of(trained, team, options);
  if (options.json) {
    nlohmann::json record = json_of(found.maps);
    record["input"] = options.input;
    record["output"] = found.output;
    record.update(trained.weights.json());
    write_output(options.output, [&](const Sink& sink) {
      sink(record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    });
    if (!is_standard_output(options.output))
      print_message("heed: output written to " + options.output);
    return 0;
  }
  const std::string path =
      options.output.empty() ? report_file(options.run, "attention.html") : options.output;
  write_view(path,
             drawing
                 ? svg_file(attention_figure(found.maps, options.head.has_value(), options), width)
                 : attention_page(found.maps, found.head));
  return 0;
}

}  // namespace

LineAttention attention_of(const TrainedModel& trained, Team& team,
                           const AttentionRequest& request) {
  const Architecture architecture = trained.task->info().architecture;
  const bool has_target = has_encoder(architecture) && has_decoder(architecture);
  if (!request.target.empty() && !has_target)
    throw Error(
        Exit::usage,
        "--target is for models with an encoder and a decoder; this one reads --input alone");
  const std::vector<std::string> layers =
      chosen_layers(*trained.model, trained.config, request.layer, request.head);
  const LoadedModel model = trained.with(team);
  LineAttention found;
  found.output = request.target;
  if (found.output.empty() && architecture != Architecture::decoder)
    found.output =
        trained.task->make_generator(model, trained.config.seed)->lines({request.input}, 0).front();
  found.maps = attention_maps(model, trained.config,
                              trained.task->batch_of_line(trained.tokenizers, request.input,
                                                          has_target ? found.output : ""));
  const std::string read = tokens_read(trained, request.input);
  if (!read.empty())
    print_message(fmt::format("heed: the model reads {} tokens (model.context)", read));
  select(found.maps, layers, request.head);
  if (std::ranges::any_of(found.maps.layers, [&](const LayerWeights& layer) {
        return found.maps.queries(layer).empty();
      }))
    throw Error(Exit::usage, "--input: a line without tokens has no attention weights");
  found.head = {fmt::format("Attention of {}", trained.config.name), {{"input", request.input}}};
  if (!found.output.empty()) found.head.lines.emplace_back("output", found.output);
  if (!read.empty()) found.head.lines.emplace_back("tokens", read);
  found.head.lines.emplace_back("weights", trained.weights.text());
  return found;
}

Drawing attention_figure(const AttentionMaps& maps, bool one_head, const FigureRequest& request) {
  std::vector<std::string> names;
  for (const LayerWeights& layer : maps.layers) names.push_back(layer.name);
  check_figure(request, one_head, names);
  const LayerWeights& layer = maps.layers.front();
  const auto rows = std::ssize(maps.queries(layer));
  if (request.query.value_or(0) >= rows)
    throw Error(Exit::usage, "--query {}: expected a number less than {}, the number of rows",
                *request.query, rows);
  const bool self = std::ranges::any_of(maps.layers, &LayerWeights::self);
  if (!self && (request.view == "graph" || request.view == "rollout"))
    throw Error(Exit::usage, "--view {} draws self-attention, but {} is cross-attention",
                request.view, layer.name);
  return attention_drawing(
      maps, {request.view, request.query, request.threshold.value_or(FigureOptions().threshold)});
}

void add_attention(CommandLine& line) {
  const auto [command, options] = add_command<AttentionCommand>(
      line, "attention", Needs::model, "what each head of a model attends to", attention_command);
  CLI::Option* const output = add_choice(
      command, results, "--output", options->output, "FILE",
      "output file: a drawing if its name ends in .svg, .png or .pdf, else a page (default: "
      "reports/attention.html in the run's folder; with --json, standard output)");
  command->parse_complete_callback([options = options, output] {
    if (options->json && output->empty()) options->output = "-";
  });
  add_run(command, options->run, options->overrides, "decode.beam=1");
  add_choice(
      command, choices, "--input", options->input, "TEXT",
      "a source line; for images, videos and sound, a file name; for language models, a text")
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

}  // namespace heed
