#include "autograd/gradcheck.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "autograd/base/random.h"
#include "autograd/gradcheck/diagnosis.h"
#include "autograd/gradcheck/objective.h"
#include "autograd/gradcheck/slope.h"
#include "autograd/gradcheck/stages.h"

HEED_BEGIN

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::size_t shown = 5;  // maximum number of entries in each list of the report
// Maximum number of a tensor's entries that are examined after a direction has failed.
constexpr std::int64_t sampled = 64;

double first_step(const GradcheckOptions& options, double power) {
  return options.step > 0 ? options.step : std::pow(std::numeric_limits<real>::epsilon(), power);
}

/// All flat indices, or `count` distinct random ones, in ascending order (Floyd's method, from
/// Bentley 1987).
std::vector<std::int64_t> choose(std::int64_t size, std::int64_t count, std::uint64_t seed,
                                 std::uint32_t part) {
  const bool all = count <= 0 || count >= size;
  std::set<std::int64_t> chosen;
  Random random({seed, Stream::check, 1, part});
  for (std::int64_t i = all ? 0 : size - count; i < size; ++i) {
    const auto pick =
        all ? i : static_cast<std::int64_t>(random.uniform() * static_cast<double>(i + 1));
    if (!chosen.insert(pick).second) chosen.insert(i);
  }
  return {chosen.begin(), chosen.end()};
}

/// Checks one variable of an objective.
struct ParameterChecker {
  const Objective& objective;
  const NamedTensor& parameter;
  std::uint32_t number;  ///< index of the variable
  const GradcheckOptions& options;
  const Tensor& tensor = parameter.tensor;
  const Values& gradient = objective.gradients[number];

  ParameterCheck check() const;
  GradcheckEntry judge(std::int64_t index, double analytic, double step, const Line& line) const;
  std::vector<GradcheckEntry> entries(std::int64_t count) const;
  std::vector<GradcheckEntry> directions() const;
  bool rounds_inside(const std::vector<GradcheckEntry>& found) const;
  std::string explain(const std::vector<GradcheckEntry>& found) const;
};

GradcheckEntry ParameterChecker::judge(std::int64_t index, double analytic, double step,
                                       const Line& line) const {
  const auto size = [&](double numeric) { return std::max(std::abs(analytic), std::abs(numeric)); };
  const auto tolerance = [&](double numeric) { return options.abs + options.rel * size(numeric); };
  const Slope slope = measure_slope(line, analytic, step, tolerance);
  GradcheckEntry entry;
  entry.index = index;
  entry.analytic = analytic;
  entry.numeric = slope.finite ? slope.value : std::numeric_limits<double>::quiet_NaN();
  entry.error = infinity;
  entry.uncertainty = slope.uncertainty;
  if (!slope.finite || !std::isfinite(analytic)) {
    entry.status = GradcheckStatus::non_finite;
    return entry;
  }
  const double off = std::abs(analytic - slope.value);
  entry.error = off / (options.abs / options.rel + size(slope.value));
  if (slope.kink) {
    entry.left = slope.left;
    entry.right = slope.right;
    const double slack =
        std::max(1e-3 * std::abs(slope.right - slope.left), tolerance(slope.value));
    const auto [low, high] = std::minmax(slope.left, slope.right);
    const bool between = analytic >= low - slack && analytic <= high + slack;
    entry.status = between ? GradcheckStatus::kink : GradcheckStatus::wrong;
  } else if (off > tolerance(slope.value)) {
    entry.status = off > 3 * slope.uncertainty ? GradcheckStatus::wrong : GradcheckStatus::unstable;
  }
  return entry;
}

std::vector<GradcheckEntry> ParameterChecker::entries(std::int64_t count) const {
  const Array& x = tensor.value();
  std::vector<GradcheckEntry> found;
  for (const std::int64_t i : choose(x.size(), count, options.seed, number)) {
    const double step =
        first_step(options, 0.2) * std::max(1.0, std::abs(static_cast<double>(x.data()[i])));
    found.push_back(judge(i, gradient[i], step, objective.along_entry(x, i)));
  }
  return found;
}

std::vector<GradcheckEntry> ParameterChecker::directions() const {
  const Array& x = tensor.value();
  double square = 0;
  for (const double v : x.values()) square += v * v;
  const double scale = std::max(1.0, std::sqrt(square / static_cast<double>(x.size())));
  std::vector<GradcheckEntry> found;
  for (int k = 0; k < options.directions; ++k) {
    Random random({options.seed, Stream::check, 2 + static_cast<std::uint64_t>(k), number});
    Values d(gradient.size());
    double expected = 0;
    for (std::size_t i = 0; i < d.size(); ++i) {
      d[i] = random.normal();
      expected += d[i] * gradient[i];
    }
    const Line line = objective.along(x, std::move(d));
    found.push_back(judge(k, expected, first_step(options, 1.0 / 3) * scale, line));
  }
  return found;
}

