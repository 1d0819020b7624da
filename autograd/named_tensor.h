#pragma once
#include <string>
#include <vector>

#include "autograd/tensor.h"

HEED_BEGIN

/// A parameter and its name in reports and checkpoints, such as "encoder.layers.0.norm1.weight".
struct NamedTensor {
  std::string name;
  Tensor tensor;
};

HEED_END
