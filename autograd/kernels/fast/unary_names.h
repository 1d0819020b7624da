#pragma once
/// The names of the elementwise functions, and their number.
#include "autograd/base/enum_names.h"
#include "autograd/kernels/unary_functions.h"

namespace heed {

#define HEED_NAME(name) #name,
constexpr auto names_of(UnaryFunction) {
  return enum_names<UnaryFunction>(HEED_ACTIVATIONS(HEED_NAME) "neg", "exp", "log", "sqrt");
}
#undef HEED_NAME

inline constexpr std::size_t unary_function_count = names_of(UnaryFunction{}).size();
/// The number of activations: the functions before neg.
inline constexpr std::size_t activation_count = static_cast<std::size_t>(UnaryFunction::neg);

// ---- former names, for one release ---------------------------------------------------------

using Map [[deprecated("use UnaryFunction")]] = UnaryFunction;
[[deprecated("use unary_needs_x")]] constexpr bool map_needs_x(UnaryFunction f) {
  return unary_needs_x(f);
}
[[deprecated("use unary_needs_y")]] constexpr bool map_needs_y(UnaryFunction f) {
  return unary_needs_y(f);
}

}  // namespace heed
