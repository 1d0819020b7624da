#include "train/exchange/onnx/builder.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "autograd/base/error.h"
#include "nn/layers/activations.h"

HEED_BEGIN

// ---- weights -----------------------------------------------------------------------------------

namespace {

constexpr std::string_view scale_suffix = ".scale";

}  // namespace

OnnxWeights::OnnxWeights(std::span<const TensorView> views) {
  for (const TensorView& view : views) {
    views_.emplace(view.name, view);
    unused_.insert(view.name);
  }
}

const TensorView& OnnxWeights::at(const std::string& name) {
  const auto found = views_.find(name);
  if (found == views_.end()) fail("[onnx] the model has no tensor {}", name);
  unused_.erase(name);
  return found->second;
}

std::string OnnxWeights::unused() const { return unused_.empty() ? "" : *unused_.begin(); }

// ---- inputs, outputs and operators -------------------------------------------------------------

OnnxValue OnnxBuilder::fresh(std::string_view type) {
  return fmt::format("{}_{}", type, values_++);
}

OnnxValue OnnxBuilder::input(const std::string& name, DType type,
                             const std::vector<OnnxDimension>& shape) {
  graph_.input(name, type, shape);
  return name;
}

void OnnxBuilder::output(const std::string& name, DType type,
                         const std::vector<OnnxDimension>& shape, const OnnxValue& value) {
  graph_.node("Identity", {{value}}, {{name}});
  graph_.output(name, type, shape);
}

std::vector<OnnxValue> OnnxBuilder::ops(std::string_view type, const std::vector<OnnxValue>& inputs,
                                        std::size_t outputs, const Attributes& attributes) {
  std::vector<OnnxValue> results;
  for (std::size_t i = 0; i < outputs; ++i) results.push_back(fresh(type));
  current_->node(type, inputs, results, attributes);
  return results;
}

OnnxValue OnnxBuilder::op(std::string_view type, const std::vector<OnnxValue>& inputs,
                          const Attributes& attributes) {
  return ops(type, inputs, 1, attributes).front();
}

OnnxValue OnnxBuilder::transpose(const OnnxValue& x, std::vector<std::int64_t> order) {
  return op("Transpose", {x}, {{"perm", std::move(order)}});
}

OnnxValue OnnxBuilder::unsqueeze(const OnnxValue& x, std::vector<std::int64_t> axes) {
  return op("Unsqueeze", {x, integers(axes)});
}

OnnxValue OnnxBuilder::gather(const OnnxValue& table, const OnnxValue& ids, std::int64_t axis) {
  return op("Gather", {table, ids}, {{"axis", axis}});
}

OnnxValue OnnxBuilder::cast(const OnnxValue& x, DType type) {
  return op("Cast", {x}, {{"to", onnx_type(type)}});
}

OnnxValue OnnxBuilder::slice(const OnnxValue& x, std::int64_t axis, const OnnxValue& first,
                             std::int64_t step) {
  return op("Slice", {x, first, integers({std::numeric_limits<std::int64_t>::max()}),
                      integers({axis}), integers({step})});
}

std::vector<OnnxValue> OnnxBuilder::split(const OnnxValue& x, std::int64_t axis,
                                          const std::vector<std::int64_t>& sizes) {
  return ops("Split", {x, integers(sizes)}, sizes.size(), {{"axis", axis}});
}

OnnxValue OnnxBuilder::sum(const OnnxValue& x, std::int64_t axis) {
  return op("ReduceSum", {x, integers({axis})});
}

OnnxValue OnnxBuilder::size(const OnnxValue& x, std::int64_t axis) {
  return op("Shape", {x}, {{"start", axis}, {"end", axis + 1}});
}

OnnxValue OnnxBuilder::shape_of(const std::vector<OnnxDimension>& shape) {
  std::vector<OnnxValue> parts;
  std::vector<std::int64_t> numbers;
  const auto add_numbers = [&] {
    if (!numbers.empty()) parts.push_back(integers(numbers));
    numbers.clear();
  };
  for (const OnnxDimension& dimension : shape) {
    if (const auto* const value = std::get_if<OnnxValue>(&dimension)) {
      add_numbers();
      parts.push_back(*value);
    } else {
      numbers.push_back(std::get<std::int64_t>(dimension));
    }
  }
  add_numbers();
  return parts.size() == 1 ? parts[0] : op("Concat", parts, {{"axis", std::int64_t{0}}});
}

OnnxValue OnnxBuilder::reshape(const OnnxValue& x, const std::vector<OnnxDimension>& shape) {
  return op("Reshape", {x, shape_of(shape)});
}

OnnxValue OnnxBuilder::range(const OnnxValue& end) {
  return op("Range", {integer(0), op("Squeeze", {end, integers({0})}), integer(1)});
}

OnnxValue OnnxBuilder::clamp(const OnnxValue& integers, std::int64_t low, std::int64_t high) {
  return op("Clip", {integers, integer(low), integer(high)});
}

void OnnxBuilder::end_branch(OnnxGraph& graph, const std::vector<OnnxValue>& results) {
  for (const OnnxValue& result : results) graph.output(result, DType::f32, {});
  current_ = &graph_;
}

std::vector<OnnxValue> OnnxBuilder::end_choose(const OnnxValue& condition, const OnnxGraph& then,
                                               const OnnxGraph& otherwise, std::size_t results) {
  return ops("If", {condition}, results, {{"then_branch", &then}, {"else_branch", &otherwise}});
}

// ---- constants and weights -----------------------------------------------------------------------

