#pragma once
/// An experiment as plain values, read from YAML and `key=value` overrides.
///
/// The keys, their types, ranges and meanings are in train/config/fields.cpp, and
/// configs/reference.yaml is printed from that table. Errors are reported together, each with file,
/// line, column, key and a hint, before any other file is read or written.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "autograd/base/boxed.h"
#include "data/options.h"
#include "nn/option_kinds.h"
#include "optim/options.h"
#include "train/config/options.h"

namespace heed {

extern template class Boxed<ModelOptions>;  // instantiated in config.cpp

struct Config {
  std::string name;  ///< name of the run; by default the file's name without .yaml
  std::uint64_t seed = 1;
  std::int64_t threads = 0;          ///< 0: one per core
  std::vector<std::string> plugins;  ///< paths of shared libraries, which are loaded first
  TaskKind task = TaskKind::seq2seq;
  DataOptions data;
  TokenizerOptions tokenizer;
  Boxed<ModelOptions> model;  ///< boxed, so that most files need not include nn/options.h
  OptimOptions optim;
  TrainOptions train;
  DecodeOptions decode;
  DistributedOptions distributed;
  BenchOptions bench;

  /// The warnings of read_config, one line each; not part of the experiment.
  std::vector<std::string> warnings = {};
};

/// Whether reading a config loads its plugins. `leave` is for a config that is read again: its
/// plugins, or others with the same names, are loaded already.
enum class PluginUse { load, leave };

/// Reads the file, applies the overrides (`train.steps=200`, `model.layers={encoder: 2, decoder:
/// 4}`; a later override of a key replaces an earlier one) and checks the result. Throws
/// Error(Exit::usage) with one line per error. A run's config.yaml (a file beside run.json, or any
/// file with `of_a_run`) contained every key when it was written: a key that it lacks was added
/// later, and receives the value that reproduces heed's earlier behaviour. Throws Error(bad_input)
/// if a plugin cannot be loaded.
Config read_config(const std::string& path, std::span<const std::string> overrides = {},
                   bool of_a_run = false, PluginUse plugins = PluginUse::load);

/// Does the same with text in memory; `file` is its name in messages.
Config parse_config(std::string_view text, const std::string& file,
                    std::span<const std::string> overrides = {}, bool of_a_run = false,
                    PluginUse plugins = PluginUse::load);

/// Every key with its value. read_config returns the same Config from it, bit for bit.
std::string write_yaml(const Config& config);
/// Every key with its value as a JSON object: sections are objects, and values are numbers,
/// booleans, strings, or lists of these.
nlohmann::json config_json(const Config& config);

/// The reference page: a runnable config with every key, its meaning, its choices and its default.
std::string reference_yaml();

/// The JSON Schema (draft 7) of all configs, for editors: types, ranges, choices, and which keys
/// exclude one another. Only read_config makes the checks that need arithmetic or the command line.
std::string json_schema();

/// The sizes of the model that tasks, training and commands need, for example to limit the lengths
/// of sequences.
struct ModelSizes {
  std::int64_t d_model, heads;
  std::int64_t context;    ///< language model: window length
  std::int64_t positions;  ///< number of learned positions (model.max_positions); 0: no limit
  std::int64_t rows_per_position;  ///< number of source rows for each position of the encoder
};
ModelSizes model_sizes(const Config& config);

/// The keys whose values differ, in the order of the reference page.
std::vector<std::string> differences(const Config& a, const Config& b);

/// The changed keys of a run with config `run` that is continued with config `now`, one sentence
/// per key. Throws Error(Exit::usage) if the field table does not let `resume` change one of the
/// keys.
std::vector<std::string> changes_on_resume(const Config& run, const Config& now);

}  // namespace heed
