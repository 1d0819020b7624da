#include "train/exchange/onnx/swin.h"

#include <fmt/format.h>

#include <algorithm>

#include "nn/models/swin.h"
#include "train/exchange/onnx/layers.h"

HEED_BEGIN

namespace {

/// Windows of equal size: those at the edges are padded.
struct PaddedWindows {
  std::int64_t windows, size;         ///< number of windows and of patches in each
  std::vector<std::int64_t> patches;  ///< [windows · size], patch of each place; of the padding: 0
  std::vector<std::int64_t> place_of;    ///< place of each patch
  std::vector<std::uint8_t> read;        ///< [windows, 1, 1, size]: no padding
  std::vector<std::int64_t> difference;  ///< [windows, size, size], row of the table of biases
};

PaddedWindows padded(const Windowed& windowed) {
  const GridWindows& grid = *windowed.grid;
  PaddedWindows all{grid.windows(), 0, {}, {}, {}, {}};
  for (std::int64_t w = 0; w < all.windows; ++w)
    all.size = std::max<std::int64_t>(all.size, grid.offsets[w + 1] - grid.offsets[w]);
  all.place_of.resize(windowed.order.size());
  const std::int64_t row = 2 * grid.side - 1, centre = (grid.side - 1) * (row + 1);
  for (std::int64_t w = 0; w < all.windows; ++w) {
    const std::int64_t first = grid.offsets[w], count = grid.offsets[w + 1] - first;
    for (std::int64_t i = 0; i < all.size; ++i) {
      const bool real_patch = i < count;
      const std::int64_t patch = real_patch ? windowed.order[first + i] : 0;
      if (real_patch) all.place_of[patch] = w * all.size + i;
      all.patches.push_back(patch);
      all.read.push_back(real_patch ? 1 : 0);
      for (std::int64_t j = 0; j < all.size; ++j) {  // as in GridBias
        const auto at = [&](std::int64_t p) { return grid.y[first + p] * row + grid.x[first + p]; };
        all.difference.push_back(real_patch && j < count ? at(i) - at(j) + centre : centre);
      }
    }
  }
  return all;
}

class Swin {
 public:
  Swin(OnnxBuilder& builder, const ModelOptions& options) : b_(builder), o_(options) {}

  OnnxValue operator()(const OnnxValue& patches) {
    std::int64_t height = o_.grid_height, width = o_.grid_width;
    const OnnxValue rows = b_.reshape(patches, {std::int64_t{-1}, o_.input_width});
    OnnxValue x = b_.norm(o_, b_.linear(rows, "encoder.input"), "encoder.input_norm");
    x = b_.reshape(x, {std::int64_t{-1}, height * width, o_.d_model});
    for (std::size_t s = 0; s < o_.swin.depths.size(); ++s) {
      const std::string name = fmt::format("encoder.stages.{}", s);
      if (s > 0) {
        x = merged(x, name + ".merge", height, width);
        height /= 2;
        width /= 2;
      }
      for (std::int64_t i = 0; i < o_.swin.depths[s]; ++i)
        x = block(x, fmt::format("{}.layers.{}", name, i), i, height, width);
    }
    if (!o_.final_norm || o_.norm == NormPlace::none) return x;
    const OnnxValue normed =
        b_.norm(o_, b_.reshape(x, {std::int64_t{-1}, o_.d_model}), "encoder.norm");
    return b_.reshape(normed, {std::int64_t{-1}, height * width, o_.d_model});
  }

 private:
  /// 2 × 2 patches become one of twice the width.
  OnnxValue merged(const OnnxValue& x, const std::string& name, std::int64_t height,
                   std::int64_t width) {
    std::vector<std::int64_t> order;
    for (std::int64_t y = 0; y < height; y += 2) {
      for (std::int64_t column = 0; column < width; column += 2) {
        for (const auto& [dy, dx] : {std::pair(0, 0), {1, 0}, {0, 1}, {1, 1}})
          order.push_back((y + dy) * width + column + dx);
      }
    }
    const OnnxValue groups =
        b_.reshape(b_.gather(x, b_.integers(order), 1), {std::int64_t{-1}, 4 * o_.d_model});
    const OnnxValue y = b_.linear(b_.norm(o_, groups, name + ".norm"), name + ".projection");
    o_.d_model *= 2;
    o_.d_ff *= 2;
    o_.heads *= 2;
    o_.attention.kv_heads *= 2;
    return b_.reshape(y, {std::int64_t{-1}, height * width / 4, o_.d_model});
  }

  OnnxValue block(const OnnxValue& x, const std::string& name, std::int64_t number,
                  std::int64_t height, std::int64_t width) {
    const std::int64_t side = std::min(o_.swin.window, std::max(height, width));
    const PaddedWindows w =
        padded(cut_into_windows(height, width, side, number % 2 == 0 ? 0 : side / 2));
    ModelOptions options = o_;
    options.positions = PositionKind::none;
    OnnxStack stack(b_, options, BlockKind::encoder, "", 0);
    OnnxSequences sequences{b_.integers({-1}), b_.integers({w.size})};  // each window is a sequence
    const OnnxValue bias =
        b_.transpose(b_.lookup(name + ".positions.weight",
                               b_.integers(w.difference, {w.windows, w.size, w.size})),
                     {0, 3, 1, 2});
    const OnnxValue read =
        b_.op("Expand",
              {b_.booleans(w.read, {w.windows, 1, 1, w.size}),
               b_.shape_of({b_.size(x, 0), w.windows, std::int64_t{1}, std::int64_t{1}, w.size})});
    sequences.visible =
        b_.reshape(read, {std::int64_t{-1}, std::int64_t{1}, std::int64_t{1}, w.size});
    sequences.bias = [&](const OnnxValue& scores) {
      const OnnxValue by_image =
          b_.reshape(scores, {std::int64_t{-1}, w.windows, o_.heads, w.size, w.size});
      return b_.reshape(b_.add(by_image, bias), {std::int64_t{-1}, o_.heads, w.size, w.size});
    };
    const OnnxValue rows =
        b_.reshape(b_.gather(x, b_.integers(w.patches), 1), {std::int64_t{-1}, o_.d_model});
    const OnnxValue y = b_.reshape(stack.block(rows, sequences, name + ".", number),
                                   {std::int64_t{-1}, w.windows * w.size, o_.d_model});
    return b_.gather(y, b_.integers(w.place_of), 1);
  }

  OnnxBuilder& b_;
  ModelOptions o_;  ///< of the current stage
};

}  // namespace

OnnxValue onnx_swin(OnnxBuilder& b, const ModelOptions& options, const OnnxValue& patches) {
  return Swin(b, options)(patches);
}

HEED_END