OnnxValue OnnxBuilder::constant(DType type, std::string bytes, std::vector<std::int64_t> shape) {
  const std::string key = fmt::format("{} {} {}", name_of(type), fmt::join(shape, ","), bytes);
  const auto found = constants_.find(key);
  if (found != constants_.end()) return found->second;
  const OnnxValue name = fresh("constant");
  graph_.tensor({name, type, std::move(shape), as_bytes(bytes_.emplace_back(std::move(bytes)))});
  return constants_.emplace(key, name).first->second;
}

namespace {

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace

OnnxValue OnnxBuilder::integers(const std::vector<std::int64_t>& values,
                                std::vector<std::int64_t> shape) {
  return constant(DType::i64, bytes_of(values), std::move(shape));
}
OnnxValue OnnxBuilder::numbers(const std::vector<float>& values, std::vector<std::int64_t> shape) {
  return constant(DType::f32, bytes_of(values), std::move(shape));
}
OnnxValue OnnxBuilder::booleans(const std::vector<std::uint8_t>& values,
                                std::vector<std::int64_t> shape) {
  return constant(DType::boolean, bytes_of(values), std::move(shape));
}

const std::vector<std::int64_t>& OnnxBuilder::shape_of_weight(const std::string& name) {
  return weights_.at(name).shape;
}

/// A tensor of the model, or rows of it, as a tensor of the graph.
OnnxValue OnnxBuilder::tensor(const std::string& name, OnnxRows rows) {
  TensorView view = weights_.at(name);
  if (rows.count > 0) {
    const std::size_t row = view.bytes.size() / static_cast<std::size_t>(view.shape[0]);
    view.name = fmt::format("{}[{}:{}]", name, rows.first, rows.first + rows.count);
    view.shape[0] = rows.count;
    view.bytes = view.bytes.subspan(static_cast<std::size_t>(rows.first) * row,
                                    static_cast<std::size_t>(rows.count) * row);
  }
  if (tensors_.insert(view.name).second) graph_.tensor(view);
  return view.name;
}

/// Integers are dequantised once, in the outermost graph, because ONNX Runtime 1.30 fails if a branch
/// of an If does it.
OnnxValue OnnxBuilder::weight(const std::string& name, OnnxRows rows) {
  const OnnxValue stored = tensor(name, rows);
  if (weights_.at(name).dtype != DType::i8) return stored;
  OnnxValue& value = weights_of_[stored];
  if (!value.empty()) return value;
  value = fresh("weight");
  const OnnxValue inputs[] = {stored, tensor(name + std::string(scale_suffix), rows)};
  const OnnxAttribute attributes[] = {{"axis", std::int64_t{0}}};
  graph_.node("DequantizeLinear", inputs, {{value}}, attributes);
  return value;
}

OnnxValue OnnxBuilder::lookup(const std::string& name, const OnnxValue& ids) {
  const OnnxValue rows = gather(tensor(name, {}), ids);
  if (weights_.at(name).dtype != DType::i8) return rows;
  const OnnxValue scales = gather(tensor(name + std::string(scale_suffix), {}), ids);
  return mul(cast(rows, DType::f32), unsqueeze(scales, {-1}));
}

OnnxValue OnnxBuilder::affine(const OnnxValue& x, const OnnxValue& weight, const OnnxValue& bias) {
  std::vector<OnnxValue> inputs{x, weight};
  if (!bias.empty()) inputs.push_back(bias);
  return op("Gemm", inputs, {{"transB", std::int64_t{1}}});
}

OnnxValue OnnxBuilder::linear(const OnnxValue& x, const std::string& name) {
  const std::string bias = name + ".bias";
  return affine(x, weight(name + ".weight"), has(bias) ? weight(bias) : "");
}

OnnxValue OnnxBuilder::norm(const ModelOptions& o, const OnnxValue& x, const std::string& name) {
  const auto eps = static_cast<float>(o.norm_eps);
  const OnnxValue gain = weight(name + ".weight");
  if (o.norm_kind == NormKind::rms) {
    const OnnxValue square =
        op("ReduceMean", {mul(x, x)}, {{"axes", std::vector<std::int64_t>{-1}}});
    return mul(op("Div", {x, op("Sqrt", {add(square, number(o.norm_eps))})}), gain);
  }
  const OnnxValue bias = weight(name + ".bias");
  if (o.norm_kind == NormKind::layer)
    return op("LayerNormalization", {x, gain, bias},
              {{"axis", std::int64_t{-1}}, {"epsilon", eps}});
  return op("BatchNormalization",
            {x, gain, bias, weight(name + ".running_mean"), weight(name + ".running_var")},
            {{"epsilon", eps}});
}

OnnxValue OnnxBuilder::unary(std::string_view name, const OnnxValue& x) {
  if (name == "relu") return op("Relu", {x});
  if (name == "tanh") return op("Tanh", {x});
  if (name == "sigmoid") return op("Sigmoid", {x});
  if (name == "silu") return mul(x, op("Sigmoid", {x}));
  OnnxValue inner;  // gelu: x (1 + f) / 2
  if (name == "gelu") {
    inner = op("Erf", {mul(x, number(1 / std::numbers::sqrt2))});
  } else if (name == "gelu_tanh") {
    const OnnxValue cube = mul(mul(mul(x, x), x), number(0.044715));
    inner = op("Tanh", {mul(add(x, cube), number(std::sqrt(2 / std::numbers::pi)))});
  } else {
    fail("[onnx] the activation {} has no formula", name);
  }
  return mul(mul(x, number(0.5)), add(inner, number(1)));
}

OnnxValue OnnxBuilder::activation(Activation f, const OnnxValue& x) {
  const auto gate = gate_of(f);
  if (!gate) return unary(name_of(f), x);
  const std::vector<OnnxValue> halves = ops("Split", {x}, 2, {{"axis", std::int64_t{-1}}});
  return mul(unary(name_of(*gate), halves[0]), halves[1]);
}

HEED_END
