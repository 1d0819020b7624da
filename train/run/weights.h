#pragma once
/// Conversion between parameters in memory and tensors in files.
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "autograd/named_tensor.h"
#include "train/run/safetensors.h"

HEED_BEGIN

/// Views of the parameters' values, under their names.
std::vector<TensorView> tensor_views(std::span<const NamedTensor> parameters);

/// Copies a file's tensors into the parameters of the same names. Strict: throws Error(bad_input),
/// listing every name that is missing from the file, unknown to the model, or of a different shape
/// or type, and then copies nothing.
void load_weights(const SafetensorsFile& file, std::span<const NamedTensor> parameters,
                  const std::string& file_name);

HEED_END
