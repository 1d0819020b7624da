#pragma once
/// An experiment as plain values, read from YAML and `key=value` overrides.
///
/// The keys, their types, ranges and meanings are in one table (train/config/fields.h), from which
/// configs/reference.yaml is printed. Errors are reported together, each with its place (file, line
/// and column, or the override) and, if it concerns a key, with the key. Until then, no other file
/// is read or written, except that plugins are loaded.
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
  std::int64_t threads = 0;          ///< 0: one for each available processor
  std::vector<std::string> plugins;  ///< shared libraries, loaded before other keys are read
  TaskKind task = TaskKind::seq2seq;
  DataOptions data;
  TokenizerOptions tokenizer;
  Boxed<ModelOptions> model;  ///< boxed, so that most files need not include nn/options.h
  /// By default, the schedule of Vaswani et al. 2017.
  OptimOptions optim = {
      .schedule = {.name = ScheduleKind::noam, .warmup = ScheduleOptions::automatic}};
  TrainOptions train;
  DecodeOptions decode;
  DistributedOptions distributed;
  BenchOptions bench;

  /// Warnings for the user, one line each; not part of the experiment.
  std::vector<std::string> warnings = {};
};

/// Whether reading a config loads its plugins. `leave` is for listing runs, and for a config whose
/// plugins, or plugins that register the same names, have already been loaded. `load_trusted`: those that
/// the file names, and not an override, only if the user trusts them, as for the config of a run.
enum class PluginUse { load, load_trusted, leave };

/// Reads the file, applies the overrides (`train.steps=200`, `model.layers={encoder: 2, decoder:
/// 4}`; a later override of a key replaces an earlier one) and checks the result. Throws
/// Error(Exit::usage) with one line per error, or if the file is missing, may not be read or is a
/// folder. Throws Error(Exit::io) if the disk fails, and the errors of load_plugin.
///
/// A file named config.yaml beside a run.json or a .lock, or any file with `of_a_run`, is the config of
/// a run. It contained every key when it was written. A key that it lacks was therefore added to heed
/// later, and receives the value that reproduces the earlier behaviour (Field::in_old_runs).
///
/// Throws Error(bad_input) if the config of a run, or a config.yaml beside `checkpoints`, is a link or a
/// pipe (require_kind). The plugins of these need the user's trust.
Config read_config(const std::string& path, std::span<const std::string> overrides = {},
                   bool of_a_run = false, PluginUse plugins = PluginUse::load);

/// Does the same with text in memory. `file` is its name in messages and, without .yaml, the
/// default name of the run. Only `of_a_run` marks the config of a run.
Config parse_config(std::string_view text, const std::string& file,
                    std::span<const std::string> overrides = {}, bool of_a_run = false,
                    PluginUse plugins = PluginUse::load);

/// Every key with its value, as YAML. read_config returns the same Config from it, bit for bit.
std::string write_yaml(const Config& config);
/// Does the same without the keys that have no effect because of the values of others, and without
/// empty lists and texts, which stand for none.
std::string write_effective_yaml(const Config& config);
/// Every key with its value as a JSON object: sections are objects, and values are numbers,
/// booleans, strings, or lists of these.
nlohmann::json config_json(const Config& config);

/// Returns a warning if the warmup takes more than half of the run's steps, otherwise an empty string.
/// `steps`: 0 if unknown.
std::string long_warmup(std::int64_t warmup, std::int64_t steps);

/// The reference page: a runnable config with every key, its meaning, its choices and its default.
std::string reference_yaml();

/// The JSON Schema (draft 7) of all configs, for editors: types, ranges, choices, and the
/// conditions under which a key has an effect. Checks that need arithmetic or the command line are
/// left to read_config.
std::string json_schema();

/// The sizes of the model that tasks, training and commands use, for example to limit the lengths
/// of sequences.
struct ModelSizes {
  std::int64_t d_model, heads;
  std::int64_t context;    ///< language model: window length
  std::int64_t positions;  ///< number of learned positions (model.max_positions); 0: no limit
  std::int64_t rows_per_position;  ///< number of source rows per position of the encoder
};
ModelSizes model_sizes(const Config& config);
/// Whether a row of its own represents a source and precedes the rows of an image, a video or
/// features: the class token.
bool has_class_row(const Config& config);

/// The keys with different values in `a` and `b`, in the order of the reference page.
std::vector<std::string> differences(const Config& a, const Config& b);

/// For a run with config `run` that is continued with config `now`: one sentence for each changed
/// key, except keys that do not affect the result (Field::reported_on_resume). Throws
/// Error(Exit::usage) if one of the changed keys is fixed (Field::keep_on_resume), unless both
/// values are interchangeable.
std::vector<std::string> changes_on_resume(const Config& run, const Config& now);

}  // namespace heed
