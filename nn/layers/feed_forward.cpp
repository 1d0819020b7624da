#include "nn/layers/feed_forward.h"

#include "autograd/ops/more/affine_activation.h"
#include "autograd/ops/more/dropout.h"
#include "autograd/ops/more/elementwise.h"
#include "nn/options.h"

HEED_BEGIN

FeedForward::FeedForward(const ModelOptions& options, Init& init)
    : linear1(options.d_model, (gate_of(options.activation) ? 2 : 1) * options.d_ff, init,
              options.bias),
      linear2(options.d_ff, options.d_model, init, options.bias),
      activation(options.activation),
      registered(registered_function(options.activation)),
      dropout_rate(options.dropout.activation) {}

Tensor FeedForward::hidden(const Tensor& x, Pass& pass) const {
  const auto p = static_cast<real>(pass.rate(dropout_rate));
  if (const auto gate = gate_of(activation))
    return dropout(gated(*gate, linear1(x)), p, pass.next_key());
  if (registered != nullptr) return dropout(registered(linear1(x)), p, pass.next_key());
  return affine_activation(static_cast<UnaryFunction>(activation), x, linear1.weight, linear1.bias,
                           p, pass.next_key());
}

Parameters FeedForward::parameters() const {
  Parameters all;
  append(all, "linear1", linear1);
  append(all, "linear2", linear2);
  return all;
}

HEED_END
