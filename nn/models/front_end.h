#pragma once
/// The input layer from feature rows (frames of sound, patches of images) to rows of the model.
#include <vector>

#include "autograd/ops/more/sequences/unfold.h"
#include "nn/context.h"
#include "nn/linear.h"
#include "nn/option_kinds.h"

HEED_BEGIN

/// - linear: y = x Wᵀ + b, row by row
/// - conv: options.front_end.layers convolutions, each y = gelu(x * W + b) with d_model channels, a
///   kernel of 3 rows, a stride of 2 and zero padding: each reduces n rows to ⌈n / 2⌉.
///
/// For sequences (options.grid_width 0), the convolutions run over time and the values of a row are
/// channels, as in Whisper (Radford et al. 2022, section 2.2), whose first convolution has a stride
/// of 1; Speech-Transformer (Dong et al. 2018) has a stride of 2 in each layer.
///
/// For images, the convolutions run over the grid of patches, with kernels of 3 × 3 rows: the
/// convolutional stem of Xiao et al. 2021 ("Early convolutions help transformers see better") with
/// GELU in place of batch norm and ReLU, the same number of channels in each layer, and without the
/// final 1 × 1 convolution.
///
/// A class token in front of the input would enter the first windows, so classifiers use the mean
/// of the rows.
struct FrontEnd {
  FrontEndKind kind = FrontEndKind::linear;
  /// linear: one layer, [d, input width]. conv, with c input channels: [d, 3 c] for sequences,
  /// [d, 9 c] for images; column (3 p + q) c + k: channel k of row q in line p of the window.
  std::vector<Linear> layers;
  std::int64_t grid_width = 0;  ///< number of patches per line; 0: a sequence is one line

  FrontEnd() = default;
  FrontEnd(const ModelOptions& options, Init& init);

  /// x: [rows, input width] → [rows of offsets_after(offsets), d]
  Tensor operator()(const Tensor& x, Offsets offsets) const;
  /// The offsets of the sequences in the output.
  ComputedOffsets offsets_after(Offsets offsets) const;
  Parameters parameters() const;

 private:
  /// The windows of a convolution over lines of `line` rows (0: a sequence is one line).
  static UnfoldWindow window(std::int64_t line);
  static std::int64_t halved(std::int64_t line) { return (line + 1) / 2; }
};

HEED_END
