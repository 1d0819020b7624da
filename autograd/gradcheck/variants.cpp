// gradcheck(f, x…): checks f's gradients for the given inputs and for variants of them.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "autograd/base/random.h"
#include "autograd/gradcheck.h"
#include "autograd/ops/basic.h"

HEED_BEGIN

namespace gradcheck_detail {

namespace {

Tensor variable_like(const Tensor& x) {
  return x.defined() ? Tensor::variable(x.value().clone()) : Tensor();
}

std::vector<Tensor> variables_like(const std::vector<Tensor>& inputs) {
  std::vector<Tensor> variables;
  for (const Tensor& x : inputs) variables.push_back(variable_like(x));
  return variables;
}

struct Variants {
  const Function& f;
  const std::vector<Tensor>& inputs;
  const std::vector<NamedTensor>& parameters;
  const GradcheckOptions& options;

  std::string name(std::size_t input) const {
    return input < options.names.size() ? options.names[input] : fmt::format("input {}", input);
  }
  std::vector<NamedTensor> checked(const std::vector<Tensor>& x) const;
  Gradients gradients(const std::vector<Tensor>& x) const;
  std::string with_a_constant(const Gradients& all, const std::vector<Tensor>& x) const;
  std::string with_equal_inputs(const Gradients& all, const std::vector<Tensor>& x) const;
  std::string with_extent(std::int64_t from, std::int64_t to) const;
  std::set<std::int64_t> free_extents() const;
  std::string examine() const;
};

std::vector<NamedTensor> Variants::checked(const std::vector<Tensor>& x) const {
  std::vector<NamedTensor> all;
  for (std::size_t i = 0; i < x.size(); ++i) all.push_back({name(i), x[i]});
  all.insert(all.end(), parameters.begin(), parameters.end());
  return all;
}

/// The gradients of <u, f(x)> with random weights u, which depend only on the seed; outputs that
/// are not finite have weight 0.
Gradients Variants::gradients(const std::vector<Tensor>& x) const {
  const Tensor y = f(x);
  if (!y.needs_grad()) return {};
  Array cotangent(y.shape());
  Random random({options.seed, Stream::check, 0, 1});
  for (std::int64_t i = 0; i < y.size(); ++i) {
    const real u = static_cast<real>(0.5 + random.uniform());
    cotangent.data()[i] = std::isfinite(y.value().data()[i]) ? u : 0;
  }
  return backward(y, cotangent);
}

/// The largest finite |value|.
double largest_finite(const Array& a) {
  double size = 0;
  for (const real v : a.values())
    size = std::isfinite(v) ? std::max(size, std::abs(static_cast<double>(v))) : size;
  return size;
}

/// Whether each value of a equals that of b except for rounding, or neither is finite. Rounding is
/// relative to the larger of `scale` and the largest finite magnitude in b.
bool agrees(const Array& a, const Array& b, double scale = 0) {
  scale = std::max(scale, largest_finite(b));
  const double allowed = 1e4 * std::numeric_limits<real>::epsilon() * scale;
  for (std::int64_t i = 0; i < a.size(); ++i) {
    const double p = a.data()[i], q = b.data()[i];
    if (!(std::abs(p - q) <= allowed) && (std::isfinite(p) || std::isfinite(q))) return false;
  }
  return true;
}

std::string Variants::with_a_constant(const Gradients& all, const std::vector<Tensor>& x) const {
  const std::vector<NamedTensor> variables = checked(x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!x[i].defined() || variables.size() < 2) continue;
    std::vector<Tensor> some = x;
    some[i] = Tensor(x[i].value());
    const std::string condition = fmt::format("if {} is a constant", name(i));
    try {
      const Gradients rest = gradients(some);
      for (const NamedTensor& p : variables) {
        if (!p.tensor.defined() || p.tensor.node().get() == x[i].node().get()) continue;
        if (!agrees(rest[p.tensor], all[p.tensor]))
          return fmt::format("the gradient of {} differs {}", p.name, condition);
      }
    } catch (const Error& error) {
      return fmt::format("{}, f fails: {}", condition, error.what());
    }
  }
  return {};
}

std::string Variants::with_equal_inputs(const Gradients& all, const std::vector<Tensor>& x) const {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    for (std::size_t j = i + 1; j < inputs.size(); ++j) {
      if (!inputs[i].defined() || !inputs[j].defined() || inputs[i].shape() != inputs[j].shape())
        continue;
      std::vector<Tensor> apart = variables_like(inputs), same = apart;
      apart[j] = variable_like(inputs[i]);
      same[j] = same[i];
      const std::string condition =
          fmt::format("if {} and {} are the same tensor", name(i), name(j));
      try {
        const Gradients two = gradients(apart), one = gradients(same);
        Array sum = two[apart[i]].clone();
        const Array second = two[apart[j]];
        for (std::int64_t k = 0; k < sum.size(); ++k) sum.data()[k] += second.data()[k];
        // With equal inputs the gradient may vanish (cosine similarity), so rounding is also
        // measured relative to the gradients for the original inputs.
        if (!agrees(one[same[i]], sum, largest_finite(all[x[i]]) + largest_finite(all[x[j]])))
          return fmt::format("the gradient is not the sum of both inputs' gradients {}", condition);
      } catch (const Error& error) {
        return fmt::format("{}, f fails: {}", condition, error.what());
      }
    }
  }
  return {};
}

