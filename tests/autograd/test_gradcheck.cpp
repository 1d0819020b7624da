// The gradient checker on correct gradients, kinks and difficult functions.
#include "autograd/gradcheck.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <sstream>

#include "autograd/gradcheck/reference.h"
#include "tests/autograd/expect.h"
#include "tests/autograd/planted.h"

using namespace heed;

BOOST_AUTO_TEST_SUITE(gradcheck_suite)

namespace {

const auto square = [](const Tensor& x) { return mul(x, x); };
Array value(const Tensor& x) { return x.value(); }

struct Dense {
  Tensor weight = Tensor::variable(normal({3, 4}, 2));
  Tensor bias = Tensor::variable(normal({3}, 3));
  Tensor operator()(const Tensor& x) const { return gelu(affine(x, weight, bias)); }
  std::vector<NamedTensor> parameters() const { return {{"weight", weight}, {"bias", bias}}; }
};

struct WithForward {
  Dense inner;
  Tensor forward(const Tensor& x) { return inner(x); }
  std::vector<NamedTensor> parameters() { return inner.parameters(); }
};

/// y = 1 where x > 0, else 0; backward passes dy on unchanged, as a straight-through gradient
/// (Bengio, Léonard and Courville 2013).
struct StepFunction {
  static bool straight_through() { return true; }
  Array forward(const Array& x) {
    Array y(x.shape());
    for (std::int64_t i = 0; i < x.size(); ++i) y.data()[i] = x.data()[i] > 0 ? real(1) : real(0);
    return y;
  }
  void backward(const Array& dy, Grad dx) const { dx.add(dy.clone()); }
};

/// An elementwise op with the function f and the derivative df.
template <class F, class DF>
auto elementwise(F f, DF df) {
  return planted(
      [f](const Array& x) { return generate(x.shape(), [&](auto i) { return f(x.data()[i]); }); },
      [df](const Array& x, const Array&, const Array& dy) {
        return generate(x.shape(), [&](auto i) { return dy.data()[i] * df(x.data()[i]); });
      });
}

/// A model with one relu, and thus one kink, for each hidden unit and example.
struct Perceptron {
  Tensor w1 = Tensor::variable(normal({64, 16}, 5)), b1 = Tensor::variable(normal({64}, 6));
  Tensor w2 = Tensor::variable(normal({10, 64}, 7)), b2 = Tensor::variable(normal({10}, 8));
  Array x = normal({50, 16}, 9);
  Tensor loss() const {
    std::vector<std::int32_t> targets;
    for (int i = 0; i < 50; ++i) targets.push_back(i % 10);
    return cross_entropy(affine(relu(affine(x, w1, b1)), w2, b2), targets, real(0.1), 50);
  }
  std::vector<NamedTensor> parameters() const {
    return {{"w1", w1}, {"b1", b1}, {"w2", w2}, {"b2", b2}};
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(correct_gradients_pass) {
  BOOST_TEST(gradcheck(square, normal({2, 3, 4})));
  BOOST_TEST(gradcheck([](const Tensor& a, const Tensor& b) { return matmul(a, b); },
                       normal({3, 4}), normal({4, 2})));
  BOOST_TEST(gradcheck([](const Tensor& x) { return softmax(x); }, normal({3, 5})));
  BOOST_TEST(gradcheck([](const Tensor& x) { return x; }, normal({3})));
  BOOST_TEST(gradcheck({.rel = 1e-5, .names = {"x"}}, square, normal({})));
  const Tensor x = Tensor::variable(normal({2}));
  BOOST_TEST(gradcheck([](const Tensor& a, const Tensor& b) { return add(a, b); }, x, x));
}

BOOST_AUTO_TEST_CASE(the_error_of_a_correct_gradient_is_below_1e_10) {
  const GradcheckResult result = gradcheck([](const Tensor& x) { return tanh(x); }, normal({100}));
  BOOST_REQUIRE(result.passed());
  BOOST_TEST(result.parameters[0].worst_error < 1e-10);
}

BOOST_AUTO_TEST_CASE(a_layer_is_checked_with_all_its_parameters) {
  Dense layer;
  const GradcheckResult result = gradcheck(layer, normal({2, 4}));
  BOOST_TEST(result);
  BOOST_REQUIRE(result.parameters.size() == 3u);
  BOOST_TEST(result.parameters[0].name == "input 0");
  BOOST_TEST(result.parameters[1].name == "weight");
  BOOST_TEST(result.parameters[1].checked == 12);
  BOOST_TEST(result.parameters[2].name == "bias");
  BOOST_TEST(gradcheck(WithForward{}, normal({2, 4})).parameters.size() == 3u);
  struct NoInputs {
    Dense inner;
    Tensor operator()() const { return inner(normal({2, 4})); }
    std::vector<NamedTensor> parameters() const { return inner.parameters(); }
  };
  BOOST_TEST(gradcheck(NoInputs{}));
}

BOOST_AUTO_TEST_CASE(correct_gradients_of_a_parameter_used_twice_pass) {
  const Tensor w = Tensor::variable(normal({3, 3}));
  const std::vector<NamedTensor> parameters{{"tied", w}};
  BOOST_TEST(gradcheck_parameters(
      [&] {
        return matmul(tanh(matmul(normal({2, 3}), w)), w);
      },
      parameters));
}

BOOST_AUTO_TEST_CASE(gradcheck_restores_parameters_bitwise_even_after_an_error) {
  const Tensor w = Tensor::variable(normal({5}));
  const Array before = w.value().clone();
  const std::vector<NamedTensor> parameters{{"w", w}};
  BOOST_TEST(gradcheck_parameters([&] { return square(w); }, parameters));
  BOOST_TEST(same(w.value(), before));
  BOOST_TEST(gradcheck_parameters([&] { return square(w); }, parameters, {.directions = 3}));
  BOOST_TEST(same(w.value(), before));
  int calls = 0;
  const auto throws_later = [&] {
    if (++calls == 6) fail("[f] enough");
    return square(w);
  };
  EXPECT_FAIL(gradcheck_parameters(throws_later, parameters), "enough");
  BOOST_TEST(calls == 6);
  BOOST_TEST(same(w.value(), before));
}

BOOST_AUTO_TEST_CASE(gradcheck_leaves_the_callers_tensors_unchanged) {
  const Array x = normal({3});
  const Array before = x.clone();
  const Tensor variable = Tensor::variable(x);
  bool untouched = true;
  const auto f = [&](const Tensor& a) {
    untouched = untouched && same(variable.value(), before);
    return square(a);
  };
  BOOST_TEST(gradcheck(f, variable));
  BOOST_TEST(untouched);
}

BOOST_AUTO_TEST_CASE(a_check_without_values_fails) {
  EXPECT_WRONG(gradcheck(square, Array(Shape{0, 3})), "nothing was checked");
  EXPECT_WRONG(gradcheck([] { return Tensor(normal({2})); }), "nothing was checked");
  BOOST_TEST(
      gradcheck([](const Tensor& a, const Tensor&) { return square(a); }, normal({2}), Tensor()));
}

BOOST_AUTO_TEST_CASE(correct_gradients_of_strongly_curved_functions_pass) {
  const auto inverse = [](const Tensor& x) { return div(Tensor(Array::scalar(1)), x); };
  BOOST_TEST(gradcheck(inverse, array_of({5}, {1e-3, 1e-2, -1e-2, 1, 1000})));
  BOOST_TEST(
      gradcheck([](const Tensor& x) { return log(x); }, array_of({4}, {1e-5, 1e-3, 0.1, 1e6})));
  BOOST_TEST(gradcheck([](const Tensor& x) { return sqrt(x); }, array_of({3}, {1e-4, 0.1, 1e8})));
  BOOST_TEST(gradcheck([](const Tensor& x) { return exp(x); }, array_of({3}, {-20, 0, 12})));
  BOOST_TEST(gradcheck(elementwise([](real x) { return std::sin(500 * x); },
                                   [](real x) { return 500 * std::cos(500 * x); }),
                       array_of({3}, {0, 0.3, -2})));
}

BOOST_AUTO_TEST_CASE(correct_small_gradients_of_large_values_pass) {
  const auto f = elementwise([](real x) { return 1e6 + 0.01 * x; }, [](real) { return 0.01; });
  BOOST_TEST(gradcheck({.abs = 1e-12}, f, normal({4})));
}

BOOST_AUTO_TEST_CASE(kinks_are_reported_and_pass_with_a_subgradient) {
  const auto rectify = [](const Tensor& x) { return relu(x); };
  const GradcheckResult result = gradcheck(rectify, array_of({2, 2}, {1, 0, -1, 2}));
  BOOST_TEST(result);
  const ParameterCheck& x = result.parameters[0];
  BOOST_TEST((x.status == GradcheckStatus::kink));
  BOOST_TEST(x.kinks == 1);
  BOOST_TEST(x.kinked.at(0).index == 1);
  BOOST_TEST(says(result.report(), "kink at [0, 1]"));

  const auto absolute =
      elementwise([](real v) { return std::abs(v); }, [](real v) { return v < 0 ? -1 : 1; });
  BOOST_TEST(gradcheck(absolute, array_of({2}, {0, 1})).parameters[0].kinks == 1);
  // The slope falls from 1 to −1; a correct gradient lies between these values.
  const auto falling = elementwise([](real v) { return -std::abs(v); },
                                   [](real v) { return v < 0 ? real(1) : real(-0.5); });
  const GradcheckResult fallen = gradcheck(falling, array_of({2}, {0, -1}));
  BOOST_TEST(fallen);
  BOOST_TEST(fallen.parameters[0].kinks == 1);
  // The function is curved on both sides of the kink, so the numeric slopes converge slowly.
  const auto bent = elementwise([](real v) { return v > 0 ? std::sin(3 * v) : std::expm1(v); },
                                [](real v) { return v > 0 ? 3 * std::cos(3 * v) : std::exp(v); });
  BOOST_TEST(gradcheck(bent, array_of({2}, {0, 1})).parameters[0].kinks == 1);
}

BOOST_AUTO_TEST_CASE(a_kink_near_x_passes_only_with_the_correct_slope) {
  const auto rectify = [](const Tensor& x) { return relu(x); };
  for (const double x : {1e-3, 1e-4, 1e-5, 1e-6, 1e-7}) {
    const GradcheckResult result = gradcheck(rectify, array_of({2}, {x, -x}));
    BOOST_TEST(result);
    BOOST_TEST(result.parameters[0].kinks == 0);
    const auto swapped =
        elementwise([](real v) { return std::max(v, real(0)); }, [](real v) { return v < 0; });
    BOOST_TEST(!gradcheck(swapped, array_of({2}, {x, -x})).passed());
  }
}

BOOST_AUTO_TEST_CASE(a_correct_gradient_very_near_a_kink_passes) {
  const auto rectify = [](const Tensor& x) { return relu(x); };
  for (const double x : {1e-8, 1e-9, 1e-10, 1e-12}) {
    for (const double sign : {1.0, -1.0})
      BOOST_TEST(gradcheck(rectify, array_of({2}, {sign * x, 1})));
  }
}

BOOST_AUTO_TEST_CASE(a_slight_kink_in_a_sum_passes_and_hides_no_wrong_gradient) {
  // One of many units changes its slope within the step, as in a large network.
  const auto f = elementwise(
      [](real v) { return 5 + std::sin(v) + real(1e-5) * std::max(v - real(1 + 1e-7), real(0)); },
      [](real v) { return std::cos(v) + real(1e-5) * static_cast<real>(v > 1 + 1e-7); });
  BOOST_TEST(gradcheck(f, array_of({2}, {1, 2})));
  const auto off = elementwise(
      [](real v) { return 5 + std::sin(v) + real(1e-5) * std::max(v - real(1 + 1e-7), real(0)); },
      [](real v) { return std::cos(v) + real(3e-5) * static_cast<real>(v < 1.5); });
  BOOST_TEST(!gradcheck(off, array_of({2}, {1, 2})).passed());
}

BOOST_AUTO_TEST_CASE(a_value_that_is_no_subgradient_fails_at_a_kink) {
  const auto steep = elementwise([](real v) { return std::max(v, real(0)); },
                                 [](real v) { return v < 0   ? 0
                                                     : v > 0 ? 1
                                                             : 2; });
  const GradcheckResult result = gradcheck(steep, array_of({3}, {0, 1, -1}));
  BOOST_TEST(!result.passed());
  BOOST_TEST(result.parameters[0].wrong == 1);
  BOOST_TEST(says(result.report(), "a kink: slope"));
}

BOOST_AUTO_TEST_CASE(a_check_with_every_entry_at_a_kink_fails) {
  EXPECT_WRONG(gradcheck([](const Tensor& x) { return relu(x); }, Array::zeros({3})),
               "all checked entries or directions are at kinks");
  const auto absolute = elementwise([](real v) { return std::abs(v); },
                                    [](real v) { return v < 0   ? -1
                                                        : v > 0 ? 1
                                                                : 0; });
  EXPECT_WRONG(gradcheck(absolute, Array::zeros({3})),
               "all checked entries or directions are at kinks");
  for (const GradcheckOptions& options : {GradcheckOptions{.max_entries = 2}, {.directions = 2}})
    EXPECT_WRONG(gradcheck(
                     options, [](const Tensor& x) { return relu(x); }, Array::zeros({3})),
                 "all checked entries or directions are at kinks");
}

BOOST_AUTO_TEST_CASE(directional_checks_of_a_model_need_fewer_than_300_calls) {
  const Perceptron model;
  int calls = 0;
  const auto loss = [&] {
    ++calls;
    return model.loss();
  };
  const GradcheckResult result = gradcheck_parameters(loss, model.parameters(), {.directions = 2});
  BOOST_TEST(result);
  BOOST_TEST(result.parameters.size() == 4u);
  BOOST_TEST(result.parameters[0].directional);
  BOOST_TEST(result.parameters[0].checked == 2);
  BOOST_TEST(calls < 300);
}

BOOST_AUTO_TEST_CASE(directions_of_a_check_differ) {
  // The gradient is wrong in two entries, so the slopes along different directions differ.
  const auto skewed = planted([](const Array& x) { return x; },
                              [](const Array&, const Array&, const Array& dy) {
                                Array dx = dy.clone();
                                dx.values()[0] += 1, dx.values()[1] -= 1;
                                return dx;
                              });
  const GradcheckResult result = gradcheck({.directions = 4}, skewed, normal({6}));
  const std::vector<GradcheckEntry>& worst = result.parameters[0].worst;
  BOOST_REQUIRE(worst.size() >= 2u);
  for (std::size_t i = 1; i < worst.size(); ++i)
    BOOST_TEST(std::abs(worst[i].analytic - worst[0].analytic) > 1e-6);
}

BOOST_AUTO_TEST_CASE(directional_checks_find_the_wrong_parameter) {
  Perceptron model;
  const auto third =
      planted([](const Array& x) { return x; },
              [](const Array&, const Array&, const Array& dy) {
                return generate(dy.shape(), [&](auto i) { return 3 * dy.data()[i]; });
              });
  const Tensor w2 = model.w2;
  const auto loss = [&] {
    Perceptron other = model;
    other.w2 = third(w2);
    return other.loss();
  };
  const GradcheckResult result = gradcheck_parameters(loss, model.parameters(), {.directions = 1});
  EXPECT_WRONG(result,
               "w2 [10, 64]: WRONG, 1 of 1 directions\n    likely cause: missing or wrong factor: "
               "analytic / numeric = 3");
  BOOST_TEST((result.parameters[0].status == GradcheckStatus::ok));
  BOOST_TEST((result.parameters[2].status == GradcheckStatus::wrong));
}

BOOST_AUTO_TEST_CASE(max_entries_limits_the_number_of_checked_entries) {
  const GradcheckResult result = gradcheck({.max_entries = 7}, square, normal({10, 10}));
  BOOST_TEST(result);
  BOOST_TEST(result.parameters[0].checked == 7);
  BOOST_TEST(says(result.report(), "7 of 100 entries"));
}

BOOST_AUTO_TEST_CASE(the_seed_selects_the_checked_entries) {
  const auto wrong_at_3 = planted([](const Array& x) { return x; },
                                  [](const Array&, const Array&, const Array& dy) {
                                    Array dx = dy.clone();
                                    dx.values()[3] += 1;
                                    return dx;
                                  });
  const Tensor x = Tensor::variable(normal({10}));
  int found = 0;  // half of the entries are checked, so about half of the checks find the wrong one
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const GradcheckResult result = gradcheck_parameters([&] { return wrong_at_3(x); }, {{"x", x}},
                                                        {.seed = seed, .max_entries = 5});
    BOOST_TEST(result.parameters[0].checked == 5);
    found += result.parameters[0].wrong > 0;
  }
  BOOST_TEST((found >= 10 && found <= 30));
}

BOOST_AUTO_TEST_CASE(on_parameter_receives_each_result_and_stop_at_first_ends_the_check) {
  std::vector<std::string> reported;
  GradcheckOptions options;
  options.names = {"a", "b"};
  options.on_parameter = [&](const ParameterCheck& c) { reported.push_back(c.name); };
  const auto wrong = [](const Tensor& a, const Tensor& b) { return mul(a.value(), b); };
  BOOST_TEST(!gradcheck(options, wrong, normal({2}), normal({2})).passed());
  BOOST_TEST(reported.size() == 2u);
  reported.clear();
  options.stop_at_first = true;
  BOOST_TEST(!gradcheck(options, wrong, normal({2}), normal({2})).passed());
  BOOST_TEST(reported.size() == 1u);
}

BOOST_AUTO_TEST_CASE(infinite_outputs_fail_unless_they_are_ignored) {
  const Array mask = array_of({3}, {0, -INFINITY, 0});
  const auto f = [&](const Tensor& x) { return log_softmax(x, mask); };
  EXPECT_WRONG(gradcheck(f, normal({2, 3})), "f's result is -inf at [0, 1]");
  BOOST_TEST(gradcheck({.ignore_infinite_outputs = true}, f, normal({2, 3})));
}

BOOST_AUTO_TEST_CASE(boost_test_prints_the_report_of_gradcheck) {
  const auto zero =
      planted([](const Array& x) { return x; },
              [](const Array&, const Array&, const Array& dy) { return Array::zeros(dy.shape()); });
  // The value that BOOST_TEST(gradcheck(zero, ...)) evaluates, with the message that it prints.
  const auto verdict =
      (boost::test_tools::assertion::seed()->*gradcheck({.names = {"w"}}, zero, normal({2})))
          .evaluate();
  BOOST_TEST(!verdict);
  std::ostringstream message;
  message << verdict.message();
  BOOST_TEST(says(message.str(),
                  "gradcheck failed: 1 of 1 tensors wrong\n  w [2]: WRONG, 2 of 2 entries\n"
                  "    likely cause: zero gradient"),
             message.str());
}

BOOST_AUTO_TEST_CASE(a_straight_through_gradient_is_reported_and_not_compared) {
  const auto f = [](const Tensor& x, const Tensor& w) { return apply(StepFunction{}, x * x) * w; };
  const GradcheckResult both = gradcheck({.names = {"x", "w"}}, f, normal({3}), normal({3}));
  BOOST_TEST(both);
  BOOST_TEST(says(both.report(),
                  "  x [3]: not compared, because StepFunction has a straight-through gradient\n"
                  "  w [3]: ok, 3 entries"),
             both.report());
  const auto broken =
      planted([](const Array& x) { return x; },
              [](const Array&, const Array&, const Array& dy) { return Array::zeros(dy.shape()); });
  const auto wrong = [&](const Tensor& x, const Tensor& w) { return f(x, broken(w)); };
  EXPECT_WRONG(gradcheck(wrong, normal({3}), normal({3})), "likely cause: zero gradient");
}

BOOST_AUTO_TEST_CASE(checker_finds_the_wrong_entry_that_its_definition_finds) {
  for (const std::int64_t wrong : {-1, 0, 7, 11}) {
    const auto op = planted(
        [](const Array& x) {
          return generate(x.shape(), [&](auto i) { return std::tanh(x.data()[i]); });
        },
        [wrong](const Array&, const Array& y, const Array& dy) {
          return generate(y.shape(), [&](auto i) {
            return dy.data()[i] * (1 - y.data()[i] * y.data()[i]) * (i == wrong ? 1.001 : 1);
          });
        });
    const Tensor x = Tensor::variable(normal({3, 4}, 4)), w = Tensor::variable(normal({3, 4}, 5));
    const Array before = x.value().clone();
    const std::vector<NamedTensor> parameters{{"x", x}, {"w", w}};
    const auto f = [&] { return op(x) * w; };
    const auto defined = reference::check_gradients(f, parameters);
    const GradcheckResult result = gradcheck_parameters(f, parameters);
    BOOST_REQUIRE(defined.size() == 2u);
    BOOST_TEST(defined[1].name == "w");
    BOOST_TEST(defined[1].error <= 1);
    BOOST_TEST(passes(result.parameters[1].status));
    BOOST_TEST((defined[0].error <= 1) == (wrong < 0));
    BOOST_TEST(passes(result.parameters[0].status) == (wrong < 0));
    BOOST_TEST(same_bits(x.value(), before));
    if (wrong < 0) continue;
    BOOST_TEST(defined[0].entry == wrong);
    BOOST_TEST(result.parameters[0].worst[0].index == wrong);
    BOOST_TEST(std::abs(defined[0].analytic / defined[0].numeric - 1.001) < 1e-5);
  }
}

BOOST_AUTO_TEST_CASE(definition_passes_a_model_with_kinks) {
  const Perceptron model;
  for (const auto& c : reference::check_gradients([&] { return model.loss(); },
                                                  {{"b1", model.b1}, {"b2", model.b2}}))
    BOOST_TEST(c.error <= 1,
               c.name << " at " << c.entry << ": " << c.analytic << " and " << c.numeric);
}

BOOST_AUTO_TEST_CASE(functions_of_some_shapes_only_pass) {
  const std::vector<std::int32_t> targets{2, 0, 1};
  BOOST_TEST(gradcheck([&](const Tensor& x) { return cross_entropy(x, targets, real(0.1), 3); },
                       normal({3, 4})));
  const auto pairs = [](const Tensor& x) {
    if (x.shape()[0] % 2 != 0) fail("[pairs] expected an even number of rows");
    return mul(reshape(x, {x.shape()[0] / 2, 2 * x.shape().cols()}), Array::scalar(3));
  };
  BOOST_TEST(gradcheck(pairs, normal({4, 3})));
  // A norm over the rows: each row depends on all others.
  BOOST_TEST(gradcheck([](const Tensor& x) { return div(x, sqrt(sum(mul(x, x), 0, true))); },
                       normal({1, 3})));
  // The logarithm of other values or of 0 is not finite.
  BOOST_TEST(gradcheck([](const Tensor& x) { return log(sub(x, Array::scalar(0.99))); },
                       Array::full({2}, 1)));
  // Tensors are accepted by accident: their rows count as those of a matrix.
  const auto rows = planted([](const Array& x) { return value(scale(x, 2)); },
                            [](const Array& x, const Array&, const Array& dy) {
                              return value(scale(dy, 2)).reshaped({x.rows(), x.cols()});
                            });
  BOOST_TEST(gradcheck(rows, normal({3, 4})));
}

BOOST_AUTO_TEST_CASE(values_that_each_call_keeps_for_itself_pass) {
  struct Cell {
    std::shared_ptr<Array> x;
    Array forward(const Array& input) {
      x = std::make_shared<Array>(input);
      return value(mul(input, input));
    }
    void backward(const Array& dy, Grad dx) const { dx.add(value(scale(mul(*x, dy), 2))); }
  };
  BOOST_TEST(
      gradcheck([](const Tensor& x) { return apply(Cell{}, apply(Cell{}, x)); }, normal({2, 3})));
}

BOOST_AUTO_TEST_CASE(invalid_tolerances_are_refused) {
  EXPECT_FAIL(gradcheck({.rel = 0}, square, normal({2})), "[gradcheck] expected rel > 0");
  EXPECT_FAIL(gradcheck({.abs = NAN}, square, normal({2})), "abs >= 0");
}

BOOST_AUTO_TEST_CASE(the_step_option_determines_how_far_entries_move) {
  const Tensor w = Tensor::variable(array_of({2}, {1, -10}));
  const Array start = w.value().clone();
  Array moved = Array::zeros({2});
  bool comparing = true;  // later stages also change the values
  const auto f = [&] {
    for (std::int64_t i = 0; comparing && i < 2; ++i)
      moved.data()[i] = std::max(moved.data()[i], std::abs(w.value().data()[i] - start.data()[i]));
    return scale(w, 3);
  };
  GradcheckOptions options;
  options.step = 0.3;
  options.on_parameter = [&](const ParameterCheck&) { comparing = false; };
  BOOST_TEST(gradcheck_parameters(f, {{"w", w}}, options));
  // The steps 0.3 and 0.3 · 10 are rounded down to powers of two; the outer points of the stencil
  // are two steps away.
  BOOST_TEST(moved.data()[0] == 0.5);
  BOOST_TEST(moved.data()[1] == 4);
}

BOOST_AUTO_TEST_CASE(the_largest_errors_are_reported_first) {
  const auto growing = planted([](const Array& x) { return x; },
                               [](const Array&, const Array&, const Array& dy) {
                                 return generate(dy.shape(), [&](auto i) {
                                   return dy.data()[i] * (1 + 0.01 * static_cast<double>(i));
                                 });
                               });
  const GradcheckResult result = gradcheck(growing, normal({8}));
  const std::vector<GradcheckEntry>& worst = result.parameters[0].worst;
  BOOST_REQUIRE(worst.size() == 5u);  // of seven wrong entries
  for (std::size_t k = 0; k < 5; ++k) BOOST_TEST(worst[k].index == 7 - static_cast<int>(k));
  EXPECT_WRONG(result, "7 of 8 entries");
  EXPECT_WRONG(result, "worst at [7]: analytic");
  EXPECT_WRONG(result, "also [6]: analytic");
}

BOOST_AUTO_TEST_CASE(the_number_of_kinks_is_reported_if_not_all_are_listed) {
  const auto rectify = [](const Tensor& x) { return relu(x); };
  const GradcheckResult many = gradcheck(rectify, array_of({8}, {0, 0, 0, 0, 0, 0, 0, 1}));
  BOOST_TEST(many);
  BOOST_TEST(many.parameters[0].kinks == 7);
  BOOST_TEST(many.parameters[0].kinked.size() == 5u);
  BOOST_TEST(says(many.report(), "… 7 kinks in all"), many);
  const GradcheckResult few = gradcheck(rectify, array_of({3}, {0, 0, 1}));
  BOOST_TEST(!says(few.report(), "in all"), few);
}

BOOST_AUTO_TEST_CASE(a_dependence_on_other_variables_passes_if_it_is_allowed) {
  const Tensor hidden = Tensor::variable(normal({3}, 2));
  const auto f = [&](const Tensor& x) { return mul(x, hidden); };
  BOOST_TEST(!gradcheck(f, normal({3})).passed());
  BOOST_TEST(gradcheck({.allow_unlisted = true}, f, normal({3})));
}

BOOST_AUTO_TEST_CASE(the_report_states_the_tolerances_and_the_seed) {
  const GradcheckResult result =
      gradcheck({.rel = 1e-5, .abs = 1e-7, .seed = 9}, square, normal({3}));
  BOOST_TEST(says(result.report(),
                  "allowed: |analytic - numeric| <= 1e-07 + 1e-05 max(|analytic|, |numeric|); "
                  "seed 9"),
             result);
}

BOOST_AUTO_TEST_SUITE_END()
