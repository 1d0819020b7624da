#include "train/config/plugins.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <filesystem>

#include "autograd/base/error.h"
#include "autograd/io/files.h"
#include "autograd/io/message_text.h"
#include "nn/plugin_entry.h"
#include "train/config/trusted_plugins.h"
#include "train/terminal/run_log.h"

namespace heed {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t max_bytes = std::uint64_t{1} << 30;
constexpr std::string_view float32_stamp = HEED_PLUGIN_STAMP("float"),
                           float64_stamp = HEED_PLUGIN_STAMP("double");

struct Loaded {
  fs::path place;  ///< absolute path without symbolic links
  Plugin plugin;
  PluginOrigin origin;
  bool with_float64 = false;
};

/// The loaded plugins, in the order of loading.
std::deque<Loaded>& loaded() {
  static std::deque<Loaded> all;
  return all;
}

[[noreturn]] void refuse(const std::string& file, const std::string& what) {
  throw Error(Exit::bad_input, "plugin {}: {}", shown(file, 1000), what);
}

/// An absolute path: dlopen would look for a bare name in the system's folders.
fs::path place_of(const std::string& file) {
  std::error_code ignored;
  return fs::weakly_canonical(fs::absolute(file), ignored);
}

/// libmine.so → libmine_f64.so
std::string float64_name(const std::string& file) {
  const fs::path path(file);
  return (path.parent_path() / (path.stem().string() + "_f64" + path.extension().string()))
      .string();
}

/// Throws unless the file is a library built for this version of heed, with real = double if
/// `float64`, else float. Runs no code of the file.
void check_stamp(const std::string& file, std::string_view bytes, bool float64) {
  if (!bytes.starts_with("\177ELF")) refuse(file, "not a shared library");
  const std::size_t at = bytes.find(HEED_PLUGIN_MARK "heed ");
  if (at == std::string_view::npos) {
    refuse(file,
           "it registers nothing: expected HEED_MIXER, HEED_ACTIVATION or HEED_TASK in one of its "
           "sources (docs/PLUGINS.md)");
  }
  const std::string_view from_mark = bytes.substr(at, 1000),
                         stamp = from_mark.substr(
                             0, std::min(from_mark.find('\n'), from_mark.size() - 1) + 1),
                         needed = float64 ? float64_stamp : float32_stamp,
                         unwanted = float64 ? float32_stamp : float64_stamp;
  if (stamp == needed) return;
  if (stamp == unwanted && float64)
    refuse(file,
           "it is a float32 build, although its name ends in _f64: compile it with -DHEED_DOUBLE");
  if (stamp == unwanted) {
    refuse(file,
           "it is a float64 build, which gradcheck loads automatically: name the float32 build "
           "beside it, without _f64 in its name");
  }
  const auto text = [](std::string_view s) {
    s.remove_prefix(std::string_view(HEED_PLUGIN_MARK).size());
    return shown(s.substr(0, s.find('\n')), 200);
  };
  refuse(file,
         fmt::format("it was built for {}, but this is {}: build it again with the headers of this "
                     "version",
                     text(stamp), text(needed)));
}

/// Returns the bytes of the library. Throws the errors of read_bytes and check_stamp.
std::string read_library(const std::string& file, const fs::path& place, bool float64) {
  std::string bytes;
  try {
    bytes = read_bytes(place, max_bytes);
  } catch (const Error& error) {
    throw Error(error.code, "plugin {}: {}", shown(file, 1000), error.what());
  }
  check_stamp(file, bytes, float64);
  return bytes;
}

/// Lets plugins find heed's symbols if heed is itself a library: Python loads its modules with
/// RTLD_LOCAL. Those of a program are always global.
void make_symbols_global() {
  Dl_info heed{};
  if (dladdr(reinterpret_cast<const void*>(&load_plugin), &heed) != 0)
    dlopen(heed.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
}

/// Returns the entries of the library in the order of their registration.
std::vector<const PluginEntry*> entries_of(const std::string& file, const fs::path& place) {
  // dlopen reads the file again, by its name: a descriptor (/proc/self/fd/N) of the bytes whose sum
  // is known would hide the library from debuggers and its folder from $ORIGIN.
  // RTLD_LOCAL: two plugins may define the same symbols. RTLD_NOW: dlopen reports undefined
  // symbols.
  make_symbols_global();
  void* const library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    refuse(file, fmt::format("cannot be loaded: {}", shown(dlerror(), 1000)));
  }
  const auto entries =
      reinterpret_cast<PluginEntries>(dlsym(library, plugin_entries_name));  // NOLINT
  std::vector<const PluginEntry*> all;
  for (const PluginEntry* e = entries != nullptr ? entries() : nullptr; e != nullptr; e = e->next)
    all.push_back(e);
  std::ranges::reverse(all);
  if (all.empty())
    refuse(file, "it registers nothing: expected HEED_MIXER, HEED_ACTIVATION or HEED_TASK");
  return all;
}

/// Loads the library, whose SHA-256 is `sum`, and returns its entries.
std::vector<const PluginEntry*> open_library(const std::string& file, const fs::path& place,
                                             const std::string& sum, PluginOrigin origin) {
  const bool trusted = is_trusted_plugin(sum, place);
  if (!trusted && origin == PluginOrigin::run && !trusts_all_plugins()) {
    refuse(file,
           "only the config of a run names it, and it is not in your list of trusted plugins. It "
           "would run with your permissions: examine it, then repeat the command with "
           "--trust-plugins (docs/PLUGINS.md)");
  }
  std::vector<const PluginEntry*> all = entries_of(file, place);
  if (trusted) return all;
  try {
    list_trusted_plugin(sum, place);
  } catch (const Error& error) {
    print_note(
        fmt::format("warning: plugin {} cannot be listed as trusted, so commands that read a run "
                    "with it will need --trust-plugins: {}",
                    shown(file, 1000), error.what()));
  }
  return all;
}

std::string described(const PluginEntry& entry) {
  return fmt::format("{} {}", entry.what, entry.name);
}

void register_entry(const std::string& file, const PluginEntry& entry) {
  try {
    entry.add(entry.name);
  } catch (const Error& error) {
    refuse(file, error.what());
  }
}

}  // namespace

