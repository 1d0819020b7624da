#include "nn/layers/activations.h"

HEED_BEGIN

namespace {

using Functions = OpenTable<Activation, ActivationFunction>;

Functions& functions() {
  static Functions table;
  return table;
}

}  // namespace

void add_activation(std::string_view name, ActivationFunction f) { functions().add(name, f); }

ActivationFunction registered_function(Activation activation) {
  return Functions::is_built_in(activation) ? nullptr : functions().of(activation);
}

HEED_END
