#pragma once
/// Builds the graph of a model from operators of ONNX (onnx.ai, operator set 17). A value is named by a
/// string. Rows of all sequences of a batch are a matrix [batch · length, d], as elsewhere in heed.
#include <deque>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/memory/array.h"
#include "nn/options.h"
#include "train/exchange/onnx/file.h"

HEED_BEGIN

using OnnxValue = std::string;

/// The tensors of a model by name: of type f32, or I8 with the scales of its rows in NAME.scale
/// (QuantisedWeights). Records which of them graphs use.
class OnnxWeights {
 public:
  explicit OnnxWeights(std::span<const TensorView> views);

  bool contains(const std::string& name) const { return views_.contains(name); }
  /// Throws Error(failed) if there is none of this name.
  const TensorView& at(const std::string& name);
  /// The first name that at() has not returned; empty if there is none.
  std::string unused() const;

 private:
  std::map<std::string, TensorView> views_;
  std::set<std::string> unused_;
};

/// Rows [first, first + count) of a tensor; count 0: all.
struct OnnxRows {
  std::int64_t first = 0, count = 0;
};

class OnnxBuilder {
 public:
  using Attributes = std::vector<OnnxAttribute>;

  explicit OnnxBuilder(OnnxWeights& weights) : weights_(weights) {}
  OnnxBuilder(const OnnxBuilder&) = delete;
  OnnxBuilder& operator=(const OnnxBuilder&) = delete;

  const OnnxGraph& graph() const { return graph_; }
  OnnxWeights& weights() { return weights_; }

  OnnxValue input(const std::string& name, DType type, const std::vector<OnnxDimension>& shape);
  /// Gives a value the name of an output.
  void output(const std::string& name, DType type, const std::vector<OnnxDimension>& shape,
              const OnnxValue& value);

  // ---- operators -------------------------------------------------------------------------------

  OnnxValue op(std::string_view type, const std::vector<OnnxValue>& inputs,
               const Attributes& attributes = {});
  std::vector<OnnxValue> ops(std::string_view type, const std::vector<OnnxValue>& inputs,
                             std::size_t outputs, const Attributes& attributes = {});
  OnnxValue add(const OnnxValue& a, const OnnxValue& b) { return op("Add", {a, b}); }
  OnnxValue sub(const OnnxValue& a, const OnnxValue& b) { return op("Sub", {a, b}); }
  OnnxValue mul(const OnnxValue& a, const OnnxValue& b) { return op("Mul", {a, b}); }
  OnnxValue matmul(const OnnxValue& a, const OnnxValue& b) { return op("MatMul", {a, b}); }
  OnnxValue transpose(const OnnxValue& x, std::vector<std::int64_t> order);
  OnnxValue unsqueeze(const OnnxValue& x, std::vector<std::int64_t> axes);
  OnnxValue gather(const OnnxValue& table, const OnnxValue& ids, std::int64_t axis = 0);
  OnnxValue cast(const OnnxValue& x, DType type);
  /// Along an axis, elements first, first + step, … before `end` (both [1]).
  OnnxValue slice(const OnnxValue& x, std::int64_t axis, const OnnxValue& first,
                  std::int64_t step = 1);
  std::vector<OnnxValue> split(const OnnxValue& x, std::int64_t axis,
                               const std::vector<std::int64_t>& sizes);
  OnnxValue sum(const OnnxValue& x, std::int64_t axis);  ///< keeps the axis, with size 1
  /// The size along an axis: [1].
  OnnxValue size(const OnnxValue& x, std::int64_t axis);
  /// A dimension is a number, 0 (that of x at this place), −1 (the rest) or a value [1].
  OnnxValue reshape(const OnnxValue& x, const std::vector<OnnxDimension>& shape);
  OnnxValue shape_of(const std::vector<OnnxDimension>& shape);
  /// 0, 1, … below `end` ([1]), as a vector of integers.
  OnnxValue range(const OnnxValue& end);
  OnnxValue clamp(const OnnxValue& integers, std::int64_t low, std::int64_t high);
  /// condition ? then(…) : otherwise(…), where each branch returns the same number of values. The
  /// branches may use all earlier values.
  template <class Then, class Else>
  std::vector<OnnxValue> choose(const OnnxValue& condition, Then then, Else otherwise);

  // ---- constants and weights -------------------------------------------------------------------

  OnnxValue integer(std::int64_t value) { return integers({value}, {}); }
  OnnxValue integers(const std::vector<std::int64_t>& values) {
    return integers(values, {std::ssize(values)});
  }
  OnnxValue integers(const std::vector<std::int64_t>& values, std::vector<std::int64_t> shape);
  OnnxValue number(double value) { return numbers({static_cast<float>(value)}, {}); }
  OnnxValue numbers(const std::vector<float>& values, std::vector<std::int64_t> shape);
  OnnxValue booleans(const std::vector<std::uint8_t>& values, std::vector<std::int64_t> shape);

  bool has(const std::string& name) const { return weights_.contains(name); }
  OnnxValue weight(const std::string& name, OnnxRows rows = {});
  const std::vector<std::int64_t>& shape_of_weight(const std::string& name);
  /// Rows of a table: ids of any shape → […, d].
  OnnxValue lookup(const std::string& name, const OnnxValue& ids);
  /// x Wᵀ + b, the latter if NAME.bias exists: [rows, in] → [rows, out].
  OnnxValue linear(const OnnxValue& x, const std::string& name);
  OnnxValue affine(const OnnxValue& x, const OnnxValue& weight, const OnnxValue& bias);
  OnnxValue norm(const ModelOptions& o, const OnnxValue& x, const std::string& name);
  /// relu, gelu, gelu_tanh, silu, tanh or sigmoid.
  OnnxValue unary(std::string_view name, const OnnxValue& x);
  /// The function between the two layers of a feed-forward layer.
  OnnxValue activation(Activation f, const OnnxValue& x);

 private:
  OnnxValue constant(DType type, std::string bytes, std::vector<std::int64_t> shape);
  OnnxValue tensor(const std::string& name, OnnxRows rows);
  OnnxValue fresh(std::string_view type);

  void begin_branch(OnnxGraph& graph) { current_ = &graph; }
  void end_branch(OnnxGraph& graph, const std::vector<OnnxValue>& results);
  std::vector<OnnxValue> end_choose(const OnnxValue& condition, const OnnxGraph& then,
                                    const OnnxGraph& otherwise, std::size_t results);

  OnnxWeights& weights_;
  OnnxGraph graph_;
  OnnxGraph* current_ = &graph_;
  std::int64_t values_ = 0;
  std::deque<std::string> bytes_;                ///< of constants
  std::map<std::string, OnnxValue> constants_;   ///< by type, shape and bytes
  std::map<std::string, OnnxValue> weights_of_;  ///< weights in f32 by name
  std::set<std::string> tensors_;
};

template <class Then, class Else>
std::vector<OnnxValue> OnnxBuilder::choose(const OnnxValue& condition, Then then, Else otherwise) {
  OnnxGraph branches[2];
  begin_branch(branches[0]);
  const std::vector<OnnxValue> results = then();
  end_branch(branches[0], results);
  begin_branch(branches[1]);
  end_branch(branches[1], otherwise());
  return end_choose(condition, branches[0], branches[1], results.size());
}

HEED_END
