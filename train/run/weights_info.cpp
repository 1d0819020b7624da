#include "train/run/weights_info.h"

#include <fmt/format.h>

namespace heed {

namespace {

constexpr const char* mean_of_steps = "mean_of_steps";

std::string name_of(const std::filesystem::path& folder) {
  const std::string name = folder.filename().string();
  if (name == "best" || name == "last" || name == "average") return name;
  return name.starts_with("step-") ? "step" : "folder";
}

}  // namespace

WeightsInfo::WeightsInfo(const std::filesystem::path& f) : folder(f), name(name_of(f)) {}

WeightsInfo::WeightsInfo(const std::filesystem::path& f, const Checkpoint& checkpoint)
    : WeightsInfo(f) {
  steps = checkpoint.state.value(mean_of_steps, std::vector<std::int64_t>{checkpoint.step});
}

std::string WeightsInfo::text() const {
  const std::string of = steps.size() > 1 ? fmt::format("mean of steps {}", fmt::join(steps, ", "))
                                          : fmt::format("step {}", fmt::join(steps, ""));
  if (steps.empty()) return folder.string();
  if (name == "step" || name == "folder") return fmt::format("{} ({})", of, folder.string());
  return fmt::format("{}, {} ({})", name, of, folder.string());
}

nlohmann::json WeightsInfo::json() const {
  std::error_code ignored;
  return {{"weights", std::filesystem::weakly_canonical(folder, ignored).string()},
          {"weights_name", name},
          {"weights_steps", steps}};
}

}  // namespace heed