void load_plugin(const std::string& file, PluginOrigin origin) {
  const fs::path place = place_of(file);
  if (std::ranges::find(loaded(), place, &Loaded::place) != loaded().end()) return;
  Plugin plugin{file, sha256_hex(read_library(file, place, false)), {}, false};
  for (const PluginEntry* entry : open_library(file, place, plugin.sum, origin)) {
    const std::string name = described(*entry);
    for (const Loaded& earlier : loaded()) {
      if (std::ranges::find(earlier.plugin.names, name) != earlier.plugin.names.end())
        refuse(file, fmt::format("{} is already registered by {}", name, earlier.plugin.file));
    }
    register_entry(file, *entry);
    plugin.names.push_back(name);
    plugin.in_both_builds |= entry->in_both_builds;
  }
  loaded().push_back({place, std::move(plugin), origin});
}

void load_float64_plugins() {
  for (Loaded& library : loaded()) {
    if (library.with_float64 || !library.plugin.in_both_builds) continue;
    const std::string file = float64_name(library.plugin.file);
    const fs::path place = float64_name(library.place.string());
    std::error_code ignored;
    if (!fs::exists(place, ignored)) {
      refuse(
          library.plugin.file,
          fmt::format(
              "gradients are checked in float64, and {} is missing: build it with heed_add_plugin, "
              "or compile the same sources with -DHEED_DOUBLE",
              shown(file, 1000)));
    }
    const std::string sum = sha256_hex(read_library(file, place, true));
    std::vector<std::string> names;
    for (const PluginEntry* entry : open_library(file, place, sum, library.origin)) {
      register_entry(file, *entry);
      names.push_back(described(*entry));
    }
    for (const std::string& name : library.plugin.names) {
      if (!name.starts_with("task ") && std::ranges::find(names, name) == names.end())
        refuse(file,
               fmt::format("it does not register {}, but {} does: build both from the same sources",
                           name, library.plugin.file));
    }
    library.with_float64 = true;
  }
}

std::vector<Plugin> plugins_of(const std::vector<std::string>& files) {
  std::vector<Plugin> all;
  for (const std::string& file : files) {
    const auto found = std::ranges::find(loaded(), place_of(file), &Loaded::place);
    if (found == loaded().end()) throw Error(Exit::failed, "plugin " + file + ": not loaded");
    all.push_back(found->plugin);
    all.back().file = file;
  }
  return all;
}

}  // namespace heed
