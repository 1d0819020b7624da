#pragma once
/// Macros with which a plugin registers layers by name (docs/PLUGINS.md), at namespace scope in a
/// source file:
///
///   HEED_MIXER("mine.gate", Gate)            // Gate(options, scope, init): a heed::Mixer
///   HEED_ACTIVATION("mine.squash", squash)   // heed::Tensor squash(const heed::Tensor&)
///
/// heed_add_plugin compiles the layers of a plugin twice: with real = float into libmine.so and,
/// with HEED_DOUBLE, with real = double into libmine_f64.so.
#include <memory>

#include "nn/layers/activations.h"
#include "nn/layers/mixer.h"
#include "nn/options.h"
#include "nn/plugin_entry.h"

#if !defined(HEED_VERSION) || !defined(HEED_HEADERS)
#error \
    "build plugins with heed_add_plugin, or link heed::plugin_f32 (float) and heed::plugin_f64 (double)"
#endif

#ifdef HEED_DOUBLE
#define HEED_PLUGIN_REAL "double"
#else
#define HEED_PLUGIN_REAL "float"
#endif

namespace heed {
__attribute__((used, visibility("hidden"))) inline constexpr char plugin_stamp[] =
    HEED_PLUGIN_STAMP(HEED_PLUGIN_REAL);
}  // namespace heed

extern "C" __attribute__((used, visibility("default"))) inline const heed::PluginEntry*
heed_plugin_entries() {
  return heed::PluginEntry::newest;
}

#define HEED_PLUGIN_JOINED(a, b) a##b
#define HEED_PLUGIN_UNIQUE(number) HEED_PLUGIN_JOINED(heed_plugin_entry_, number)
#define HEED_PLUGIN_ENTRY(what, name, both, ...)                                     \
  [[maybe_unused]] static const ::heed::PluginEntry HEED_PLUGIN_UNIQUE(__COUNTER__)( \
      what, name, both, [](std::string_view registered_name) { __VA_ARGS__; });

#define HEED_MIXER(name, Type)                                                                  \
  HEED_PLUGIN_ENTRY(                                                                            \
      "mixer", name, true,                                                                      \
      ::heed::add_mixer(registered_name, [](const ::heed::ModelOptions& options,                \
                                            ::heed::AttentionScope scope, ::heed::Init& init) { \
        return std::unique_ptr<::heed::Mixer>(std::make_unique<Type>(options, scope, init));    \
      }))

#define HEED_ACTIVATION(name, function) \
  HEED_PLUGIN_ENTRY("activation", name, true, ::heed::add_activation(registered_name, function))
