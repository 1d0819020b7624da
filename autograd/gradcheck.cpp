#include "autograd/gradcheck.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <unordered_set>

#include "autograd/gradcheck_diagnosis.h"
#include "autograd/gradcheck_slope.h"
#include "autograd/random.h"

HEED_BEGIN

namespace {

using Values = std::vector<double>;
constexpr double epsilon = std::numeric_limits<real>::epsilon();
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::size_t shown = 5;      // entries kept for the report
constexpr std::int64_t sampled = 64;  // entries looked at to explain a wrong direction

std::size_t z(std::int64_t i) { return static_cast<std::size_t>(i); }
Values values_of(const Array& a) { return {a.values().begin(), a.values().end()}; }

/// The checked variables with a copy of their values, to which they are set back at the end.
class Originals {
 public:
  explicit Originals(const std::vector<NamedTensor>& parameters) : parameters_(parameters) {
    for (const NamedTensor& p : parameters_) copies_.push_back(p.tensor.value().clone());
  }
  Originals(const Originals&) = delete;
  Originals& operator=(const Originals&) = delete;
  ~Originals() {
    for (std::size_t i = 0; i < copies_.size(); ++i) {
      std::copy_n(copies_[i].data(), copies_[i].size(),
                  parameters_[i].tensor.mutable_value().data());
    }
  }
  /// The name of a variable whose values are no longer the same bits, or "".
  std::string changed() const {
    for (std::size_t i = 0; i < copies_.size(); ++i) {
      const auto bytes = static_cast<std::size_t>(copies_[i].size()) * sizeof(real);
      if (std::memcmp(copies_[i].data(), parameters_[i].tensor.value().data(), bytes) != 0)
        return parameters_[i].name;
    }
    return {};
  }

 private:
  std::vector<NamedTensor> parameters_;
  std::vector<Array> copies_;
};

std::unordered_set<const Node*> nodes_behind(const Tensor& y) {
  std::unordered_set<const Node*> seen;
  std::vector<const Node*> open;
  if (y.node()) open.push_back(y.node().get());
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    if (!seen.insert(node).second) continue;
    for (const NodeRef& input : node->inputs()) {
      if (input) open.push_back(input.get());
    }
  }
  return seen;
}

/// f with its cotangent: s = <u, f()>, its analytic gradient and its differences.
class Checker {
 public:
  Checker(const std::function<Tensor()>& f, const std::vector<NamedTensor>& parameters,
          const GradcheckOptions& options)
      : f_(f), parameters_(parameters), options_(options) {}

  /// Runs f forward and backward. What is wrong with f as a whole, or "".
  std::string prepare();
  ParameterCheck check(std::size_t number);
  bool empty() const { return y_.empty(); }

 private:
  std::string first_value(const Originals& originals);
  std::string compare(const Values& y, const char* when) const;
  Difference difference() const;
  double tolerance(double analytic, double numeric) const {
    return options_.abs + options_.rel * std::max(std::abs(analytic), std::abs(numeric));
  }
  GradcheckEntry judge(std::int64_t index, double analytic, double step, const Line& line) const;
  std::vector<GradcheckEntry> entries(const NamedTensor& p, const Values& gradient,
                                      std::int64_t count, std::uint32_t part) const;
  std::vector<GradcheckEntry> directions(const NamedTensor& p, const Values& gradient,
                                         std::uint32_t part) const;
  Line along_entry(Array& x, std::int64_t i) const;
  std::string explain(const NamedTensor& p, const std::vector<GradcheckEntry>& found) const;
  Values column(const NamedTensor& p, std::int64_t i) const;

  const std::function<Tensor()>& f_;
  const std::vector<NamedTensor>& parameters_;
  const GradcheckOptions& options_;
  Shape output_shape_;
  Values y_, u_;  // outputs and their random weights
  bool output_has_graph_ = false;
  std::unordered_set<const Node*> behind_;
  std::vector<Values> gradients_;  // of each variable
};

// ---- f as a whole
// ----------------------------------------------------------------------------------

