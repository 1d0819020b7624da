#include "nn/weights.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <set>

#include "autograd/base/error.h"
#include "autograd/io/message_text.h"
#include "autograd/kernels/fast/gemm/int8.h"

HEED_BEGIN

namespace {

constexpr DType real_type = sizeof(real) == 4 ? DType::f32 : DType::f64;

bool has_fractions(DType type) {
  return type == DType::f64 || type == DType::f32 || type == DType::bf16 || type == DType::f16;
}

/// bfloat16 is the upper half of a float.
float from_bf16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

/// IEEE 754 binary16: 1 sign bit, 5 exponent bits, 10 fraction bits.
float from_f16(std::uint16_t bits) {
  constexpr std::uint32_t highest = 31;
  const std::uint32_t exponent = bits >> 10u & highest, fraction = bits & 1023u;
  float magnitude = std::ldexp(static_cast<float>(fraction), -24);  // subnormal, or zero
  if (exponent == highest) {
    magnitude = fraction == 0 ? std::numeric_limits<float>::infinity()
                              : std::numeric_limits<float>::quiet_NaN();
  } else if (exponent > 0) {
    magnitude = std::ldexp(static_cast<float>(fraction + 1024), static_cast<int>(exponent) - 25);
  }
  return (bits >> 15u) != 0 ? -magnitude : magnitude;
}

/// The first `max_listed` misfits, one per line, then the number of omitted misfits.
std::string listed(const std::vector<std::string>& misfits) {
  constexpr std::size_t max_listed = 100;  // a file may have 65,536 names
  std::string text;
  for (std::size_t i = 0; i < std::min(misfits.size(), max_listed); ++i)
    text += "\n  " + misfits[i];
  if (misfits.size() > max_listed)
    text += fmt::format("\n  … and {} more", misfits.size() - max_listed);
  return text;
}

std::vector<std::int64_t> extents(const Shape& shape) {
  return {shape.extents().begin(), shape.extents().end()};
}

constexpr std::string_view scale_suffix = ".scale";

/// The number of rows of a quantised tensor; each row has a scale.
std::int64_t rows_of(const TensorView& tensor) {
  return tensor.shape.empty() ? 1 : tensor.shape.front();
}

/// The scales of a tensor; nullptr if it is not I8 or the file lacks scales of the right type and
/// size.
const TensorView* scales_of(const SafetensorsFile& file, const TensorView& tensor) {
  const TensorView* const scales = file.find(tensor.name + std::string(scale_suffix));
  const bool fit = tensor.dtype == DType::i8 && scales != nullptr && scales->dtype == DType::f32 &&
                   scales->shape == std::vector<std::int64_t>{rows_of(tensor)};
  return fit ? scales : nullptr;
}

/// Copies a tensor that compare() accepted.
void copy_tensor(const SafetensorsFile& file, const TensorView& tensor, std::span<real> into) {
  if (tensor.dtype != DType::i8) return copy_values(tensor, into);
  const std::int64_t rows = rows_of(tensor);
  kernels::dequantise_rows(tensor.values<std::int8_t>().data(),
                           scales_of(file, tensor)->values<float>().data(), rows,
                           rows == 0 ? 0 : tensor.size() / rows, into.data());
}

/// The result of a comparison: lines of the error message, and the names that are in the file, in
/// the model or in both.
struct Comparison {
  std::vector<std::string> missing, mismatched, extra;
  LoadedWeights names;
};

Comparison compare(const SafetensorsFile& file, std::span<const NamedTensor> parameters) {
  Comparison found;
  std::set<std::string_view> known;
  for (const NamedTensor& p : parameters) {
    if (!p.tensor.defined())
      fail("[load_weights] {} is an undefined tensor: leave it out of parameters()", p.name);
    if (!known.insert(p.name).second)
      fail("[load_weights] two parameters are named {}: rename one of them", p.name);
    const TensorView* const tensor = file.find(p.name);
    if (tensor == nullptr) {
      found.missing.push_back(fmt::format("missing: {} {}", p.name, p.tensor.shape()));
      found.names.missing.push_back(p.name);
    } else if (const bool scaled = scales_of(file, *tensor) != nullptr;
               tensor->shape != extents(p.tensor.shape()) ||
               !(has_fractions(tensor->dtype) || scaled)) {
      found.mismatched.push_back(
          fmt::format("shape or type differs: {} is {} in the file, {} {} in the model", p.name,
                      tensor->description(), name_of(real_type), p.tensor.shape()));
      if (tensor->dtype == DType::i8 && !scaled)
        found.mismatched.back() += fmt::format(", and {}{} is missing or is not F32 [{}]", p.name,
                                               scale_suffix, rows_of(*tensor));
    } else {
      found.names.quantised |= scaled;
      found.names.loaded.push_back(p.name);
    }
  }
  for (const TensorView& t : file.tensors()) {
    if (known.contains(t.name) || is_scale(file, t.name)) continue;
    found.extra.push_back(fmt::format("extra: {} {}", shown(t.name, 200), t.description()));
    found.names.extra.push_back(t.name);
  }
  return found;
}

}  // namespace

