#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>

#include "autograd/base/error.h"
#include "autograd/base/utf8.h"
#include "train/commands/commands.h"
#include "train/commands/output.h"
#include "train/commands/trained_model.h"
#include "train/report/attention_page.h"
#include "train/run/run_folder.h"
#include "train/terminal/talk.h"

namespace heed {

namespace {

[[noreturn]] void refuse(const std::string& message) { throw Error(Exit::usage, message); }

/// Only the layers whose names contain --layer, and only the head --head.
void select(AttentionMaps& maps, const AttentionCommand& options) {
  std::vector<std::string> names;
  for (const LayerWeights& layer : maps.layers) names.push_back(layer.name);
  std::erase_if(maps.layers, [&](const LayerWeights& layer) {
    return layer.name.find(options.layer) == std::string::npos;
  });
  if (maps.layers.empty()) {
    refuse(fmt::format("--layer {}: no layer has that in its name; the model has {}", options.layer,
                       fmt::join(names, ", ")));
  }
  if (!options.head) return;
  for (LayerWeights& layer : maps.layers) {
    if (*options.head >= std::ssize(layer.heads))
      refuse(fmt::format("--head {}: {} has {} heads, which count from 0", *options.head,
                         layer.name, layer.heads.size()));
    layer.heads = {layer.heads[*options.head]};
  }
}

std::string figure(const AttentionMaps& maps) {
  if (maps.layers.size() > 1) {
    std::vector<std::string> names;
    for (const LayerWeights& layer : maps.layers) names.push_back(layer.name);
    refuse(
        fmt::format("an SVG file holds one layer, but {} are chosen; give --layer with one of {}",
                    names.size(), fmt::join(names, ", ")));
  }
  return attention_figure(maps, maps.layers.front());
}

}  // namespace

int attention_command(const AttentionCommand& options) {
  for (const auto& [name, text] :
       {std::pair("--input", &options.input), {"--target", &options.target}}) {
    if (invalid_utf8(*text) != std::string::npos)
      throw Error(Exit::bad_input, fmt::format("{}: invalid UTF-8", name));
  }
  const TrainedModel trained = TrainedModel::open(options.run, options.overrides, options.weights);
  const bool has_target = has_encoder(trained.task->info().architecture) &&
                          has_decoder(trained.task->info().architecture);
  if (!options.target.empty() && !has_target)
    refuse("--target is for models with an encoder and a decoder; this one reads --input alone");
  refuse_output_over_input(options.output, files_of({options.run}));
  Team team(trained.config.threads);
  const Trained model = trained.with(team);
  std::string output = options.target;
  if (output.empty() && trained.task->info().architecture != Architecture::decoder)
    output = trained.task->answers(model, trained.config.seed)->lines({options.input}, 0).front();
  AttentionMaps maps =
      attention_maps(model, trained.config,
                     trained.task->batch_of_line(trained.tokenizers, options.input, output));
  select(maps, options);
  write_output(options.output, [&](const Sink& sink) {
    if (options.json) {
      nlohmann::json record = json_of(maps);
      record["input"] = options.input;
      record["output"] = output;
      record.update(trained.weights.json());
      sink(record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    } else if (options.output.ends_with(".svg")) {
      sink(figure(maps));
    } else {
      PageHead head{fmt::format("Attention of {}", trained.config.name),
                    {{"input", options.input}}};
      if (!output.empty()) head.lines.emplace_back("output", output);
      head.lines.emplace_back("weights", trained.weights.text());
      sink(attention_page(maps, head));
    }
  });
  if (!is_standard_output(options.output)) tell("heed: written to " + options.output);
  return 0;
}

}  // namespace heed
