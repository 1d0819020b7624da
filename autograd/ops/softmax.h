#pragma once
/// Softmax over the last axis.
#include "autograd/tensor.h"

HEED_BEGIN

/// mask, if defined, is added to x first and broadcasts to it; −inf masks an entry. A row with all
/// entries masked becomes zeros (softmax) or −inf (log_softmax) and has no gradient.
Tensor softmax(const Tensor& x, const Array& mask = {});
Tensor log_softmax(const Tensor& x, const Array& mask = {});

HEED_END
