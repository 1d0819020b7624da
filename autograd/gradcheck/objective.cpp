#include "autograd/gradcheck/objective.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "autograd/base/random.h"
#include "autograd/gradcheck/audit.h"
#include "autograd/gradcheck/stages.h"

HEED_BEGIN

namespace {

constexpr double epsilon = std::numeric_limits<real>::epsilon();

}  // namespace

// ---- the variables' values ------------------------------------------------------------------

Originals::Originals(const std::vector<NamedTensor>& parameters) : parameters_(parameters) {
  for (const NamedTensor& p : parameters_) copies_.push_back(p.tensor.value().clone());
}

Originals::~Originals() {
  for (std::size_t i = 0; i < copies_.size(); ++i) {
    std::copy_n(copies_[i].data(), copies_[i].size(), parameters_[i].tensor.mutable_value().data());
  }
}

std::string Originals::changed() const {
  for (std::size_t i = 0; i < copies_.size(); ++i) {
    const auto bytes = static_cast<std::size_t>(copies_[i].size()) * sizeof(real);
    const Array& now = parameters_[i].tensor.value();
    if (std::memcmp(copies_[i].data(), now.data(), bytes) != 0) return parameters_[i].name;
  }
  return {};
}

// ---- f as a whole ---------------------------------------------------------------------------

Objective::Objective(std::function<Tensor()> f, const std::vector<NamedTensor>& parameters,
                     std::uint64_t seed, bool ignore_infinite_outputs)
    : originals_(parameters), f_(std::move(f)) {
  problem = examine(parameters, seed, ignore_infinite_outputs);
}

std::string Objective::examine(const std::vector<NamedTensor>& parameters, std::uint64_t seed,
                               bool ignore_infinite_outputs) {
  const auto changed = [&](const char* who) {
    const std::string name = originals_.changed();
    return name.empty() ? name : fmt::format("{} changes the values of {}", who, name);
  };
  Audit audit(parameters);
  const Tensor y = f_();
  if (!audit.problem().empty()) return audit.problem();
  if (!y.defined()) return "f returned an undefined tensor";
  if (std::string fault = changed("f"); !fault.empty()) return fault;
  if (std::string fault = draw_weights(y.value(), seed, ignore_infinite_outputs); !fault.empty())
    return fault;
  if (std::string fault = repeat(); !fault.empty()) return fault;
  if (std::string fault = changed("f"); !fault.empty()) return fault;

  has_graph = y.needs_grad();
  reached.resize(parameters.size());
  straight_through.resize(parameters.size());
  for (const NamedTensor& p : parameters) gradients.emplace_back(p.tensor.size());
  if (!has_graph) return {};
  Array dy(output_shape);
  std::transform(cotangent.begin(), cotangent.end(), dy.data(),
                 [](double u) { return static_cast<real>(u); });
  Gradients found;
  try {
    found = backward(y, dy);
  } catch (const Error& error) {
    return error.what();
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    reached[i] = found.depends_on(parameters[i].tensor);
    straight_through[i] = audit.straight_through(parameters[i].tensor);
    gradients[i] = values_of(found[parameters[i].tensor]);
  }
  unlisted = audit.unlisted();
  if (std::string fault = changed("backward"); !fault.empty()) return fault;
  return audit.unrepeatable() ? audit.problem() + why_unrepeatable() : audit.problem();
}

/// The reason why a backward returns another result when it runs again on the same graph: it does
/// so on equal graphs too, or it has changed this graph.
std::string Objective::why_unrepeatable() const {
  const ScopedValue<OpObserver*> unobserved(OpObserver::active, nullptr);
  const auto run = [&] { return gradcheck_detail::weighted_gradients(f_(), 1); };
  const Gradients once = run(), again = run();
  const bool same = std::ranges::all_of(originals_.parameters(), [&](const NamedTensor& p) {
    return gradcheck_detail::agrees(once[p.tensor], again[p.tensor]);
  });
  return same ? ": it probably changes values that forward saved"
              : ": it is not deterministic (random numbers, or a sum in varying order?)";
}

std::vector<OtherTensor> Objective::other_tensors(std::size_t number) const {
  std::vector<OtherTensor> found;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const NamedTensor& p = originals_.parameters()[i];
    if (i != number)
      found.push_back({p.name, p.tensor.shape(), values_of(p.tensor.value()), gradients[i]});
  }
  return found;
}