/// Whether f rounds internally to float32. Then, for most failing entries, slopes at steps far
/// below float32's resolution (where float64 still has eight digits) differ from those at wide
/// steps, which agree with the analytic gradient.
bool ParameterChecker::rounds_inside(const std::vector<GradcheckEntry>& found) const {
  if (sizeof(real) < 8) return false;
  int looked = 0, rounded = 0;
  for (const GradcheckEntry& entry : found) {
    if (passes(entry.status) || looked == 8) continue;
    ++looked;
    const Line line = objective.along_entry(tensor.value(), entry.index);
    const double scale =
        std::max(1.0, std::abs(static_cast<double>(tensor.value().data()[entry.index])));
    const auto slope = [&](double h) {
      const Difference left = line(-h), right = line(h);
      return Difference{(right.value - left.value) / (2 * h),
                        (right.rounding + left.rounding) / (2 * h)};
    };
    const double wide = slope(0x1p-10 * scale).value, half = slope(0x1p-11 * scale).value;
    const Difference narrow = slope(0x1p-27 * scale);
    // At steps of a few float32 ulps, internal rounding scatters the slopes; near a kink or where f
    // is curved, they converge.
    const Difference near = slope(0x1p-22 * scale), nearer = slope(0x1p-23 * scale);
    if (std::abs(near.value - nearer.value) <= 1e-3 * std::abs(near.value) + nearer.rounding)
      continue;
    const double size = std::abs(entry.analytic), gap = std::abs(narrow.value - wide);
    rounded += gap > 1e-3 * size && gap > 10 * (narrow.rounding + std::abs(wide - half)) &&
               std::abs(wide - entry.analytic) <= std::min(1e-2 * size, 0.1 * gap);
  }
  return 2 * rounded > looked;
}

std::string ParameterChecker::explain(const std::vector<GradcheckEntry>& found) const {
  Evidence e;
  e.shape = tensor.shape();
  e.output_shape = objective.output_shape;
  e.output_has_graph = objective.has_graph;
  e.connected = objective.reached[number];
  e.x = values_of(tensor.value());
  e.y = objective.outputs;
  e.cotangent = objective.cotangent;
  e.other_tensors = objective.other_tensors(number);
  e.column = [&](std::int64_t i) { return objective.column(tensor.value(), i); };
  std::int64_t analytic_bad = 0, numeric_bad = 0, wrong = 0;
  double uncertainty = 0;
  for (const GradcheckEntry& entry : found) {
    analytic_bad += !std::isfinite(entry.analytic);
    numeric_bad += !std::isfinite(entry.numeric);
    wrong += entry.status == GradcheckStatus::wrong;
    if (entry.status == GradcheckStatus::unstable)
      uncertainty = std::max(uncertainty, entry.uncertainty);
    e.indices.push_back(entry.index);
    e.analytic.push_back(entry.analytic);
    e.numeric.push_back(entry.status == GradcheckStatus::kink ? entry.analytic : entry.numeric);
    e.wrong.push_back(!passes(entry.status));
  }
  if (analytic_bad > 0)
    return fmt::format("NaN or infinity in {} of {} analytic values", analytic_bad, found.size());
  if (numeric_bad > 0) return "f is not finite near this point at any step size tried";
  if (rounds_inside(found)) {
    return "precision: f itself is rounded, as if part of it were computed in float32; the "
           "gradient may be correct";
  }
  if (wrong == 0) {
    return fmt::format(
        "the numeric derivative does not converge (uncertainty {:.2g}): f is noisy or "
        "discontinuous at this point",
        uncertainty);
  }
  return diagnose(e);
}

/// Counts and sorts the entries, without determining the cause.
void summarize(const std::vector<GradcheckEntry>& found, ParameterCheck& c) {
  c.checked = static_cast<std::int64_t>(found.size());
  for (const GradcheckEntry& entry : found) {
    c.status = std::max(c.status, entry.status);
    c.largest = std::max({c.largest, std::abs(entry.analytic), std::abs(entry.numeric)});
    if (entry.status == GradcheckStatus::kink) {
      ++c.kinks;
      if (c.kinked.size() < shown) c.kinked.push_back(entry);
      continue;
    }
    c.worst_error = std::max(c.worst_error, entry.error);
    if (!passes(entry.status)) c.worst.push_back(entry);
  }
  c.wrong = static_cast<std::int64_t>(c.worst.size());
  std::stable_sort(c.worst.begin(), c.worst.end(),
                   [](const auto& a, const auto& b) { return a.error > b.error; });
  if (c.worst.size() > shown) c.worst.resize(shown);
}

