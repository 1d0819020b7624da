#pragma once
/// The commands completion and man: completion scripts and the man page.
#include "train/program/command_line.h"

namespace heed {

void add_help_commands(CLI::App& app, Job& job);

}  // namespace heed
