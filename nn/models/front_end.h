#pragma once
/// From rows of features (frames of sound, patches of pictures) to rows of the model.
#include <vector>

#include "autograd/ops/sequences/unfold.h"
#include "nn/context.h"
#include "nn/layers/linear.h"
#include "nn/option_kinds.h"

HEED_BEGIN

/// - linear: y = x Wᵀ + b, row by row
/// - conv: options.layers convolutions, each y = gelu(x * W + b) with d_model channels, a kernel of 3
///   rows and a stride of 2, zeros outside: a sequence of n rows has ⌈n / 2⌉ after each.
///
/// For sequences (options.grid_width 0) they run over time, all values of a row being channels, as in
/// Whisper (Radford et al. 2022, section 2.2), whose first convolution however has a stride of 1; a
/// stride of 2 in each layer is that of Speech-Transformer (Dong et al. 2018).
///
/// For pictures they run over the grid of patches, with kernels of 3 × 3 rows: the convolutional stem
/// of Xiao et al. 2021 ("Early convolutions help transformers see better"), but with GELU in place of
/// batch norm and ReLU, the same number of channels in each layer, and no 1 × 1 convolution at the
/// end.
///
/// A class token cannot precede its input, where it would be part of the first windows: classifiers
/// take the mean of the rows.
struct FrontEnd {
  FrontEndKind kind = FrontEndKind::linear;
  /// linear: one, [d, input width]. conv: [d, 3 c] for sequences, [d, 9 c] for pictures, c channels
  /// before; columns (3 p + q) c + k: channel k of row q of the window's line p.
  std::vector<Linear> layers;
  std::int64_t grid_width = 0;  ///< patches of a line; 0: a sequence is one line

  FrontEnd() = default;
  FrontEnd(const ModelOptions& options, Init& init);

  /// x: [rows, input width] → [rows of offsets_after(offsets), d]
  Tensor operator()(const Tensor& x, Offsets offsets) const;
  /// Where each sequence begins in the result.
  ComputedOffsets offsets_after(Offsets offsets) const;
  Parameters parameters() const;

 private:
  /// The windows of a layer that reads lines of `line` rows (0: one line).
  static UnfoldWindow window(std::int64_t line);
  static std::int64_t halved(std::int64_t line) { return (line + 1) / 2; }
};

HEED_END
