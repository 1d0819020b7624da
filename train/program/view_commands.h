#pragma once
/// The commands that display configs, runs and models.
#include <CLI/CLI.hpp>

#include "train/program/command_line.h"

namespace heed {

void add_views(CLI::App& app, Job& job);

}  // namespace heed
