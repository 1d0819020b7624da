#pragma once
/// Layer norm in both directions, a Transformer layer with pre and post norm, and the norms of the
/// gradients of a deep stack.
///   x̂ = (x − μ) / √(σ² + ε),  y = x̂ ⊙ gain + bias       μ, σ²: of each row        x, y: [rows, n]
///   dx = (g − mean(g) − x̂ mean(g ⊙ x̂)) / √(σ² + ε)      g = dy ⊙ gain, means over a row
///   post: y = LN(x + Sub(x)),  pre: y = x + Sub(LN(x))
/// Sources: Ba, Kiros and Hinton, "Layer Normalization", 2016; Xiong et al., "On Layer Normalization
/// in the Transformer Architecture", 2020.
#include <cmath>
#include <cstdint>
#include <vector>

#include "03-attention/solution.h"
#include "autograd/base/random.h"
#include "autograd/ops/basic.h"

namespace chapter7 {

using heed::Array;
using heed::Grad;
using heed::Tensor;

/// One row of n numbers: x̂, and as the result 1 / √(σ² + ε). σ² is the mean of (x − μ)².
inline double normalise_row(const double* x, double eps, std::int64_t n, double* normal) {
  // --- begin exercise normalise_row: the mean, then the mean of the squared distances to it
  double mean = 0, variance = 0;
  for (std::int64_t i = 0; i < n; ++i) mean += x[i] / static_cast<double>(n);
  for (std::int64_t i = 0; i < n; ++i)
    variance += (x[i] - mean) * (x[i] - mean) / static_cast<double>(n);
  const double rstd = 1 / std::sqrt(variance + eps);
  for (std::int64_t i = 0; i < n; ++i) normal[i] = (x[i] - mean) * rstd;
  return rstd;
  // --- end exercise
}

/// The gradient of one row: from g = dy ⊙ gain, x̂ and 1 / √(σ² + ε), that with respect to x.
inline void gradient_of_row(const double* g, const double* normal, double rstd, std::int64_t n,
                            double* dx) {
  // --- begin exercise gradient_of_row: two means, then dx
  double mean = 0, along = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    mean += g[i] / static_cast<double>(n);
    along += g[i] * normal[i] / static_cast<double>(n);
  }
  for (std::int64_t i = 0; i < n; ++i) dx[i] = (g[i] - mean - normal[i] * along) * rstd;
  // --- end exercise
}

/// The op: x [rows, n], gain and bias [n].
struct LayerNorm {
  double eps = 0;
  Array normal, gain;        // x̂: [rows, n]
  std::vector<double> rstd;  // of each row

  Array forward(const Array& x, const Array& gain_in, const Array& bias) {
    normal = Array(x.shape()), gain = gain_in;
    Array y(x.shape());
    for (std::int64_t r = 0; x.size() > 0 && r < x.rows(); ++r) {
      rstd.push_back(normalise_row(x.row(r), eps, x.cols(), normal.row(r)));
      for (std::int64_t i = 0; i < x.cols(); ++i)
        y.row(r)[i] = normal.row(r)[i] * gain.data()[i] + bias.data()[i];
    }
    return y;
  }

  /// Adds to the gradients of the inputs that need one.
  void backward(const Array& dy, Grad dx, Grad dgain, Grad dbias) const {
    Array gx = Array::zeros(dy.shape()), ggain = Array::zeros(gain.shape()),
          gbias = Array::zeros(gain.shape());
    std::vector<double> g(static_cast<std::size_t>(gain.size()));
    // --- begin exercise backward: for each row, g and gx; sums over the rows for ggain and gbias
    for (std::int64_t r = 0; dy.size() > 0 && r < dy.rows(); ++r) {
      for (std::int64_t i = 0; i < dy.cols(); ++i) {
        g[i] = dy.row(r)[i] * gain.data()[i];
        ggain.data()[i] += dy.row(r)[i] * normal.row(r)[i];
        gbias.data()[i] += dy.row(r)[i];
      }
      gradient_of_row(g.data(), normal.row(r), rstd[r], dy.cols(), gx.row(r));
    }
    // --- end exercise
    if (dx) dx.add(gx);
    if (dgain) dgain.add(ggain);
    if (dbias) dbias.add(gbias);
  }
};

/// Layer norm over the last axis of x [rows, n].
inline Tensor normalised(const Tensor& x, const Tensor& gain, const Tensor& bias,
                         double eps = 1e-5) {
  return heed::apply(LayerNorm{eps, {}, {}, {}}, x, gain, bias);
}

/// The weights of a layer: attention with one head, then feed-forward. heed::affine(x, w, b) is
/// x wᵀ + b.
struct Layer {
  Tensor gain1, bias1, q, k, v, out;      // norm: [d]; q, k, v and out: [d, d]
  Tensor gain2, bias2, in, b1, back, b2;  // in: [d_ff, d], b1: [d_ff], back: [d, d_ff], b2: [d]

