#pragma once
/// Overrides: `key=value` arguments of the command line, which are inserted into a config's tree
/// before its keys are read.
#include <span>
#include <string>

#include "train/config/yaml.h"

namespace heed {

/// Applies the overrides to the tree. Places in the k-th override have source k. The value is YAML
/// and replaces the key's whole value in the file; a later override of a key replaces an earlier
/// one. Adds malformed overrides to `problems`, and keys below a key that has a value
/// (train.steps.x); other unknown keys are reported when the tree is read.
void apply_overrides(YamlNode& root, std::span<const std::string> overrides, Problems& problems);

}  // namespace heed
