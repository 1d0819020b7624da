#pragma once
/// A user-defined op and layer, written once for float and double.
#include <cstdint>
#include <vector>

#include <heed/autograd/base/random.h>
#include <heed/autograd/ops.h>
#include <heed/autograd/tensor.h>

HEED_BEGIN

/// y_i = x_i³        dx_i = 3 x_i² dy_i        any shape
struct Cube {
  Array x;
  Array forward(const Array& input) {
    x = input;
    Array y(x.shape());
    for (std::int64_t i = 0; i < x.size(); ++i)
      y.data()[i] = x.data()[i] * x.data()[i] * x.data()[i];
    return y;
  }
  void backward(const Array& dy, Grad dx) const {
    if (!dx) return;
    Array g(x.shape());
    for (std::int64_t i = 0; i < x.size(); ++i)
      g.data()[i] = 3 * x.data()[i] * x.data()[i] * dy.data()[i];
    dx.add(std::move(g));
  }
};
inline Tensor cube(const Tensor& x) { return apply(Cube{}, x); }

/// y = σ(x Wᵀ + b) ⊙ (x Vᵀ)³        x: [rows, in], y: [rows, out]
struct Gate {
  Tensor w, b, v;

  Gate(std::int64_t in, std::int64_t out, std::uint64_t seed) {
    Random random({.seed = seed, .stream = Stream::init});
    const auto normal = [&](const Shape& shape) {
      Array a(shape);
      for (real& value : a.values()) value = static_cast<real>(0.5 * random.normal());
      return Tensor::variable(a);
    };
    w = normal({out, in});
    b = normal({out});
    v = normal({out, in});
  }
  Tensor forward(const Tensor& x) const {
    return mul(sigmoid(affine(x, w, b)), cube(affine(x, v)));
  }
  std::vector<NamedTensor> parameters() const { return {{"w", w}, {"b", b}, {"v", v}}; }
};

/// Random input values.
inline Array example(const Shape& shape) {
  Random random({.seed = 7, .stream = Stream::data});
  Array x(shape);
  for (real& value : x.values()) value = static_cast<real>(random.normal());
  return x;
}

HEED_END
