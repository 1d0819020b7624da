/// Gradient descent in float: finds the w with w³ = 8.
#include <cmath>
#include <cstdio>
#include <type_traits>

#include "autograd/random.h"
#include "cube.h"

int main() {
  static_assert(std::is_same_v<heed::real, float>, "heed::f32 is float");
  heed::Random random({.seed = 1});
  const auto start = static_cast<float>(1.0 + random.uniform());
  heed::Tensor w = heed::Tensor::variable(heed::Array::scalar(start));
  for (int step = 0; step < 100; ++step) {
    const heed::Tensor y = heed::cube(w);
    const float error = y.item() - 8;
    const heed::Gradients g = heed::backward(y, heed::Array::scalar(error));  // of error² / 2
    w.mutable_value().data()[0] -= 0.005f * g[w].item();
  }
  std::printf("w = %.6f\n", static_cast<double>(w.item()));
  if (!(std::abs(w.item() - 2) < 1e-4f)) return 1;
  std::puts("done");
}
