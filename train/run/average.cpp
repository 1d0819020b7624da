#include "train/run/average.h"

#include <map>

#include "autograd/base/error.h"
#include "train/run/safetensors.h"

namespace heed {

Average write_average(const RunFolder& run, const CheckpointFolder& checkpoints, std::int64_t count,
                      std::vector<std::string>& skipped) {
  std::vector<std::int64_t> steps = checkpoints.steps();
  std::vector<SafetensorsFile> files;
  nlohmann::json used = nlohmann::json::array();
  for (; !steps.empty() && static_cast<std::int64_t>(files.size()) < count; steps.pop_back()) {
    try {
      const Checkpoint checkpoint = open_checkpoint(checkpoints.folder_of(steps.back()));
      // Where a run was stopped must not show in its weights.
      if (!files.empty() && checkpoint.state.contains("on_request")) continue;
      files.push_back(SafetensorsFile::read(checkpoint.folder / "model.safetensors"));
      used.push_back(checkpoint.step);
    } catch (const Error& damaged) {
      if (damaged.code != Exit::bad_input) throw;
      skipped.emplace_back(damaged.what());
    }
  }
  if (files.empty()) throw Error(Exit::bad_input, run.path.string() + ": no checkpoint to average");
  std::vector<std::vector<float>> means;
  std::vector<TensorView> views;
  for (const TensorView& t : files.front().tensors()) {
    std::vector<double> sum(t.size());
    for (const SafetensorsFile& file : files) {
      const TensorView* const same = file.find(t.name);
      if (same == nullptr || same->shape != t.shape || same->dtype != DType::f32) {
        throw Error(Exit::bad_input,
                    run.path.string() + ": the checkpoints to average differ in " + t.name);
      }
      const std::span<const float> values = same->values<float>();
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += double{values[i]};
    }
    std::vector<float> mean(sum.size());
    for (std::size_t i = 0; i < sum.size(); ++i)
      mean[i] = static_cast<float>(sum[i] / static_cast<double>(files.size()));
    means.push_back(std::move(mean));
    views.push_back(
        {t.name, DType::f32, t.shape, std::as_bytes(std::span<const float>(means.back()))});
  }
  const std::vector<CheckpointFile> content{{"model.safetensors", [&](FileWriter& file) {
                                               write_safetensors(file, views, {{"format", "pt"}});
                                             }}};
  write_files(run.average(), used.front(), content, {{"mean_of_steps", used}});
  return {run.average(), static_cast<std::int64_t>(files.size())};
}

}  // namespace heed