/// Draws weights of random sign and magnitude 0.5 to 1.5, so that every output contributes; the
/// weight of an ignored infinite output is 0. If an output is neither finite nor ignored, returns a
/// description of it, otherwise "".
std::string Objective::draw_weights(const Array& y, std::uint64_t seed,
                                    bool ignore_infinite_outputs) {
  output_shape = y.shape();
  outputs = values_of(y);
  Random random({seed, Stream::check, 0, 0});
  for (std::size_t j = 0; j < outputs.size(); ++j) {
    const double size = 0.5 + random.uniform();
    const double u = random() % 2 == 0 ? size : -size;
    const bool ignored = std::isinf(outputs[j]) && ignore_infinite_outputs;
    if (!std::isfinite(outputs[j]) && !ignored) {
      return fmt::format("f's result is {} at {}", outputs[j],
                         index_in(output_shape, static_cast<std::int64_t>(j)));
    }
    cotangent.push_back(ignored ? 0 : static_cast<double>(static_cast<real>(u)));
  }
  return {};
}

/// Runs f twice more, without a tape, and returns a description of a difference between the
/// results, or "". All later differences are relative to the outputs computed without a tape.
std::string Objective::repeat() {
  const NoGrad off;
  const Values once = values_of(f_().value()), twice = values_of(f_().value());
  const std::string unlike = compare(once, "without a tape");
  outputs = once;
  if (const std::string random_result = compare(twice, "with the same inputs");
      !random_result.empty()) {
    return "f is not deterministic: " + random_result +
           " (dropout without a fixed key? state that f changes?)";
  }
  return unlike.empty() ? unlike : "f returns a different result under NoGrad: " + unlike;
}

/// A description of the difference between the stored outputs and y, the outputs of a later call
/// for the same values; "" if they are equal except for rounding.
std::string Objective::compare(const Values& y, const char* when) const {
  if (y.size() != outputs.size())
    return fmt::format("f returned {} values, then {}, {}", outputs.size(), y.size(), when);
  double scale = 0;
  for (const double v : outputs) scale = std::isfinite(v) ? std::max(scale, std::abs(v)) : scale;
  for (std::size_t j = 0; j < y.size(); ++j) {
    if (y[j] == outputs[j] || std::abs(y[j] - outputs[j]) <= 1000 * epsilon * scale) continue;
    return fmt::format("f's result at {} was {:.17g}, then {:.17g}, {}",
                       index_in(output_shape, static_cast<std::int64_t>(j)), outputs[j], y[j],
                       when);
  }
  return {};
}

// ---- differences ----------------------------------------------------------------------------

Difference Objective::difference() const {
  const NoGrad off;
  const Tensor y = f_();
  if (y.shape() != output_shape) {
    fail("[gradcheck] f's result has shape {}, but shape {} after a change of values", output_shape,
         y.shape());
  }
  long double sum = 0, rounding = 0;
  const real* now = y.value().data();
  for (std::size_t j = 0; j < outputs.size(); ++j) {
    if (now[j] == outputs[j]) continue;  // adds no rounding error; skips an infinite output
    const double d = now[j] - outputs[j];
    sum += static_cast<long double>(std::isfinite(d) ? cotangent[j] : 1) * d;
    rounding += std::abs(cotangent[j] * outputs[j]);
  }
  return {static_cast<double>(sum), static_cast<double>(epsilon * rounding)};
}

Line Objective::along_entry(Array x, std::int64_t i) const {
  return [this, x, i](double t) mutable {
    const real before = x.data()[i];
    x.data()[i] = static_cast<real>(before + t);
    const double moved = static_cast<double>(x.data()[i]) - static_cast<double>(before);
    Difference d = difference();
    x.data()[i] = before;
    d.value *= t / moved;  // x + t is rounded; not finite if x did not change
    return d;
  };
}

Line Objective::along(Array x, Values d) const {
  return [this, x, d = std::move(d), before = values_of(x)](double t) mutable {
    const auto move_to = [&](double s) {
      for (std::size_t i = 0; i < d.size(); ++i)
        x.data()[i] = static_cast<real>(before[i] + s * d[i]);
    };
    move_to(t);
    const Difference result = difference();
    move_to(0);
    return result;
  };
}

Values Objective::column(Array x, std::int64_t i) const {
  const NoGrad off;
  const real before = x.data()[i];
  const double h = std::cbrt(epsilon) * std::max(1.0, std::abs(static_cast<double>(before)));
  x.data()[i] = static_cast<real>(before + h);
  Values slopes = values_of(f_().value());
  x.data()[i] = static_cast<real>(before - h);
  const Values low = values_of(f_().value());
  x.data()[i] = before;
  for (std::size_t j = 0; j < slopes.size(); ++j)
    slopes[j] = cotangent[j] == 0 ? 0 : cotangent[j] * (slopes[j] - low[j]) / (2 * h);
  return slopes;
}

HEED_END
