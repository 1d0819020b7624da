#pragma once
/// The commands completion, complete and man: completion in shells and the man page.
#include "train/program/command_line.h"

namespace heed {

void add_help_commands(CLI::App& app, Job& job);

}  // namespace heed
