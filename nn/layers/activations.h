#pragma once
/// The activations between the two linear layers of a feed-forward layer.
#include <optional>
#include <string_view>

#include "autograd/base/open_enum.h"
#include "autograd/kernels/fast/unary_names.h"
#include "autograd/tensor.h"

namespace heed {

/// The enumerators before swiglu equal those of UnaryFunction with the same names
/// (autograd/kernels/unary_functions.h); these activations are fused with the preceding linear
/// layer (affine_activation). A gated activation multiplies a function of the first half of that
/// layer's output by the second half (`gated`). Plugins register further activations.
#define HEED_ENUMERATOR(name) name,
enum class Activation : int { HEED_ACTIVATIONS(HEED_ENUMERATOR) swiglu, geglu, geglu_tanh };
#undef HEED_ENUMERATOR

inline OpenNames& open_names(Activation) {
  constexpr auto functions = names_of(UnaryFunction{});
  static OpenNames names("activation", [&] {
    std::vector<std::string_view> all(functions.begin(), functions.begin() + activation_count);
    all.insert(all.end(), {"swiglu", "geglu", "geglu_tanh"});
    return all;
  }());
  return names;
}
inline const std::vector<std::string_view>& names_of(Activation f) { return open_names(f).all(); }

/// The function that a gated activation applies to the first half of its input; nullopt for other
/// activations.
constexpr std::optional<UnaryFunction> gate_of(Activation f) {
  if (f == Activation::swiglu) return UnaryFunction::silu;
  if (f == Activation::geglu) return UnaryFunction::gelu;
  if (f == Activation::geglu_tanh) return UnaryFunction::gelu_tanh;
  return std::nullopt;
}

}  // namespace heed

HEED_BEGIN

/// f(x), elementwise: any shape → the same shape. Composed of ops, so that it has a gradient.
using ActivationFunction = Tensor (*)(const Tensor& x);

/// Registers an activation under a name. Throws Error(bad_input) if the name is already registered
/// or does not consist of words joined by dots, as in mine.squash.
void add_activation(std::string_view name, ActivationFunction f);
/// The registered function, or nullptr for a built-in activation. Throws Error(failed) if its
/// plugin registers it only for the other type of `real`.
ActivationFunction registered_function(Activation activation);

HEED_END
