#include "optim/optimizer.h"

#include <cmath>

HEED_BEGIN

Optimizer::Optimizer(const OptimOptions& options, std::vector<NamedTensor> parameters)
    : options_(options), parameters_(std::move(parameters)) {
  for (const NamedTensor& p : parameters_) {
    if (!p.tensor.defined()) fail("[optimizer] {} is an undefined tensor", p.name);
    if (!p.tensor.needs_grad())
      fail("[optimizer] {} is a constant: make it with Tensor::variable", p.name);
    if (!p.tensor.node()->leaf())
      fail("[optimizer] {} is the result of an op, not a variable", p.name);
    first_.push_back(Array::zeros(p.tensor.shape()));
    if (options_.name != OptimizerKind::sgd) second_.push_back(Array::zeros(p.tensor.shape()));
  }
}

void Optimizer::begin_step(double lr, double grad_scale) {
  ++steps_;
  const auto t = static_cast<double>(steps_);
  adam_.lr = lr;
  adam_.beta1 = options_.betas[0];
  adam_.beta2 = options_.betas[1];
  adam_.eps = options_.eps;
  adam_.c1 = 1 - std::pow(options_.betas[0], t);
  adam_.c2 = 1 - std::pow(options_.betas[1], t);
  adam_.grad_scale = grad_scale;
}

/// The parameter's weight decay: 0 in the group without decay.
double Optimizer::decay_of(std::size_t parameter) const {
  if (options_.name == OptimizerKind::adam) return 0;
  const bool matrix = parameters_[parameter].tensor.shape().rank() >= 2;
  return matrix || options_.decay == DecayedParameters::all ? options_.weight_decay : 0;
}

bool Optimizer::update(std::size_t parameter, std::int64_t begin, std::int64_t end,
                       const real* gradient) {
  real* const w = parameters_[parameter].tensor.mutable_value().data() + begin;
  real* const first = first_[parameter].data() + begin;
  const std::int64_t n = end - begin;
  if (options_.name == OptimizerKind::sgd) {
    return kernels::sgd(static_cast<real>(adam_.lr), static_cast<real>(options_.momentum),
                        static_cast<real>(decay_of(parameter)), static_cast<real>(adam_.grad_scale),
                        gradient + begin, w, first, n);
  }
  kernels::AdamStep adam = adam_;
  adam.decay = decay_of(parameter);
  return kernels::adam(adam, gradient + begin, w, first, second_[parameter].data() + begin, n);
}

void Optimizer::step(const std::vector<Array>& gradients, double lr, double grad_scale) {
  if (gradients.size() != parameters_.size()) {
    fail("[optimizer] expected {} gradients, one for each parameter, got {}", parameters_.size(),
         gradients.size());
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const auto& [name, tensor] = parameters_[i];
    if (gradients[i].defined() && gradients[i].shape() != tensor.shape()) {
      fail("[optimizer] {} has shape {}, but its gradient {}", name, tensor.shape(),
           gradients[i].shape());
    }
  }
  begin_step(lr, grad_scale);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Array g =
        gradients[i].defined() ? gradients[i] : Array::zeros(parameters_[i].tensor.shape());
    update(i, 0, g.size(), g.data());
  }
}

std::vector<NamedTensor> Optimizer::state() const {
  std::vector<NamedTensor> all;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const bool sgd = options_.name == OptimizerKind::sgd;
    all.push_back({(sgd ? "momentum." : "m.") + parameters_[i].name, Tensor(first_[i])});
    if (!sgd) all.push_back({"v." + parameters_[i].name, Tensor(second_[i])});
  }
  return all;
}

HEED_END
