#include "train/exchange/model_map.h"

#include <algorithm>
#include <map>
#include <set>

#include "autograd/base/error.h"

HEED_BEGIN

namespace {

/// Rows [first, first + rows) of a matrix or a vector, as the part describes.
Array computed(const MappedTensor& part, const Array& all) {
  const Shape& shape = all.shape();
  const std::int64_t columns = all.size() / shape[0],
                     rows = part.rows > 0 ? part.rows : shape[0] - part.first;
  if (part.first < 0 || part.first + rows > shape[0])
    fail("[exchange] {} has no rows {} to {}", part.own, part.first, part.first + rows);
  const real* const from = all.data() + part.first * columns;
  const auto factor = static_cast<real>(part.factor);
  const bool vector = shape.rank() == 1;
  Array out(vector ? Shape{rows} : part.transposed ? Shape{columns, rows} : Shape{rows, columns});
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c)
      out.data()[part.transposed ? c * rows + r : r * columns + c] = factor * from[r * columns + c];
  }
  return out;
}

std::vector<std::int64_t> dimensions(const Shape& shape) {
  std::vector<std::int64_t> all;
  for (int axis = 0; axis < shape.rank(); ++axis) all.push_back(shape[axis]);
  return all;
}

}  // namespace

ForeignTensors::ForeignTensors(std::span<const MappedTensor> parts,
                               std::span<const NamedTensor> own) {
  std::set<std::string> unused;
  for (const NamedTensor& tensor : own) unused.insert(tensor.name);
  for (const MappedTensor& part : parts) {
    if (part.own.empty()) {
      add(part, computed_.emplace_back(*part.constant));
      continue;
    }
    const auto found = std::ranges::find(own, part.own, &NamedTensor::name);
    if (found == own.end()) fail("[exchange] the model has no tensor {}", part.own);
    unused.erase(part.own);
    const Array& values = found->tensor.value();
    const bool unchanged =
        part.first == 0 && part.rows == 0 && !part.transposed && part.factor == 1;
    add(part, unchanged ? values : computed_.emplace_back(computed(part, values)));
  }
  if (!unused.empty()) fail("[exchange] {} is in no part", *unused.begin());
}

void ForeignTensors::add(const MappedTensor& part, const Array& values) {
  views_.push_back(
      {part.foreign, sizeof(real) == 4 ? DType::f32 : DType::f64,
       part.shape.empty() ? dimensions(values.shape()) : part.shape,
       std::as_bytes(std::span(values.data(), static_cast<std::size_t>(values.size())))});
}

std::vector<std::string> differing_tensors(std::span<const TensorView> expected,
                                           std::span<const TensorView> found) {
  std::map<std::string_view, const TensorView*> rest;
  for (const TensorView& view : found) rest.emplace(view.name, &view);
  std::vector<std::string> names;
  for (const TensorView& view : expected) {
    const auto at = rest.find(view.name);
    if (at == rest.end() || at->second->shape != view.shape || at->second->dtype != view.dtype ||
        !std::ranges::equal(at->second->bytes, view.bytes))
      names.push_back(view.name);
    if (at != rest.end()) rest.erase(at);
  }
  for (const auto& [name, view] : rest) names.emplace_back(name);
  return names;
}

HEED_END
