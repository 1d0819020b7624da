#include "nn/layers/feed_forward.h"

HEED_BEGIN

FeedForward::FeedForward(const ModelOptions& options, Init& init)
    : linear1(options.d_model, options.d_ff, init),
      linear2(options.d_ff, options.d_model, init),
      activation(options.activation),
      dropout_rate(options.dropout.activation) {}

Parameters FeedForward::parameters() const {
  Parameters all;
  append(all, "linear1", linear1);
  append(all, "linear2", linear2);
  return all;
}

HEED_END
