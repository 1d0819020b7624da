#pragma once
/// heed(1).
#include <string>

#include "train/commands/help/command_tree.h"

namespace heed {

/// The man page in roff, for the man macros (man(7), groff_man(7)): commands, options, and every key
/// of a config. ASCII: other characters are written as groff_char(7) names them.
std::string man_page(const CommandTree& tree);

}  // namespace heed
