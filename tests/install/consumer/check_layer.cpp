/// In double: is the gradient of the op right?
#include <cmath>
#include <cstdio>
#include <type_traits>

#include "cube.h"

int main() {
  static_assert(std::is_same_v<heed::real, double>, "heed::f64 is double");
  const double x0 = 1.25, h = 1e-5;
  const auto at = [](double x) { return heed::cube(heed::Tensor(heed::Array::scalar(x))).item(); };
  const heed::Tensor x = heed::Tensor::variable(heed::Array::scalar(x0));
  const double analytic = heed::backward(heed::cube(x))[x].item();
  const double numeric = (at(x0 + h) - at(x0 - h)) / (2 * h);
  std::printf("analytic %.9f, numeric %.9f\n", analytic, numeric);
  if (!(std::abs(analytic - numeric) < 1e-8)) return 1;
  std::puts("done");
}
