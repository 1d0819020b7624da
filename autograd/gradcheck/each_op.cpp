// Checks each op of a graph alone, to find the one whose backward makes a gradient wrong.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "autograd/gradcheck/stages.h"
#include "autograd/tape/many.h"
#include "autograd/tape/observer.h"

HEED_BEGIN

namespace gradcheck_detail {

namespace {

/// A call of an op that the tape has recorded.
struct RecordedCall {
  std::size_t number = 0;  ///< index among all calls of ops, in the order in which they begin
  Node* node = nullptr;
  std::vector<Array> inputs;
};

class CallList final : public OpObserver {
 public:
  std::vector<RecordedCall> calls;

  void begin(const OpCall& call) override { numbers_[&call] = next_++; }
  void finish(const OpCall& call, std::span<const Array>, Node* node) override {
    if (node == nullptr) return;
    calls.push_back({numbers_.at(&call), node, {}});
    for (const Array* value : call.values) calls.back().inputs.push_back(*value);
  }

 private:
  std::size_t next_ = 0;
  std::unordered_map<const OpCall*, std::size_t> numbers_;
};

struct Finished {};  // thrown to leave f after the call of interest

/// Writes other values into the inputs of one call, and copies the call's results. The destructor
/// restores the inputs.
class Substitution final : public OpObserver {
 public:
  Substitution(std::size_t number, const std::type_info& op, std::span<const Array> inputs)
      : number_(number), op_(op), inputs_(inputs) {}
  ~Substitution() override {
    for (std::size_t i = 0; i < before_.size(); ++i) copy(before_[i], places_[i]);
  }
  std::vector<real> results;

  void begin(const OpCall& call) override {
    if (next_++ != number_) return;
    const bool same = std::ranges::equal(inputs_, call.values, [](const Array& x, const Array* y) {
      return x.shape() == y->shape();
    });
    if (call.op != op_ || !same) fail("[gradcheck] f calls other ops without a tape");
    call_ = &call;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      places_.push_back(*call.values[i]);
      before_.push_back(places_[i].clone());
    }
    for (std::size_t i = 0; i < inputs_.size(); ++i) copy(inputs_[i], places_[i]);
  }
  void finish(const OpCall& call, std::span<const Array> all, Node*) override {
    if (&call != call_) return;
    for (const Array& y : all) results.insert(results.end(), y.data(), y.data() + y.size());
    throw Finished();
  }

 private:
  static void copy(const Array& from, Array& to) { std::copy_n(from.data(), to.size(), to.data()); }

  std::size_t number_, next_ = 0;
  const std::type_info& op_;
  std::span<const Array> inputs_;
  const OpCall* call_ = nullptr;
  std::vector<Array> places_, before_;
};

/// The op of one call as a function of its inputs. Forward runs f up to this call, with the given
/// values in place of the inputs; backward is that of the recorded node.
struct Replay {
  const std::function<Tensor()>* f = nullptr;
  std::size_t number = 0;
  Node* node = nullptr;

  Array forward(std::span<const Array> inputs) const {
    Substitution substitution(number, node->op(), inputs);
    try {
      const NoGrad off;
      (*f)();
    } catch (const Finished&) {
    }
    return Array(node->shape(), substitution.results);
  }
  void backward(const Array& dy, std::span<const Grad> dx) const { node->backward(dy, dx); }
};

std::unordered_set<const Node*> nodes_behind(const Tensor& y) {
  std::unordered_set<const Node*> seen;
  std::vector<const Node*> left{y.node().get()};
  while (!left.empty()) {
    const Node* const node = left.back();
    left.pop_back();
    if (node == nullptr || !seen.insert(node).second) continue;
    for (const NodeRef& input : node->inputs()) left.push_back(input.get());
  }
  return seen;
}

/// The inputs of the call: variables with copies of the values, and constants. Inputs that share
/// their values are the same variable. Returns nothing if inputs cannot change independently: if
/// a variable shares values with a constant, or some of its values with another input.
std::vector<Tensor> separate_inputs(const RecordedCall& call) {
  std::vector<Tensor> inputs;
  const std::span<const NodeRef> nodes = call.node->inputs();
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const Array& x = call.inputs[i];
    inputs.push_back(nodes[i] ? Tensor::variable(x.clone()) : Tensor(x.clone()));
    for (std::size_t j = 0; j < i; ++j) {
      const Array& other = call.inputs[j];
      const bool apart =
          x.data() + x.size() <= other.data() || other.data() + other.size() <= x.data();
      if (!x.shares(other) || apart || (!nodes[i] && !nodes[j])) continue;
      if (nodes[i].get() != nodes[j].get() || x.data() != other.data()) return {};
      inputs[i] = inputs[j];
      break;
    }
  }
  return inputs;
}

