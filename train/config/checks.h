#pragma once
/// What no single key can tell: which values go together.
#include "train/config/config.h"
#include "train/config/yaml.h"

namespace heed {

/// Checks values against one another, first by the conditions of the field table, and settles those
/// that follow from others (a language model has no encoder layers). `tree` is what `config` was
/// read from, for the places of errors; `file` is the config without what the command line
/// changes. A check is left out where one of its keys is known to be wrong.
void check_config(Config& config, const Config& file, const YamlNode& tree, Problems& problems);

}  // namespace heed
