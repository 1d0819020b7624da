#include "nn/layers/feed_forward.h"

HEED_BEGIN

namespace {

kernels::Map map_of(Activation activation) {
  switch (activation) {
    case Activation::relu:
      return kernels::Map::relu;
    case Activation::gelu:
      return kernels::Map::gelu;
    case Activation::gelu_tanh:
      return kernels::Map::gelu_tanh;
    case Activation::silu:
      return kernels::Map::silu;
  }
  fail("[feed_forward] unknown activation {}", static_cast<int>(activation));
}

}  // namespace

FeedForward::FeedForward(const ModelOptions& options, Init& init)
    : linear1(options.d_model, options.d_ff, init),
      linear2(options.d_ff, options.d_model, init),
      activation(map_of(options.activation)),
      dropout_rate(options.dropout.activation) {}

Parameters FeedForward::parameters() const {
  Parameters all;
  append(all, "linear1", linear1);
  append(all, "linear2", linear2);
  return all;
}

HEED_END