/// Checks the ops of f's graph, one after the other.
struct OpChecker {
  const std::function<Tensor()>& f;
  const std::vector<NamedTensor>& parameters;
  const GradcheckOptions& options;
  std::size_t ops = 0;   ///< number of ops in the graph
  bool complete = true;  ///< whether all ops examined could be checked

  std::string first_wrong_op();
  std::string wrong_input(const RecordedCall& call);
};

/// The wrong gradient of this op with its cause, or "".
std::string OpChecker::wrong_input(const RecordedCall& call) {
  const std::vector<Tensor> inputs = separate_inputs(call);
  if (inputs.empty()) {
    complete = false;
    return {};
  }
  std::vector<NamedTensor> variables;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto same = [&](const NamedTensor& p) {
      return p.tensor.node().get() == call.node->inputs()[i].get();
    };
    const auto parameter = std::ranges::find_if(parameters, same);
    if (inputs[i].needs_grad() && inputs[i].size() > 0)
      variables.push_back({parameter == parameters.end()
                               ? fmt::format("input {} {}", i, inputs[i].shape())
                               : parameter->name,
                           inputs[i]});
  }
  const auto op = [&] { return apply(Replay{&f, call.number, call.node}, inputs); };
  GradcheckOptions once = one_direction(options);
  GradcheckResult result = compare_gradients(op, variables, once);
  complete = complete && result.passed();
  if (first_wrong(result).empty()) return {};
  once.directions = 0;  // the cause shows in single entries
  once.max_entries = 2048;
  result = compare_gradients(op, variables, once);
  return first_wrong(result);
}

std::string OpChecker::first_wrong_op() {
  CallList list;
  const Tensor y = f();
  const ScopedValue<OpObserver*> unobserved(OpObserver::active, nullptr);
  const std::unordered_set<const Node*> nodes = nodes_behind(y);
  std::erase_if(list.calls, [&](const RecordedCall& call) { return !nodes.contains(call.node); });
  ops = list.calls.size();
  for (const RecordedCall& call : list.calls) {
    if (call.node->straight_through()) continue;
    try {
      if (const std::string wrong = wrong_input(call); !wrong.empty())
        return fmt::format("the backward of {}: {}", op_name(call.node->op()), wrong);
    } catch (const std::exception&) {
      complete = false;
    }
  }
  return {};
}

}  // namespace

void name_wrong_op(GradcheckResult& result, const std::function<Tensor()>& f,
                   const std::vector<NamedTensor>& parameters, const GradcheckOptions& options) {
  const auto wrong_gradient = [](const ParameterCheck& c) {
    return c.status == GradcheckStatus::wrong && c.checked > 0;
  };
  if (!result.problem.empty() || std::ranges::none_of(result.parameters, wrong_gradient)) return;
  OpChecker checker{f, parameters, options};
  const std::string wrong = checker.first_wrong_op();
  // The only op of a graph has the same cause as f's tensors.
  if (checker.ops > 1) result.wrong_op = wrong;
  if (!wrong.empty() || !checker.complete || checker.ops == 0) return;
  for (ParameterCheck& c : result.parameters) {
    if (wrong_gradient(c) && !c.cause.starts_with("zero gradient"))
      c.cause =
          "f also uses the values of this tensor without its node, as value() and NoGrad do: the "
          "backward of each op alone is right";
  }
}

}  // namespace gradcheck_detail

HEED_END
