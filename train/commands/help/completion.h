#pragma once
/// Completion scripts for shells.
#include <string>

#include "train/commands/help/command_tree.h"

namespace heed {

/// Scripts that complete commands, options, files, run folders, and key=value with the keys of the
/// field table and, for choices, their values. They run only shell built-ins and functions.
std::string bash_completion(const CommandTree& tree);
std::string zsh_completion(const CommandTree& tree);

}  // namespace heed