/// What differs between the first result and another one of the same inputs, or "". Rounding may
/// differ.
std::string Checker::compare(const Values& y, const char* when) const {
  if (y.size() != y_.size())
    return fmt::format("f returned {} values, then {}, {}", y_.size(), y.size(), when);
  double scale = 0;
  for (const double v : y_) scale = std::isfinite(v) ? std::max(scale, std::abs(v)) : scale;
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (y[i] == y_[i] || std::abs(y[i] - y_[i]) <= 1000 * epsilon * scale) continue;
    return fmt::format("f's result at {} was {:.17g}, then {:.17g}, {}",
                       index_in(output_shape_, static_cast<std::int64_t>(i)), y_[i], y[i], when);
  }
  return {};
}

std::string Checker::prepare() {
  const Originals originals(parameters_);
  std::string problem = first_value(originals);
  if (problem.empty() && !originals.changed().empty()) {
    problem = fmt::format("f changes the values of {}", originals.changed());
  }
  return problem;
}

std::string Checker::first_value(const Originals& originals) {
  const Tensor y = f_();
  if (!y.defined()) return "f returned an undefined tensor";
  if (const std::string name = originals.changed(); !name.empty())
    return fmt::format("f changes the values of {}", name);
  output_shape_ = y.shape();
  y_ = values_of(y.value());
  Random random({options_.seed, Stream::check, 0, 0});
  Array cotangent(y.shape());
  for (std::size_t i = 0; i < y_.size(); ++i) {
    double u = (0.5 + random.uniform()) * (random() % 2 == 0 ? 1 : -1);
    if (std::isinf(y_[i]) && options_.ignore_infinite_outputs) u = 0;
    if (!std::isfinite(y_[i]) && u != 0) {
      return fmt::format("f's result is {} at {}", y_[i],
                         index_in(output_shape_, static_cast<std::int64_t>(i)));
    }
    cotangent.data()[i] = static_cast<real>(u);
    u_.push_back(cotangent.data()[i]);
  }
  {
    const NoGrad off;
    const Values once = values_of(f_().value()), twice = values_of(f_().value());
    const std::string unlike = compare(once, "without gradients");
    const std::string random_result = compare(twice, "with the same inputs");
    y_ = once;
    if (!compare(twice, "").empty()) {
      return "f is not a function: " + random_result +
             " (a dropout without a fixed key? a state that f changes?)";
    }
    if (!unlike.empty()) return "f gives another result under NoGrad: " + unlike;
  }
  output_has_graph_ = y.needs_grad();
  behind_ = nodes_behind(y);
  for (const NamedTensor& p : parameters_) gradients_.push_back(Values(z(p.tensor.size())));
  if (!output_has_graph_) return {};
  const Gradients gradients = backward(y, cotangent);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (behind_.contains(parameters_[i].tensor.node().get()))
      gradients_[i] = values_of(gradients[parameters_[i].tensor]);
  }
  if (const std::string name = originals.changed(); !name.empty()) {
    return fmt::format("backward changes the values of {}", name);
  }
  return {};
}

/// s at the variables' present values, less s at their original ones.
Difference Checker::difference() const {
  const NoGrad off;
  const Tensor y = f_();
  if (y.shape() != output_shape_) {
    fail("[gradcheck] f's result has shape {}, and {} after a change of values", output_shape_,
         y.shape());
  }
  long double sum = 0, rounding = 0;
  const real* now = y.value().data();
  for (std::size_t j = 0; j < y_.size(); ++j) {
    if (u_[j] == 0 && now[j] == y_[j]) continue;  // an infinite output that stays
    const double d = now[j] - y_[j];
    if (d == 0) continue;  // nor does an output that stays add any rounding
    sum += (u_[j] == 0 ? 1 : u_[j]) * static_cast<long double>(d);
    rounding += std::abs(u_[j] * y_[j]);
  }
  return {static_cast<double>(sum), static_cast<double>(epsilon * rounding)};
}

// ---- one tensor
// ------------------------------------------------------------------------------------

