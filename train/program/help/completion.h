#pragma once
/// Completion scripts for shells.
#include <string>

#include "train/program/help/command_tree.h"

namespace heed {

/// Scripts that complete commands, options, files, run folders and config keys, and the values of
/// keys whose value is a choice, a file or a run folder. They run only shell built-ins and
/// functions.
std::string bash_completion(const CommandTree& tree);
std::string zsh_completion(const CommandTree& tree);

}  // namespace heed
