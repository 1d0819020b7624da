#pragma once
/// The commands and their options as plain data, from which completion and the man page derive.
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "train/config/fields.h"

namespace heed {

/// The kind of a word on the command line.
enum class WordKind {
  other,
  choice,  ///< one of Words::choices
  file,
  folder,
  config,         ///< an experiment: a YAML file
  run,            ///< a run folder
  config_or_run,  ///< a config or a run folder
  weights,        ///< a value of --weights
  override_key    ///< key=value
};

struct Words {
  WordKind kind = WordKind::other;
  std::vector<std::string> choices = {};  ///< the words, if `kind` is `choice`
};

/// An option, a flag, or a positional argument.
struct Argument {
  std::vector<std::string> names;  ///< {"-h", "--help"}; empty for a positional argument
  std::string value;               ///< name of the value, "FOLDER"; empty for a flag
  Words words = {};                ///< words to suggest for the value
  std::string help = {};
  bool required = false, repeats = false;

  bool is_flag() const { return value.empty(); }
};

struct CommandEntry {
  std::string name, help, details;
  std::vector<Argument> positionals, options;
};

struct CommandTree {
  std::string help, details;
  std::vector<Argument> options;  ///< options of `heed` itself
  std::vector<CommandEntry> commands;
};

CommandTree command_tree(const CLI::App& app);

/// The kind of a config key's values, and the choices if the key has any.
Words words_of(const Field& field);

}  // namespace heed
