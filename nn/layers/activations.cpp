#include "nn/layers/activations.h"

HEED_BEGIN

using Functions = OpenTable<Activation, ActivationFunction>;

void add_activation(std::string_view name, ActivationFunction f) { Functions::add(name, f); }

ActivationFunction registered_function(Activation activation) {
  return is_built_in(activation) ? nullptr : Functions::of(activation);
}

HEED_END
