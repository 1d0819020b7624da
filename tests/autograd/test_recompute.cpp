// Recomputation returns bitwise the same values and gradients as a kept graph.
#include <boost/test/unit_test.hpp>

#include "autograd/base/clock.h"
#include "autograd/gradcheck.h"
#include "autograd/kernels/fast/gemm/product_log.h"
#include "autograd/ops.h"
#include "autograd/tape/profile.h"
#include "autograd/tape/recompute.h"
#include "tests/autograd/expect.h"

using namespace heed;

BOOST_AUTO_TEST_SUITE(recomputation)

namespace {

struct Layer {
  Tensor weight = Tensor::variable(random_array({9, 9}, 1)),
         bias = Tensor::variable(random_array({9}, 2));

  /// The result depends on x and `other`; the weight is used twice.
  Tensor operator()(const Tensor& x, const Tensor& other) const {
    const Tensor h = gelu(affine(x, weight, bias));
    const RandomKey key{.seed = 3, .stream = Stream::dropout};
    return add(x, dropout(add(matmul(h, weight), mul(other, h)), real(0.3), key));
  }
  Tensor recomputed(const Tensor& x, const Tensor& other) const {
    return recompute([this](std::span<const Tensor> in) { return (*this)(in[0], in[1]); },
                     std::vector{x, other}, std::vector{weight, bias});
  }
};

/// The loss and gradients of three layers, each followed by the same shared layer; all layers read
/// `other`. With `again`, every layer is recomputed.
std::vector<Array> outcome(bool again) {
  const std::vector<Layer> layers(3);
  const Layer shared;
  const Tensor start = Tensor::variable(random_array({70, 9}, 4)),
               other = Tensor::variable(random_array({70, 9}, 5));
  const Tensor read = tanh(other);
  Tensor x = scale(start, real(0.5));
  const auto run = [&](const Layer& layer) {
    x = again ? layer.recomputed(x, read) : layer(x, read);
  };
  for (const Layer& layer : layers) {
    run(layer);
    run(shared);
  }
  const Tensor loss = mean(mul(x, x));
  Gradients g = backward(loss);
  std::vector<Array> all{loss.value(), g[start], g[other], g[shared.weight], g[shared.bias]};
  for (const Layer& layer : layers) {
    all.push_back(g[layer.weight]);
    all.push_back(g[layer.bias]);
  }
  return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(recomputation_equals_a_kept_graph_bitwise) {
  const std::vector<Array> kept = outcome(false), again = outcome(true);
  for (std::size_t i = 0; i < kept.size(); ++i)
    BOOST_TEST(same_bits(again[i], kept[i]), "result " << i);
}

BOOST_AUTO_TEST_CASE(gradients_of_a_recomputed_layer_agree_with_finite_differences) {
  const Layer layer;
  const Tensor other = Tensor::variable(random_array({4, 9}, 6)),
               x = Tensor::variable(random_array({4, 9}, 7));
  BOOST_TEST(gradcheck_parameters(
      [&] { return layer.recomputed(x, other); },
      {{"x", x}, {"other", other}, {"weight", layer.weight}, {"bias", layer.bias}}));
}

BOOST_AUTO_TEST_CASE(gradients_of_nested_recomputation_and_with_constant_inputs_are_correct) {
  const Tensor x = Tensor::variable(random_array({5}, 1)), constant(random_array({5}, 2));
  const auto inner = [](std::span<const Tensor> in) { return mul(in[0], in[1]); };
  const auto outer = [&](std::span<const Tensor> in) { return exp(recompute(inner, in, {})); };
  const Tensor y = sum(recompute(outer, std::vector{x, constant}, {}));
  BOOST_TEST(same_bits(backward(y)[x], backward(sum(exp(mul(x, constant))))[x]));
  const Tensor none = recompute(outer, std::vector{constant, constant}, {});
  BOOST_TEST(!none.needs_grad());
  const auto ignores = [](std::span<const Tensor> in) { return scale(in[0], 2); };
  const Tensor half = sum(add(recompute(ignores, std::vector{x, x}, {}), x));
  BOOST_TEST(same_bits(backward(half)[x], Array::full({5}, 3)));
}

// Backward of the outer recomputation runs the inner one, which runs the products.
BOOST_AUTO_TEST_CASE(op_times_of_nested_recomputation_sum_to_the_elapsed_time) {
  const Tensor x = Tensor::variable(random_array({300, 300}, 1));
  const auto inner = [](std::span<const Tensor> in) { return matmul(in[0], matmul(in[0], in[0])); };
  const auto outer = [&](std::span<const Tensor> in) { return recompute(inner, in, {}); };
  OpTimes times;
  const double begin = seconds_now();
  {
    const ProfileOps profile(times);
    backward(sum(recompute(outer, std::vector{x}, {})));
  }
  const double elapsed = seconds_now() - begin;
  double sum = 0;
  for (const auto& [name, time] : times) sum += time.forward + time.backward;
  BOOST_TEST(sum <= elapsed);
  BOOST_TEST(sum > 0.5 * elapsed);
}

BOOST_AUTO_TEST_CASE(variables_that_are_read_but_not_listed_are_refused) {
  const Tensor x = Tensor::variable(random_array({2}, 1)),
               w = Tensor::variable(random_array({2}, 2));
  const auto f = [&](std::span<const Tensor> in) { return mul(in[0], w); };
  EXPECT_FAIL(backward(sum(recompute(f, std::vector{x}, {}))),
              "[recompute] f reads a variable of shape [2] that `variables` does not list: its "
              "gradient would be lost");
}

BOOST_AUTO_TEST_CASE(constants_listed_as_variables_are_refused) {
  const Tensor x = Tensor::variable(random_array({2}, 1));
  const auto f = [](std::span<const Tensor> in) { return in[0]; };
  EXPECT_FAIL(recompute(f, std::vector{x}, std::vector{scale(x, 2)}),
              "[recompute] expected variables, got a constant or the result of an op");
}

BOOST_AUTO_TEST_CASE(flops_of_the_model_exclude_recomputation) {
  constexpr std::int64_t n = 8;
  const Tensor x = Tensor::variable(random_array({n, n}, 1));
  const auto square = [](std::span<const Tensor> in) { return matmul(in[0], in[0]); };
  const auto flops_of = [](const auto& forward) {
    kernels::ProductFlops flops;
    const kernels::ProductLog log(flops);
    backward(sum(forward()));
    return flops;
  };
  const std::vector<Tensor> inputs{x};
  const kernels::ProductFlops kept = flops_of([&] { return square(inputs); }),
                              again = flops_of([&] { return recompute(square, inputs, {}); });
  BOOST_TEST(again.model == kept.model);
  BOOST_TEST(again.executed == kept.executed + 2.0 * n * n * n);
}

BOOST_AUTO_TEST_SUITE_END()
