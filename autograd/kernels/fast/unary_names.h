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

}  // namespace heed
