#pragma once
/// Windows of rows, from which `affine` makes a convolution along sequences.
#include <cstdint>
#include <span>

#include "autograd/tensor.h"

HEED_BEGIN

/// x: [rows, d] → [rows, width, d]: for each row, the `width` rows of its sequence from `before` rows
/// before it, with zeros outside of the sequence. offsets: [sequences + 1], where each sequence begins.
Tensor unfold(const Tensor& x, std::span<const std::int32_t> offsets, std::int64_t width,
              std::int64_t before);

HEED_END
