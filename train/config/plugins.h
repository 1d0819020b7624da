#pragma once
/// Plugins: shared libraries of the user's that register tasks and layers by name. Only files that a
/// config or the command line names are loaded, and none is ever unloaded.
#include <string>
#include <vector>

namespace heed {

struct Plugin {
  std::string file;                ///< as it was given
  std::string sum;                 ///< SHA-256 of the library's bytes
  std::vector<std::string> names;  ///< what it registered: "mixer mine.gate"
  bool in_both_builds = false;     ///< it registered a layer, which gradcheck needs in float64
};

/// Loads a library that is not loaded yet, so that its names are choices of the field table. Throws
/// Error(bad_input), naming the file, if it cannot be read or loaded, was built for another heed, or
/// registers nothing or a name that is taken.
void load_plugin(const std::string& file);

/// Loads the float64 builds of all plugins with layers: libmine_f64.so beside libmine.so. Throws as
/// load_plugin does.
void load_float64_plugins();

/// The plugins of these files, which must be loaded.
std::vector<Plugin> plugins_of(const std::vector<std::string>& files);

}  // namespace heed
