#include "train/run/weights.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "autograd/base/error.h"
#include "autograd/base/message_text.h"

HEED_BEGIN

namespace {

constexpr DType own_type = sizeof(real) == 4 ? DType::f32 : DType::f64;

/// One line for each of the first few.
std::string listed(const std::vector<std::string>& misfits) {
  constexpr std::size_t most = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(misfits.size(), most); ++i) text += "\n  " + misfits[i];
  if (misfits.size() > most) text += fmt::format("\n  … and {} more", misfits.size() - most);
  return text;
}

std::vector<std::int64_t> extents(const Shape& shape) {
  return {shape.extents().begin(), shape.extents().end()};
}

}  // namespace

std::vector<TensorView> tensor_views(std::span<const NamedTensor> parameters) {
  std::vector<TensorView> views;
  for (const NamedTensor& p : parameters) {
    views.push_back(
        {p.name, own_type, extents(p.tensor.shape()), std::as_bytes(p.tensor.value().values())});
  }
  return views;
}

void load_weights(const SafetensorsFile& file, std::span<const NamedTensor> parameters,
                  const std::string& file_name) {
  std::vector<std::string> missing, mismatched, extra;
  std::set<std::string_view> known;
  for (const NamedTensor& p : parameters) {
    known.insert(p.name);
    const TensorView* const found = file.find(p.name);
    if (found == nullptr) {
      missing.push_back(fmt::format("missing: {} {}", p.name, p.tensor.shape()));
    } else if (found->shape != extents(p.tensor.shape()) ||
               (found->dtype != DType::f32 && found->dtype != DType::f64)) {
      mismatched.push_back(
          fmt::format("shape or type differs: {} is {} in the file, {} {} in the model", p.name,
                      found->description(), name_of(own_type), p.tensor.shape()));
    }
  }
  for (const TensorView& t : file.tensors()) {
    if (known.count(t.name) == 0)
      extra.push_back(fmt::format("extra: {} {}", shown(t.name, 200), t.description()));
  }
  if (!missing.empty() || !mismatched.empty() || !extra.empty()) {
    throw Error(Exit::bad_input,
                fmt::format("{}: the weights do not fit the model{}{}{}", file_name,
                            listed(missing), listed(mismatched), listed(extra)));
  }
  for (const NamedTensor& p : parameters) {
    const TensorView& t = *file.find(p.name);
    Tensor into = p.tensor;  // a handle: writes change the model
    const auto copy = [&](auto values) {
      real* const target = into.mutable_value().data();
      for (std::size_t i = 0; i < values.size(); ++i) target[i] = static_cast<real>(values[i]);
    };
    t.dtype == DType::f32 ? copy(t.values<float>()) : copy(t.values<double>());
  }
}

HEED_END
