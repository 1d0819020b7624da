#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "autograd/ops/more/attention/grid_bias.h"
#include "nn/layers/block.h"
#include "nn/linear.h"
#include "nn/models/model.h"

HEED_BEGIN

/// The windows of an image, and its patches in the order of the windows.
struct Windowed {
  std::shared_ptr<const GridWindows> grid;
  std::vector<std::int32_t> order;  ///< row → index of the patch, counted line by line
};

/// Cuts an image of height × width patches into windows of side × side. With a shift, the first
/// window along each dimension longer than a window has `shift` patches, so windows at both edges
/// may be smaller. (This is equivalent to the paper's method, which rolls the image by −shift and
/// masks attention between patches from opposite edges.)
Windowed cut_into_windows(std::int64_t height, std::int64_t width, std::int64_t side,
                          std::int64_t shift);

/// The encoder of a Swin Transformer (Liu et al., "Swin Transformer: hierarchical vision
/// transformer using shifted windows", 2021): the usual encoder blocks, with attention among
/// the patches of a window and a relative position bias. Every second block shifts its windows by
/// half a window, so that information crosses the borders. Between two stages, 2 × 2 patches are
/// merged into one of twice the width:
///   stage 0:  x = norm(patches Wᵀ + b)
///   stage s:  x = norm([x(0,0), x(1,0), x(0,1), x(1,1)]) Wᵀ,   W: [2 d, 4 d]
/// The time of a block is proportional to the number of patches.
class SwinEncoder {
 public:
  SwinEncoder(const ModelOptions& options, Init& init);

  /// Images as feature rows, one per patch, line by line → [images · patches(), width()].
  /// The output rows of an image are contiguous; their order is unspecified.
  Tensor operator()(const SideView& side, Pass& pass) const;
  std::int64_t width() const { return width_; }  ///< d_model, doubled by each stage after the first
  std::int64_t patches() const { return patches_; }  ///< patches per image after the last stage
  Parameters parameters() const;

 private:
  struct Merge {                      ///< the merge of 2 × 2 patches
    std::vector<std::int32_t> order;  ///< row → patch; the four patches of a group are consecutive
    Norm norm;
    Linear projection;
  };
  struct Block {
    TransformerBlock block;
    Windowed windows;
    Tensor bias;                      ///< [relative positions, heads]
    std::vector<ScoreTermPtr> terms;  ///< a GridBias
  };
  struct Stage {
    std::optional<Merge> merge;
    std::vector<Block> blocks;
  };

  void add_stage(const ModelOptions& options, std::int64_t depth, std::int64_t height,
                 std::int64_t width, bool merges, Init& init);
  std::int64_t images_of(const SideView& side) const;

  std::int64_t input_patches_, patches_, width_;
  double dropout_rate_;
  Linear input_;
  Norm input_norm_;
  std::vector<Stage> stages_;
  std::optional<Norm> norm_;
};

HEED_END
