// Correct layers must pass with every seed: users ignore a checker that raises false alarms.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdlib>

#include "autograd/gradcheck.h"
#include "autograd/ops/more/attention/alibi.h"
#include "autograd/ops/more/attention/causal.h"
#include "autograd/ops/more/attention/window.h"
#include "tests/autograd/expect.h"
#include "tests/autograd/planted.h"

using namespace heed;

BOOST_AUTO_TEST_SUITE(gradcheck_right_suite)

namespace {

struct RightLayer {
  std::string name;
  std::function<GradcheckResult(std::uint64_t seed)> check;
};

using Inputs = std::vector<Tensor>;
using Function = std::function<Tensor(const Inputs&)>;

/// Checks f on normally distributed inputs of these shapes; the seed determines all values.
RightLayer layer(std::string name, std::vector<Shape> shapes, const Function& f) {
  return {std::move(name), [=](std::uint64_t seed) {
            Inputs x;
            for (const Shape& shape : shapes) x.emplace_back(normal(shape, 100 * seed + x.size()));
            GradcheckOptions options;
            options.seed = seed;
            switch (x.size()) {
              case 1:
                return gradcheck(
                    options, [&](const Tensor& a) { return f({a}); }, x[0]);
              case 2:
                return gradcheck(
                    options,
                    [&](const Tensor& a, const Tensor& b) {
                      return f({a, b});
                    },
                    x[0], x[1]);
              default:
                return gradcheck(
                    options,
                    [&](const Tensor& a, const Tensor& b, const Tensor& c) {
                      return f({a, b, c});
                    },
                    x[0], x[1], x[2]);
            }
          }};
}

using TensorFunction = Tensor (*)(const Tensor&);
const std::vector<std::pair<std::string, TensorFunction>> activations{
    {"relu", relu}, {"gelu", gelu},       {"gelu_tanh", gelu_tanh},
    {"silu", silu}, {"tanh", heed::tanh}, {"sigmoid", sigmoid}};

/// Typical layers around an activation.
void add_feed_forward(std::vector<RightLayer>& all) {
  for (const auto& activation : activations) {
    const auto& name = activation.first;  // clang 14 cannot capture structured bindings
    const auto& f = activation.second;
    const TensorFunction function = f;
    const auto put = [&](const char* kind, std::vector<Shape> shapes, const Function& g) {
      all.push_back(layer(name + ", " + kind, std::move(shapes), g));
    };
    put("alone", {{3, 4}}, [=](const Inputs& x) { return function(x[0]); });
    put("of a product", {{3, 4}, {4, 5}},
        [=](const Inputs& x) { return function(matmul(x[0], x[1])); });
    put("of an affine map", {{3, 4}, {5, 4}, {5}},
        [=](const Inputs& x) { return function(affine(x[0], x[1], x[2])); });
    put("with a residual", {{3, 4}, {4, 4}},
        [=](const Inputs& x) { return add(x[0], function(affine(x[0], x[1]))); });
    put("gated", {{3, 4}, {5, 4}, {5, 4}},
        [=](const Inputs& x) { return mul(function(affine(x[0], x[1])), affine(x[0], x[2])); });
    put("feed-forward", {{3, 4}, {6, 4}, {4, 6}},
        [=](const Inputs& x) { return affine(function(affine(x[0], x[1])), x[2]); });
    put("before a norm", {{3, 5}},
        [=](const Inputs& x) { return rms_norm(function(x[0]), Tensor(), real(0.1)); });
    put("after a norm", {{3, 5}, {5}},
        [=](const Inputs& x) { return function(layer_norm(x[0], x[1], Tensor())); });
    put("with dropout", {{3, 4}, {5, 4}}, [=](const Inputs& x) {
      return dropout(function(affine(x[0], x[1])), real(0.3), {7, Stream::dropout, 1, 2});
    });
    put("and a loss", {{3, 4}, {6, 4}}, [=](const Inputs& x) {
      const std::vector<std::int32_t> targets(static_cast<std::size_t>(x[0].shape()[0]), 2);
      return cross_entropy(function(affine(x[0], x[1])), targets, real(0.1), 3);
    });
  }
}

void add_attention(std::vector<RightLayer>& all) {
  const std::vector<std::int32_t> offsets{0, 3, 7};
  std::vector<std::pair<std::string, AttentionOptions>> kinds;
  for (const int heads : {1, 2}) {
    AttentionOptions full;
    full.heads = heads;
    AttentionOptions causal = full, window = full, alibi = full;
    causal.pattern = causal_pattern();
    window.pattern = window_pattern(2, 1);
    alibi.terms = {std::make_shared<Alibi>()};
    kinds.emplace_back(fmt::format("full attention, heads: {}", heads), full);
    kinds.emplace_back(fmt::format("causal attention, heads: {}", heads), causal);
    kinds.emplace_back(fmt::format("window attention, heads: {}", heads), window);
    kinds.emplace_back(fmt::format("ALiBi, heads: {}", heads), alibi);
  }
  for (const auto& kind : kinds) {
    const AttentionOptions options = kind.second;
    all.push_back(layer(kind.first, {{7, 12}},
                        [=](const Inputs& x) { return self_attention(x[0], offsets, options); }));
    all.push_back(
        layer(kind.first + ", projected", {{7, 4}, {12, 4}, {4, 4}}, [=](const Inputs& x) {
          return affine(self_attention(affine(x[0], x[1]), offsets, options), x[2]);
        }));
  }
  for (const bool masked : {false, true}) {
    all.push_back(layer(masked ? "composed causal attention" : "composed attention",
                        {{5, 4}, {5, 4}, {5, 4}}, [=](const Inputs& x) {
                          const Array mask = masked ? causal_mask(5) : Array();
                          return attention(x[0], x[1], x[2], mask).output;
                        }));
  }
}

void add_rows_and_shapes(std::vector<RightLayer>& all) {
  const auto put = [&](const char* name, std::vector<Shape> shapes, const Function& f) {
    all.push_back(layer(name, std::move(shapes), f));
  };
  put("softmax", {{3, 4}}, [](const Inputs& x) { return softmax(x[0]); });
  put("log-softmax", {{3, 4}}, [](const Inputs& x) { return log_softmax(x[0]); });
  put("x times softmax", {{3, 4}}, [](const Inputs& x) { return mul(x[0], softmax(x[0])); });
  put("entropy", {{3, 4}},
      [](const Inputs& x) { return neg(sum(mul(softmax(x[0]), log_softmax(x[0])), -1)); });
  put("layer norm", {{3, 5}, {5}, {5}},
      [](const Inputs& x) { return layer_norm(x[0], x[1], x[2], real(0.1)); });
  put("rms norm", {{3, 5}, {5}}, [](const Inputs& x) { return rms_norm(x[0], x[1], real(0.1)); });
  put("composed norm", {{3, 5}}, [](const Inputs& x) {
    const Tensor centred = sub(x[0], mean(x[0], -1, true));
    return div(centred, sqrt(add(mean(mul(centred, centred), -1, true), Array::scalar(real(0.1)))));
  });
  put("batch norm", {{6, 4}}, [](const Inputs& x) {
    const Tensor centred = sub(x[0], mean(x[0], 0, true));
    return div(centred, sqrt(add(mean(mul(centred, centred), 0, true), Array::scalar(real(0.1)))));
  });
  put("cosine", {{3, 4}, {3, 4}}, [](const Inputs& x) {
    const auto size = [](const Tensor& a) {
      return sqrt(add(sum(mul(a, a), -1), Array::scalar(real(0.01))));
    };
    return div(sum(mul(x[0], x[1]), -1), mul(size(x[0]), size(x[1])));
  });
  put("sum", {{3, 4}}, [](const Inputs& x) { return sum(x[0], 0); });
  put("mean", {{3, 4}}, [](const Inputs& x) { return mean(x[0], 1); });
  put("mean of all", {{3, 4}}, [](const Inputs& x) { return mean(x[0]); });
  put("squared error", {{3, 4}, {3, 4}}, [](const Inputs& x) {
    const Tensor d = sub(x[0], x[1]);
    return mean(mul(d, d));
  });
  put("broadcast sum", {{3, 4}, {4}}, [](const Inputs& x) { return add(x[0], x[1]); });
  put("broadcast product", {{3, 4}, {3, 1}}, [](const Inputs& x) { return mul(x[0], x[1]); });
  put("outer product", {{3, 1}, {1, 4}}, [](const Inputs& x) { return mul(x[0], x[1]); });
  put("x·x·x", {{3, 4}}, [](const Inputs& x) { return mul(x[0], mul(x[0], x[0])); });
  put("softplus", {{3, 4}}, [](const Inputs& x) { return log(add(Array::scalar(1), exp(x[0]))); });
  put("gaussian", {{3, 4}}, [](const Inputs& x) { return exp(neg(mul(x[0], x[0]))); });
  put("transposed product", {{3, 4}, {3, 5}},
      [](const Inputs& x) { return matmul(x[0], x[1], true); });
  put("batched product", {{2, 3, 4}, {2, 4, 3}},
      [](const Inputs& x) { return matmul(x[0], x[1]); });
  put("gram matrix", {{3, 4}}, [](const Inputs& x) { return matmul(x[0], x[0], false, true); });
  put("transpose", {{3, 4}}, [](const Inputs& x) { return mul(transpose(x[0]), transpose(x[0])); });
  put("reshape", {{3, 4}}, [](const Inputs& x) {
    return mul(reshape(x[0], {x[0].size()}), reshape(x[0], {x[0].size()}));
  });
  put("slices", {{3, 4}},
      [](const Inputs& x) { return mul(slice(x[0], 1, 0, 2), slice(x[0], 1, 2, 4)); });
  put("concat", {{3, 4}, {3, 2}}, [](const Inputs& x) {
    const Inputs parts{x[0], x[1], x[0]};
    return concat(parts, 1);
  });
  put("embedding", {{6, 4}}, [](const Inputs& x) {
    const std::vector<std::int32_t> ids{1, 3, 1, 0};
    return embedding(x[0], ids, 2);
  });
  put("tied embedding", {{6, 4}}, [](const Inputs& x) {
    const std::vector<std::int32_t> ids{1, 3, 1, 0};
    return affine(embedding(x[0], ids), x[0]);
  });
  put("recurrence", {{4}, {4, 4}}, [](const Inputs& x) {
    Tensor h = x[0];
    for (int t = 0; t < 4; ++t) h = heed::tanh(affine(h, x[1]));
    return h;
  });
  put("highway", {{3, 4}, {4, 4}, {4, 4}}, [](const Inputs& x) {
    const Tensor gate = sigmoid(affine(x[0], x[1]));
    return add(mul(gate, heed::tanh(affine(x[0], x[2]))), mul(sub(Array::scalar(1), gate), x[0]));
  });
  put("dropout and residual", {{3, 4}, {3, 4}}, [](const Inputs& x) {
    return dropout_add(x[0], x[1], real(0.4), {3, Stream::dropout, 1, 2});
  });
}

std::vector<RightLayer> right_layers() {
  std::vector<RightLayer> all;
  add_feed_forward(all);
  add_attention(all);
  add_rows_and_shapes(all);
  return all;
}

}  // namespace

