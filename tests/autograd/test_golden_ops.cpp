// Compares the results and gradients of ops with PyTorch's. tests/golden/README.md describes the
// golden file.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "autograd/io/formats/safetensors.h"
#include "autograd/ops.h"
#include "autograd/ops/more/attention/causal.h"

using namespace heed;
using Json = nlohmann::json;

namespace {

/// One case of the golden file: attributes and tensors.
class GoldenCase {
 public:
  GoldenCase(const SafetensorsFile& file, std::string name, Json attributes)
      : attributes(std::move(attributes)), file_(file), name_(std::move(name)) {
    while (const TensorView* view = find(fmt::format("x{}", inputs.size()))) {
      inputs.push_back(Tensor::variable(array(*view)));
    }
  }

  const TensorView* find(const std::string& name) const { return file_.find(name_ + "/" + name); }
  Array array(const TensorView& view) const {
    return Array(Shape(std::span<const std::int64_t>(view.shape)), view.values<double>());
  }
  Array array(const std::string& name) const {
    const TensorView* view = find(name);
    if (view == nullptr || view->dtype != DType::f64)
      fail("{}/{} is missing or does not have dtype F64", name_, name);
    return array(*view);
  }
  std::vector<std::int32_t> ints(const std::string& name) const {
    const TensorView* view = find(name);
    if (view == nullptr || view->dtype != DType::i32)
      fail("{}/{} is missing or does not have dtype I32", name_, name);
    const auto values = view->values<std::int32_t>();
    return {values.begin(), values.end()};
  }
  /// The mask added to the scores: none, the tensor `mask`, or −inf where `mask` is 0.
  Array mask() const {
    const std::string kind = attributes.value("mask", "none");
    if (kind == "none") return {};
    if (kind == "added") return array("mask");
    const std::vector<std::int32_t> seen = ints("mask");
    Array added(Shape(std::span<const std::int64_t>(find("mask")->shape)));
    for (std::size_t i = 0; i < seen.size(); ++i) {
      added.data()[i] = seen[i] != 0 ? 0 : -std::numeric_limits<real>::infinity();
    }
    return added;
  }
  template <class T>
  T get(const char* key) const {
    return attributes.at(key).get<T>();
  }
  Tensor input(std::size_t i) const { return i < inputs.size() ? inputs[i] : Tensor(); }

  Json attributes;
  std::vector<Tensor> inputs;  // variables

