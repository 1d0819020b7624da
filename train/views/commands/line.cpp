#include "train/views/commands/line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "autograd/base/error.h"
#include "autograd/io/utf8.h"
#include "train/views/report/attention/maps.h"

HEED_BEGIN

void require_utf8(const std::string& option, const std::string& text) {
  if (invalid_utf8(text) != std::string::npos)
    throw Error(Exit::bad_input, "{}: invalid UTF-8", option);
}

std::vector<std::string> chosen_layers(const Model& model, const Config& config,
                                       const std::string& layer, std::optional<std::int64_t> head) {
  const std::vector<std::string> names = attention_layers(model, config);
  std::vector<std::string> chosen;
  for (const std::string& name : names)
    if (layer.empty() || has_parts(name, layer)) chosen.push_back(name);
  if (chosen.empty()) {
    throw Error(Exit::usage,
                "--layer {}: no layer has these parts in its name (whole words between "
                "dots); the layers with attention weights are {}",
                layer, fmt::join(names, ", "));
  }
  const std::int64_t heads = model_sizes(config).heads;
  if (head && *head >= heads) {
    throw Error(Exit::usage,
                "--head {0}: expected a number less than {2}, the number of heads of {1}", *head,
                chosen.front(), heads);
  }
  return chosen;
}

std::string tokens_read(const TrainedModel& trained, const std::string& input) {
  if (trained.task->info().architecture != Architecture::decoder) return "";
  const std::int64_t tokens = std::ssize(trained.tokenizers.target->encode(input)),
                     context = model_sizes(trained.config).context;
  return tokens <= context ? "" : fmt::format("the last {} of {}", context, tokens);
}

HEED_END
