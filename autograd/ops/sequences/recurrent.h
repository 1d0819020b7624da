#pragma once
/// Recurrent layers over concatenated sequences: x contains the product of the inputs and its bias,
/// the op adds the contribution of the step before. Each sequence starts from a state of zeros.
#include <cstdint>
#include <span>

#include "autograd/tensor.h"

HEED_BEGIN

/// x: [rows, 4 d] (gates i, f, g, o), weight: W_hh [4 d, d], bias: b_hh [4 d] or undefined → h: [rows, d].
/// offsets: [sequences + 1], the first row of each sequence. `reverse`: from the last row of a
/// sequence to the first.
Tensor lstm(const Tensor& x, const Tensor& weight, const Tensor& bias,
            std::span<const std::int32_t> offsets, bool reverse = false);
/// The GRU with x: [rows, 3 d] (gates r, z, n), weight: [3 d, d], bias: [3 d] or undefined.
Tensor gru(const Tensor& x, const Tensor& weight, const Tensor& bias,
           std::span<const std::int32_t> offsets, bool reverse = false);

HEED_END
