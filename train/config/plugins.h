#pragma once
/// Plugins: the user's shared libraries that register tasks and layers by name. Only files that a
/// config or the command line names are loaded, and none is ever unloaded.
#include <string>
#include <vector>

namespace heed {

struct Plugin {
  std::string file;                ///< path as written in the config or on the command line
  std::string sum;                 ///< SHA-256 of the library's bytes
  std::vector<std::string> names;  ///< registered names: "mixer mine.gate"
  bool in_both_builds = false;     ///< true: registered a layer, which gradcheck needs in float64
};

/// Loads a library unless it is loaded already. Its names become choices of the field table. Throws
/// Error(bad_input), naming the file, if the library cannot be read or loaded, was built for
/// another version of heed, or registers nothing or a name that is already registered.
void load_plugin(const std::string& file);

/// Loads the float64 builds of all plugins with layers: libmine_f64.so beside libmine.so. Throws
/// the errors of load_plugin.
void load_float64_plugins();

/// The plugins of these files, which must be loaded.
std::vector<Plugin> plugins_of(const std::vector<std::string>& files);

}  // namespace heed
