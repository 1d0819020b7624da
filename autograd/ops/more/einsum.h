#pragma once
/// Einstein summation: sums of products of tensors.
#include <initializer_list>
#include <span>
#include <string_view>

#include "autograd/tensor.h"

HEED_BEGIN

/// einsum("bik,bkj->bij", {a, b}): one letter for each axis of each operand, then the letters of
/// the result. Letters that are absent from the result are summed over. A letter occurs at most
/// once in each operand and in the result. Composed of permute, reshape, sum and matmul; operands
/// are combined from left to right.
Tensor einsum(std::string_view equation, std::span<const Tensor> operands);
Tensor einsum(std::string_view equation, std::initializer_list<Tensor> operands);

HEED_END
