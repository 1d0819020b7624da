#pragma once
/// A tensor and what people call it: "encoder.layers.0.linear1.weight". Layers list their parameters
/// this way, for optimizers, checkpoints and the gradient checker.
#include <string>

#include "autograd/tensor.h"

HEED_BEGIN

struct NamedTensor {
  std::string name;
  Tensor tensor;  ///< shares its values with the layer's own
};

HEED_END
