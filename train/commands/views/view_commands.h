#pragma once
/// The commands that show configs, runs and models without changing them.
#include <CLI/CLI.hpp>

#include "train/commands/command_line.h"

namespace heed {

void add_views(CLI::App& app, Job& job);

}  // namespace heed
