/// A config in YAML. An accepted config must be unchanged after it is printed and read back.
#include "tests/fuzz/target.h"
#include "train/config/config.h"

namespace heed::fuzz {

namespace {

/// Loads no plugins: an input must not choose the code that this process runs.
Config parse(std::string_view text, const char* file) {
  return parse_config(text, file, {}, false, PluginUse::leave);
}

}  // namespace

void target(std::string_view input) {
  Config config;
  try {
    config = parse(input, "exp.yaml");
  } catch (const Error& error) {
    require_refusal(error, Exit::usage, "exp.yaml:");
    throw;
  }
  must_work([&] {
    const std::string printed = write_yaml(config);
    const Config again = parse(printed, "again.yaml");
    require(differences(config, again).empty(),
            "the printed config is read back unchanged:\n" + printed);
    require(write_yaml(again) == printed,
            "the config read back is printed identically:\n" + printed);
  });
}

}  // namespace heed::fuzz