std::vector<TensorView> tensor_views(std::span<const NamedTensor> parameters) {
  std::vector<TensorView> views;
  for (const NamedTensor& p : parameters) {
    if (!p.tensor.defined())
      fail("[save_weights] {} is an undefined tensor: leave it out of parameters()", p.name);
    views.push_back(
        {p.name, real_type, extents(p.tensor.shape()), std::as_bytes(p.tensor.value().values())});
  }
  return views;
}

void save_weights(const std::filesystem::path& path, std::span<const NamedTensor> parameters,
                  const TensorMetadata& metadata) {
  write_safetensors(path, tensor_views(parameters), metadata);
}

QuantisedWeights::QuantisedWeights(std::span<const NamedTensor> parameters) {
  const std::vector<TensorView> all = tensor_views(parameters);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].shape.size() < 2)
      views_.push_back(all[i]);
    else
      add(all[i], parameters[i].tensor.value());
  }
}

void QuantisedWeights::add(const TensorView& matrix, const Array& values) {
  const std::int64_t rows = rows_of(matrix), cols = rows == 0 ? 0 : matrix.size() / rows;
  std::vector<std::int8_t>& q = numbers_.emplace_back(static_cast<std::size_t>(matrix.size()));
  std::vector<float>& scales = scales_.emplace_back(static_cast<std::size_t>(rows));
  kernels::quantise_rows(values.data(), rows, cols, q.data(), scales.data());
  for (std::int64_t r = 0; r < rows; ++r) {
    if (std::isnan(scales[r]))
      throw Error(Exit::non_finite,
                  "{}: row {} has a weight that is not finite or has a magnitude of "
                  "2^127 or more, which int8 cannot represent",
                  matrix.name, r);
  }
  views_.push_back({matrix.name, DType::i8, matrix.shape, std::as_bytes(std::span(q))});
  views_.push_back({matrix.name + std::string(scale_suffix),
                    DType::f32,
                    {rows},
                    std::as_bytes(std::span(scales))});
}

bool is_scale(const SafetensorsFile& file, std::string_view name) {
  if (!name.ends_with(scale_suffix)) return false;
  const TensorView* const of = file.find(name.substr(0, name.size() - scale_suffix.size()));
  return of != nullptr && of->dtype == DType::i8;
}

LoadedWeights load_weights(const std::filesystem::path& path,
                           std::span<const NamedTensor> parameters, const LoadOptions& options) {
  return load_weights(SafetensorsFile::read(path), parameters, path.string(), options);
}

LoadedWeights load_weights(const SafetensorsFile& file, std::span<const NamedTensor> parameters,
                           const std::string& file_name, const LoadOptions& options) {
  Comparison found = compare(file, parameters);
  if (!options.strict && !found.names.loaded.empty()) found.missing = found.extra = {};
  if (!found.missing.empty() || !found.mismatched.empty() || !found.extra.empty()) {
    throw Error(Exit::bad_input, "{}: the weights do not fit the model{}{}{}", file_name,
                listed(found.missing), listed(found.mismatched), listed(found.extra));
  }
  for (const NamedTensor& p : parameters) {
    Tensor into = p.tensor;  // a handle: writes change the model
    if (const TensorView* const tensor = file.find(p.name))
      copy_tensor(file, *tensor, into.mutable_value().values());
  }
  return std::move(found.names);
}

void copy_values(const TensorView& tensor, std::span<real> into) {
  if (!has_fractions(tensor.dtype) || static_cast<std::int64_t>(into.size()) != tensor.size())
    fail("[copy_values] cannot copy tensor {} ({}) to {} values", tensor.name, tensor.description(),
         into.size());
  const auto convert = [&](auto values, auto number) {
    for (std::size_t i = 0; i < into.size(); ++i) into[i] = static_cast<real>(number(values[i]));
  };
  const auto same = [](auto value) { return value; };
  switch (tensor.dtype) {
    case DType::f64:
      return convert(tensor.values<double>(), same);
    case DType::bf16:
      return convert(tensor.values<std::uint16_t>(), from_bf16);
    case DType::f16:
      return convert(tensor.values<std::uint16_t>(), from_f16);
    default:
      return convert(tensor.values<float>(), same);
  }
}

HEED_END
