#pragma once
/// Overrides: `key=value` arguments of the command line, put into a config's tree before it is
/// read.
#include <span>
#include <string>

#include "train/config/yaml.h"

namespace heed {

/// Applies the overrides to the tree. Places in the k-th override have source k. The value is YAML
/// and replaces the key's whole value in the file; a later override of a key replaces an earlier
/// one. Whether the key exists is checked with the rest of the tree.
void apply_overrides(YamlNode& root, std::span<const std::string> overrides, Problems& problems);

}  // namespace heed
