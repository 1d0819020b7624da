// A backward that uses values of another call of f, which an op keeps in a static or shared
// variable: the first call's, if forward stores them once, or the last call's, if every forward
// overwrites them.
#include "autograd/gradcheck/stages.h"

HEED_BEGIN

namespace gradcheck_detail {

namespace {

/// Compares the gradients with those of a call between whose forward and backward f has run at
/// other values.
std::string after_a_later_forward(const std::function<Tensor()>& f,
                                  const std::function<void()>& elsewhere,
                                  const std::vector<NamedTensor>& parameters, std::uint64_t seed) {
  const Gradients right = weighted_gradients(f(), seed);
  const Tensor y = f();
  try {
    elsewhere();
  } catch (const std::exception&) {
    return {};  // f does not accept the other values
  }
  const char* const condition = "if f runs at other values between its forward and its backward";
  Gradients later;
  try {
    later = weighted_gradients(y, seed);
  } catch (const Error& error) {
    return fmt::format("{}, backward fails: {}", condition, error.what());
  }
  for (const NamedTensor& p : parameters) {
    if (!p.tensor.defined() || agrees(later[p.tensor], right[p.tensor])) continue;
    return fmt::format(
        "the gradient of {} differs {}: an op keeps values for backward in a variable that all "
        "calls share",
        p.name, condition);
  }
  return {};
}

/// Compares the gradients at other values with finite differences.
std::string after_an_earlier_forward(const std::function<Tensor()>& f,
                                     const std::vector<NamedTensor>& parameters,
                                     const GradcheckOptions& options) {
  const OtherValues other(parameters, options.seed);
  std::string wrong;
  try {
    {
      const NoGrad off;
      if (!all_finite(f().value())) return {};
    }
    wrong = first_wrong(compare_gradients(f, parameters, one_direction(options)));
  } catch (const std::exception&) {
    return {};  // f does not accept these values
  }
  if (wrong.empty()) return {};
  return fmt::format(
      "with the values of all variables changed by up to 10 %, {}. The gradient was right before: "
      "does backward use values that an earlier forward kept?",
      wrong);
}

}  // namespace

std::string find_kept_values(const std::function<Tensor()>& f,
                             const std::function<void()>& elsewhere,
                             const std::vector<NamedTensor>& parameters,
                             const GradcheckOptions& options) {
  std::string fault = after_a_later_forward(f, elsewhere, parameters, options.seed);
  return fault.empty() ? after_an_earlier_forward(f, parameters, options) : fault;
}

}  // namespace gradcheck_detail

HEED_END