// The number of seeds is 10 or the value of HEED_SEEDS.
BOOST_AUTO_TEST_CASE(correct_layers_pass_with_every_seed) {
  const char* const requested = std::getenv("HEED_SEEDS");
  const std::uint64_t seeds = requested == nullptr ? 10 : std::strtoull(requested, nullptr, 10);
  const std::vector<RightLayer> layers = right_layers();
  BOOST_TEST(layers.size() >= 100u);
  for (const RightLayer& one : layers) {
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      BOOST_TEST_CONTEXT(one.name << ", seed " << seed) BOOST_TEST(one.check(seed));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_function_whose_gradient_vanishes_for_equal_inputs_passes) {
  const auto cosine = [](const Tensor& x, const Tensor& y) {
    return sum(x * y, -1) / sqrt(sum(x * x, -1) * sum(y * y, -1));
  };
  const GradcheckResult result =
      gradcheck(cosine, random_array({3, 4}, 1), random_array({3, 4}, 2));
  BOOST_TEST(static_cast<bool>(result), result);
}

BOOST_AUTO_TEST_CASE(a_correct_gradient_near_many_kinks_passes) {
  // The function is 0.15 x plus kinks with slopes of about 1e-5, at distances of 1e-6 to 3e-3 from
  // x = 0. By chance, two step sizes may yield the same wrong slope.
  Random random({.seed = 5, .stream = Stream::check, .index = 0, .part = 0});
  constexpr std::int64_t kinks = 5;
  for (int trial = 0; trial < 1000; ++trial) {
    Array at({kinks}), slopes({kinks});
    for (std::int64_t k = 0; k < kinks; ++k) {
      const double distance = std::pow(10, -2.5 - 3.5 * random.uniform());
      at.data()[k] = static_cast<real>(random.below(2) == 0 ? distance : -distance);
      slopes.data()[k] = static_cast<real>(1e-5 * random.normal());
    }
    const auto f = [&](const Tensor& x) {
      return add(scale(x, real(0.15)), sum(mul(relu(sub(x, at)), slopes)));
    };
    const GradcheckResult result = gradcheck(f, Array::scalar(0));
    BOOST_TEST(static_cast<bool>(result), "trial " << trial << ": " << result);
  }
}

BOOST_AUTO_TEST_SUITE_END()
