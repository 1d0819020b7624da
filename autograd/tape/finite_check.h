#pragma once
/// Finds the first tensor of a forward and backward pass that contains NaN or an infinity.
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>

#include "autograd/tape/observer.h"
#include "autograd/tensor.h"

HEED_BEGIN

/// A value that is not finite, and its position.
struct NonFinite {
  std::string tensor;             ///< description, such as "the result of LayerNorm"
  Shape shape;                    ///< shape of the tensor
  std::int64_t row = 0, col = 0;  ///< index over all axes but the last; index along the last
  real value = 0;

  /// The value in a message: "the result of LayerNorm at encoder.norm.weight: shape [12, 64], nan
  /// at row 3, column 0".
  std::string text() const;
};

/// Returns x, but clears the sign of a NaN, because it is meaningless.
inline double unsigned_nan(double x) { return std::isnan(x) ? std::abs(x) : x; }

/// The first value of x that is not finite; `tensor` describes x in the result.
std::optional<NonFinite> find_non_finite(const Array& x, const std::string& tensor);
/// The first value of these tensors that is not finite. `what`, such as "the weight", precedes the
/// name in the description.
std::optional<NonFinite> find_non_finite(std::span<const NamedTensor> tensors,
                                         const std::string& what);

/// While an instance is alive, it inspects the results and gradients of this thread's ops and
/// records the first value that is not finite. An observer installed earlier receives each result
/// and gradient first.
class FiniteCheck final : public OpObserver {
 public:
  /// The names of the parameters show where in the model an op runs.
  explicit FiniteCheck(std::span<const NamedTensor> parameters);

  const std::optional<NonFinite>& found() const { return found_; }

  void result(const std::type_info& op, const Array& y, std::span<const NodeRef> inputs) override;
  void gradients(const std::type_info& op, std::span<const NodeRef> inputs,
                 std::span<const Grad> dx) override;

 private:
  /// " at NAME" if an input is a parameter, else " after NAME" with the last parameter used, or ""
  /// if none has been used.
  std::string place(std::span<const NodeRef> inputs);

  std::unordered_map<const Node*, std::string> names_;
  std::string last_name_;
  std::optional<NonFinite> found_;
};

HEED_END