/// The part of x in which each axis of extent `from` is cut to extent `to`. Its values are at the
/// start of an array of x's full size, so that an f that assumes the full shape reads NaN instead
/// of memory beyond the array.
Tensor shortened(const Tensor& x, std::int64_t from, std::int64_t to) {
  if (!x.defined()) return x;
  Tensor part(x.value());
  for (int k = 0; k < x.shape().rank(); ++k) {
    if (x.shape()[k] == from) part = slice(part, k, 0, to);
  }
  Array all = Array::full({x.size()}, std::numeric_limits<real>::quiet_NaN());
  std::copy_n(part.value().data(), part.size(), all.data());
  return Tensor(all.sliced(0, part.size()).reshaped(part.shape()));
}

/// Checks the gradients with inputs whose axes of extent `from` have extent `to`, and returns the
/// fault, or "". Extents for which f throws, or returns values that are not finite (such as the
/// mean of no values), are skipped.
std::string Variants::with_extent(std::int64_t from, std::int64_t to) const {
  std::vector<Tensor> x;
  for (const Tensor& input : inputs) {
    const Tensor part = shortened(input, from, to);
    x.push_back(part.defined() ? Tensor::variable(part.value()) : part);
  }
  std::vector<std::string> shapes;
  for (const Tensor& t : x) shapes.push_back(t.defined() ? fmt::format("{}", t.shape()) : "none");
  const std::string condition = fmt::format("with inputs of shapes {}", fmt::join(shapes, ", "));
  try {
    const NoGrad off;
    const Tensor y = f(x);
    for (const real v : y.value().values()) {
      if (!std::isfinite(v)) return {};
    }
  } catch (const std::exception&) {
    return {};
  }
  GradcheckOptions once = options;
  once.on_parameter = nullptr;
  once.allow_unlisted = true;
  once.max_entries = 16;
  GradcheckResult result;
  try {
    result = gradcheck_parameters([&] { return f(x); }, checked(x), once);
  } catch (const Error& error) {
    return fmt::format("{}, f fails: {}", condition, error.what());
  }
  for (const ParameterCheck& c : result.parameters) {
    if (c.status != GradcheckStatus::wrong) continue;
    return fmt::format("{}, the gradient of {} is wrong{}{}", condition, c.name,
                       c.cause.empty() ? "" : ": ", c.cause);
  }
  const bool nothing = result.problem.starts_with("nothing was checked");
  return result.problem.empty() || nothing ? std::string() : condition + ", " + result.problem;
}

/// Extents of the inputs that no parameter has, such as the number of rows in most layers.
std::set<std::int64_t> Variants::free_extents() const {
  const auto extents_of = [](const Tensor& x, std::set<std::int64_t>& into) {
    for (int k = 0; x.defined() && k < x.shape().rank(); ++k) into.insert(x.shape()[k]);
  };
  std::set<std::int64_t> free, used;
  for (const Tensor& x : inputs) extents_of(x, free);
  for (const NamedTensor& p : parameters) extents_of(p.tensor, used);
  for (const std::int64_t extent : used) free.erase(extent);
  free.erase(0);
  return free;
}

std::string Variants::examine() const {
  const std::vector<Tensor> x = variables_like(inputs);
  const Gradients all = gradients(x);
  if (std::string fault = with_a_constant(all, x); !fault.empty()) return fault;
  if (std::string fault = with_equal_inputs(all, x); !fault.empty()) return fault;
  for (const std::int64_t extent : free_extents()) {
    for (const std::int64_t changed : {1, 0}) {
      if (changed == extent) continue;
      if (std::string fault = with_extent(extent, changed); !fault.empty()) return fault;
    }
  }
  return {};
}

}  // namespace

GradcheckResult check(const Function& f, const std::vector<Tensor>& inputs,
                      const std::vector<NamedTensor>& parameters, const GradcheckOptions& options) {
  const Variants variants{f, inputs, parameters, options};
  const std::vector<Tensor> x = variables_like(inputs);
  GradcheckResult result = gradcheck_parameters([&] { return f(x); }, variants.checked(x), options);
  if (result.passed()) result.problem = variants.examine();
  return result;
}

}  // namespace gradcheck_detail

HEED_END
