#include "nn/models/front_end.h"

#include <string>

#include "autograd/ops/basic.h"
#include "nn/options.h"

HEED_BEGIN

FrontEnd::FrontEnd(const ModelOptions& options, Init& init)
    : kind(options.front_end.kind), grid_width(options.grid_width) {
  const std::int64_t d = options.d_model;
  if (kind == FrontEndKind::linear) {
    layers.emplace_back(options.input_width, d, init);
    return;
  }
  const UnfoldWindow rows = window(grid_width);
  for (std::int64_t i = 0; i < options.front_end.layers; ++i) {
    const std::int64_t channels = i == 0 ? options.input_width : d;
    layers.emplace_back(rows.height * rows.width * channels, d, init);
  }
}

UnfoldWindow FrontEnd::window(std::int64_t line) {
  UnfoldWindow window{.width = 3, .before = 1, .stride = 2};
  if (line == 0) return window;
  window.height = 3;
  window.above = 1;
  window.line = line;
  return window;
}

Tensor FrontEnd::operator()(const Tensor& x, Offsets offsets) const {
  if (kind == FrontEndKind::linear) return layers.front()(x);
  Tensor y = x;
  ComputedOffsets row_offsets(offsets.begin(), offsets.end());
  std::int64_t line = grid_width;
  for (const Linear& layer : layers) {
    const Tensor windows = unfold(y, row_offsets, window(line));  // [windows, 3 or 9, c]
    const Shape& shape = windows.shape();
    y = gelu(layer(reshape(windows, {shape[0], shape[1] * shape[2]})));
    row_offsets = unfolded_offsets(row_offsets, window(line));
    line = halved(line);
  }
  return y;
}

ComputedOffsets FrontEnd::offsets_after(Offsets offsets) const {
  ComputedOffsets row_offsets(offsets.begin(), offsets.end());
  if (kind == FrontEndKind::linear) return row_offsets;
  std::int64_t line = grid_width;
  for (std::size_t i = 0; i < layers.size(); ++i, line = halved(line))
    row_offsets = unfolded_offsets(row_offsets, window(line));
  return row_offsets;
}

Parameters FrontEnd::parameters() const {
  if (kind == FrontEndKind::linear) return layers.front().parameters();
  Parameters all;
  for (std::size_t i = 0; i < layers.size(); ++i)
    append(all, "layers." + std::to_string(i), layers[i]);
  return all;
}

HEED_END
