#pragma once
/// Recomputation (gradient checkpointing) saves memory at the cost of time: backward recomputes the
/// values that it needs.
#include <functional>
#include <span>

#include "autograd/tensor.h"

HEED_BEGIN

/// A part of a computation, as a function of its input tensors. It may also read variables, such as
/// the parameters of a layer. It must return the same result each time, even if it uses random
/// numbers.
using Recomputed = std::function<Tensor(std::span<const Tensor>)>;

/// Computes f(inputs) but keeps only the inputs: backward runs f again, this time recording its
/// graph, and then the backward of that graph. The gradients are bitwise equal to those of
/// f(inputs) itself. `variables` lists the variables that f reads besides its inputs; backward
/// throws if f reads another one.
/// Source: Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016.
Tensor recompute(Recomputed f, std::span<const Tensor> inputs, std::span<const Tensor> variables);

HEED_END
