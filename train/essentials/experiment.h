#pragma once
/// An experiment, read from YAML. The keys are some of those of `heed train`, so both programs can
/// read the same file, and have the same defaults. A key or value that this program does not
/// support is an error.
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "nn/reference/transformer.h"

HEED_BEGIN
namespace reference {

struct Experiment {
  std::string task = "seq2seq";  ///< seq2seq or lm
  std::uint64_t seed = 1;
  std::string train_source, train_target;  ///< files with one sample per line
  std::string valid_source, valid_target;
  std::string train_text, valid_text;  ///< lm: files of running text
  Sizes model;
  std::int64_t context = 256;  ///< lm: number of tokens in a window
  double lr = 1e-3;            ///< the peak learning rate, at the end of the warmup
  std::int64_t warmup = -1;    ///< -1 (auto): a tenth of the steps, at least 1 and at most 1000
  std::int64_t steps = 10'000;
  std::int64_t batch_tokens = 4096;  ///< number of labels in a batch, approximately
  double label_smoothing = 0.1;
  std::int64_t max_length = 128;  ///< maximum number of generated tokens
};

using Setter = std::function<void(const YAML::Node&)>;

template <class T>
Setter set(T& value) {
  return [&value](const YAML::Node& node) { value = node.as<T>(); };
}
/// The keys for which this program supports only one value. `heed train` has other defaults, so the
/// file must state them.
inline const std::map<std::string, std::string> fixed_keys{
    {"tokenizer.kind", "char"},    {"model.dropout", "0"},   {"model.norm", "post"},
    {"model.final_norm", "false"}, {"optim.clip_norm", "0"}, {"decode.beam", "1"}};

/// The setter of each supported key.
inline std::map<std::string, Setter> keys_of(Experiment& e) {
  std::map<std::string, Setter> keys{
      {"name", [](const YAML::Node&) {}},
      {"task", set(e.task)},
      {"seed", set(e.seed)},
      {"data.train.source", set(e.train_source)},
      {"data.train.target", set(e.train_target)},
      {"data.train.text", set(e.train_text)},
      {"data.valid.source", set(e.valid_source)},
      {"data.valid.target", set(e.valid_target)},
      {"data.valid.text", set(e.valid_text)},
      {"model.d_model", set(e.model.d_model)},
      {"model.heads", set(e.model.heads)},
      {"model.d_ff", set(e.model.d_ff)},
      {"model.layers",
       [&e](const YAML::Node& node) {
         e.model.encoder_layers = e.model.decoder_layers = node.as<std::int64_t>();
       }},
      {"model.context", set(e.context)},
      {"optim.lr", set(e.lr)},
      {"optim.schedule.warmup",
       [&e](const YAML::Node& node) {
         e.warmup = node.as<std::string>() == "auto" ? -1 : node.as<std::int64_t>();
       }},
      {"train.steps", set(e.steps)},
      {"train.batch_tokens", set(e.batch_tokens)},
      {"train.label_smoothing", set(e.label_smoothing)},
      {"decode.max_length", set(e.max_length)},
  };
  for (const auto& fixed : fixed_keys)
    keys.emplace(fixed.first, [value = fixed.second](const YAML::Node& node) {
      if (node.as<std::string>() != value) throw std::runtime_error("expected " + value);
    });
  return keys;
}

/// Sets what the file states, and removes these keys from `keys`.
inline void read(const YAML::Node& node, const std::string& path,
                 std::map<std::string, Setter>& keys, const std::string& file) {
  if (node.IsMap()) {
    for (const auto& entry : node) {
      const auto key = entry.first.as<std::string>();
      read(entry.second, path.empty() ? key : path + "." + key, keys, file);
    }
    return;
  }
  const auto place = fmt::format("{}:{}: {}", file, node.Mark().line + 1, path);
  const auto found = keys.find(path);
  if (found == keys.end()) throw Error(Exit::usage, "{}: unknown or repeated key", place);
  try {
    found->second(node);
  } catch (const std::exception& error) {
    throw Error(Exit::usage, "{}: {}", place, error.what());
  }
  keys.erase(found);
}

/// Throws Error(usage) if the file cannot be read or contains an invalid key or value.
inline Experiment read_experiment(const std::string& file) {
  Experiment experiment;
  YAML::Node root;
  try {
    root = YAML::LoadFile(file);
  } catch (const YAML::Exception& error) {
    throw Error(Exit::usage, "{}: {}", file, error.what());
  }
  std::map<std::string, Setter> keys = keys_of(experiment);
  read(root, "", keys, file);
  for (const auto& [key, value] : fixed_keys)
    if (keys.contains(key)) throw Error(Exit::usage, "{}: {}: {} must be stated", file, key, value);
  if (experiment.task != "seq2seq" && experiment.task != "lm")
    throw Error(Exit::usage, "{}: task: expected seq2seq or lm, got {}", file, experiment.task);
  if (experiment.warmup < 0)
    experiment.warmup = std::clamp<std::int64_t>(experiment.steps / 10, 1, 1000);
  const Sizes& m = experiment.model;
  if (m.heads < 1 || m.d_model < 1 || m.d_model % m.heads != 0 || m.d_ff < 1 ||
      experiment.context < 1)
    throw Error(Exit::usage, "{}: model: expected sizes above 0, and heads that divide d_model",
                file);
  return experiment;
}

}  // namespace reference
HEED_END
