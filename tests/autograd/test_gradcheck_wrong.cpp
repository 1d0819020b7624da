// A wrong gradient must fail, and the report must name the mistake.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "autograd/gradcheck.h"
#include "autograd/ops.h"
#include "tests/autograd/expect.h"
#include "tests/autograd/planted.h"

using namespace heed;

BOOST_AUTO_TEST_SUITE(gradcheck_wrong_suite)

namespace {

using Backward = Planted::Backward;

Array value(const Tensor& x) { return x.value(); }

/// x² with the backward df in place of the correct one, 2 x dy.
auto square_with(const Backward& df) {
  return planted([](const Array& x) { return value(mul(x, x)); }, df);
}
Array right(const Array& x, const Array& dy) { return value(scale(mul(x, dy), 2)); }

/// x² with a permuted gradient: entry i of dx is entry place(i) of the correct gradient.
template <class Place>
auto square_rearranged(Place place) {
  return square_with([place](const Array& x, const Array&, const Array& dy) {
    const Array dx = right(x, dy);
    return generate(x.shape(), [&](std::int64_t i) { return dx.data()[place(i)]; });
  });
}

/// a [n, 3] + b [3], where db(dy) is the gradient with respect to b.
struct AddRows {
  std::function<Array(const Array& dy)> db;
  Array forward(const Array& a, const Array& b) { return value(add(a, b)); }
  void backward(const Array& dy, Grad da, Grad g) const {
    if (da) da.add(dy);
    if (g) g.add(db(dy));
  }
};
auto add_rows(const std::function<Array(const Array&)>& db) {
  return [db](const Tensor& a, const Tensor& b) { return apply(AddRows{db}, a, b); };
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_wrong_factor_is_named) {
  const auto slightly = square_with([](const Array& x, const Array&, const Array& dy) {
    return value(scale(mul(x, dy), real(2.001)));
  });
  const GradcheckResult result = gradcheck(slightly, normal({3, 4}));
  EXPECT_WRONG(result, "missing or wrong factor: analytic / numeric = 1.0005 throughout");
  EXPECT_WRONG(result, "12 of 12 entries");
  const auto half =
      square_with([](const Array& x, const Array&, const Array& dy) { return value(mul(x, dy)); });
  EXPECT_WRONG(gradcheck(half, normal({3})),
               "only one use of a tensor used twice is counted: add contributions instead of "
               "overwriting them");
  const auto not_divided =
      planted([](const Array& x) { return value(mean(x, 1)); },
              [](const Array& x, const Array&, const Array& dy) {
                return generate(x.shape(), [&](auto i) { return dy.data()[i / 7]; });
              });
  EXPECT_WRONG(gradcheck(not_divided, normal({2, 7})),
               "analytic / numeric = 7 throughout (7, the extent of the tensor's axis 1");
  const auto unscaled =
      planted([](const Array& x) { return value(scale(x, 1 / std::sqrt(real(5)))); },
              [](const Array&, const Array&, const Array& dy) { return dy; });
  EXPECT_WRONG(gradcheck(unscaled, normal({2, 5})),
               "sqrt(5), the square root of the extent of the tensor's axis 1");
  const auto dropped = planted([](const Array& x) { return value(scale(x, real(1 / 0.9))); },
                               [](const Array&, const Array&, const Array& dy) { return dy; });
  EXPECT_WRONG(gradcheck(dropped, normal({2, 5})), "dropout with p = 0.1 were missing");
}

BOOST_AUTO_TEST_CASE(a_wrong_factor_of_a_single_value_is_named) {
  const auto twice = square_with(
      [](const Array& x, const Array&, const Array& dy) { return value(scale(mul(x, dy), 4)); });
  EXPECT_WRONG(gradcheck(twice, normal({})), "possibly a factor: analytic / numeric = 2 (2)");
}

BOOST_AUTO_TEST_CASE(a_flipped_sign_is_named) {
  const auto flipped = square_with(
      [](const Array& x, const Array&, const Array& dy) { return value(neg(right(x, dy))); });
  EXPECT_WRONG(gradcheck(flipped, normal({3, 4})),
               "sign: the analytic gradient is -1 times the numeric one");
}

BOOST_AUTO_TEST_CASE(a_zero_gradient_is_named) {
  const auto empty = square_with(
      [](const Array& x, const Array&, const Array&) { return Array::zeros(x.shape()); });
  EXPECT_WRONG(gradcheck(empty, normal({3})), "a backward on the path adds nothing");
  const auto cut_off = [](const Tensor& x, const Tensor& w) { return mul(x, w.value()); };
  EXPECT_WRONG(gradcheck(cut_off, normal({3}), normal({3}, 2)),
               "input 1 [3]: WRONG, 3 of 3 entries");
  EXPECT_WRONG(gradcheck(cut_off, normal({3}), normal({3}, 2)),
               "the tape does not lead from f's result to this tensor");
  EXPECT_WRONG(gradcheck([](const Tensor& x) { return mul(x.value(), x.value()); }, normal({3})),
               "f's result carries no gradient at all");
}

BOOST_AUTO_TEST_CASE(a_nonzero_gradient_of_a_constant_function_is_named) {
  const auto constant = planted([](const Array& x) { return Array::full(x.shape(), 1); },
                                [](const Array&, const Array&, const Array& dy) { return dy; });
  EXPECT_WRONG(gradcheck(constant, normal({3})), "does not change with this tensor");
}

BOOST_AUTO_TEST_CASE(a_softmax_gradient_without_its_second_term_is_named) {
  const auto forgetful =
      planted([](const Array& x) { return value(softmax(x)); },
              [](const Array&, const Array& y, const Array& dy) { return value(mul(y, dy)); });
  EXPECT_WRONG(gradcheck(forgetful, normal({3, 4})),
               "along axis 1, a multiple of the output y, like softmax's -y <dy, y>");
  const auto in_logs = planted([](const Array& x) { return value(log_softmax(x)); },
                               [](const Array&, const Array&, const Array& dy) { return dy; });
  EXPECT_WRONG(gradcheck(in_logs, normal({3, 4})), "like log-softmax's -exp(y) sum(dy)");
}

BOOST_AUTO_TEST_CASE(a_random_cotangent_reveals_an_error_that_a_sum_hides) {
  const auto empty =
      planted([](const Array& x) { return value(softmax(x)); },
              [](const Array& x, const Array&, const Array&) { return Array::zeros(x.shape()); });
  const GradcheckResult under_sum =
      gradcheck([&](const Tensor& x) { return sum(empty(x)); }, normal({1, 4}));
  BOOST_TEST(under_sum);  // the true gradient of the sum is zero
  BOOST_TEST(says(under_sum.report(), "so the check proves little"));
  EXPECT_WRONG(gradcheck(empty, normal({1, 4})), "zero gradient");
}

BOOST_AUTO_TEST_CASE(a_norm_gradient_without_one_term_is_named) {
  const auto centred = planted([](const Array& x) { return value(sub(x, mean(x, -1, true))); },
                               [](const Array&, const Array&, const Array& dy) { return dy; });
  EXPECT_WRONG(gradcheck(centred, normal({3, 5})), "the difference is constant along axis 1");
  const auto by_size = [](const Array& x) { return sqrt(sum(mul(x, x), -1, true)); };
  const auto unit = planted(
      [=](const Array& x) { return value(div(x, by_size(x))); },
      [=](const Array& x, const Array&, const Array& dy) { return value(div(dy, by_size(x))); });
  EXPECT_WRONG(gradcheck(unit, normal({3, 5})),
               "missing term: the difference is, along axis 1, a multiple of");
}

BOOST_AUTO_TEST_CASE(a_transposed_gradient_is_named) {
  EXPECT_WRONG(
      gradcheck(square_rearranged([](auto i) { return i % 4 * 4 + i / 4; }), normal({4, 4})),
      "transposed");
  // A [3, 4] gradient stored in the order of its transpose, [4, 3].
  EXPECT_WRONG(
      gradcheck(square_rearranged([](auto i) { return i % 3 * 4 + i / 3; }), normal({3, 4})),
      "transposed");
  const auto in_batches =
      square_rearranged([](auto i) { return i / 6 * 6 + i % 6 % 2 * 3 + i % 6 / 2; });
  EXPECT_WRONG(gradcheck(in_batches, normal({2, 2, 3})),
               "transposed: axes 1 and 2 of the analytic gradient are swapped");
}

BOOST_AUTO_TEST_CASE(a_gradient_not_summed_over_a_broadcast_is_named) {
  BOOST_TEST(gradcheck(add_rows([](const Array& dy) { return value(sum(dy, 0)); }), normal({4, 3}),
                       normal({3})));
  const auto first = add_rows([](const Array& dy) { return dy.sliced(0, 1).reshaped({3}); });
  EXPECT_WRONG(gradcheck({.names = {"a", "b"}}, first, normal({4, 3}), normal({3})),
               "b [3]: WRONG, 3 of 3 entries\n    likely cause: broadcast not summed: only the "
               "contribution of output index 0 along axis 0");
  const auto overwritten = add_rows([](const Array& dy) { return dy.sliced(3, 4).reshaped({3}); });
  EXPECT_WRONG(gradcheck(overwritten, normal({4, 3}), normal({3})), "add instead of overwriting");
  const auto short_sum = add_rows([](const Array& dy) { return value(sum(dy.sliced(0, 3), 0)); });
  EXPECT_WRONG(gradcheck(short_sum, normal({4, 3}), normal({3})),
               "the contribution of output index 3 along axis 0 (extent 4) is missing");
  const auto averaged = add_rows([](const Array& dy) { return value(mean(dy, 0)); });
  EXPECT_WRONG(gradcheck(averaged, normal({4, 3}), normal({3})), "1/4");
}

/// a ⊙ b, for equal shapes or, with `vector`, for each row of a and a vector b. The gradient of b is
/// correct only if a is a matrix.
struct ProductOfMatrices {
  bool vector = false;
  Array x, y;
  Array forward(const Array& a, const Array& b) {
    if (vector ? b.shape().rank() != 1 : a.shape() != b.shape()) fail("the shapes do not fit");
    x = a;
    y = b;
    return value(mul(a, b));
  }
  void backward(const Array& dy, Grad da, Grad db) const {
    if (da) da.add(value(mul(dy, y)));
    if (!db) return;
    Array sum = Array::zeros(y.shape());
    for (std::int64_t i = 0; i < x.size(); ++i)
      sum.data()[i % y.size()] += (x.shape().rank() == 2 ? 1 : 2) * dy.data()[i] * x.data()[i];
    db.add(sum);
  }
};

BOOST_AUTO_TEST_CASE(gradient_that_is_wrong_only_for_inputs_of_another_rank_is_found) {
  const auto product = [](bool vector) {
    return [vector](const Tensor& a, const Tensor& b) {
      return apply(ProductOfMatrices{vector, {}, {}}, a, b);
    };
  };
  EXPECT_WRONG(gradcheck(product(false), normal({3, 4}), normal({3, 4}, 2)),
               "with inputs of shapes [2, 3, 4], [2, 3, 4]");
  EXPECT_WRONG(gradcheck(product(true), normal({3, 4}), normal({4}, 2)),
               "with inputs of shapes [2, 3, 4], [4]");
}

BOOST_AUTO_TEST_CASE(an_overwritten_gradient_is_named) {
  const auto two_uses = planted(
      [](const Array& x) {
        const std::vector<Tensor> parts{reshape(x, {1, 3}), reshape(exp(x), {1, 3})};
        return value(concat(parts, 0));
      },
      [](const Array&, const Array& y, const Array& dy) {
        return value(mul(dy.sliced(1, 2).reshaped({3}), y.sliced(1, 2).reshaped({3})));
      });
  EXPECT_WRONG(gradcheck(two_uses, normal({3})),
               "only the contribution of output index 1 along axis 0 (extent 2) is present");
}

BOOST_AUTO_TEST_CASE(a_gradient_summed_or_averaged_without_a_broadcast_is_named) {
  const auto summed = square_with([](const Array& x, const Array&, const Array& dy) {
    return value(add(Array::zeros(x.shape()), sum(right(x, dy), 0, true)));
  });
  EXPECT_WRONG(gradcheck(summed, normal({3, 4})), "summed over axis 0");
  const auto averaged = square_with([](const Array& x, const Array&, const Array& dy) {
    return value(add(Array::zeros(x.shape()), mean(right(x, dy), 1, true)));
  });
  EXPECT_WRONG(gradcheck(averaged, normal({3, 4})), "averaged over axis 1");
}

BOOST_AUTO_TEST_CASE(permuted_gradient_values_are_named) {
  const auto shifted = square_rearranged([](auto i) { return i / 5 * 5 + (i % 5 + 4) % 5; });
  EXPECT_WRONG(gradcheck(shifted, normal({2, 5})),
               "shifted: correct values, offset by 1 along axis 1");
  EXPECT_WRONG(gradcheck(square_rearranged([](auto i) { return 9 - i; }), normal({10})),
               "permuted: correct values in the wrong places");
}

BOOST_AUTO_TEST_CASE(wrong_entries_in_part_of_a_gradient_are_located) {
  const auto tail = square_with([](const Array& x, const Array&, const Array& dy) {
    const Array dx = right(x, dy);
    return generate(x.shape(), [&](auto i) { return i % 10 < 8 ? dx.data()[i] : 0; });
  });
  EXPECT_WRONG(gradcheck(tail, normal({2, 10})),
               "at indices 8 to 9 of axis 1, and only there: zero gradient");
  const auto row = square_with([](const Array& x, const Array&, const Array& dy) {
    const Array dx = right(x, dy);
    return generate(x.shape(), [&](auto i) { return i / 4 == 1 ? -dx.data()[i] : dx.data()[i]; });
  });
  EXPECT_WRONG(gradcheck(row, normal({3, 4})), "at index 1 of axis 0, and only there: sign");
}

BOOST_AUTO_TEST_CASE(a_gradient_with_one_wrong_entry_fails) {
  const auto single = square_with([](const Array& x, const Array&, const Array& dy) {
    Array dx = right(x, dy);
    dx.data()[57] *= real(1.00001);
    return dx;
  });
  const GradcheckResult result = gradcheck(single, normal({10, 10}));
  EXPECT_WRONG(result, "1 of 100 entries");
  EXPECT_WRONG(result, "worst at [5, 7]: analytic");
  EXPECT_WRONG(result, "relative error 1e-05");
}

BOOST_AUTO_TEST_CASE(low_precision_is_named) {
  const auto rounded = square_with([](const Array& x, const Array&, const Array& dy) {
    const Array dx = right(x, dy);
    return generate(x.shape(), [&](auto i) {
      return std::ldexp(std::rint(std::ldexp(dx.data()[i], 12)), -12);
    });
  });
  EXPECT_WRONG(gradcheck(rounded, normal({20})), "precision: correct to about 5 digits");
  const auto in_float = planted(
      [](const Array& x) {
        return generate(x.shape(), [&](auto i) {
          return static_cast<double>(std::exp(static_cast<float>(x.data()[i])));
        });
      },
      [](const Array&, const Array& y, const Array& dy) { return value(mul(y, dy)); });
  EXPECT_WRONG(gradcheck(in_float, normal({20})), "as if part of it were computed in float32");
  const auto partly_in_float = planted(
      [](const Array& x) {
        return generate(x.shape(), [&](auto i) {
          return x.data()[i] + static_cast<double>(std::exp(static_cast<float>(x.data()[i])));
        });
      },
      [](const Array& x, const Array&, const Array& dy) {
        return value(mul(dy, add(Array::scalar(1), exp(x))));
      });
  EXPECT_WRONG(gradcheck(partly_in_float, normal({20})),
               "as if part of it were computed in float32");
}

BOOST_AUTO_TEST_CASE(a_jump_at_x_is_named) {
  const auto step = planted(
      [](const Array& x) { return generate(x.shape(), [&](auto i) { return x.data()[i] >= 0; }); },
      [](const Array& x, const Array&, const Array&) { return Array::zeros(x.shape()); });
  EXPECT_WRONG(gradcheck(step, array_of({2}, {0, 1})), "noisy or discontinuous at this point");
  BOOST_TEST(gradcheck(step, array_of({2}, {-1e-4, 1})));
}

BOOST_AUTO_TEST_CASE(nan_in_values_or_gradients_never_passes) {
  constexpr real nan = std::numeric_limits<real>::quiet_NaN();
  const auto in_backward = square_with([](const Array& x, const Array&, const Array& dy) {
    Array dx = right(x, dy);
    dx.data()[1] = nan;
    return dx;
  });
  EXPECT_WRONG(gradcheck(in_backward, normal({3})), "NaN or infinity in 1 of 3 analytic values");
  EXPECT_WRONG(gradcheck({.directions = 1}, in_backward, normal({3})),
               "NaN or infinity in 1 of 3 analytic values");
  EXPECT_WRONG(gradcheck([](const Tensor& x) { return log(x); }, array_of({2}, {1, -1})),
               "f's result is nan at [1]");
  EXPECT_WRONG(gradcheck(
                   {.ignore_infinite_outputs = true}, [](const Tensor& x) { return log(x); },
                   array_of({2}, {1, -1})),
               "nan at [1]");
  EXPECT_WRONG(gradcheck([](const Tensor& x) { return sum(x); }, array_of({2, 1}, {1, nan})),
               "its value at [1, 0] is nan");
  const auto only_here = planted(
      [](const Array& x) {
        return generate(x.shape(), [&](auto i) { return x.data()[i] == 1 ? real(1) : nan; });
      },
      [](const Array&, const Array&, const Array& dy) { return dy; });
  EXPECT_WRONG(gradcheck(only_here, Array::full({2}, 1)), "f is not finite near this point");
}

BOOST_AUTO_TEST_CASE(a_function_with_varying_results_fails) {
  int calls = 0;
  const auto counts = [&](const Tensor& x) { return scale(x, static_cast<real>(++calls)); };
  EXPECT_WRONG(gradcheck(counts, normal({3})), "f is not deterministic");
  std::uint64_t step = 0;
  const auto drops = [&](const Tensor& x) {
    return dropout(x, real(0.5), {1, Stream::dropout, step++, 0});
  };
  EXPECT_WRONG(gradcheck(drops, normal({50})), "dropout without a fixed key?");
  const auto knows_the_tape = [](const Tensor& x) { return scale(x, recording() ? 1 : 2); };
  EXPECT_WRONG(gradcheck(knows_the_tape, normal({3})), "a different result under NoGrad");
  EXPECT_WRONG(gradcheck([](const Tensor&) { return Tensor(); }, normal({3})), "undefined tensor");
}

BOOST_AUTO_TEST_CASE(a_function_that_changes_its_inputs_fails) {
  const auto overwrites = [](const Tensor& x) {
    Tensor copy = x;
    copy.mutable_value().data()[0] = 5;
    return mul(x, x);
  };
  EXPECT_WRONG(gradcheck({.names = {"x"}}, overwrites, normal({3})), "f changes the values of x");
  const auto in_backward = square_with([](const Array& x, const Array&, const Array& dy) {
    Array dx = right(x, dy);
    Array shared = x;
    shared.data()[0] = 5;
    return dx;
  });
  EXPECT_WRONG(gradcheck({.names = {"x"}}, in_backward, normal({3})),
               "backward changes the values of x");
}

BOOST_AUTO_TEST_CASE(the_wrong_parameter_of_a_layer_is_named) {
  struct Layer {
    Tensor weight = Tensor::variable(normal({3, 4})), bias = Tensor::variable(normal({3}));
    Tensor operator()(const Tensor& x) const {
      const auto first = add_rows([](const Array& dy) { return dy.sliced(0, 1).reshaped({3}); });
      return first(affine(x, weight), bias);
    }
    std::vector<NamedTensor> parameters() const { return {{"weight", weight}, {"bias", bias}}; }
  };
  const GradcheckResult result = gradcheck(Layer(), normal({2, 4}));
  EXPECT_WRONG(result, "gradcheck failed: 1 of 3 tensors wrong\n  bias [3]: WRONG");
  EXPECT_WRONG(result, "weight [3, 4]: ok, 12 entries");
}

namespace {

/// With `knows_square`, y = x² + sin x, where sin x is rounded to float32, and backward omits the
/// sine. Otherwise y = x², rounded to float32, and backward adds nothing.
struct PartlyRounded {
  bool knows_square = true;
  Array x;
  Array forward(const Array& x_in) {
    x = x_in;
    Array y(x.shape());
    for (std::int64_t i = 0; i < x.size(); ++i) {
      const double v = x.data()[i];
      y.data()[i] = static_cast<real>(knows_square ? v * v + static_cast<float>(std::sin(v))
                                                   : static_cast<float>(v * v));
    }
    return y;
  }
  void backward(const Array& dy, Grad dx) const {
    if (knows_square) dx.add(mul(scale(x, 2), dy).value());
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_missing_gradient_of_a_rounded_part_fails) {
  for (const bool knows_square : {true, false}) {
    const auto f = [&](const Tensor& x) { return apply(PartlyRounded{knows_square, {}}, x); };
    BOOST_TEST(!static_cast<bool>(gradcheck(f, normal({3, 4}))));
  }
}

BOOST_AUTO_TEST_CASE(the_wrong_op_of_a_graph_is_named_with_its_parameter) {
  const auto first = add_rows([](const Array& dy) { return dy.sliced(0, 1).reshaped({3}); });
  const Tensor w = Tensor::variable(normal({2, 3}, 1)), b = Tensor::variable(normal({3}, 2));
  const auto f = [&] { return mul(softmax(first(normal({2, 3}, 3), b)), w); };
  const GradcheckResult result = gradcheck_parameters(f, {{"w", w}, {"b", b}});
  EXPECT_WRONG(result,
               "wrong op: the backward of AddRows: the gradient of b is wrong: broadcast not "
               "summed: only the contribution of output index 0 along axis 0 (extent 2)");
  BOOST_TEST((result.parameters[0].status == GradcheckStatus::ok));
}

BOOST_AUTO_TEST_CASE(a_use_by_value_within_the_same_op_is_not_blamed_on_the_op) {
  const GradcheckResult result =
      gradcheck([](const Tensor& x) { return tanh(mul(x, x.value())); }, normal({3}));
  EXPECT_WRONG(result, "only one use of a tensor used twice is counted");
  BOOST_TEST(result.wrong_op.empty(), result.wrong_op);
}

BOOST_AUTO_TEST_CASE(no_op_is_blamed_if_f_calls_other_ops_without_a_tape) {
  const auto f = [](const Tensor& x) {
    const Tensor y = recording() ? tanh(exp(x)) : tanh(sub(exp(x), Array::scalar(0)));
    return mul(y, x.value());
  };
  const GradcheckResult result = gradcheck(f, normal({3}));
  BOOST_TEST(!result.passed());
  BOOST_TEST(result.wrong_op.empty(), result.wrong_op);
  BOOST_TEST(!says(result.report(), "the backward of each op alone is right"), result);
}

BOOST_AUTO_TEST_CASE(an_omitted_variable_is_named_once) {
  const Tensor hidden = Tensor::variable(normal({3}, 2));
  const auto uses_it_twice = [&](const Tensor& x) { return mul(mul(x, hidden), hidden); };
  EXPECT_WRONG(gradcheck(uses_it_twice, normal({3})),
               "f depends on 1 variable that is not among those checked: input 1 of Mul, of shape "
               "[3]. Does parameters() omit any?");
}

BOOST_AUTO_TEST_CASE(parameters_that_are_not_variables_fail) {
  const Tensor constant(normal({2})), variable = Tensor::variable(normal({2}));
  const auto f = [&] { return mul(constant, variable); };
  const std::vector<NamedTensor> frozen{{"frozen", constant}, {"w", variable}};
  EXPECT_WRONG(gradcheck_parameters(f, frozen),
               "frozen [2]: WRONG\n    likely cause: it is a constant");
  const std::vector<NamedTensor> derived{{"derived", mul(variable, variable)}};
  EXPECT_WRONG(gradcheck_parameters(f, derived), "it is the result of an op");
}

BOOST_AUTO_TEST_CASE(factors_of_dropout_and_size_are_named) {
  const auto minus_twice = square_with(
      [](const Array& x, const Array&, const Array& dy) { return value(scale(right(x, dy), -2)); });
  EXPECT_WRONG(gradcheck(minus_twice, normal({3, 5})), "analytic / numeric = -2 throughout (-2)");
  const auto scaled_twice = planted(
      [](const Array& x) { return value(scale(x, real(1 / 0.9))); },
      [](const Array&, const Array&, const Array& dy) { return value(scale(dy, real(1 / 0.81))); });
  EXPECT_WRONG(gradcheck(scaled_twice, normal({2, 5})),
               "(1/(1 - 0.1), as if a dropout with p = 0.1 scaled twice)");
  const auto not_divided = planted([](const Array& x) { return value(mean(x)); },
                                   [](const Array& x, const Array&, const Array& dy) {
                                     return Array::full(x.shape(), dy.item());
                                   });
  EXPECT_WRONG(gradcheck(not_divided, normal({3, 4})),
               "analytic / numeric = 12 throughout (12, the number of the tensor's values)");
}

BOOST_AUTO_TEST_CASE(a_missing_or_extra_elementwise_factor_is_named) {
  const auto without_x =
      square_with([](const Array&, const Array&, const Array& dy) { return value(scale(dy, 2)); });
  EXPECT_WRONG(gradcheck(without_x, normal({3, 4})),
               "missing factor: entry by entry, a product with x itself is missing");
  const auto exponential = [](const Backward& df) {
    return planted([](const Array& x) { return value(exp(x)); }, df);
  };
  EXPECT_WRONG(
      gradcheck(exponential([](const Array&, const Array&, const Array& dy) { return dy; }),
                normal({3, 4})),
      "a product with the output y is missing");
  EXPECT_WRONG(gradcheck(exponential([](const Array&, const Array& y, const Array&) { return y; }),
                         normal({3, 4})),
               "a product with the cotangent dy is missing");
  const auto times_x = planted(
      [](const Array& x) { return value(scale(x, 3)); },
      [](const Array& x, const Array&, const Array& dy) { return value(scale(mul(x, dy), 3)); });
  EXPECT_WRONG(gradcheck(times_x, normal({3, 4})),
               "superfluous factor: entry by entry, the gradient is multiplied by x itself");
}

BOOST_AUTO_TEST_CASE(a_missing_term_of_the_product_rule_is_named) {
  const auto only_slope = planted([](const Array& x) { return value(silu(x)); },
                                  [](const Array& x, const Array&, const Array& dy) {
                                    const Tensor s = sigmoid(x);
                                    return value(mul(mul(dy, x), mul(s, sub(Array::scalar(1), s))));
                                  });
  EXPECT_WRONG(
      gradcheck(only_slope, normal({3, 4})),
      "missing term of the product rule: the gradient lacks the term dy y / x, which y = x "
      "g(x) requires");
}

BOOST_AUTO_TEST_CASE(wrong_sums_along_other_axes_are_named) {
  const auto second_column = add_rows([](const Array& dy) { return value(slice(dy, 1, 1, 2)); });
  EXPECT_WRONG(
      gradcheck(second_column, normal({4, 3}), normal({4, 1})),
      "broadcast not summed: only the contribution of output index 1 along axis 1 (extent 3)");
  const auto centred = planted([](const Array& x) { return value(sub(x, mean(x, 0, true))); },
                               [](const Array&, const Array&, const Array& dy) { return dy; });
  EXPECT_WRONG(gradcheck(centred, normal({5, 3})), "the difference is constant along axis 0");
}

BOOST_AUTO_TEST_CASE(at_most_six_indices_of_wrong_entries_are_listed) {
  const auto odd_only = square_with([](const Array& x, const Array&, const Array& dy) {
    const Array dx = right(x, dy);
    return generate(x.shape(), [&](auto i) { return i % 2 == 0 ? 0 : dx.data()[i]; });
  });
  EXPECT_WRONG(gradcheck(odd_only, normal({14})),
               "at indices 0, 2, 4, 6, 8, 10, … of axis 0, and only there: zero gradient");
  EXPECT_WRONG(gradcheck(odd_only, normal({12})),
               "at indices 0, 2, 4, 6, 8, 10 of axis 0, and only there: zero gradient");
}

namespace {

/// x², where backward doubles the earlier contributions to the gradient.
struct DoublesEarlier {
  Array x;
  Array forward(const Array& x_in) {
    x = x_in;
    return value(mul(x, x));
  }
  void backward(const Array& dy, Grad dx) const {
    Array& sum = dx.sum();
    sum = value(add(scale(sum, 2), right(x, dy)));
  }
};

/// a ⊙ b. Backward reads the earlier contributions to both gradients before it writes either.
struct ReadsBothFirst {
  Array x, y;
  Array forward(const Array& a, const Array& b) {
    x = a;
    y = b;
    return value(mul(a, b));
  }
  void backward(const Array& dy, Grad da, Grad db) const {
    const Array by_a = value(mul(dy, y)), by_b = value(mul(dy, x));
    if (!da || !db) {
      da.add(by_a);
      db.add(by_b);
      return;
    }
    const Array a = value(add(da.sum(), by_a)), b = value(add(db.sum(), by_b));
    da.sum() = a;
    db.sum() = b;
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_backward_that_changes_earlier_contributions_fails) {
  EXPECT_WRONG(
      gradcheck([](const Tensor& x) { return apply(DoublesEarlier{}, x); }, normal({3})),
      "the backward of DoublesEarlier does not add its contribution to the gradient of input 0: if "
      "the gradient already contains values, the sum is wrong");
}

BOOST_AUTO_TEST_CASE(a_backward_that_is_wrong_for_equal_inputs_fails) {
  const Tensor a = Tensor::variable(normal({3}, 1)), b = Tensor::variable(normal({3}, 2));
  EXPECT_WRONG(
      gradcheck_parameters([&] { return apply(ReadsBothFirst{}, a, b); }, {{"a", a}, {"b", b}}),
      "the backward of ReadsBothFirst computes a wrong gradient if inputs 0 and 1 are the "
      "same tensor");
}

BOOST_AUTO_TEST_CASE(a_function_that_is_wrong_for_constant_or_equal_inputs_fails) {
  const auto halves = [](const Tensor& x, const Tensor& w) {
    return mul(x, x.needs_grad() ? w : scale(w, real(0.5)));
  };
  EXPECT_WRONG(gradcheck({.names = {"x", "w"}}, halves, normal({3}), normal({3}, 2)),
               "the gradient of w differs if x is a constant");
  const auto once = [](const Tensor& x, const Tensor& y) {
    return x.node().get() == y.node().get() ? mul(x, y.value()) : mul(x, y);
  };
  EXPECT_WRONG(
      gradcheck({.names = {"x", "y"}}, once, normal({3}), normal({3}, 2)),
      "the gradient is not the sum of both inputs' gradients if x and y are the same tensor");
}

BOOST_AUTO_TEST_SUITE_END()