ParameterCheck ParameterChecker::check() const {
  ParameterCheck c;
  c.name = parameter.name;
  c.shape = tensor.shape();
  c.entries = tensor.size();
  c.directional = options.directions > 0;
  if (c.entries == 0 || objective.outputs.empty()) {
    c.status = GradcheckStatus::empty;
    return c;
  }
  if (c.declared_by = objective.straight_through[number]; !c.declared_by.empty()) {
    c.status = GradcheckStatus::declared;
    return c;
  }
  std::vector<GradcheckEntry> found = c.directional ? directions() : entries(options.max_entries);
  summarize(found, c);
  if (c.kinks == c.checked) {
    c.status = GradcheckStatus::unstable;
    c.wrong = c.kinks;
    c.cause =
        "all checked entries or directions are at kinks, so the check proves nothing: check at "
        "other values";
  }
  if (passes(c.status) || !c.cause.empty()) return c;
  if (c.directional) {
    // A direction shows that a gradient is wrong; single entries show the cause.
    found = entries(sampled);
    if (std::all_of(found.begin(), found.end(),
                    [](const auto& entry) { return passes(entry.status); })) {
      c.cause =
          fmt::format("unknown: all single entries examined ({}) are correct; check more of them",
                      found.size());
      return c;
    }
  }
  c.cause = explain(found);
  return c;
}

/// The reason why a tensor cannot be checked, or "".
std::string not_checkable(const Tensor& t) {
  if (!t.needs_grad()) return "it is a constant: make it with Tensor::variable";
  if (!t.node()->leaf()) return "it is the result of an op, not a variable";
  for (std::int64_t i = 0; i < t.size(); ++i) {
    const real v = t.value().data()[i];
    if (!std::isfinite(v)) return fmt::format("its value at {} is {}", index_in(t.shape(), i), v);
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

GradcheckResult gradcheck_detail::compare_gradients(const std::function<Tensor()>& f,
                                                    const std::vector<NamedTensor>& parameters,
                                                    const GradcheckOptions& options) {
  if (!(options.rel > 0) || !(options.abs >= 0) || !(options.step >= 0)) {
    fail("[gradcheck] expected rel > 0, abs >= 0, step >= 0, got rel {}, abs {}, step {}",
         options.rel, options.abs, options.step);
  }
  GradcheckResult result;
  result.rel = options.rel;
  result.abs = options.abs;
  result.seed = options.seed;
  if (sizeof(real) < 8)
    result.notes.emplace_back(
        "checked in float32, which detects only gross errors; link heed::f64");
  const auto report = [&](ParameterCheck c) {
    if (options.on_parameter) options.on_parameter(c);
    result.parameters.push_back(std::move(c));
    return passes(result.parameters.back().status) || !options.stop_at_first;
  };

  std::vector<NamedTensor> variables;
  for (const NamedTensor& p : parameters) {
    if (!p.tensor.defined()) continue;  // e.g. an omitted bias
    std::string cause = not_checkable(p.tensor);
    if (cause.empty()) {
      variables.push_back(p);
    } else if (!report(rejected(p, std::move(cause)))) {
      return result;
    }
  }
  if (!result.passed()) return result;

  const Objective objective(f, variables, options.seed, options.ignore_infinite_outputs);
  result.problem = objective.problem;
  if (!result.problem.empty()) return result;
  std::int64_t checked = 0, declared = 0;
  for (std::size_t i = 0; i < variables.size(); ++i) {
    if (!report(ParameterChecker{objective, variables[i], static_cast<std::uint32_t>(i), options}
                    .check()))
      return result;
    const ParameterCheck& c = result.parameters.back();
    checked += c.checked;
    declared += c.status == GradcheckStatus::declared;
    if (c.checked > 0 && c.largest <= 10 * options.abs) {
      result.notes.push_back(fmt::format(
          "{}: no derivative is larger than {:.2g}, so the check proves little; scale f up?",
          c.name, c.largest));
    }
  }
  if (checked == 0 && declared == 0) {
    result.problem = "nothing was checked: no variables, no entries or no outputs";
  } else if (!objective.unlisted.empty() && !options.allow_unlisted) {
    result.problem = fmt::format(
        "f depends on {} {} not among those checked: {}. Does parameters() omit any? "
        "(GradcheckOptions::allow_unlisted accepts this)",
        objective.unlisted.size(),
        objective.unlisted.size() == 1 ? "variable that is" : "variables that are",
        fmt::join(objective.unlisted, "; "));
  }
  return result;
}

GradcheckResult gradcheck_parameters(const std::function<Tensor()>& f,
                                     const std::vector<NamedTensor>& parameters,
                                     const GradcheckOptions& options) {
  using namespace gradcheck_detail;
  GradcheckResult result = compare_gradients(f, parameters, options);
  const auto elsewhere = [&] {
    const OtherValues other(parameters, options.seed);
    f();
  };
  if (result.passed()) result.problem = find_kept_values(f, elsewhere, parameters, options);
  name_wrong_op(result, f, parameters, options);
  return result;
}

HEED_END