/// s as one entry of x moves by t. The entry is back at its value after each call.
Line Checker::along_entry(Array& x, std::int64_t i) const {
  return [this, &x, i](double t) {
    const real before = x.data()[i];
    x.data()[i] = static_cast<real>(before + t);
    const double moved = static_cast<double>(x.data()[i]) - static_cast<double>(before);
    Difference d = difference();
    x.data()[i] = before;
    d.value *= t / moved;  // what rounding x + t has changed; NaN where it did not move at all
    return d;
  };
}

GradcheckEntry Checker::judge(std::int64_t index, double analytic, double step,
                              const Line& line) const {
  const Slope slope = measure_slope(line, analytic, step,
                                    [&](double numeric) { return tolerance(analytic, numeric); });
  GradcheckEntry entry{index,      analytic,   slope.value, infinity, slope.uncertainty,
                       slope.left, slope.right};
  if (!slope.finite || !std::isfinite(analytic)) {
    if (!slope.finite) entry.numeric = std::numeric_limits<double>::quiet_NaN();
    entry.status = GradcheckStatus::non_finite;
    return entry;
  }
  const double off = std::abs(analytic - slope.value);
  entry.error =
      off / (options_.abs / options_.rel + std::max(std::abs(analytic), std::abs(slope.value)));
  if (slope.kink) {
    const double slack = 1e-3 * std::abs(slope.right - slope.left);
    const bool between = analytic >= std::min(slope.left, slope.right) - slack &&
                         analytic <= std::max(slope.left, slope.right) + slack;
    entry.status = between ? GradcheckStatus::kink : GradcheckStatus::wrong;
  } else if (off > tolerance(analytic, slope.value)) {
    entry.status = off > 3 * slope.uncertainty ? GradcheckStatus::wrong : GradcheckStatus::unstable;
  }
  return entry;
}

double first_step(const GradcheckOptions& options, double power) {
  return options.step > 0 ? options.step : std::pow(epsilon, power);
}

/// All flat indices, or `count` of them at random, in order (Floyd's method, as in Bentley 1987).
std::vector<std::int64_t> choose(std::int64_t size, std::int64_t count, std::uint64_t seed,
                                 std::uint32_t part) {
  std::set<std::int64_t> chosen;
  if (count <= 0 || count >= size) count = size;
  Random random({seed, Stream::check, 1, part});
  for (std::int64_t i = size - count; i < size; ++i) {
    const auto pick = static_cast<std::int64_t>(random.uniform() * static_cast<double>(i + 1));
    if (!chosen.insert(count == size ? i : pick).second) chosen.insert(i);
  }
  return {chosen.begin(), chosen.end()};
}

std::vector<GradcheckEntry> Checker::entries(const NamedTensor& p, const Values& gradient,
                                             std::int64_t count, std::uint32_t part) const {
  Array x = p.tensor.value();  // shares the values
  std::vector<GradcheckEntry> found;
  for (const std::int64_t i : choose(x.size(), count, options_.seed, part)) {
    const double step =
        first_step(options_, 0.2) * std::max(1.0, std::abs(static_cast<double>(x.data()[i])));
    found.push_back(judge(i, gradient[z(i)], step, along_entry(x, i)));
  }
  return found;
}

std::vector<GradcheckEntry> Checker::directions(const NamedTensor& p, const Values& gradient,
                                                std::uint32_t part) const {
  Array x = p.tensor.value();
  const Values before = values_of(x);
  double square = 0;
  for (const double v : before) square += v * v;
  const double scale = std::max(1.0, std::sqrt(square / static_cast<double>(before.size())));
  std::vector<GradcheckEntry> found;
  for (int number = 0; number < options_.directions; ++number) {
    Random random({options_.seed, Stream::check, 2 + static_cast<std::uint64_t>(number), part});
    Values d(before.size());
    double expected = 0;
    for (std::size_t i = 0; i < d.size(); ++i) {
      d[i] = random.normal();
      expected += d[i] * gradient[i];
    }
    const auto move = [&](double t) {
      for (std::size_t i = 0; i < d.size(); ++i)
        x.data()[i] = static_cast<real>(before[i] + t * d[i]);
    };
    const Line line = [&](double t) {
      move(t);
      const Difference difference_at_t = difference();
      move(0);
      return difference_at_t;
    };
    found.push_back(judge(number, expected, first_step(options_, 1.0 / 3) * scale, line));
  }
  return found;
}

