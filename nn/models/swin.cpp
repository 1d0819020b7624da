#include "nn/models/swin.h"

#include <algorithm>
#include <numeric>

#include "autograd/ops/basic.h"
#include "autograd/ops/more/dropout.h"
#include "nn/layers/positions.h"
#include "nn/options.h"

HEED_BEGIN

namespace {

using Order = std::vector<std::int32_t>;

/// The borders of the windows along a dimension of `length` patches, including 0 and `length`. With
/// a shift, the first of several windows has `shift` patches.
Order cuts(std::int64_t length, std::int64_t side, std::int64_t shift) {
  Order borders{0};
  if (length > side) {
    for (std::int64_t at = shift > 0 ? shift : side; at < length; at += side)
      borders.push_back(static_cast<std::int32_t>(at));
  }
  borders.push_back(static_cast<std::int32_t>(length));
  return borders;
}

Order line_by_line(std::int64_t patches) {
  Order order(static_cast<std::size_t>(patches));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

/// Reorders the rows of each image from the patch order `from` to the patch order `to`.
Tensor reordered(const Tensor& x, const Order& from, const Order& to, std::int64_t images) {
  if (from == to) return x;
  Order row_of(from.size());
  for (std::size_t row = 0; row < from.size(); ++row)
    row_of[from[row]] = static_cast<std::int32_t>(row);
  Order ids;
  ids.reserve(to.size() * images);
  for (std::int64_t p = 0; p < images; ++p) {
    const auto first = static_cast<std::int32_t>(p * std::ssize(to));
    for (const std::int32_t patch : to) ids.push_back(first + row_of[patch]);
  }
  return index_select(x, ids);
}

/// The order of height × width patches in which the four patches of each 2 × 2 group are
/// consecutive.
Order merge_order(std::int64_t height, std::int64_t width) {
  Order order;
  for (std::int64_t y = 0; y < height; y += 2) {
    for (std::int64_t x = 0; x < width; x += 2) {
      for (const auto& [dy, dx] : {std::pair(0, 0), {1, 0}, {0, 1}, {1, 1}})
        order.push_back(static_cast<std::int32_t>((y + dy) * width + x + dx));
    }
  }
  return order;
}

std::vector<std::int32_t> offsets_of(const GridWindows& grid, std::int64_t images) {
  std::vector<std::int32_t> offsets{0};
  for (std::int64_t p = 0; p < images; ++p) {
    const std::int32_t first = offsets.back();
    for (std::int64_t w = 0; w < grid.windows(); ++w)
      offsets.push_back(first + grid.offsets[w + 1]);
  }
  return offsets;
}

ModelOptions with_width(ModelOptions options, std::int64_t d) {
  options.d_ff *= d / options.d_model;
  options.heads *= d / options.d_model;
  options.attention.kv_heads *= d / options.d_model;
  options.d_model = d;
  options.positions = PositionKind::none;
  return options;
}

}  // namespace

Windowed cut_into_windows(std::int64_t height, std::int64_t width, std::int64_t side,
                          std::int64_t shift) {
  auto grid = std::make_shared<GridWindows>();
  grid->side = side;
  grid->offsets.push_back(0);
  Windowed windowed;
  const Order tops = cuts(height, side, shift), lefts = cuts(width, side, shift);
  for (std::size_t i = 0; i + 1 < tops.size(); ++i) {
    for (std::size_t j = 0; j + 1 < lefts.size(); ++j) {
      for (std::int32_t y = tops[i]; y < tops[i + 1]; ++y) {
        for (std::int32_t x = lefts[j]; x < lefts[j + 1]; ++x) {
          grid->y.push_back(y);
          grid->x.push_back(x);
          windowed.order.push_back(y * static_cast<std::int32_t>(width) + x);
        }
      }
      grid->offsets.push_back(static_cast<std::int32_t>(windowed.order.size()));
    }
  }
  windowed.grid = std::move(grid);
  return windowed;
}

SwinEncoder::SwinEncoder(const ModelOptions& options, Init& init)
    : input_patches_(options.grid_height * options.grid_width),
      patches_(input_patches_),
      width_(options.d_model),
      dropout_rate_(options.dropout.residual),
      input_(options.input_width, options.d_model, init),
      input_norm_(options, init) {
  const std::vector<std::int64_t>& depths = options.swin.depths;
  std::int64_t height = options.grid_height, width = options.grid_width;
  if (options.norm_kind == NormKind::batch)
    fail("[swin] expected layer norm or RMS norm, got batch norm");
  if (depths.empty() || patches_ < 1)
    fail("[swin] expected at least one stage and one patch; stages: {}, patches: {} x {}",
         depths.size(), height, width);
  for (std::size_t s = 0; s < depths.size(); ++s) {
    if (s > 0 && (height % 2 != 0 || width % 2 != 0))
      fail("[swin] stage {} cannot merge {} x {} patches: both sides must be even", s, height,
           width);
    if (s > 0) width_ *= 2;
    add_stage(with_width(options, width_), depths[s], height, width, s > 0, init);
    if (s > 0) {
      height /= 2;
      width /= 2;
    }
  }
  patches_ = height * width;
  if (options.final_norm && options.norm != NormPlace::none)
    norm_.emplace(with_width(options, width_), init);
}

/// Adds a stage with height × width input patches. If it merges, its input rows have
/// options.d_model / 2 values.
void SwinEncoder::add_stage(const ModelOptions& options, std::int64_t depth, std::int64_t height,
                            std::int64_t width, bool merges, Init& init) {
  Stage stage;
  const std::int64_t d = options.d_model;
  if (merges) {
    ModelOptions merged = options;
    merged.d_model = 2 * d;
    stage.merge = {merge_order(height, width), Norm(merged, init), Linear(2 * d, d, init, false)};
    height /= 2;
    width /= 2;
  }
  const std::int64_t side = std::min(options.swin.window, std::max(height, width));
  for (std::int64_t i = 0; i < depth; ++i) {
    Block block{TransformerBlock(options, BlockKind::encoder, init),
                cut_into_windows(height, width, side, i % 2 == 0 ? 0 : side / 2),
                {},
                {}};
    block.bias = init.table(block.windows.grid->differences(), options.heads);
    block.terms = {std::make_shared<GridBias>(block.bias, block.windows.grid)};
    stage.blocks.push_back(std::move(block));
  }
  stages_.push_back(std::move(stage));
}

std::int64_t SwinEncoder::images_of(const SideView& side) const {
  for (std::size_t i = 0; i + 1 < side.offsets.size(); ++i) {
    if (side.offsets[i + 1] - side.offsets[i] != input_patches_)
      fail("[swin] expected images of {} patches, got {}", input_patches_,
           side.offsets[i + 1] - side.offsets[i]);
  }
  return std::ssize(side.offsets) - 1;
}

Tensor SwinEncoder::operator()(const SideView& side, Pass& pass) const {
  const std::int64_t images = images_of(side);
  Tensor x = input_norm_(input_(rows_of_features(side)), pass);
  x = dropout(x, static_cast<real>(pass.rate(dropout_rate_)), pass.next_key());
  Order order = line_by_line(input_patches_);
  const auto arrange = [&](const Order& target) {
    x = reordered(x, order, target, images);
    order = target;
  };
  for (const Stage& stage : stages_) {
    if (stage.merge) {
      arrange(stage.merge->order);
      x = reshape(x, {x.shape()[0] / 4, 4 * x.shape()[1]});
      x = stage.merge->projection(stage.merge->norm(x, pass));
      order = line_by_line(std::ssize(order) / 4);
    }
    for (const Block& block : stage.blocks) {
      arrange(block.windows.order);
      const std::vector<std::int32_t> offsets = offsets_of(*block.windows.grid, images);
      Context context{offsets, nullptr, pass};
      context.terms = block.terms;
      x = block.block(x, context);
    }
  }
  return norm_ ? (*norm_)(x, pass) : x;
}

Parameters SwinEncoder::parameters() const {
  Parameters all = parameters_of("input", input_, "input_norm", input_norm_);
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    const std::string stage = "stages." + std::to_string(s);
    if (const std::optional<Merge>& merge = stages_[s].merge) {
      append(all, stage + ".merge.norm", merge->norm);
      append(all, stage + ".merge.projection", merge->projection);
    }
    for (std::size_t i = 0; i < stages_[s].blocks.size(); ++i) {
      const std::string name = stage + ".layers." + std::to_string(i);
      append(all, name, stages_[s].blocks[i].block);
      all.push_back({name + ".positions.weight", stages_[s].blocks[i].bias});
    }
  }
  if (norm_) append(all, "norm", *norm_);
  return all;
}

HEED_END
