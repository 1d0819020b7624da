#pragma once
/// The commands and their options as plain data, from which completion scripts and the man page are
/// generated.
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "train/config/fields.h"

namespace heed {

/// The kind of a word on the command line.
enum class WordKind {
  other,
  choice,         ///< one of Words::choices
  file,           ///< a file
  folder,         ///< a folder
  config,         ///< an experiment: a YAML file
  run,            ///< a run folder
  config_or_run,  ///< either
  weights,        ///< as --weights takes them
  override_key    ///< key=value
};

struct Words {
  WordKind kind = WordKind::other;
  std::vector<std::string> choices = {};  ///< of a choice
};

/// An option, a flag, or a positional argument.
struct Argument {
  std::vector<std::string> names;  ///< {"-h", "--help"}; empty for a positional one
  std::string value;               ///< "FOLDER", or the name of a positional; empty for a flag
  Words words = {};                ///< what the value may be
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
  std::vector<Argument> options;  ///< of heed itself
  std::vector<CommandEntry> commands;
};

CommandTree command_tree(const CLI::App& app);

/// The values of a key of the config.
Words words_of(const Field& field);

}  // namespace heed
