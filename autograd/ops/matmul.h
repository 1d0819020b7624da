#pragma once
/// Matrix products.
#include "autograd/tensor.h"

HEED_BEGIN

/// a: [..., m, k] (or [..., k, m] with trans_a), b: [..., k, n] (or [..., n, k] with trans_b)
/// → [..., m, n]. Leading axes broadcast.
Tensor matmul(const Tensor& a, const Tensor& b, bool trans_a = false, bool trans_b = false);

HEED_END
