#include "optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "autograd/kernels/fast/reduce.h"
#include "optim/clip.h"
#include "optim/schedule.h"

HEED_BEGIN

namespace {

void require(bool right, const char* option, const char* range, double value) {
  if (!right) fail("[optimizer] expected {} {}, got {}", option, range, value);
}

/// Checks options set in code against the ranges of the config's keys, except that lr may be 0.
/// NaN fails.
void check(const OptimOptions& o) {
  require(o.lr >= 0, "lr", "of at least 0", o.lr);
  for (const double beta : o.betas) require(beta >= 0 && beta < 1, "betas", "in [0, 1)", beta);
  require(o.eps > 0, "eps", "above 0", o.eps);
  require(o.momentum >= 0 && o.momentum < 1, "momentum", "in [0, 1)", o.momentum);
  require(o.weight_decay >= 0, "weight_decay", "of at least 0", o.weight_decay);
  require(o.clip_norm >= 0, "clip_norm", "of at least 0", o.clip_norm);
}

}  // namespace

Optimizer::Optimizer(const OptimOptions& options, std::vector<NamedTensor> parameters,
                     ValueRange owned)
    : options_(options), parameters_(std::move(parameters)) {
  check(options_);
  std::int64_t place = 0;  // index of the parameter's first value among all values
  std::unordered_map<const Node*, std::string> seen;
  for (const NamedTensor& p : parameters_) {
    if (!p.tensor.defined()) fail("[optimizer] {} is an undefined tensor", p.name);
    if (!p.tensor.needs_grad())
      fail("[optimizer] {} is a constant: make it with Tensor::variable", p.name);
    if (!p.tensor.node()->leaf())
      fail("[optimizer] {} is the result of an op, not a variable", p.name);
    if (const auto [first, is_new] = seen.emplace(p.tensor.node().get(), p.name); !is_new)
      fail("[optimizer] {} and {} are the same variable: list it once", first->second, p.name);
    const std::int64_t n = p.tensor.size();
    const ValueRange range = ValueRange{place, place + n}.intersection(owned);
    owned_.push_back({range.begin - place, range.end - place});
    place += n;
    const Shape shape = range.size() == n ? p.tensor.shape() : Shape{range.size()};
    const std::int64_t first = owned_.back().begin;
    first_.emplace_back(options_.moments, true, shape, first);
    if (options_.name != OptimizerKind::sgd)
      second_.emplace_back(options_.moments, false, shape, first);
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

/// The parameter's weight decay; 0 for adam and for parameters that are not decayed.
double Optimizer::decay_of(std::size_t parameter) const {
  if (options_.name == OptimizerKind::adam) return 0;
  const bool matrix = parameters_[parameter].tensor.shape().rank() >= 2;
  return matrix || options_.decay == DecayedParameters::all ? options_.weight_decay : 0;
}

bool Optimizer::update(std::size_t parameter, std::int64_t begin, std::int64_t end,
                       const real* gradient) {
  real* const w = parameters_[parameter].tensor.mutable_value().data() + owned_[parameter].begin;
  const real* const g = gradient + owned_[parameter].begin;
  kernels::AdamStep adam = adam_;
  adam.decay = decay_of(parameter);
  const bool sgd = options_.name == OptimizerKind::sgd;
  // Differs between parameters and between steps.
  const auto key =
      static_cast<std::uint32_t>(steps_ * 0x9E3779B1) + static_cast<std::uint32_t>(parameter);
  bool finite = true;
  real first[Moment::chunk_values], second[Moment::chunk_values];
  std::int64_t chunk = end - begin;
  if (options_.moments != MomentKind::float32) chunk = Moment::chunk_values;
  const std::int64_t last = end - owned_[parameter].begin;  // indices in the moments
  for (std::int64_t i = begin - owned_[parameter].begin; i < last; i += chunk) {
    const std::int64_t to = std::min(i + chunk, last);
    real* const m = first_[parameter].read(i, to, first);
    if (sgd) {
      finite &= kernels::sgd(static_cast<real>(adam.lr), static_cast<real>(options_.momentum),
                             static_cast<real>(adam.decay), static_cast<real>(adam.grad_scale),
                             g + i, w + i, m, to - i);
    } else {
      real* const v = second_[parameter].read(i, to, second);
      finite &= kernels::adam(adam, g + i, w + i, m, v, to - i);
      second_[parameter].write(i, to, v, key);
    }
    first_[parameter].write(i, to, m, key);
  }
  return finite;
}

void Optimizer::step(const std::vector<Array>& gradients, double lr, double grad_scale) {
  if (gradients.size() != parameters_.size()) {
    fail("[optimizer] expected one gradient per parameter ({} in all), got {}", parameters_.size(),
         gradients.size());
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const auto& [name, tensor] = parameters_[i];
    if (gradients[i].defined() && gradients[i].shape() != tensor.shape()) {
      fail("[optimizer] {} has shape {}, but its gradient has shape {}", name, tensor.shape(),
           gradients[i].shape());
    }
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (owned_[i].size() != parameters_[i].tensor.size())
      fail("[optimizer] only a part of {} is owned: update its values by range",
           parameters_[i].name);
  }
  begin_step(lr, grad_scale);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Array g =
        gradients[i].defined() ? gradients[i] : Array::zeros(parameters_[i].tensor.shape());
    update(i, 0, g.size(), g.data());
  }
}

OptimizerStep Optimizer::step(Gradients gradients) {
  const ScheduleOptions& schedule = options_.schedule;
  const bool ends = schedule.name == ScheduleKind::cosine || schedule.name == ScheduleKind::linear;
  if (ends && schedule.steps <= 0)
    fail("[optimizer] the schedule {} requires a last step: set schedule.steps",
         name_of(schedule.name));
  return step(std::move(gradients), learning_rate(options_, steps_ + 1, schedule.steps));
}

OptimizerStep Optimizer::step(Gradients gradients, double lr) {
  require(lr >= 0, "a learning rate", "of at least 0", lr);
  const std::vector<Array> list = in_order(gradients);
  const double norm = norm_of(list);
  step(list, lr, clip_factor(norm, options_.clip_norm));
  return {lr, norm};
}

std::vector<Array> Optimizer::in_order(Gradients& gradients) const {
  const bool reached = std::ranges::any_of(
      parameters_, [&](const NamedTensor& p) { return gradients.depends_on(p.tensor); });
  if (!reached)
    fail("[optimizer] the loss depends on none of the parameters: are they from another model?");
  std::vector<Array> list;
  for (const NamedTensor& p : parameters_) list.push_back(gradients.take(p.tensor));
  return list;
}

double Optimizer::norm_of(const std::vector<Array>& gradients) const {
  double squares = 0;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const double squared = kernels::sum_squares(gradients[i].data(), gradients[i].size());
    if (!std::isfinite(squared)) {
      throw Error(Exit::non_finite,
                  "[optimizer] step {}: the gradient of {} is not finite; the weights are "
                  "as before the step",
                  steps_ + 1, parameters_[i].name);
    }
    squares += squared;
  }
  return std::sqrt(squares);
}

std::vector<NamedTensor> Optimizer::state() const {
  std::vector<NamedTensor> all;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const bool sgd = options_.name == OptimizerKind::sgd;
    all.push_back({(sgd ? "momentum." : "m.") + parameters_[i].name, Tensor(first_[i].values())});
    if (!sgd) all.push_back({"v." + parameters_[i].name, Tensor(second_[i].values())});
  }
  return all;
}

void Optimizer::set_state(const std::vector<NamedTensor>& state) {
  auto next = state.begin();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    first_[i].set((next++)->tensor.value());
    if (options_.name != OptimizerKind::sgd) second_[i].set((next++)->tensor.value());
  }
}

HEED_END
