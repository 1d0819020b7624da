#pragma once
/// Windows of rows: `affine` applied to windows is a convolution along sequences or over grids.
#include <cstdint>
#include <span>
#include <vector>

#include "autograd/memory/block.h"
#include "autograd/tensor.h"

HEED_BEGIN

/// A window of height × width rows, which begins `above` lines above and `before` rows before the
/// row that it belongs to. The rows of a sequence form lines of `line` rows, or one line if `line`
/// is 0. Every stride-th row of every stride-th line has a window, beginning with the first row of
/// the first line: n lines of m rows have ⌈n / stride⌉ · ⌈m / stride⌉ windows.
struct UnfoldWindow {
  std::int64_t width = 1, before = 0;
  std::int64_t stride = 1;
  std::int64_t height = 1, above = 0;
  std::int64_t line = 0;
};

/// x: [rows, d] → [windows, height · width, d]: the rows of each window, line by line, with zeros
/// outside the sequence and its lines. offsets: [sequences + 1], the first row of each sequence,
/// then the number of rows.
Tensor unfold(const Tensor& x, std::span<const std::int32_t> offsets, const UnfoldWindow& window);

/// The index of the first window of each sequence, then the number of windows.
std::vector<std::int32_t, BlockAllocator<std::int32_t>> unfolded_offsets(
    std::span<const std::int32_t> offsets, const UnfoldWindow& window);

HEED_END
