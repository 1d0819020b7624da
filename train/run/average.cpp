#include "train/run/average.h"

#include <fmt/format.h>

#include "autograd/base/error.h"
#include "nn/weights.h"

HEED_BEGIN

namespace {

struct Source {
  std::int64_t step;
  SafetensorsFile file;
};

std::vector<Source> open_sources(const CheckpointFolder& checkpoints, std::int64_t count,
                                 std::int64_t first, std::vector<std::string>& notes) {
  std::vector<Source> sources;
  std::vector<std::int64_t> steps = checkpoints.steps();
  for (; !steps.empty() && std::ssize(sources) < count && steps.back() >= first; steps.pop_back()) {
    try {
      const Checkpoint checkpoint = open_checkpoint(checkpoints.folder_of(steps.back()));
      if (!sources.empty() && checkpoint.state.contains("on_request")) continue;
      sources.push_back(
          {checkpoint.step, SafetensorsFile::read(checkpoint.folder / "model.safetensors")});
    } catch (const Error& error) {
      if (error.code != Exit::bad_input) throw;
      notes.push_back(fmt::format("omitted from the mean: {}", error.what()));
    }
  }
  return sources;
}

}  // namespace

std::vector<std::int64_t> load_average(const CheckpointFolder& checkpoints,
                                       const TrainOptions& train, std::int64_t last_step,
                                       std::span<const NamedTensor> parameters,
                                       std::vector<std::string>& notes) {
  const std::int64_t first = last_step - (last_step + 4) / 5;  // ⌊4/5 · last_step⌋
  const std::vector<Source> files = open_sources(checkpoints, train.average, first, notes);
  if (std::ssize(files) < train.average) {
    notes.push_back(fmt::format(
        "train.average={}, but the last fifth of the run (from step {}) has {} "
        "intact checkpoint{} (train.save_every={}): {}",
        train.average, first, files.size(), files.size() == 1 ? "" : "s", train.save_every,
        files.size() < 2 ? "no mean is computed" : "the mean is computed from these"));
  }
  if (files.size() < 2) return {};
  std::vector<std::int64_t> steps;
  steps.reserve(files.size());
  for (const Source& source : files) steps.push_back(source.step);
  for (const Source& source : files)  // throws if a file does not fit the model
    load_weights(source.file, parameters, checkpoints.folder_of(source.step).string());
  for (const NamedTensor& p : parameters) {
    std::vector<double> sum(static_cast<std::size_t>(p.tensor.size()));
    Tensor into = p.tensor;  // a handle: writes change the model
    real* const mean = into.mutable_value().data();
    for (const Source& source : files) {
      copy_values(*source.file.find(p.name), into.mutable_value().values());
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += double{mean[i]};
    }
    for (std::size_t i = 0; i < sum.size(); ++i)
      mean[i] = static_cast<real>(sum[i] / static_cast<double>(files.size()));
  }
  return steps;
}

void write_average(const RunFolder& run, std::span<const NamedTensor> parameters,
                   const std::vector<std::int64_t>& steps, const nlohmann::json& trained_with) {
  const std::vector<CheckpointFile> content{
      {"model.safetensors", [&](FileWriter& file) {
         write_safetensors(file, tensor_views(parameters), {{"format", "pt"}});
       }}};
  write_files(run.average(), steps.front(), content,
              {{"mean_of_steps", steps}, {"trained_with", trained_with}});
}

void remove_average(const RunFolder& run) {
  if (!std::filesystem::exists(run.average())) return;
  if (const std::string why = remove_folder(run.average()); !why.empty())
    throw Error(Exit::io, why);
}

HEED_END
