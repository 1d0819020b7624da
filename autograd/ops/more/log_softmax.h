#pragma once
#include "autograd/ops/basic.h"

HEED_BEGIN

/// The logarithm of softmax(x, mask). A row with all entries masked becomes −inf and has no
/// gradient.
Tensor log_softmax(const Tensor& x, const Array& mask = {});

HEED_END
