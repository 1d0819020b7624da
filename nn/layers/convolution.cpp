#include "nn/layers/convolution.h"

#include "autograd/ops/basic.h"
#include "autograd/ops/more/elementwise.h"
#include "autograd/ops/more/sequences/unfold.h"
#include "autograd/ops/more/shape.h"
#include "nn/options.h"

HEED_BEGIN

GatedConvolution::GatedConvolution(const ModelOptions& options, AttentionScope scope, Init& init)
    : conv(options.conv_width * options.d_model, 2 * options.d_model, init),
      d(options.d_model),
      width(options.conv_width),
      before(scope == AttentionScope::past ? width - 1 : width / 2) {}

Parameters GatedConvolution::parameters() const { return parameters_of("conv", conv); }

Tensor GatedConvolution::gated(const Tensor& windows) const {
  const std::vector<Tensor> parts = split(conv(windows), 2, 1);
  return parts[0] * sigmoid(parts[1]);
}

Tensor GatedConvolution::operator()(const Tensor& x, const Context& context) const {
  const Tensor windows =
      unfold(x, context.offsets, {.width = width, .before = before});  // [rows, width, d]
  return gated(reshape(windows, {x.shape()[0], width * d}));
}

Tensor GatedConvolution::step(const Tensor& x, const Context& context) const {
  Array& past = running_state(context, x.shape()[0], (width - 1) * d);  // the last width − 1 rows
  const Tensor window = concat({past, x}, 1);
  past = slice(window, 1, d, width * d).value();
  return gated(window);
}

HEED_END