Values Checker::column(const NamedTensor& p, std::int64_t i) const {
  const NoGrad off;
  Array x = p.tensor.value();
  const real before = x.data()[i];
  const double h =
      first_step(options_, 1.0 / 3) * std::max(1.0, std::abs(static_cast<double>(before)));
  x.data()[i] = static_cast<real>(before + h);
  Values slope = values_of(f_().value());
  x.data()[i] = static_cast<real>(before - h);
  const Values low = values_of(f_().value());
  x.data()[i] = before;
  for (std::size_t j = 0; j < slope.size(); ++j)
    slope[j] = u_[j] == 0 ? 0 : u_[j] * (slope[j] - low[j]) / (2 * h);
  return slope;
}

std::string Checker::explain(const NamedTensor& p, const std::vector<GradcheckEntry>& found) const {
  Evidence e;
  e.shape = p.tensor.shape();
  e.output_shape = output_shape_;
  e.output_has_graph = output_has_graph_;
  e.connected = behind_.contains(p.tensor.node().get());
  e.x = values_of(p.tensor.value());
  e.y = y_;
  e.column = [&](std::int64_t i) { return column(p, i); };
  std::int64_t analytic_bad = 0, numeric_bad = 0, unstable = 0, wrong = 0;
  double noise = 0;
  for (const GradcheckEntry& entry : found) {
    analytic_bad += !std::isfinite(entry.analytic);
    numeric_bad += !std::isfinite(entry.numeric);
    unstable += entry.status == GradcheckStatus::unstable;
    wrong += entry.status == GradcheckStatus::wrong;
    if (entry.status == GradcheckStatus::unstable) noise = std::max(noise, entry.uncertainty);
    e.indices.push_back(entry.index);
    e.analytic.push_back(entry.analytic);
    e.numeric.push_back(entry.status == GradcheckStatus::kink ? entry.analytic : entry.numeric);
    e.wrong.push_back(!passes(entry.status));
  }
  if (analytic_bad > 0)
    return fmt::format("NaN or infinity in {} of {} analytic values", analytic_bad, found.size());
  if (numeric_bad > 0) return "f is not finite next to this point, at any step size tried";
  if (wrong == 0 && unstable > 0) {
    return fmt::format(
        "the numeric derivative settles at no step size (it is uncertain by {:.2g}): f is noisy, "
        "as if it "
        "computed in float32 somewhere, or jumps here",
        noise);
  }
  return diagnose(e);
}

ParameterCheck Checker::check(std::size_t number) {
  const NamedTensor& p = parameters_[number];
  const Values& gradient = gradients_[number];
  const auto part = static_cast<std::uint32_t>(number);
  ParameterCheck c;
  c.name = p.name;
  c.shape = p.tensor.shape();
  c.entries = p.tensor.size();
  c.directional = options_.directions > 0;
  if (c.entries == 0 || empty()) {
    c.status = GradcheckStatus::empty;
    return c;
  }
  std::vector<GradcheckEntry> found = c.directional
                                          ? directions(p, gradient, part)
                                          : entries(p, gradient, options_.max_entries, part);
  c.checked = static_cast<std::int64_t>(found.size());
  for (const GradcheckEntry& entry : found) {
    c.status = std::max(c.status, entry.status);
    if (entry.status == GradcheckStatus::kink) {
      ++c.kinks;
      if (c.kinked.size() < shown) c.kinked.push_back(entry);
      continue;
    }
    c.worst_error = std::max(c.worst_error, entry.error);
    if (!passes(entry.status)) {
      ++c.wrong;
      c.worst.push_back(entry);
    }
  }
  if (c.kinks == c.checked) {
    c.status = GradcheckStatus::unstable;
    c.wrong = c.kinks;
    c.cause = "every entry sits on a kink, so nothing is shown: check at other values";
    return c;
  }
  if (passes(c.status)) return c;
  std::stable_sort(c.worst.begin(), c.worst.end(),
                   [](const auto& a, const auto& b) { return a.error > b.error; });
  if (c.worst.size() > shown) c.worst.resize(shown);
  if (c.directional) {
    // A direction says that something is wrong, single entries say what.
    found = entries(p, gradient, sampled, part);
    if (std::all_of(found.begin(), found.end(),
                    [](const auto& entry) { return passes(entry.status); })) {
      c.cause = fmt::format("the {} single entries looked at are right; check more of them",
                            found.size());
      return c;
    }
  }
  c.cause = explain(p, found);
  return c;
}

