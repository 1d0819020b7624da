#pragma once
/// Adam as its authors present it (Kingma and Ba, "Adam: A Method for Stochastic Optimization",
/// 2015, Algorithm 1): the definition of what Optimizer computes with vector instructions, threads
/// and more options.
#include <cmath>
#include <vector>

#include "autograd/tensor.h"

HEED_BEGIN
namespace reference {

struct Adam {
  double beta1 = 0.9, beta2 = 0.98, eps = 1e-9;  ///< as in Vaswani et al. 2017, section 5.3
  std::vector<NamedTensor> parameters;
  std::vector<Array> m, v;  ///< first and second moments of the gradients, initially zero
  int t = 0;                ///< number of steps so far

  explicit Adam(std::vector<NamedTensor> all) : parameters(std::move(all)) {
    for (const NamedTensor& p : parameters) {
      m.push_back(Array::zeros(p.tensor.shape()));
      v.push_back(Array::zeros(p.tensor.shape()));
    }
  }

  void step(const Gradients& gradients, double lr) {
    ++t;
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      const Array g = gradients[parameters[p].tensor];
      Array& w = parameters[p].tensor.mutable_value();
      for (std::int64_t i = 0; i < g.size(); ++i)
        update(lr, g.data()[i], w.data()[i], m[p].data()[i], v[p].data()[i]);
    }
  }

 private:
  void update(double lr, double g, real& w, real& m_i, real& v_i) const {
    const double m_new = beta1 * m_i + (1 - beta1) * g;
    const double v_new = beta2 * v_i + (1 - beta2) * g * g;
    const double m_hat = m_new / (1 - std::pow(beta1, t));
    const double v_hat = v_new / (1 - std::pow(beta2, t));
    w = static_cast<real>(w - lr * m_hat / (std::sqrt(v_hat) + eps));
    m_i = static_cast<real>(m_new);
    v_i = static_cast<real>(v_new);
  }
};

}  // namespace reference
HEED_END
