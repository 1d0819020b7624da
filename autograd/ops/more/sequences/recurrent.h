#pragma once
/// Recurrent layers over concatenated sequences. x contains the projected inputs, including their
/// bias; the op adds the contribution of the previous step. The initial state of each sequence is
/// zero.
#include <cstdint>
#include <span>

#include "autograd/tensor.h"

HEED_BEGIN

/// The LSTM: x: [rows, 4 d] (gates i, f, g, o), weight: W_hh [4 d, d], bias: b_hh [4 d] or
/// undefined → h: [rows, d]. offsets: [sequences + 1], the first row of each sequence, then the
/// number of rows. `reverse`: the layer runs from the last row of a sequence to the first.
Tensor lstm(const Tensor& x, const Tensor& weight, const Tensor& bias,
            std::span<const std::int32_t> offsets, bool reverse = false);
/// The GRU: x: [rows, 3 d] (gates r, z, n), weight: W_hh [3 d, d], bias: b_hh [3 d] or undefined
/// → h: [rows, d]. offsets and `reverse`: as for lstm.
Tensor gru(const Tensor& x, const Tensor& weight, const Tensor& bias,
           std::span<const std::int32_t> offsets, bool reverse = false);

HEED_END
