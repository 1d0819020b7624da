// Mistakes in the use of the library, and their error messages.
#include <boost/test/unit_test.hpp>
#include <functional>

#include "autograd/gradcheck.h"
#include "autograd/ops.h"
#include "nn/models/model.h"
#include "optim/optimizer.h"
#include "tests/autograd/doc_table.h"
#include "tests/nn/support.h"

using namespace heed;

namespace {

/// The message of the error that f throws.
std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "(no error)";
}

Tensor variable(const Shape& shape) { return Tensor::variable(Array::full(shape, 1)); }

/// y = x, with a gradient of the wrong shape.
struct WrongShape {
  Array forward(const Array& x) { return x.clone(); }
  void backward(const Array&, Grad dx) const { dx.add(Array::zeros({2})); }
};

/// Uses the gradient of its second input without testing whether it is required.
struct Unasked {
  Array forward(const Array& x, const Array&) { return x.clone(); }
  void backward(const Array&, Grad, Grad dw) const { dw.sum(); }
};

ModelOptions small_model() {
  ModelOptions options;
  options.d_model = 8;
  options.heads = 2;
  options.d_ff = 8;
  options.decoder_layers = 1;
  options.context = 4;
  return options;
}

std::vector<Mistake> guards() {
  std::vector<Mistake> all;
  const auto add = [&](const char* mistake, const std::function<void()>& f) {
    all.push_back({mistake, message_of(f)});
  };
  const auto optimizer = [](std::vector<NamedTensor> parameters) {
    return Optimizer(OptimOptions{}, std::move(parameters));
  };

  add("an undefined tensor in an op", [] { mul(Tensor(), variable({3})); });
  add("`backward` of an undefined tensor", [] { backward(Tensor()); });
  add("`backward` of a constant", [] { backward(Tensor(Array::scalar(1))); });
  add("`backward` of more than one value", [] { backward(scale(variable({3}), 2)); });
  add("`backward` called twice on the same graph", [] {
    const Tensor y = sum(exp(variable({3})));
    backward(y);
    backward(y);
  });
  add("a value changed between forward and backward", [] {
    Tensor w = variable({3});
    const Tensor y = sum(mul(w, w));
    w.mutable_value().data()[0] = 2;
    backward(y);
  });
  add("`take(x)`, then `g[x]`", [] {
    const Tensor x = variable({3});
    Gradients g = backward(sum(x));
    g.take(x);
    static_cast<void>(g[x]);
  });
  add("the gradient of a constant", [] {
    const Tensor x = variable({3}), c = Array::full({3}, 1);
    static_cast<void>(backward(sum(mul(x, c)))[c]);
  });
  add("the gradient of the result of an op", [] {
    const Tensor x = variable({3}), y = exp(x);
    static_cast<void>(backward(sum(y))[y]);
  });
  add("a gradient whose shape differs from that of the input",
      [] { backward(sum(apply(WrongShape{}, variable({3})))); });
  add("a gradient that is not required, used without `if (dx)`",
      [] { backward(sum(apply(Unasked{}, variable({3}), Tensor(Array::full({3}, 1))))); });
  add("an index outside the array", [] { Array::of({1, 2}).at({2}); });
  add("`gradcheck` without values", [] {
    const GradcheckResult result =
        gradcheck([](const Tensor& x) { return sum(x); }, Tensor::variable(Array::zeros({0})));
    fail("{}", result.problem);
  });
  add("an optimizer with an undefined parameter", [&] { optimizer({{"w", Tensor()}}); });
  add("an optimizer with a constant as a parameter", [&] {
    optimizer({{"w", Tensor(Array::full({3}, 1))}});
  });
  add("an optimizer with the result of an op as a parameter", [&] {
    optimizer({{"w", exp(variable({3}))}});
  });
  add("too few gradients", [&] {
    optimizer({{"w", variable({3})}, {"b", variable({1})}}).step({Array::zeros({3})}, 0.1);
  });
  add("a gradient whose shape differs from that of the parameter", [&] {
    optimizer({{"w", variable({3})}}).step({Array::zeros({4})}, 0.1);
  });
  const auto model = make_language_model(small_model(), 10, 1);
  add("a sequence longer than the context of the language model", [&] {
    const std::vector<std::int32_t> ids{1, 2, 3, 4, 5}, offsets{0, 5};
    Pass pass;
    ModelInput input;
    input.target.ids = ids;
    input.target.offsets = offsets;
    model->logits(input, pass);
  });
  add("`Decoding::step` with the wrong number of tokens", [&] {
    const NoGrad no_grad;
    const std::vector<std::int32_t> ids{1};
    model->decode({}, 2)->step(ids);
  });
  return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(error_messages_equal_those_in_documentation) {
  const std::vector<Mistake> all = guards();
  for (const Mistake& guard : all)
    BOOST_TEST(guard.message != "(no error)", guard.kind << " causes no error");
  check_doc_table("LIBRARY.md", "## Errors", all);
}
