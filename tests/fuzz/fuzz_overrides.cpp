/// `key=value` overrides, one per line, of a valid config.
#include <span>
#include <string>
#include <vector>

#include "tests/fuzz/target.h"
#include "train/config/config.h"

namespace heed::fuzz {
namespace {

constexpr std::string_view base = R"(
task: seq2seq
data:
  train: {source: a, target: b}
  valid_fraction: 0.1
model: {d_model: 64, heads: 4, layers: 2}
optim: {name: adam, lr: 1.0e-3}
train: {steps: 100, batch_tokens: 512}
)";

/// Loads no plugins: an input must not choose the code that this process runs.
Config parse(std::string_view text, const char* file, std::span<const std::string> overrides) {
  return parse_config(text, file, overrides, false, PluginUse::leave);
}

}  // namespace

void target(std::string_view input) {
  std::vector<std::string> overrides;
  for (Bytes lines(input); !lines.empty();) overrides.emplace_back(lines.until("\n"));
  Config config;
  try {
    config = parse(base, "exp.yaml", overrides);
  } catch (const Error& error) {
    require_refusal(error, Exit::usage, "");
    const std::string message = error.what();
    require(message.starts_with("command line: ") || message.starts_with("exp.yaml:"),
            "the message names the location: " + message);
    throw;
  }
  must_work([&] {
    const std::string printed = write_yaml(config);
    const Config again = parse(printed, "again.yaml", {});
    require(differences(config, again).empty(),
            "the printed config is read back unchanged:\n" + printed);
  });
}

}  // namespace heed::fuzz
