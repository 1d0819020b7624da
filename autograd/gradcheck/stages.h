#pragma once
/// The stages of a gradient check, which gradcheck.cpp and variants.cpp combine.
#include <functional>
#include <string>
#include <vector>

#include "autograd/gradcheck.h"

HEED_BEGIN

namespace gradcheck_detail {

/// Compares the gradients of the variables with finite differences, at the variables' values.
GradcheckResult compare_gradients(const std::function<Tensor()>& f,
                                  const std::vector<NamedTensor>& parameters,
                                  const GradcheckOptions& options);

/// If a gradient is wrong, checks each op of f's graph alone, and adds to the result the first op
/// that is wrong or, if all are right, the cause that remains.
void name_wrong_op(GradcheckResult& result, const std::function<Tensor()>& f,
                   const std::vector<NamedTensor>& parameters, const GradcheckOptions& options);

/// Detects a backward that uses values of another call of f. `elsewhere` runs f at other values.
/// Returns a description of the fault, or "".
std::string find_kept_values(const std::function<Tensor()>& f,
                             const std::function<void()>& elsewhere,
                             const std::vector<NamedTensor>& parameters,
                             const GradcheckOptions& options);

/// Options of a short check within another one: one random direction per tensor.
GradcheckOptions one_direction(GradcheckOptions options);
/// The first wrong tensor, as in "the gradient of w is wrong: zero gradient", or "". Ignores slight
/// deviations of a direction if all single entries are correct.
std::string first_wrong(const GradcheckResult& result);

/// The values of x, each changed at random by up to a tenth: such values are likely to be valid
/// arguments of f too.
Array changed_by_a_tenth(const Array& x, std::uint64_t seed);
/// While an instance is alive, the variables have values changed in this way. The versions of the
/// values remain (Array::version), so that graphs recorded before can be used afterwards.
class OtherValues {
 public:
  OtherValues(const std::vector<NamedTensor>& variables, std::uint64_t seed);
  OtherValues(const OtherValues&) = delete;
  OtherValues& operator=(const OtherValues&) = delete;
  ~OtherValues();

 private:
  std::vector<Array> values_, before_;
};

/// The gradients of <u, y> with random weights u, which depend only on the seed; outputs that are
/// not finite have weight 0. Without gradients if y is a constant.
Gradients weighted_gradients(const Tensor& y, std::uint64_t seed);
bool all_finite(const Array& x);
/// The largest finite |value|.
double largest_finite(const Array& a);
/// Whether each value of a equals that of b except for rounding, or neither is finite. Rounding is
/// relative to the larger of `scale` and the largest finite magnitude in b.
bool agrees(const Array& a, const Array& b, double scale = 0);

}  // namespace gradcheck_detail

HEED_END
