#pragma once
/// Infers the likely cause of a wrong gradient from the numbers and describes it in a sentence.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "autograd/base/real.h"
#include "autograd/base/shape.h"

HEED_BEGIN

/// Another tensor that f reads, which a wrong backward may have confused with x.
struct OtherTensor {
  std::string name;
  Shape shape;
  std::vector<double> values, gradient;  ///< its values and its analytic gradient
};

/// The evidence about a tensor x whose gradient is wrong. Entry k of the vectors `analytic`,
/// `numeric` and `wrong` belongs to x's flat index `indices[k]`.
struct Evidence {
  Shape shape;
  Shape output_shape;
  std::vector<std::int64_t> indices;
  std::vector<double> analytic;
  std::vector<double> numeric;
  std::vector<bool> wrong;
  std::vector<double> x, y;       ///< all values of the tensor and of f's output
  std::vector<double> cotangent;  ///< the weight of each value of f's output
  std::vector<OtherTensor> other_tensors;
  bool output_has_graph = true;  ///< f's result depends on a variable
  bool connected = true;         ///< the tape leads from f's result to x
  /// The numeric derivative of each output with respect to the entry of x at a flat index, times
  /// the cotangent: one column of the weighted Jacobian. Each call costs two calls of f.
  std::function<std::vector<double>(std::int64_t)> column;

  bool complete() const { return static_cast<std::int64_t>(indices.size()) == shape.size(); }
};

/// The likely cause, or "" if no pattern fits.
std::string diagnose(const Evidence& evidence);
/// The index along each axis of the entry at a flat index, in the form "[2, 0, 1]".
std::string index_in(const Shape& shape, std::int64_t flat);

HEED_END
