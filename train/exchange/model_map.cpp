#include "train/exchange/model_map.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "autograd/base/error.h"
#include "nn/weights.h"

HEED_BEGIN

namespace {

/// The column of the other program's matrix that column c of heed's becomes (MappedTensor::channels).
std::int64_t foreign_column(const MappedTensor& part, std::int64_t c, std::int64_t columns) {
  return c % part.channels * (columns / part.channels) + c / part.channels;
}
/// The row, counted from part.first, that becomes row r.
std::int64_t source_row(const MappedTensor& part, std::int64_t r) {
  if (part.group == 0) return r;
  const std::int64_t at = r % part.group;
  return r - at + at % part.split * (part.group / part.split) + at / part.split;
}

/// Rows [first, first + rows) of a matrix or a vector, as the part describes.
Array computed(const MappedTensor& part, const Array& all) {
  const Shape& shape = all.shape();
  const std::int64_t columns = all.size() / shape[0],
                     rows = part.rows > 0 ? part.rows : shape[0] - part.first;
  if (part.first < 0 || part.first + rows > shape[0])
    fail("[exchange] {} has no rows {} to {}", part.own, part.first, part.first + rows);
  if (part.group > 0 && (rows % part.group != 0 || part.group % part.split != 0))
    fail("[exchange] {} rows of {} are not groups of {} in {} parts", rows, part.own, part.group,
         part.split);
  const real* const first = all.data() + part.first * columns;
  const auto factor = static_cast<real>(part.factor);
  const bool vector = shape.rank() == 1;
  Array out(vector ? Shape{rows} : part.transposed ? Shape{columns, rows} : Shape{rows, columns});
  for (std::int64_t r = 0; r < rows; ++r) {
    const real* const from = first + source_row(part, r) * columns;
    for (std::int64_t c = 0; c < columns; ++c) {
      const std::int64_t to = foreign_column(part, c, columns);
      out.data()[part.transposed ? to * rows + r : r * columns + to] = factor * from[c];
    }
  }
  return out;
}

/// The rows of heed's tensor that a part is computed from.
struct OwnRows {
  Tensor tensor;
  std::int64_t first, rows, columns;

  real* values() { return tensor.mutable_value().data() + first * columns; }
};

OwnRows own_rows(const MappedTensor& part, std::span<const NamedTensor> own) {
  const auto found = std::ranges::find(own, part.own, &NamedTensor::name);
  if (found == own.end()) fail("[exchange] the model has no tensor {}", part.own);
  const Shape& shape = found->tensor.shape();
  const std::int64_t rows = part.rows > 0 ? part.rows : shape[0] - part.first;
  if (part.first < 0 || part.first + rows > shape[0])
    fail("[exchange] {} has no rows {} to {}", part.own, part.first, part.first + rows);
  return {found->tensor, part.first, rows, found->tensor.value().size() / shape[0]};
}

std::vector<std::int64_t> dimensions(const Shape& shape) {
  std::vector<std::int64_t> all;
  for (int axis = 0; axis < shape.rank(); ++axis) all.push_back(shape[axis]);
  return all;
}

/// A number of 64 bits can also be infinite because it exceeds those of 32.
void require_finite(std::span<const real> values, const MappedTensor& part,
                    const TensorView& foreign, const std::string& where) {
  const auto wrong = std::ranges::find_if(values, [](real value) { return !std::isfinite(value); });
  if (wrong != values.end())
    throw Error(Exit::bad_input, "{}: {} ({}) contains {} as a number of 32 bits, in place {}",
                where, part.foreign, foreign.description(), *wrong, wrong - values.begin());
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
    const bool unchanged = part.first == 0 && part.rows == 0 && part.group == 0 &&
                           part.channels == 1 && !part.transposed && part.factor == 1;
    add(part, unchanged ? values : computed_.emplace_back(computed(part, values)));
  }
  if (!unused.empty()) fail("[exchange] {} is in no part", *unused.begin());
}

void set_part(const MappedTensor& part, std::span<const NamedTensor> own, const TensorView& foreign,
              const std::string& where) {
  OwnRows to = own_rows(part, own);
  const bool vector = to.tensor.shape().rank() == 1;
  std::vector<std::int64_t> shape = part.shape;
  if (shape.empty()) {
    shape = {to.rows};
    if (!vector) shape.insert(part.transposed ? shape.begin() : shape.end(), to.columns);
  }
  if (foreign.shape != shape || foreign.dtype < DType::f16 ||
      (foreign.dtype != DType::f16 && foreign.dtype != DType::bf16 && foreign.dtype != DType::f32 &&
       foreign.dtype != DType::f64))
    throw Error(Exit::bad_input, "{}: {} is {}; expected floating-point numbers of shape [{}]",
                where, part.foreign, foreign.description(), fmt::join(shape, ", "));
  const auto size = static_cast<std::size_t>(to.rows * to.columns);
  if (vector || (!part.transposed && part.channels == 1)) {
    copy_values(foreign, {to.values(), size});
    return require_finite({to.values(), size}, part, foreign, where);
  }
  std::vector<real> theirs(size);
  copy_values(foreign, theirs);
  require_finite(theirs, part, foreign, where);
  for (std::int64_t r = 0; r < to.rows; ++r) {
    for (std::int64_t c = 0; c < to.columns; ++c) {
      const std::int64_t from = foreign_column(part, c, to.columns);
      to.values()[r * to.columns + c] = theirs[static_cast<std::size_t>(
          part.transposed ? from * to.rows + r : r * to.columns + from)];
    }
  }
}

void zero_part(const MappedTensor& part, std::span<const NamedTensor> own) {
  OwnRows to = own_rows(part, own);
  std::fill_n(to.values(), to.rows * to.columns, real{0});
}

bool equals_part(const MappedTensor& part, std::span<const NamedTensor> own,
                 const TensorView& foreign) {
  Array values;
  if (part.own.empty()) {
    values = *part.constant;
  } else {
    const auto found = std::ranges::find(own, part.own, &NamedTensor::name);
    values = computed(part, found->tensor.value());
  }
  if (foreign.size() != values.size() ||
      (foreign.dtype != DType::f32 && foreign.dtype != DType::f16 && foreign.dtype != DType::bf16 &&
       foreign.dtype != DType::f64))
    return false;
  std::vector<real> theirs(static_cast<std::size_t>(values.size()));
  copy_values(foreign, theirs);
  return std::equal(theirs.begin(), theirs.end(), values.data());
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
