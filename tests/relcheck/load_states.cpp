/// Opens run folders as `heed resume` and `heed eval` would, without changing them.
///
///   relcheck_load_states < FOLDERS      one folder per line; prints a line of JSON for each:
///   {"valid": [4, 6], "newest": 6, "last": 6, "weights": "…/model.safetensors", "error": ""}
///
/// valid: the steps with correct checksums.
/// newest: the step to resume from, or 0.
/// last: the step that the link points to, or 0.
/// weights: the file that eval would use, with a verified checksum.
/// error: the reason why a run with a checkpoint cannot be resumed or used.
#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "autograd/base/error.h"
#include "data/tokenizers/tokenizer.h"
#include "train/run/checkpoint_folder.h"
#include "train/run/run_folder.h"

namespace {

using namespace heed;

std::vector<std::int64_t> valid_steps(const CheckpointFolder& checkpoints) {
  std::vector<std::int64_t> valid;
  for (const std::int64_t step : checkpoints.steps()) {
    try {
      valid.push_back(open_checkpoint(checkpoints.folder_of(step)).step);
    } catch (const Error&) {  // damaged
    }
  }
  return valid;
}

nlohmann::json inspect(const std::filesystem::path& path) {
  const RunFolder run{path};
  const CheckpointFolder checkpoints(path);
  const CheckpointFolder::Newest newest = checkpoints.newest_valid();
  nlohmann::json found{{"valid", valid_steps(checkpoints)},
                       {"newest", newest.checkpoint ? newest.checkpoint->step : 0},
                       {"last", checkpoints.linked("last").value_or(0)},
                       {"weights", ""},
                       {"error", ""}};
  if (!newest.checkpoint) return found;
  try {
    const Config config = read_run_config(run);
    Tokenizers::load(path, config.tokenizer.kind);
    const std::filesystem::path weights = find_weights(run, "");
    check_file(weights, "model.safetensors");
    found["weights"] = (std::filesystem::canonical(weights) / "model.safetensors").string();
  } catch (const std::exception& error) {
    found["error"] = error.what();
  }
  return found;
}

}  // namespace

int main() {
  try {
    for (std::string folder; std::getline(std::cin, folder);)
      std::cout << inspect(folder).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
                << std::endl;
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
