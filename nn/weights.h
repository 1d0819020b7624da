#pragma once
/// Weights in safetensors files: tensors with the names of the parameters.
///
///   save_weights("model.safetensors", model.parameters());
///   load_weights("model.safetensors", model.parameters());   // throws if a tensor does not fit
///
/// A file has the type of the build that wrote it, float or double. Both builds read either type,
/// as well as f16 and bf16. safetensors.torch.load_file and load_state_dict load a file into a
/// PyTorch module with parameters of the same names and shapes.
///
/// Quantised weights: a matrix NAME is I8 in the file, and an F32 tensor NAME.scale contains one
/// scale for each row (index of the first axis). A weight is its integer times the scale of its
/// row. Both builds read such files too.
#include <cstdint>
#include <deque>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/io/formats/safetensors.h"
#include "autograd/tensor.h"

HEED_BEGIN

/// Views of the values of the parameters, with their names. Throws Error(failed) if a parameter is
/// undefined.
std::vector<TensorView> tensor_views(std::span<const NamedTensor> parameters);

/// Writes the values of the parameters atomically: an older file remains until the new one is
/// complete. Throws Error(failed) if a parameter is undefined or two have the same name, Error(io)
/// if the file cannot be written. The metadata are arbitrary strings; "format": "pt" means that
/// names and shapes follow PyTorch.
void save_weights(const std::filesystem::path& path, std::span<const NamedTensor> parameters,
                  const TensorMetadata& metadata = {{"format", "pt"}});

/// The parameters in int8: those of rank 2 or more are quantised as in
/// autograd/kernels/fast/gemm/int8.h, with scales; vectors and scalars keep their type.
class QuantisedWeights {
 public:
  /// Throws Error(non_finite), naming the parameter, if a weight of a quantised parameter is not
  /// finite or has a magnitude of 2^127 or more. Throws Error(failed) as tensor_views does.
  explicit QuantisedWeights(std::span<const NamedTensor> parameters);
  QuantisedWeights(const QuantisedWeights&) = delete;
  QuantisedWeights& operator=(const QuantisedWeights&) = delete;

  /// The tensors for write_safetensors; valid while this object and the parameters exist.
  const std::vector<TensorView>& views() const { return views_; }

 private:
  void add(const TensorView& matrix, const Array& values);

  std::deque<std::vector<std::int8_t>> numbers_;
  std::deque<std::vector<float>> scales_;
  std::vector<TensorView> views_;
};

/// Whether `name` is that of the scales of a quantised tensor in the file.
bool is_scale(const SafetensorsFile& file, std::string_view name);

struct LoadOptions {
  /// Whether a name that only the file or only the model contains is an error.
  bool strict = true;
};

/// Names in the order of the model; `extra` in the order of the file.
struct LoadedWeights {
  std::vector<std::string> loaded;   ///< names in the file and in the model
  std::vector<std::string> missing;  ///< names in the model only: parameters left unchanged
  std::vector<std::string> extra;    ///< names in the file only
  bool quantised = false;            ///< at least one loaded tensor is int8 in the file
};

/// Copies the tensors of a file into the parameters of the same names, converted to `real`. Throws
/// Error(bad_input), listing the names that do not fit, before any value is changed. A tensor fits
/// if it has the shape of the parameter and a floating-point type, or I8 with scales. With `strict`
/// false, names in the file only or in the model only are accepted if at least one name is in both.
/// (To keep a parameter whose shape differs, leave it out of `parameters`.) Throws Error(failed) if
/// a parameter is undefined or two have the same name.
LoadedWeights load_weights(const std::filesystem::path& path,
                           std::span<const NamedTensor> parameters,
                           const LoadOptions& options = {});
/// Loads weights from a file in memory; error messages name it `file_name`.
LoadedWeights load_weights(const SafetensorsFile& file, std::span<const NamedTensor> parameters,
                           const std::string& file_name, const LoadOptions& options = {});

/// Copies the values of a tensor of type f64, f32, bf16 or f16, converted to `real`. Throws
/// Error(failed) for any other type or if `into` does not have the size of the tensor.
void copy_values(const TensorView& tensor, std::span<real> into);

HEED_END
