#include "train/loop/checkpoint_content.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "autograd/kernels/fast/reduce.h"
#include "autograd/tape/finite_check.h"
#include "nn/weights.h"

HEED_BEGIN

namespace {

constexpr const char *model_file = "model.safetensors", *training_file = "training.safetensors",
                     *memory_file = "memory.safetensors";

CheckpointFile file_of(const char* name, std::vector<NamedTensor> tensors,
                       TensorMetadata metadata) {
  return {name, [tensors = std::move(tensors), metadata = std::move(metadata)](FileWriter& file) {
            write_safetensors(file, tensor_views(tensors), metadata);
          }};
}

void require_finite(std::span<const NamedTensor> tensors, std::int64_t step) {
  double squares = 0;  // in double, finite if and only if all values are finite
  for (const NamedTensor& t : tensors)
    squares += kernels::sum_squares(t.tensor.value().data(), t.tensor.size());
  if (std::isfinite(squares)) return;
  throw Error(Exit::non_finite, fmt::format("step {}: not saved because a value is not finite: {}",
                                            step, find_non_finite(tensors, "the tensor")->text()));
}

std::string memory_layer(std::size_t i) { return fmt::format("layers.{}", i); }

void load_training(const std::filesystem::path& path, Replica& replica,
                   std::optional<WeightEma>& ema) {
  const SafetensorsFile file = SafetensorsFile::read(path);
  std::vector<NamedTensor> moments = replica.moments(), state = moments;
  const std::vector<NamedTensor>& weights = replica.optimizer().parameters();
  // Whether the checkpoint was written with train.ema, so that the model now contains the means.
  const bool averaged = file.find("weights." + weights.front().name) != nullptr;
  for (std::size_t i = 0; averaged && i < weights.size(); ++i) {
    state.push_back(
        {"weights." + weights[i].name, ema ? ema->inactive()[i].tensor : weights[i].tensor});
  }
  load_weights(file, state, path.string());
  replica.set_moments(moments);
  if (ema && averaged) ema->swap();
  if (ema && !averaged) ema->restart();
}

void load_memory(const std::filesystem::path& path, std::optional<SegmentMemory>& memory) {
  if (!memory || !std::filesystem::exists(path)) return;
  const SafetensorsFile file = SafetensorsFile::read(path);
  std::vector<Array> layers(memory->arrays().size());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const TensorView* const view = file.find(memory_layer(i));
    if (view == nullptr || view->shape.size() != 3 || view->shape[2] != memory->width())
      throw Error(Exit::bad_input,
                  fmt::format("{}: layer {} is missing or has another width", path.string(), i));
    layers[i] = Array({view->shape[0], view->shape[1], view->shape[2]});
    copy_values(*view, layers[i].values());
  }
  memory->restore(std::move(layers));
}

}  // namespace

std::vector<CheckpointFile> checkpoint_of(Replica& replica, const std::optional<WeightEma>& ema,
                                          std::int64_t step) {
  const std::vector<NamedTensor>& weights = replica.optimizer().parameters();
  std::vector<NamedTensor> model = replica.model().state(), training = replica.moments(), memory;
  require_finite(weights, step);
  require_finite(training, step);
  for (std::size_t i = 0; ema && i < weights.size(); ++i) {
    const auto& [name, mean] = ema->inactive()[i];
    std::ranges::find(model, weights[i].name, &NamedTensor::name)->tensor = mean;
    training.push_back({name, weights[i].tensor});
  }
  std::vector<CheckpointFile> files{
      file_of(model_file, std::move(model), {{"format", "pt"}}),
      file_of(training_file, std::move(training), {{"step", std::to_string(step)}})};
  const std::optional<SegmentMemory>& segments = replica.steps().memory();
  for (std::size_t i = 0; segments && segments->length() > 0 && i < segments->arrays().size(); ++i)
    memory.push_back({memory_layer(i), Tensor(segments->arrays()[i])});
  if (!memory.empty()) files.push_back(file_of(memory_file, std::move(memory), {}));
  return files;
}

void restore_from(const std::filesystem::path& folder, Replica& replica,
                  std::optional<WeightEma>& ema) {
  load_weights(folder / model_file, replica.model().state());
  load_training(folder / training_file, replica, ema);
  load_memory(folder / memory_file, replica.steps().memory());
}

HEED_END