 private:
  const SafetensorsFile& file_;
  std::string name_;
};

using Run = std::function<Tensor(const GoldenCase&)>;

Run unary(Tensor (*f)(const Tensor&)) {
  return [f](const GoldenCase& c) { return f(c.input(0)); };
}
Run binary(Tensor (*f)(const Tensor&, const Tensor&)) {
  return [f](const GoldenCase& c) { return f(c.input(0), c.input(1)); };
}
Run reduction(Tensor (*f)(const Tensor&, int, bool)) {
  return [f](const GoldenCase& c) {
    return f(c.input(0), c.attributes.value("axis", all_axes),
             c.attributes.value("keepdim", false));
  };
}

AttentionOptions attention_options(const GoldenCase& c) {
  AttentionOptions options;
  options.heads = c.get<std::int64_t>("heads");
  if (c.get<bool>("causal")) options.pattern = causal_pattern();
  return options;
}
Tensor run_self_attention(const GoldenCase& c) {
  return self_attention(concat(c.inputs, 1), c.ints("q_offsets"), attention_options(c));
}
Tensor run_cross_attention(const GoldenCase& c) {
  const std::vector<Tensor> kv{c.input(1), c.input(2)};
  return cross_attention(c.input(0), concat(kv, 1), c.ints("q_offsets"), c.ints("k_offsets"),
                         attention_options(c));
}

const std::map<std::string, Run>& runs() {
  static const std::map<std::string, Run> table = {
      {"add", binary(heed::add)},
      {"sub", binary(heed::sub)},
      {"mul", binary(heed::mul)},
      {"div", binary(heed::div)},
      {"neg", unary(heed::neg)},
      {"exp", unary(heed::exp)},
      {"log", unary(heed::log)},
      {"sqrt", unary(heed::sqrt)},
      {"tanh", unary(heed::tanh)},
      {"relu", unary(heed::relu)},
      {"gelu", unary(heed::gelu)},
      {"gelu_tanh", unary(heed::gelu_tanh)},
      {"sigmoid", unary(heed::sigmoid)},
      {"silu", unary(heed::silu)},
      {"sum", reduction(heed::sum)},
      {"mean", reduction(heed::mean)},
      {"maximum", binary(heed::maximum)},
      {"minimum", binary(heed::minimum)},
      {"where",
       [](const GoldenCase& c) {
         const std::vector<std::int32_t> chosen = c.ints("condition");
         Array condition(Shape(std::span<const std::int64_t>(c.find("condition")->shape)));
         std::ranges::copy(chosen, condition.data());
         return where(condition, c.input(0), c.input(1));
       }},
      {"softplus", unary(heed::softplus)},
      {"abs", unary(heed::abs)},
      {"sin", unary(heed::sin)},
      {"cos", unary(heed::cos)},
      {"pow", [](const GoldenCase& c) { return pow(c.input(0), c.get<real>("exponent")); }},
      {"clamp",
       [](const GoldenCase& c) {
         return clamp(c.input(0), c.get<real>("low"), c.get<real>("high"));
       }},
      {"max", reduction(heed::max)},
      {"min", reduction(heed::min)},
      {"log_sum_exp", reduction(heed::log_sum_exp)},
      {"cumsum", [](const GoldenCase& c) { return cumsum(c.input(0), c.get<int>("axis")); }},
      {"stack", [](const GoldenCase& c) { return stack(c.inputs, c.get<int>("axis")); }},
      {"permute",
       [](const GoldenCase& c) { return permute(c.input(0), c.get<std::vector<int>>("axes")); }},
      {"broadcast_to",
       [](const GoldenCase& c) {
         const auto extents = c.get<std::vector<std::int64_t>>("shape");
         return broadcast_to(c.input(0), Shape(std::span<const std::int64_t>(extents)));
       }},
      {"einsum",
       [](const GoldenCase& c) { return einsum(c.get<std::string>("equation"), c.inputs); }},
      {"index_select", [](const GoldenCase& c) { return index_select(c.input(0), c.ints("ids")); }},
      {"scatter_add",
       [](const GoldenCase& c) {
         return scatter_add(c.input(0), c.ints("ids"), c.get<std::int64_t>("n"));
       }},
      {"gather", [](const GoldenCase& c) { return gather(c.input(0), c.ints("ids")); }},
      {"matmul",
       [](const GoldenCase& c) {
         return matmul(c.input(0), c.input(1), c.get<bool>("transpose_a"),
                       c.get<bool>("transpose_b"));
       }},
      {"affine", [](const GoldenCase& c) { return affine(c.input(0), c.input(1), c.input(2)); }},
      {"reshape",
       [](const GoldenCase& c) {
         const auto extents = c.get<std::vector<std::int64_t>>("shape");
         return reshape(c.input(0), Shape(std::span<const std::int64_t>(extents)));
       }},
      {"transpose",
       [](const GoldenCase& c) {
         const auto axes = c.get<std::vector<int>>("axes");
         return transpose(c.input(0), axes.at(0), axes.at(1));
       }},
      {"slice",
       [](const GoldenCase& c) {
         return slice(c.input(0), c.get<int>("axis"), c.get<std::int64_t>("begin"),
                      c.get<std::int64_t>("end"));
       }},
      {"concat", [](const GoldenCase& c) { return concat(c.inputs, c.get<int>("axis")); }},
      {"softmax", [](const GoldenCase& c) { return softmax(c.input(0), c.mask()); }},
      {"log_softmax", [](const GoldenCase& c) { return log_softmax(c.input(0), c.mask()); }},
      {"layer_norm",
       [](const GoldenCase& c) {
         return layer_norm(c.input(0), c.input(1), c.input(2), c.get<real>("eps"));
       }},
      {"rms_norm",
       [](const GoldenCase& c) { return rms_norm(c.input(0), c.input(1), c.get<real>("eps")); }},
      {"batch_norm",
       [](const GoldenCase& c) {
         return batch_norm(c.input(0), c.input(1), c.input(2), c.get<real>("eps"));
       }},
      {"batch_norm_given",
       [](const GoldenCase& c) {
         return batch_norm(c.input(0), c.input(1), c.input(2), {c.array("mean"), c.array("var"), 0},
                           c.get<real>("eps"));
       }},
      {"embedding",
       [](const GoldenCase& c) {
         return embedding(c.input(0), c.ints("ids"), c.get<real>("scale"));
       }},
      {"attention_composed",
       [](const GoldenCase& c) {
         return attention(c.input(0), c.input(1), c.input(2), c.mask()).output;
       }},
      {"attention_fused", run_cross_attention},
      {"cross_entropy",
       [](const GoldenCase& c) {
         return cross_entropy(c.input(0), c.ints("targets"), c.get<real>("smoothing"),
                              c.get<double>("normaliser"));
       }},
      {"linear_cross_entropy", [](const GoldenCase& c) {
         return projected_cross_entropy(c.input(0), c.input(1), c.input(2), c.ints("targets"),
                                        c.get<real>("smoothing"), c.get<double>("normaliser"));
       }}};
  return table;
}

/// Checks that values agree with PyTorch's to within 1e-11 max(1, |PyTorch's value|).
void compare(const char* what, std::size_t i, const Array& ours, const Array& golden) {
  BOOST_TEST_CONTEXT(what << " " << i) {
    BOOST_TEST((ours.shape() == golden.shape()),
               "shape " << ours.shape().str() << ", PyTorch's: " << golden.shape().str());
    if (ours.shape() != golden.shape()) return;
    double worst = 0;
    std::int64_t at = 0;
    for (std::int64_t k = 0; k < ours.size(); ++k) {
      const double a = ours.data()[k], b = golden.data()[k];
      if (a == b) continue;
      const double error = std::abs(a - b) / std::max(1.0, std::abs(b));
      if (!(error <= worst)) {
        worst = error;
        at = k;
      }
      if (std::isnan(worst)) break;
    }
    BOOST_TEST(worst <= 1e-11,
               "value " << at << ": " << ours.data()[at] << ", PyTorch's: " << golden.data()[at]);
  }
}

void check_case(const GoldenCase& c, const Run& run) {
  const Tensor y = run(c);
  compare("y", 0, y.value(), c.array("y"));
  const Gradients g = backward(y, c.array("dy"));
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    compare("dx", i, g[c.inputs[i]], c.array(fmt::format("dx{}", i)));
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(ops_agree_with_pytorch) {
  const SafetensorsFile file =
      SafetensorsFile::read(std::string(HEED_SOURCE_DIR) + "/tests/golden/ops.safetensors");
  std::map<std::string, int> seen;
  for (const auto& [name, text] : file.metadata()) {
    const GoldenCase c(file, name, Json::parse(text));
    const auto op = c.get<std::string>("op");
    BOOST_TEST_CONTEXT(name) {
      const auto run = runs().find(op);
      BOOST_TEST_REQUIRE((run != runs().end()), "unknown op " << op);
      ++seen[op];
      check_case(c, run->second);
      if (op == "attention_fused" && c.ints("q_offsets") == c.ints("k_offsets")) {
        BOOST_TEST_CONTEXT("as self-attention") check_case(c, run_self_attention);
      }
      if (op == "attention_composed") {
        compare("weights", 0,
                attention(c.input(0), c.input(1), c.input(2), c.mask()).weights.value(),
                c.array("weights"));
      }
    }
  }
  for (const auto& [op, run] : runs()) BOOST_TEST(seen[op] > 0, "no golden case for op " << op);
}
