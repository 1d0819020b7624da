#pragma once
/// The interface between the library of a plugin and the program that loads it
/// (train/config/plugins.cpp). Plugins include nn/layers/plugin.h or train/tasks/plugin.h.
#include <string_view>

/// The stamp of a plugin library is a line of text that begins with HEED_PLUGIN_MARK. The program
/// loads a library only if it contains the stamp of the program. Both were then compiled from the
/// same headers, so their types agree.
#define HEED_PLUGIN_MARK "a plugin for "
#if defined(_LIBCPP_VERSION)
#define HEED_PLUGIN_LIBRARY "libc++"
#elif defined(_GLIBCXX_USE_CXX11_ABI) && _GLIBCXX_USE_CXX11_ABI
#define HEED_PLUGIN_LIBRARY "libstdc++"
#else
#define HEED_PLUGIN_LIBRARY "libstdc++ with the pre-C++11 string ABI"
#endif
#define HEED_PLUGIN_STAMP(real)                                                             \
  HEED_PLUGIN_MARK "heed " HEED_VERSION " (headers " HEED_HEADERS "), " HEED_PLUGIN_LIBRARY \
                   ", " real "\n"

namespace heed {

/// A name that a plugin registers. Entries are static objects, which form a linked list when the
/// library is loaded. The program then calls `add` for each entry, so that errors are thrown
/// outside static initialisation. Hidden visibility gives each library a separate list.
struct __attribute__((visibility("hidden"))) PluginEntry {
  using Add = void (*)(std::string_view name);

  const char* what;  ///< "mixer", "activation" or "task"
  const char* name;
  Add add;
  bool in_both_builds;  ///< false: in the float build only (tasks)
  const PluginEntry* next;

  PluginEntry(const char* kind, const char* entry_name, bool both, Add adder)
      : what(kind), name(entry_name), add(adder), in_both_builds(both), next(newest) {
    newest = this;
  }

  static inline const PluginEntry* newest = nullptr;
};

/// The type of the only function that a plugin exports. Its name is plugin_entries_name, and it
/// returns the newest entry.
using PluginEntries = const PluginEntry* (*)();
inline constexpr const char* plugin_entries_name = "heed_plugin_entries";

}  // namespace heed
