#pragma once
/// An experiment as plain values, read from YAML and `key=value` overrides.
///
/// The keys, their types, ranges and meanings are in train/config/fields.cpp, and
/// configs/reference.yaml is printed from there. Errors are reported together, each with file, line,
/// column, key and a hint, and before anything else is touched.
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

extern template class Boxed<ModelOptions>;  // in config.cpp

struct Config {
  std::string name;  ///< of the run; by default the file's name without .yaml
  std::uint64_t seed = 1;
  std::int64_t threads = 0;          ///< 0: as many as the machine has
  std::vector<std::string> plugins;  ///< paths of shared libraries, loaded before other keys
  TaskKind task = TaskKind::seq2seq;
  DataOptions data;
  TokenizerOptions tokenizer;
  Boxed<ModelOptions> model;  ///< boxed because most files that read a config need none of its keys
  OptimOptions optim;
  TrainOptions train;
  DecodeOptions decode;
  DistributedOptions distributed;
  BenchOptions bench;

  /// The warnings from reading it, one line each. Not part of the experiment.
  std::vector<std::string> warnings = {};
};

/// Whether reading a config loads its plugins, or leaves them: for a second look at a config whose
/// plugins, or others with the same names, are loaded already.
enum class PluginUse { load, leave };

/// Reads the file, then applies the overrides (`train.steps=200`, `model.layers={encoder: 2,
/// decoder: 4}`; a later one wins), then checks. Throws Error(Exit::usage) with one line per error.
/// A run folder's config.yaml (one next to a run.json, or with `of_a_run`) held every key when it was
/// written: a key that it lacks stands for what heed did before the key existed. Throws
/// Error(bad_input) if a plugin cannot be loaded.
Config read_config(const std::string& path, std::span<const std::string> overrides = {},
                   bool of_a_run = false, PluginUse plugins = PluginUse::load);

/// The same for a text in memory, which messages call `file`.
Config parse_config(std::string_view text, const std::string& file,
                    std::span<const std::string> overrides = {}, bool of_a_run = false,
                    PluginUse plugins = PluginUse::load);

/// Every key with its value; read_config gives the same Config back, to the last bit.
std::string write_yaml(const Config& config);
/// The same as an object: sections are objects, and values are numbers, booleans, strings, or lists
/// of these.
nlohmann::json config_json(const Config& config);

/// A config that runs and has every key, with its meaning, choices and default.
std::string reference_yaml();

/// The JSON Schema (draft 7) of all configs, for editors: types, ranges, choices, and which keys go
/// with which. Checks that need arithmetic or the command line are left to read_config.
std::string json_schema();

/// The keys whose values differ, in the order of the reference page.
std::vector<std::string> differences(const Config& a, const Config& b);

/// What changes for a run that continues with `now` instead of its own config, one sentence per key.
/// Throws Error(Exit::usage) where the field table says that a run keeps the key.
std::vector<std::string> changes_on_resume(const Config& run, const Config& now);

}  // namespace heed
