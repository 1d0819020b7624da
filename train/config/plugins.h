#pragma once
/// Plugins: the user's shared libraries, which register tasks and layers (mixers, activations) by
/// name. Only libraries that a config or the command line names are loaded, and for gradcheck also
/// their float64 builds. No library is unloaded.
#include <string>
#include <vector>

namespace heed {

struct Plugin {
  std::string file;                ///< path as written in the config or on the command line
  std::string sum;                 ///< SHA-256 of the library's bytes
  std::vector<std::string> names;  ///< registered names, such as "mixer mine.gate"
  bool in_both_builds = false;     ///< true: registers a layer, which gradcheck needs in float64
};

/// Who names a library: the user, in a config or on the command line, or the config of a run, whose
/// origin is unknown.
enum class PluginOrigin { user, run };

/// Loads a library unless it is loaded already. Its names become choices of the field table. Lists
/// it as trusted (train/config/trusted_plugins.h), or prints a warning if this fails. Throws
/// Error(bad_input), naming the file, if the library is missing, cannot be loaded, is a float64
/// build, was built for another version of heed, registers nothing or a name that is already
/// registered, or if only a run names it and it is not trusted; Error(io) if it cannot be read.
void load_plugin(const std::string& file, PluginOrigin origin);

/// Loads the float64 builds of all plugins with layers: libmine_f64.so beside libmine.so, which
/// have the same origin. Throws the errors of load_plugin, and Error(bad_input) if a build lacks
/// one of the plugin's layers.
void load_float64_plugins();

/// The plugins of these files. Throws Error(failed) if one of them has not been loaded.
std::vector<Plugin> plugins_of(const std::vector<std::string>& files);

}  // namespace heed
