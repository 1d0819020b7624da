#pragma once
/// Less memory for more time: what backward needs is computed again instead of being kept.
#include <functional>
#include <span>

#include "autograd/tensor.h"

HEED_BEGIN

/// A part of a computation: a function of the tensors that it is given. It may also read variables, such
/// as the parameters of a layer. It must give the same result each time, random numbers included.
using Recomputed = std::function<Tensor(std::span<const Tensor>)>;

/// f(inputs), of which backward keeps only the inputs: backward runs f again, this time recorded, and
/// then through it. The gradients are equal to the bit to those of f(inputs) itself. `variables`: those
/// that f reads besides its inputs; backward refuses a graph with others.
/// Source: Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016.
Tensor recompute(Recomputed f, std::span<const Tensor> inputs, std::span<const Tensor> variables);

HEED_END