  std::vector<Tensor> parameters() const {
    return {gain1, bias1, q, k, v, out, gain2, bias2, in, b1, back, b2};
  }
};

/// Self-attention of the rows x [rows, d], without its norm and its residual connection.
inline Tensor self_attention(const Tensor& x, const Layer& layer) {
  const auto map = [&](const Tensor& weight) { return heed::affine(x, weight); };
  return heed::affine(chapter3::attend(map(layer.q), map(layer.k), map(layer.v)), layer.out);
}

/// max(0, x W₁ᵀ + b₁) W₂ᵀ + b₂ with W₁ = layer.in, W₂ = layer.back.
inline Tensor feed_forward(const Tensor& x, const Layer& layer) {
  // --- begin exercise feed_forward: heed::affine and heed::relu
  return heed::affine(heed::relu(heed::affine(x, layer.in, layer.b1)), layer.back, layer.b2);
  // --- end exercise
}

/// The place of the norm.
enum class Place { pre, post };

/// A residual connection around sublayer, a function of rows, with its norm.
template <class Sublayer>
Tensor connected(const Tensor& x, const Tensor& gain, const Tensor& bias, Place place,
                 const Sublayer& sublayer) {
  // --- begin exercise connected: x + Sub(LN(x)), or LN(x + Sub(x))
  if (place == Place::pre) return x + sublayer(normalised(x, gain, bias));
  return normalised(x + sublayer(x), gain, bias);
  // --- end exercise
}

/// A layer of the encoder: [rows, d] → [rows, d].
inline Tensor block(const Tensor& x, const Layer& layer, Place place) {
  // --- begin exercise block: self-attention with the first norm, feed-forward with the second
  const Tensor y = connected(x, layer.gain1, layer.bias1, place,
                             [&](const Tensor& rows) { return self_attention(rows, layer); });
  return connected(y, layer.gain2, layer.bias2, place,
                   [&](const Tensor& rows) { return feed_forward(rows, layer); });
  // --- end exercise
}

/// All layers. With pre norm, a norm with this gain and bias [d] follows the last one.
inline Tensor stack(Tensor x, const std::vector<Layer>& layers, const Tensor& gain,
                    const Tensor& bias, Place place) {
  // --- begin exercise stack: the layers one after the other, then the norm if place is pre
  for (const Layer& layer : layers) x = block(x, layer, place);
  return place == Place::pre ? normalised(x, gain, bias) : x;
  // --- end exercise
}

/// For each layer, the Euclidean norm of the gradient of all its parameters together.
inline std::vector<double> gradient_norms(const std::vector<Layer>& layers,
                                          const heed::Gradients& gradients) {
  // --- begin exercise gradient_norms: gradients[p] is the gradient of a parameter p
  std::vector<double> norms;
  for (const Layer& layer : layers) {
    double sum = 0;
    for (const Tensor& p : layer.parameters()) {
      const Array gradient = gradients[p];
      for (const double g : gradient.values()) sum += g * g;
    }
    norms.push_back(std::sqrt(sum));
  }
  return norms;
  // --- end exercise
}

/// A layer with the initial weights of heed: matrices within ±√(6 / (in + out)), gains 1, biases 0.
inline Layer initial_layer(std::int64_t d, heed::Random& random) {
  const auto matrix = [&](std::int64_t out, std::int64_t in) {
    Array w({out, in});
    const double limit = std::sqrt(6 / static_cast<double>(in + out));
    for (double& value : w.values()) value = limit * (2 * random.uniform() - 1);
    return Tensor::variable(w);
  };
  const auto filled = [](std::int64_t n, double value) {
    return Tensor::variable(Array::full({n}, value));
  };
  return {filled(d, 1),     filled(d, 0),     matrix(d, d),     matrix(d, d),
          matrix(d, d),     matrix(d, d),     filled(d, 1),     filled(d, 0),
          matrix(4 * d, d), filled(4 * d, 0), matrix(d, 4 * d), filled(d, 0)};
}

/// The experiment: gradient norms of a stack of this depth before training, for random rows [16, 32]
/// and a random gradient of the result.
inline std::vector<double> norms_by_layer(Place place, std::int64_t depth, heed::Random random) {
  const std::int64_t rows = 16, d = 32;
  const auto normal = [&] {
    Array x({rows, d});
    for (double& value : x.values()) value = random.normal();
    return x;
  };
  std::vector<Layer> layers;
  for (std::int64_t i = 0; i < depth; ++i) layers.push_back(initial_layer(d, random));
  const Array ones = Array::full({d}, 1), zeros = Array::zeros({d});
  const Tensor y = stack(normal(), layers, ones, zeros, place);
  return gradient_norms(layers, heed::backward(y, normal()));
}

}  // namespace chapter7
