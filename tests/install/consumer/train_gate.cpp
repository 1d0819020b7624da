/// Trains a gate, by gradient descent in float, to compute the same outputs as another gate.
#include <cmath>
#include <cstdio>
#include <type_traits>

#include <heed/nn/linear.h>  // must not include ./nn/parameters.h

#include "gate.h"

int main() {
  static_assert(std::is_same_v<heed::real, float>, "heed::f32 must use float");
  const heed::Tensor x(heed::example({64, 3}));
  const heed::Tensor targets(heed::Gate(3, 2, 1).forward(x).value());  // constant
  heed::Gate gate(3, 2, 2);

  float first = 0, last = 0;
  for (int step = 0; step < 500; ++step) {
    const heed::Tensor difference = heed::sub(gate.forward(x), targets);
    const heed::Tensor loss = heed::mean(heed::mul(difference, difference));
    last = loss.item();
    if (step == 0) first = last;
    const heed::Gradients gradients = heed::backward(loss);
    double squares = 0;
    for (const heed::NamedTensor& p : gate.parameters()) {
      const heed::Array g = gradients[p.tensor];
      for (const float value : g.values()) squares += value * value;
    }
    // All updates have the same norm: the gradients of cubes differ so much that no fixed rate
    // suits all steps.
    const auto rate = static_cast<float>(0.02 / std::sqrt(squares));
    for (heed::NamedTensor& p : gate.parameters()) {
      const heed::Array g = gradients[p.tensor];
      for (std::int64_t i = 0; i < g.size(); ++i)
        p.tensor.mutable_value().data()[i] -= rate * g.data()[i];
    }
  }
  std::printf("mean squared error: %.5f in the first step, %.5f in the last\n",
              static_cast<double>(first), static_cast<double>(last));
  return last < first / 10 ? 0 : 1;
}
