#pragma once
/// The quantities that the gradient checker measures: s = <u, f()>, its analytic gradient and its
/// differences.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "autograd/gradcheck/diagnosis.h"
#include "autograd/gradcheck/slope.h"
#include "autograd/tensor.h"

HEED_BEGIN

/// Variables and a copy of their values. The destructor restores the values.
class Originals {
 public:
  explicit Originals(const std::vector<NamedTensor>& parameters);
  Originals(const Originals&) = delete;
  Originals& operator=(const Originals&) = delete;
  ~Originals();
  /// The name of a variable whose bits have changed, or "".
  std::string changed() const;
  const std::vector<NamedTensor>& parameters() const { return parameters_; }

 private:
  std::vector<NamedTensor> parameters_;
  std::vector<Array> copies_;
};

using Values = std::vector<double>;
inline Values values_of(const Array& a) { return {a.values().begin(), a.values().end()}; }

/// s as a function of the variables, whose original values are restored on destruction.
class Objective {
 public:
  /// Runs f, forward and backward, and checks that it returns the same result each time.
  Objective(std::function<Tensor()> f, const std::vector<NamedTensor>& parameters,
            std::uint64_t seed, bool ignore_infinite_outputs);

  std::string problem;  ///< an error of f as a whole, or ""
  Shape output_shape;
  Values outputs, cotangent;  ///< f's outputs and their random weights
  bool has_graph = false;     ///< whether f's result depends on a variable
  /// Descriptions of the variables that f's result depends on but that are not checked
  /// (Audit::unlisted).
  std::vector<std::string> unlisted;
  // For each variable: the analytic gradient of s, whether the tape leads from f's result to the
  // variable, and the straight-through op that its gradient passes through, or "".
  std::vector<Values> gradients;
  std::vector<bool> reached;
  std::vector<std::string> straight_through;

  /// All variables except the one with this number, with their analytic gradients.
  std::vector<OtherTensor> other_tensors(std::size_t number) const;
  /// s at the variables' current values, minus s at their original ones.
  Difference difference() const;
  /// The change of s as a function of t when entry i of x changes by t, or x by t d. Each call
  /// restores x.
  Line along_entry(Array x, std::int64_t i) const;
  Line along(Array x, Values d) const;
  /// The numeric derivative of each output with respect to entry i of x, times that output's
  /// weight.
  Values column(Array x, std::int64_t i) const;

 private:
  std::string examine(const std::vector<NamedTensor>& parameters, std::uint64_t seed,
                      bool ignore_infinite_outputs);
  std::string draw_weights(const Array& y, std::uint64_t seed, bool ignore_infinite_outputs);
  std::string repeat();
  std::string why_unrepeatable() const;
  std::string compare(const Values& y, const char* when) const;

  Originals originals_;
  std::function<Tensor()> f_;
};

HEED_END