/// A tensor that cannot be checked at all.
std::string not_checkable(const Tensor& t) {
  if (!t.needs_grad()) return "it is a constant: make it with Tensor::variable";
  if (!t.node()->leaf()) return "it is the result of an op, not a variable";
  for (std::int64_t i = 0; i < t.size(); ++i) {
    if (!std::isfinite(t.value().data()[i])) {
      return fmt::format("its value at {} is {}", index_in(t.shape(), i), t.value().data()[i]);
    }
  }
  return {};
}

ParameterCheck rejected(const NamedTensor& p, std::string cause) {
  ParameterCheck c;
  c.name = p.name;
  c.shape = p.tensor.shape();
  c.entries = c.wrong = p.tensor.size();
  c.worst_error = infinity;
  c.status = p.tensor.needs_grad() && p.tensor.node()->leaf() ? GradcheckStatus::non_finite
                                                              : GradcheckStatus::wrong;
  c.cause = std::move(cause);
  return c;
}

}  // namespace

// ---- the public functions
// --------------------------------------------------------------------------

GradcheckResult gradcheck_parameters(const std::function<Tensor()>& f,
                                     const std::vector<NamedTensor>& parameters,
                                     const GradcheckOptions& options) {
  if (!(options.rel > 0) || !(options.abs >= 0) || !(options.step >= 0)) {
    fail("[gradcheck] expected rel > 0, abs >= 0 and step >= 0, got {}, {} and {}", options.rel,
         options.abs, options.step);
  }
  GradcheckResult result;
  result.rel = options.rel;
  result.abs = options.abs;
  result.seed = options.seed;
  if (sizeof(real) < 8)
    result.notes.push_back("checked in float32: only gross errors are seen; link heed::f64");
  const auto report = [&](ParameterCheck c) {
    if (options.on_parameter) options.on_parameter(c);
    result.parameters.push_back(std::move(c));
    return passes(result.parameters.back().status) || !options.stop_at_first;
  };

  std::vector<NamedTensor> checked;
  for (const NamedTensor& p : parameters) {
    if (!p.tensor.defined()) continue;  // a bias that is left out
    std::string cause = not_checkable(p.tensor);
    if (cause.empty()) {
      checked.push_back(p);
    } else if (!report(rejected(p, std::move(cause)))) {
      return result;
    }
  }
  if (!result.passed()) return result;

  const Originals originals(checked);
  Checker checker(f, checked, options);
  result.problem = checker.prepare();
  if (!result.problem.empty()) return result;
  std::int64_t entries = 0;
  for (std::size_t i = 0; i < checked.size(); ++i) {
    if (!report(checker.check(i))) break;
    entries += result.parameters.back().checked;
  }
  if (entries == 0) result.notes.push_back("nothing was checked: no entries, or no outputs");
  return result;
}

namespace gradcheck_detail {

std::vector<Tensor> as_variables(const std::vector<Tensor>& inputs) {
  std::vector<Tensor> variables;
  for (const Tensor& x : inputs) {
    variables.push_back(x.defined() ? Tensor::variable(x.value().clone()) : Tensor());
  }
  return variables;
}

std::vector<NamedTensor> with_names(const std::vector<Tensor>& inputs,
                                    const std::vector<std::string>& names) {
  std::vector<NamedTensor> named;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    named.push_back({i < names.size() ? names[i] : fmt::format("input {}", i), inputs[i]});
  }
  return named;
}

}  // namespace gradcheck_detail

HEED_END
