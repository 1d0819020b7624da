// gradcheck(f, x…): checks f's gradients for the given inputs and for variants of them.
#include <algorithm>
#include <csignal>
#include <cstring>
#include <limits>
#include <set>

#include "autograd/gradcheck/child_process.h"
#include "autograd/gradcheck/stages.h"

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

struct Reshaped;

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
  std::string with(const Reshaped& other) const;
  std::set<std::int64_t> free_extents() const;
  std::vector<Reshaped> other_shapes() const;
  std::string with_other_shapes() const;
  std::string examine() const;
};

std::vector<NamedTensor> Variants::checked(const std::vector<Tensor>& x) const {
  std::vector<NamedTensor> all;
  for (std::size_t i = 0; i < x.size(); ++i) all.push_back({name(i), x[i]});
  all.insert(all.end(), parameters.begin(), parameters.end());
  return all;
}

Gradients Variants::gradients(const std::vector<Tensor>& x) const {
  return weighted_gradients(f(x), options.seed);
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

/// x with extent `to` on some axes. Values beyond the extent of x repeat those of x, slightly
/// changed, so that no two are equal. If x shrinks, the result is at the start of an array of x's
/// size, so that an f that assumes the former shape reads NaN instead of memory beyond the array.
Array resized(const Array& x, const std::function<bool(int axis)>& changes, std::int64_t to) {
  Shape shape = x.shape();
  for (int k = 0; k < shape.rank(); ++k) {
    if (changes(k)) shape = shape.with(k, to);
  }
  const Array other = changed_by_a_tenth(x, 1);
  Array all =
      Array::full({std::max(x.size(), shape.size())}, std::numeric_limits<real>::quiet_NaN());
  for (std::int64_t i = 0; i < shape.size(); ++i) {
    std::int64_t rest = i, from = 0, stride = 1;
    bool repeated = false;
    for (int k = shape.rank() - 1; k >= 0; --k) {
      const std::int64_t index = rest % shape[k], extent = x.shape()[k];
      rest /= shape[k];
      repeated = repeated || index >= extent;
      from += index % extent * stride;
      stride *= extent;
    }
    all.data()[i] = (repeated ? other : x).data()[from];
  }
  return all.sliced(0, shape.size()).reshaped(shape);
}

/// Inputs of another shape.
struct Reshaped {
  std::vector<Array> inputs;
  bool further_axis = false;  ///< the inputs have another rank

  std::vector<Tensor> variables() const {
    std::vector<Tensor> x;
    for (const Array& input : inputs)
      x.push_back(input.defined() ? Tensor::variable(input) : Tensor());
    return x;
  }
  std::string text() const {
    std::vector<std::string> shapes;
    for (const Array& x : inputs)
      shapes.push_back(x.defined() ? fmt::format("{}", x.shape()) : "none");
    return fmt::format("with inputs of shapes {}", fmt::join(shapes, ", "));
  }
};

/// Checks the gradients with these inputs and returns the fault, or "". Inputs for which f throws,
/// or returns values that are not finite (such as the mean of no values), are skipped. Many functions
/// of matrices accept tensors by accident, so that only their backward throws: of inputs with a
/// further axis, only a wrong gradient is a fault.
std::string Variants::with(const Reshaped& other) const {
  const std::vector<Tensor> x = other.variables();
  try {
    const NoGrad off;
    if (!all_finite(f(x).value())) return {};
  } catch (const std::exception&) {
    return {};
  }
  GradcheckResult result;
  try {
    result = compare_gradients([&] { return f(x); }, checked(x), one_direction(options));
  } catch (const Error& error) {
    return other.further_axis ? "" : fmt::format("{}, f fails: {}", other.text(), error.what());
  }
  if (const std::string wrong = first_wrong(result); !wrong.empty())
    return fmt::format("{}, {}", other.text(), wrong);
  const bool none = result.problem.empty() || result.problem.starts_with("nothing was checked");
  return none || other.further_axis ? "" : fmt::format("{}, {}", other.text(), result.problem);
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

/// The inputs in other shapes: each free extent, wherever the inputs have it, as 1, as 0 and larger
/// by 1; and two entries along a further first axis, of the first input and of all inputs.
std::vector<Reshaped> Variants::other_shapes() const {
  std::vector<Reshaped> all;
  for (const std::int64_t extent : free_extents()) {
    for (const std::int64_t to : {std::int64_t{1}, std::int64_t{0}, extent + 1}) {
      if (to == extent) continue;
      Reshaped& other = all.emplace_back();
      for (const Tensor& x : inputs) {
        const auto changes = [&](int k) { return x.shape()[k] == extent; };
        other.inputs.push_back(x.defined() ? resized(x.value(), changes, to) : Array());
      }
    }
  }
  const auto first_axis = [](int k) { return k == 0; };
  for (const std::size_t count : std::set<std::size_t>{1, inputs.size()}) {
    Reshaped& other = all.emplace_back();
    other.further_axis = true;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Tensor& x = inputs[i];
      if (!x.defined() || i >= count || x.shape().rank() == Shape::max_rank) {
        other.inputs.push_back(x.defined() ? x.value().clone() : Array());
        continue;
      }
      Shape shape{1};
      for (const std::int64_t extent : x.shape().extents()) shape.push_back(extent);
      other.inputs.push_back(resized(x.value().reshaped(shape), first_axis, 2));
    }
  }
  return all;
}

/// Other shapes are tried in a child process first: an op that divides an integer by an extent of 0
/// would end the program.
std::string Variants::with_other_shapes() const {
  const std::vector<Reshaped> shapes = other_shapes();
  const std::optional<Crash> crash =
      find_crash(shapes.size(), [&](std::size_t i) { gradients(shapes[i].variables()); });
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (crash && crash->step == i) {
      return fmt::format("{}, f ends the program by {}", shapes[i].text(),
                         crash->signal == SIGFPE ? "SIGFPE: does it divide an integer by an extent?"
                                                 : fmt::format("signal {} ({})", crash->signal,
                                                               ::strsignal(crash->signal)));
    }
    if (std::string fault = with(shapes[i]); !fault.empty()) return fault;
  }
  return {};
}

std::string Variants::examine() const {
  const std::vector<Tensor> x = variables_like(inputs);
  const Gradients all = gradients(x);
  if (std::string fault = with_a_constant(all, x); !fault.empty()) return fault;
  if (std::string fault = with_equal_inputs(all, x); !fault.empty()) return fault;
  return with_other_shapes();
}

}  // namespace

GradcheckResult check(const Function& f, const std::vector<Tensor>& inputs,
                      const std::vector<NamedTensor>& parameters, const GradcheckOptions& options) {
  const Variants variants{f, inputs, parameters, options};
  const std::vector<Tensor> x = variables_like(inputs);
  const std::vector<NamedTensor> variables = variants.checked(x);
  const auto call = [&] { return f(x); };
  GradcheckResult result = compare_gradients(call, variables, options);
  const auto elsewhere = [&] {
    const OtherValues changed(parameters, options.seed);
    std::vector<Tensor> other = variables_like(inputs);
    for (Tensor& t : other) {
      if (t.defined()) t = Tensor::variable(changed_by_a_tenth(t.value(), options.seed));
    }
    f(other);
  };
  if (result.passed()) result.problem = find_kept_values(call, elsewhere, variables, options);
  if (result.passed()) result.problem = variants.examine();
  name_wrong_op(result, call, variables, options);
  return result;
}

}  // namespace gradcheck_detail

HEED_END
