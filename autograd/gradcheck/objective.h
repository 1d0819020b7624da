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

  /// An error of f as a whole, or "".
  const std::string& problem() const { return problem_; }
  const Shape& output_shape() const { return output_shape_; }
  const Values& outputs() const { return y_; }
  const Values& cotangent() const { return u_; }  ///< the random weight of each output
  /// Descriptions of the variables that f's result depends on but that are not checked
  /// (Audit::unlisted).
  const std::vector<std::string>& unlisted() const { return unlisted_; }
  /// All variables except the one with this number, with their analytic gradients.
  std::vector<OtherTensor> other_tensors(std::size_t number) const;
  bool has_graph() const { return has_graph_; }  ///< whether f's result depends on a variable
  /// Whether the tape leads from f's result to the variable with this number.
  bool reaches(std::size_t number) const { return reached_[number]; }
  /// The straight-through op that the gradient of the variable with this number passes through, or
  /// "".
  const std::string& straight_through(std::size_t number) const { return straight_[number]; }
  /// The analytic gradient of s with respect to the variable with this number.
  const Values& gradient(std::size_t number) const { return gradients_[number]; }

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
  std::string compare(const Values& y, const char* when) const;

  Originals originals_;
  std::function<Tensor()> f_;
  std::string problem_;
  Shape output_shape_;
  Values y_, u_;  ///< outputs and their random weights
  bool has_graph_ = false;
  std::vector<std::string> unlisted_;
  std::vector<bool> reached_;
  std::vector<std::string> straight_;
  std::vector<Values> gradients_;
};

HEED_END
