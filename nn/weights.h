#pragma once
/// Weights in files: parameters under their names, as safetensors.
///
///   save_weights("model.safetensors", model.parameters());
///   load_weights("model.safetensors", model.parameters());   // throws unless all of them fit
///
/// A file has the type of the build that wrote it, float or double. Either build reads and converts both, as
/// well as f16 and bf16. A module of PyTorch with parameters of the same names and shapes
/// loads the file with safetensors.torch.load_file and load_state_dict.
///
/// Quantised weights: a matrix NAME is I8 in the file, and an F32 tensor NAME.scale has one scale for each
/// index of its first axis (a row); a value is its integer times the scale of its row. Both builds read
/// such files too.
#include <cstdint>
#include <deque>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/base/formats/safetensors.h"
#include "autograd/named_tensor.h"

HEED_BEGIN

/// Views of the parameters' values, under their names. Throws Error(failed) if a parameter is
/// undefined.
std::vector<TensorView> tensor_views(std::span<const NamedTensor> parameters);

/// Writes the parameters' values, atomically: an older file stays until the new one is complete.
/// Throws Error(failed) if a parameter is undefined or two have the same name, Error(io) if the disk
/// fails. The metadata are arbitrary texts; "format" tells other libraries that names and shapes
/// follow PyTorch.
void save_weights(const std::filesystem::path& path, std::span<const NamedTensor> parameters,
                  const TensorMetadata& metadata = {{"format", "pt"}});

/// The parameters in int8: those of rank 2 and more as in autograd/kernels/gemm/int8.h, with their scales; the
/// others as they are.
class QuantisedWeights {
 public:
  /// Throws Error(non_finite), naming the parameter, if a row has a weight that is not finite or has a
  /// magnitude from 2^127 up. Throws Error(failed) as tensor_views does.
  explicit QuantisedWeights(std::span<const NamedTensor> parameters);
  QuantisedWeights(const QuantisedWeights&) = delete;
  QuantisedWeights& operator=(const QuantisedWeights&) = delete;

  /// To be written with write_safetensors while this object and the parameters exist.
  const std::vector<TensorView>& views() const { return views_; }

 private:
  void add(const TensorView& matrix, const Array& values);

  std::deque<std::vector<std::int8_t>> numbers_;
  std::deque<std::vector<float>> scales_;
  std::vector<TensorView> views_;
};

/// Whether this tensor holds the scales of another one in the file.
bool is_scale(const SafetensorsFile& file, std::string_view name);

struct LoadOptions {
  /// A name that only the file or only the model has is an error.
  bool strict = true;
};

/// Names in the order of the model (`extra`: of the file).
struct LoadedWeights {
  std::vector<std::string> loaded;   ///< in both
  std::vector<std::string> missing;  ///< in the model only: these parameters keep their values
  std::vector<std::string> extra;    ///< in the file only
  bool quantised = false;            ///< some of the loaded ones are int8 in the file
};

/// Copies a file's tensors into the parameters of the same names, converted to `real`. All or
/// nothing: throws Error(bad_input), listing every name that does not fit, before a value changes. A
/// different shape, or a type without fractions (except I8 with scales), never fits; a name that one side lacks does if
/// `strict` is false and at least one name is in both. (To keep a parameter whose shape differs,
/// leave it out of `parameters`.) Throws Error(failed) if two parameters have the same name.
LoadedWeights load_weights(const std::filesystem::path& path,
                           std::span<const NamedTensor> parameters,
                           const LoadOptions& options = {});
/// The same from a file in memory; messages name it `file_name`.
LoadedWeights load_weights(const SafetensorsFile& file, std::span<const NamedTensor> parameters,
                           const std::string& file_name, const LoadOptions& options = {});

/// Copies the values of a tensor of type f64, f32, bf16 or f16, converted to `real`. `into` has the
/// tensor's size.
void copy_values(const TensorView& tensor, std::span<real> into);

HEED_END
