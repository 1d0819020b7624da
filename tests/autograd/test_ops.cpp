// Properties that finite differences do not test: edge cases, sharing of memory, masks, randomness.
#include <array>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "autograd/memory/arena.h"
#include "autograd/ops.h"
#include "tests/autograd/expect.h"

using namespace heed;

BOOST_AUTO_TEST_SUITE(ops)

namespace {

constexpr real inf = std::numeric_limits<real>::infinity();
constexpr double tiny = sizeof(real) == 8 ? 1e-14 : 1e-6;

Tensor variable(const Shape& shape, std::initializer_list<double> values) {
  return Tensor::variable(array_of(shape, values));
}

RandomKey dropout_key(std::uint64_t step) {
  return {.seed = 1, .stream = Stream::dropout, .index = step, .part = 0};
}

std::int64_t zeros_in(const Array& x) {
  std::int64_t zeros = 0;
  for (const real value : x.values()) zeros += value == 0;
  return zeros;
}

}  // namespace

BOOST_AUTO_TEST_CASE(arithmetic_broadcasts_its_operands) {
  const Tensor matrix = array_of({2, 3}, {1, 2, 3, 4, 5, 6}), row = array_of({3}, {10, 20, 30});
  const Tensor column = array_of({2, 1}, {100, 200});
  BOOST_TEST(same(add(matrix, row).value(), array_of({2, 3}, {11, 22, 33, 14, 25, 36})));
  BOOST_TEST(same(sub(row, matrix).value(), array_of({2, 3}, {9, 18, 27, 6, 15, 24})));
  BOOST_TEST(same(add(row, column).value(), array_of({2, 3}, {110, 120, 130, 210, 220, 230})));
  BOOST_TEST(same(mul(matrix, Array::scalar(2)).value(), array_of({2, 3}, {2, 4, 6, 8, 10, 12})));
  BOOST_TEST(
      same(div(Array::scalar(12), matrix).value(), array_of({2, 3}, {12, 6, 4, 3, 2.4, 2}), tiny));
  BOOST_TEST(add(Array({0, 3}), row).shape() == (Shape{0, 3}));
  BOOST_TEST(add(Array({0}), Array({1})).shape() == Shape{0});
  BOOST_TEST(scale(matrix, 0).value().data()[5] == 0);
}

BOOST_AUTO_TEST_CASE(max_and_min_share_the_gradient_among_ties_and_propagate_nan) {
  const real nan = std::numeric_limits<real>::quiet_NaN();
  const Tensor x = variable({2, 3}, {1, 5, 5, -inf, -inf, -inf});
  BOOST_TEST(same(max(x, 1).value(), array_of({2}, {5, -inf})));
  BOOST_TEST(same(min(x).value(), Array::scalar(-inf)));
  // Equal values share the gradient evenly.
  const Gradients g = backward(max(x, 1), array_of({2}, {1, 3}));
  BOOST_TEST(same(g[x], array_of({2, 3}, {0, 0.5, 0.5, 1, 1, 1}), tiny));
  const Tensor with_nan = Array::of({1, nan, 3});
  BOOST_TEST(std::isnan(max(with_nan).item()));
  BOOST_TEST(std::isnan(min(with_nan).item()));
  for (const auto f : {heed::maximum, heed::minimum}) {
    BOOST_TEST(std::isnan(f(Array::scalar(nan), Array::scalar(1)).item()));
    BOOST_TEST(std::isnan(f(Array::scalar(1), Array::scalar(nan)).item()));
  }
}

BOOST_AUTO_TEST_CASE(log_sum_exp_of_large_and_infinite_values_is_accurate) {
  const Tensor x = variable({4, 2}, {1000, 1000, -1000, -1000, -inf, 0, -inf, -inf});
  const Tensor y = log_sum_exp(x);
  BOOST_TEST(
      same(y.value(), array_of({4}, {1000 + std::log(2.0), -1000 + std::log(2.0), 0, -inf}), 1e-4));
  const Gradients g = backward(y, Array::full({4}, 1));
  BOOST_TEST(same(g[x], array_of({4, 2}, {0.5, 0.5, 0.5, 0.5, 0, 1, 0, 0}), 1e-3));
  BOOST_TEST(log_sum_exp(Array::of({1, inf, -inf})).item() == inf);
}

BOOST_AUTO_TEST_CASE(comparisons_argmax_and_top_k_equal_their_definitions) {
  const Array a = array_of({2, 2}, {1, 2, 3, 4});
  BOOST_TEST(same(greater(a, Array::of({2, 2})), array_of({2, 2}, {0, 0, 1, 1})));
  BOOST_TEST(same(equal(a, Array::scalar(3)), array_of({2, 2}, {0, 0, 1, 0})));
  const Array rows = array_of({2, 4}, {1, 7, 7, 0, -1, -3, -1, -2});
  // The first of equal values is chosen.
  BOOST_TEST((argmax(rows) == std::vector<std::int32_t>{1, 0}));
  const TopK best = top_k(rows, 3);
  BOOST_TEST(same(best.values, array_of({2, 3}, {7, 7, 1, -1, -1, -2})));
  BOOST_TEST((best.ids == std::vector<std::int32_t>{1, 2, 0, 0, 2, 3}));
  BOOST_TEST(same(gather(rows, best.ids).value(), best.values));
  const real nan = std::numeric_limits<real>::quiet_NaN();
  BOOST_TEST((argmax(Array::of({1, nan, 3, nan})) == std::vector<std::int32_t>{1}));
  BOOST_TEST(top_k(rows, 0).ids.empty());
}

BOOST_AUTO_TEST_CASE(concat_of_the_parts_of_a_split_restores_the_tensor) {
  const Tensor x = Array({2, 6}, std::vector<real>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const std::vector<Tensor> parts = split(x, 3, 1);
  BOOST_REQUIRE(parts.size() == 3);
  BOOST_TEST(same(parts[1].value(), array_of({2, 2}, {2, 3, 8, 9})));
  BOOST_TEST(same(concat(parts, 1).value(), x.value()));
  BOOST_TEST(
      same(concat({parts[0], parts[2]}, 1).value(), array_of({2, 4}, {0, 1, 4, 5, 6, 7, 10, 11})));
}

BOOST_AUTO_TEST_CASE(einsum_equals_composed_ops) {
  const Tensor a = random_array({2, 3, 4}, 1), b = random_array({2, 5, 4}, 2);
  BOOST_TEST(same(einsum("bij,bkj->bik", {a, b}).value(), matmul(a, b, false, true).value(), tiny));
  BOOST_TEST(same(einsum(" bij -> jb ", {a}).value(), transpose(sum(a, 1)).value(), tiny));
  // The last operand shares a letter with the first.
  const Tensor c[] = {random_array({2, 3}, 3), random_array({3, 4}, 4), random_array({4, 5}, 5),
                      random_array({5, 2}, 6)};
  const Tensor product = matmul(matmul(c[0], c[1]), c[2]);
  BOOST_TEST(same(einsum("ij,jk,kl,li->", {c[0], c[1], c[2], c[3]}).value(),
                  sum(product * transpose(c[3])).value(), tiny));
}

BOOST_AUTO_TEST_CASE(ops_on_empty_arrays_do_not_iterate_over_long_axes) {
  constexpr std::int64_t huge = std::int64_t{1} << 40;
  const Tensor x = Tensor::variable(Array({huge, 0})), y = Tensor::variable(Array({huge, 1, 0}));
  BOOST_TEST(cumsum(x, 1).shape() == x.shape());
  BOOST_TEST(cumsum(y, 0).shape() == y.shape());
  BOOST_TEST(max(y, 1).shape() == x.shape());
  BOOST_TEST(log_sum_exp(y, 1).shape() == x.shape());
  BOOST_TEST(backward(sum(min(y, 1)))[y].shape() == y.shape());
  BOOST_TEST(backward(sum(log_sum_exp(y, 1)))[y].shape() == y.shape());
  const Tensor wide = Tensor::variable(Array({0, huge}));
  BOOST_TEST(backward(sum(gated(UnaryFunction::silu, wide)))[wide].shape() == wide.shape());
  BOOST_TEST(top_k(x.value(), 0).ids.empty());
  BOOST_TEST(top_k(Array({0, huge}), 1).ids.empty());
}

BOOST_AUTO_TEST_CASE(every_broadcast_of_up_to_four_axes_equals_its_definition) {
  // Compares with the definition, index by index: each axis of each input is full, 1, or missing.
  const std::int64_t extents[] = {2, 3, 1, 4};
  const auto shape_of = [&](int ones, int missing) {
    Shape shape;
    for (int axis = missing; axis < 4; ++axis)
      shape.push_back((ones >> axis & 1) != 0 ? 1 : extents[axis]);
    return shape;
  };
  const auto fill = [](const Shape& shape, real first) {
    Array x(shape);
    for (std::int64_t i = 0; i < x.size(); ++i) x.data()[i] = first + static_cast<real>(i);
    return x;
  };
  const auto at = [](const Array& x, const std::int64_t* index, int rank) {
    std::int64_t offset = 0;
    for (int axis = 0; axis < x.shape().rank(); ++axis) {
      const std::int64_t n = x.shape()[axis];
      offset = offset * n + (n == 1 ? 0 : index[axis + rank - x.shape().rank()]);
    }
    return x.data()[offset];
  };
  int wrong = 0;
  for (int code = 0; code < 80 * 80; ++code) {
    const int code_a = code / 80, code_b = code % 80;
    const Array a = fill(shape_of(code_a % 16, code_a / 16), 1),
                b = fill(shape_of(code_b % 16, code_b / 16), 100);
    const Array y = mul(a, b).value();
    const int rank = y.shape().rank();
    std::int64_t index[4] = {};
    for (std::int64_t i = 0; i < y.size(); ++i) {
      std::int64_t rest = i;
      for (int axis = rank - 1; axis >= 0; --axis) {
        index[axis] = rest % y.shape()[axis];
        rest /= y.shape()[axis];
      }
      wrong += y.data()[i] != at(a, index, rank) * at(b, index, rank);
    }
  }
  BOOST_TEST(wrong == 0);
}

BOOST_AUTO_TEST_CASE(sums_and_means_reduce_the_given_axes) {
  const Tensor x = array_of({2, 3}, {1, 2, 3, 4, 5, 6});
  BOOST_TEST(same(sum(x).value(), array_of({}, {21})));
  BOOST_TEST(same(sum(x, all_axes, true).value(), array_of({1, 1}, {21})));
  BOOST_TEST(same(sum(x, 0).value(), array_of({3}, {5, 7, 9})));
  BOOST_TEST(same(sum(x, -1, true).value(), array_of({2, 1}, {6, 15})));
  BOOST_TEST(same(mean(x).value(), array_of({}, {3.5}), tiny));
  BOOST_TEST(same(mean(x, 0).value(), array_of({3}, {2.5, 3.5, 4.5}), tiny));
  BOOST_TEST(same(sum(Array({0, 3})).value(), array_of({}, {0})));
  BOOST_TEST(same(sum(Array({0, 3}), 0).value(), array_of({3}, {0, 0, 0})));
  BOOST_TEST(mean(Array({0, 3}), 1).shape() == Shape{0});
}

BOOST_AUTO_TEST_CASE(relu_has_slope_zero_at_zero_and_unary_ops_propagate_nan) {
  const Tensor x = variable({3}, {-0.0, 0, 1});
  BOOST_TEST(same(backward(sum(relu(x)))[x], array_of({3}, {0, 0, 1})));
  const Tensor x_nan = Array::full({9}, std::numeric_limits<real>::quiet_NaN());
  for (const auto f : {heed::neg, heed::exp, heed::log, heed::sqrt, heed::tanh, heed::relu,
                       heed::gelu, heed::gelu_tanh, heed::sigmoid, heed::silu}) {
    const Array nan = f(x_nan).value();
    for (const real y : nan.values()) BOOST_TEST(std::isnan(y));
  }
}

BOOST_AUTO_TEST_CASE(overloaded_operators_equal_their_ops) {
  const Tensor x = variable({2, 2}, {1, 2, 3, 4}), row = array_of({2}, {10, 20});
  BOOST_TEST(same((x + row).value(), add(x, row).value()));
  BOOST_TEST(same((x - row).value(), sub(x, row).value()));
  BOOST_TEST(same((x * row).value(), mul(x, row).value()));
  BOOST_TEST(same((row / x).value(), div(row, x).value()));
  BOOST_TEST(same((-x).value(), neg(x).value()));
  BOOST_TEST(same((2 * x + 1).value(), array_of({2, 2}, {3, 5, 7, 9})));
  BOOST_TEST(same((1 - x / 2).value(), array_of({2, 2}, {0.5, 0, -0.5, -1})));
  BOOST_TEST(same((6 / x * 2).value(), array_of({2, 2}, {12, 6, 4, 3})));
  BOOST_TEST(same((x - 1).value(), array_of({2, 2}, {0, 1, 2, 3})));
  BOOST_TEST(same(backward(sum(3 * x * x))[x], array_of({2, 2}, {6, 12, 18, 24})));
}

BOOST_AUTO_TEST_CASE(an_index_selects_a_row) {
  const Tensor x = variable({3, 2}, {1, 2, 3, 4, 5, 6});
  BOOST_TEST(same(x[1].value(), array_of({2}, {3, 4})));
  BOOST_TEST(same(x[-1].value(), array_of({2}, {5, 6})));
  BOOST_TEST(x[0][1].item() == 2);
  BOOST_TEST(same(backward(sum(x[1]))[x], array_of({3, 2}, {0, 0, 1, 1, 0, 0})));
  EXPECT_FAIL(x[3], "[index] index 3 is out of range for axis 0 of shape [3, 2]");
  EXPECT_FAIL(Tensor(Array::scalar(1))[0],
              "[index] expected a tensor with at least one axis, got []");
  EXPECT_FAIL(Tensor()[0], "an undefined one");
}

BOOST_AUTO_TEST_CASE(shape_ops_move_values_to_the_correct_indices) {
  const Tensor x = array_of({2, 3}, {1, 2, 3, 4, 5, 6});
  BOOST_TEST(same(transpose(x).value(), array_of({3, 2}, {1, 4, 2, 5, 3, 6})));
  BOOST_TEST(same(slice(x, 1, 1, 3).value(), array_of({2, 2}, {2, 3, 5, 6})));
  BOOST_TEST(same(concat(std::vector<Tensor>{x, slice(x, 1, 0, 1)}, 1).value(),
                  array_of({2, 4}, {1, 2, 3, 1, 4, 5, 6, 4})));
  Array counted({2, 3, 2, 5});
  for (std::int64_t i = 0; i < counted.size(); ++i) counted.data()[i] = static_cast<real>(i);
  const Array swapped = transpose(counted, 0, 2).value();  // y[k, j, i, l] = x[i, j, k, l]
  BOOST_TEST(swapped.shape() == (Shape{2, 3, 2, 5}));
  BOOST_TEST(swapped.data()[((1 * 3 + 2) * 2 + 0) * 5 + 4] ==
             static_cast<real>(((0 * 3 + 2) * 2 + 1) * 5 + 4));
}

BOOST_AUTO_TEST_CASE(transposes_of_every_pair_of_axes_equal_their_definition) {
  for (const std::int64_t a : {1, 2, 3}) {
    for (const std::int64_t b : {1, 2}) {
      for (const std::int64_t c : {1, 3}) {
        for (const std::int64_t d : {1, 2}) {
          const Shape shape{a, b, c, d};
          Array x(shape);
          for (std::int64_t i = 0; i < x.size(); ++i) x.data()[i] = static_cast<real>(i);
          for (int p = 0; p < 4; ++p) {
            for (int q = 0; q < 4; ++q) {
              const Array y = transpose(x, p, q).value();
              const Shape swapped = shape.with(p, shape[q]).with(q, shape[p]);
              BOOST_TEST(y.shape() == swapped);
              bool right = true;
              for (std::int64_t i = 0; i < y.size(); ++i) {
                std::array<std::int64_t, 4> index{};
                for (std::int64_t rest = i, k = 3; k >= 0; --k) {
                  index[static_cast<std::size_t>(k)] = rest % swapped[static_cast<int>(k)];
                  rest /= swapped[static_cast<int>(k)];
                }
                std::swap(index[static_cast<std::size_t>(p)], index[static_cast<std::size_t>(q)]);
                const std::int64_t from = ((index[0] * b + index[1]) * c + index[2]) * d + index[3];
                right = right && y.data()[i] == static_cast<real>(from);
              }
              BOOST_TEST(right, shape.str() << ", axes " << p << " and " << q);
            }
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(shape_ops_share_memory_if_possible) {
  const Tensor x = array_of({4, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  BOOST_TEST(reshape(x, {2, 6}).value().data() == x.value().data());
  BOOST_TEST(slice(x, 0, 1, 3).value().data() == x.value().row(1));
  BOOST_TEST(slice(reshape(x, {1, 12}), 1, 4, 6).value().data() == x.value().data() + 4);
  BOOST_TEST(transpose(reshape(x, {1, 12})).value().data() == x.value().data());
  BOOST_TEST(transpose(x, 1, 1).value().data() == x.value().data());
}

BOOST_AUTO_TEST_CASE(log_softmax_is_the_logarithm_of_softmax) {
  const Tensor x = array_of({2, 2}, {0, std::log(3.0), 1000, 1000});
  BOOST_TEST(same(softmax(x).value(), array_of({2, 2}, {0.25, 0.75, 0.5, 0.5}), tiny));
  BOOST_TEST(same(log_softmax(x).value(),
                  array_of({2, 2}, {std::log(0.25), std::log(0.75), std::log(0.5), std::log(0.5)}),
                  200 * tiny));
}

BOOST_AUTO_TEST_CASE(a_softmax_mask_hides_entries_and_whole_rows) {
  const Array mask = array_of({2, 3}, {0, -inf, 0, -inf, -inf, -inf});
  const Tensor x = variable({2, 3}, {1, 5, 1, 1, 2, 3});
  BOOST_TEST(same(softmax(x, mask).value(), array_of({2, 3}, {0.5, 0, 0.5, 0, 0, 0}), tiny));
  const Array log_y = log_softmax(x, mask).value();
  BOOST_TEST(same(log_y, array_of({2, 3}, {std::log(0.5), -inf, std::log(0.5), -inf, -inf, -inf}),
                  10 * tiny));
  // The gradient is never NaN, and a hidden entry neither receives nor contributes a gradient.
  const Array dy = array_of({2, 3}, {1, 100, 2, 3, 4, 5});
  const Array of_softmax = backward(softmax(x, mask), dy)[x],
              of_log = backward(log_softmax(x, mask), dy)[x];
  BOOST_TEST(same(of_softmax, array_of({2, 3}, {-0.25, 0, 0.25, 0, 0, 0}), tiny));
  BOOST_TEST(same(of_log, array_of({2, 3}, {-0.5, 0, 0.5, 0, 0, 0}), 10 * tiny));
}

BOOST_AUTO_TEST_CASE(layer_norm_of_values_with_large_mean_is_accurate) {
  // Var = E[x²] − E[x]² would lose all digits in float.
  const Tensor x = array_of({1, 4}, {10000, 10001, 10002, 10003});
  const Array y = layer_norm(x, Tensor(), Tensor(), 0).value();
  const double s = std::sqrt(1.25);
  BOOST_TEST(same(y, array_of({1, 4}, {-1.5 / s, -0.5 / s, 0.5 / s, 1.5 / s}), 1e-5));
  BOOST_TEST(same(rms_norm(array_of({1, 2}, {3, 4}), array_of({2}, {1, 2}), 0).value(),
                  array_of({1, 2}, {3 / std::sqrt(12.5), 8 / std::sqrt(12.5)}), tiny * 4));
}

BOOST_AUTO_TEST_CASE(embedding_sums_gradients_of_repeated_ids) {
  const Tensor table = variable({3, 2}, {1, 2, 3, 4, 5, 6});
  const std::vector<std::int32_t> ids = {2, 0, 2};
  const Tensor y = embedding(table, ids, 10);
  BOOST_TEST(same(y.value(), array_of({3, 2}, {50, 60, 10, 20, 50, 60})));
  const Gradients g = backward(y, array_of({3, 2}, {1, 2, 3, 4, 5, 6}));
  BOOST_TEST(same(g[table], array_of({3, 2}, {30, 40, 0, 0, 60, 80})));
  BOOST_TEST(embedding(table, {}).shape() == (Shape{0, 2}));
}

BOOST_AUTO_TEST_CASE(dropout_drops_at_its_rate_and_scales_the_rest) {
  constexpr std::int64_t n = 100000;
  const Tensor x = Tensor::variable(Array::full({n}, 1));
  for (const double p : {0.1, 0.5, 0.9}) {
    const Tensor y = dropout(x, static_cast<real>(p), dropout_key(1));
    const auto dropped = static_cast<double>(zeros_in(y.value()));
    BOOST_TEST(std::abs(dropped - n * p) < 5 * std::sqrt(n * p * (1 - p)));
    // Kept values are scaled so that the mean is preserved; p is rounded to a multiple of 1/65536.
    for (const real value : y.value().values()) {
      if (value != 0 && std::abs(value * (1 - p) - 1) > 1e-4)
        BOOST_ERROR("a kept value is scaled to " << value << ", expected " << 1 / (1 - p));
    }
    // Backward drops and scales the same values.
    BOOST_TEST(same(backward(sum(y))[x], y.value()));
  }
}

BOOST_AUTO_TEST_CASE(the_dropout_mask_depends_only_on_key_and_position) {
  const Tensor x = Array::full({1000}, 1);
  const Array y = dropout(x, real(0.5), dropout_key(1)).value();
  BOOST_TEST(same(y, dropout(x, real(0.5), dropout_key(1)).value()));
  BOOST_TEST(!same(y, dropout(x, real(0.5), dropout_key(2)).value()));
  // The mask depends neither on the values nor on the rest of the array.
  const Array shorter = dropout(Array::full({300}, 3), real(0.5), dropout_key(1)).value();
  for (std::int64_t i = 0; i < 300; ++i) BOOST_TEST((shorter.data()[i] == 0) == (y.data()[i] == 0));
}

BOOST_AUTO_TEST_CASE(dropout_with_p_zero_returns_its_input) {
  const Tensor x = variable({2}, {1, 2});
  BOOST_TEST(dropout(x, 0, dropout_key(1)).node().get() == x.node().get());
  BOOST_TEST(same(dropout_add(x, x, 0, dropout_key(1)).value(), array_of({2}, {2, 4})));
}

BOOST_AUTO_TEST_CASE(dropout_add_equals_dropout_and_add) {
  const Tensor x = Tensor::variable(Array::full({500}, 2)),
               r = Tensor::variable(Array::full({500}, 3));
  const Tensor fused = dropout_add(x, r, real(0.3), dropout_key(4));
  const Tensor composed = add(r, dropout(x, real(0.3), dropout_key(4)));
  BOOST_TEST(same(fused.value(), composed.value(), 10 * tiny));
  const Gradients by_fused = backward(sum(fused)), by_composed = backward(sum(composed));
  BOOST_TEST(same(by_fused[x], by_composed[x]));
  BOOST_TEST(same(by_fused[r], by_composed[r]));
}

BOOST_AUTO_TEST_CASE(affine_activation_with_dropout_equals_composed_ops) {
  const RandomKey key{3, Stream::dropout, 4, 5};
  const real p = real(0.25);
  for (const UnaryFunction f : {UnaryFunction::relu, UnaryFunction::gelu, UnaryFunction::tanh}) {
    const Tensor x = Tensor::variable(random_array({33, 7}, 1)),
                 w = Tensor::variable(random_array({19, 7}, 2)),
                 b = Tensor::variable(random_array({19}, 3));
    const Array dy = random_array({33, 19}, 4);
    const Tensor fused = affine_activation(f, x, w, b, p, key),
                 parts = dropout(affine_activation(f, x, w, b), p, key);
    BOOST_TEST(same(fused.value(), parts.value()));
    const Gradients a = backward(fused, dy), c = backward(parts, dy);
    for (const Tensor& t : {x, w, b}) BOOST_TEST(same(a[t], c[t], 100 * tiny));
  }
}

BOOST_AUTO_TEST_CASE(composed_attention_returns_the_expected_weights_and_output) {
  const Tensor q = array_of({2, 2}, {1, 0, 0, 1}), k = q, v = array_of({2, 1}, {10, 20});
  const AttentionResult free = attention(q, k, v), causal = attention(q, k, v, causal_mask(2));
  const double w = 1 / (1 + std::exp(-1 / std::sqrt(2.0)));
  BOOST_TEST(same(free.weights.value(), array_of({2, 2}, {w, 1 - w, 1 - w, w}), tiny));
  BOOST_TEST(same(free.output.value(), array_of({2, 1}, {20 - 10 * w, 10 + 10 * w}), 20 * tiny));
  BOOST_TEST(same(causal.weights.value(), array_of({2, 2}, {1, 0, 1 - w, w}), tiny));
  BOOST_TEST(same(causal_mask(2), array_of({2, 2}, {0, -inf, 0, 0})));
  BOOST_TEST(causal_mask(0).size() == 0);
}

BOOST_AUTO_TEST_CASE(the_loss_of_no_rows_has_zero_gradients) {
  const PoisonNewBlocks poison;  // unwritten values are NaN instead of accidental zeros
  const Tensor x = Tensor::variable(Array({0, 2})),
               weight = Tensor::variable(Array::full({3, 2}, 1)),
               bias = Tensor::variable(Array::full({3}, 1));
  const Gradients g = backward(projected_cross_entropy(x, weight, bias, {}, real(0.1), 1));
  BOOST_TEST(same(g[weight], Array::zeros({3, 2})));
  BOOST_TEST(same(g[bias], Array::zeros({3})));
  BOOST_TEST(g[x].size() == 0);
}

BOOST_AUTO_TEST_CASE(a_loss_ignores_rows_without_a_target) {
  const PoisonNewBlocks poison;  // the gradients of ignored rows must be written
  const Tensor all = Tensor::variable(random_array({4, 3}, 1)),
               some = Tensor::variable(
                   concat(std::vector<Tensor>{slice(all, 0, 1, 2), slice(all, 0, 3, 4)}, 0)
                       .value());
  const std::vector<std::int32_t> targets{ignored_target, 2, ignored_target, 0}, kept{2, 0};
  LossCounts of_all, of_some;
  const Tensor a = cross_entropy(all, targets, real(0.1), &of_all),
               b = cross_entropy(some, kept, real(0.1), 2.0, &of_some);  // divided by 2 targets
  BOOST_TEST(a.item() == b.item());
  BOOST_TEST(of_all.tokens == 2);
  BOOST_TEST(of_all.correct == of_some.correct);
  BOOST_TEST(of_all.nll == of_some.nll);
  const Array g = backward(a)[all], h = backward(b)[some];
  BOOST_TEST(same(g.sliced(1, 2), h.sliced(0, 1)));
  BOOST_TEST(same(g.sliced(3, 4), h.sliced(1, 2)));
  for (const std::int64_t ignored : {0, 2})
    BOOST_TEST(same(g.sliced(ignored, ignored + 1), Array::zeros({1, 3})));
}

BOOST_AUTO_TEST_CASE(cross_entropy_without_targets_or_with_an_invalid_target_is_refused) {
  const Tensor logits = random_array({2, 3}, 1);
  const std::vector<std::int32_t> none{ignored_target, ignored_target}, wrong{-1, 0};
  EXPECT_FAIL(cross_entropy(logits, none),
              "[cross_entropy] expected at least one target that is not ignored, got none among 2");
  EXPECT_FAIL(cross_entropy(random_array({0, 3}, 1), {}), "got none among 0");
  EXPECT_FAIL(cross_entropy(logits, wrong), "expected targets in [0, 3), got -1 at row 0");
}

BOOST_AUTO_TEST_CASE(rdrop_cross_entropy_equals_composed_ops) {
  const std::int64_t targets = 2100, in = 3, classes = 4;  // more than one chunk
  std::vector<std::int32_t> once, twice;
  for (std::int64_t r = 0; r < targets; ++r) once.push_back(static_cast<std::int32_t>(r % classes));
  for (int copy = 0; copy < 2; ++copy) twice.insert(twice.end(), once.begin(), once.end());
  const Tensor x = Tensor::variable(random_array({2 * targets, in}, 1)),
               weight = Tensor::variable(random_array({classes, in}, 2)),
               bias = Tensor::variable(random_array({classes}, 3));
  std::vector<double> each, first_each, second_each;
  LossCounts counts{.each = &each}, first{.each = &first_each}, second{.each = &second_each};
  const Tensor fused = rdrop_cross_entropy(x, weight, bias, once, real(0.1), 3, 7, &counts);
  const Tensor logits = affine(x, weight, bias), log_probs = log_softmax(logits);
  const Tensor log_p = slice(log_probs, 0, 0, targets),
               log_q = slice(log_probs, 0, targets, 2 * targets), d = log_p - log_q,
               divergence = sum((exp(log_p) - exp(log_q)) * d);
  const Tensor composed = scale(cross_entropy(logits, twice, real(0.1), 7), real(0.5)) +
                          scale(divergence, real(3.0 / 4 / 7));
  const double tolerance = sizeof(real) == 8 ? 1e-9 : 0.05;
  BOOST_TEST(same(fused.value(), composed.value(), tolerance));
  BOOST_CHECK_CLOSE(counts.loss / 7, double{fused.item()}, 1e-3);
  BOOST_TEST(counts.tokens == targets);
  cross_entropy(slice(logits, 0, 0, targets), once, 0, 1, &first);
  cross_entropy(slice(logits, 0, targets, 2 * targets), once, 0, 1, &second);
  BOOST_TEST(counts.correct == first.correct);
  BOOST_TEST(first.correct != second.correct);
  BOOST_CHECK_CLOSE(counts.nll, (first.nll + second.nll) / 2, 1e-3);
  BOOST_REQUIRE(each.size() == first_each.size());
  for (std::size_t i = 0; i < each.size(); ++i)
    BOOST_TEST(std::abs(each[i] - (first_each[i] + second_each[i]) / 2) < 1e-4);
  const Gradients a = backward(fused), b = backward(composed);
  for (const Tensor& p : {x, weight, bias}) BOOST_TEST(same(a[p], b[p], tolerance));
  EXPECT_FAIL(rdrop_cross_entropy(x, weight, bias, twice, 0, 1, 1),
              "[rdrop_cross_entropy] expected 2100 targets, got 4200");
  EXPECT_FAIL(rdrop_cross_entropy(x, weight, bias, once, 0, -1, 1), "expected alpha >= 0, got -1");
}

BOOST_AUTO_TEST_CASE(distilled_cross_entropy_equals_composed_ops) {
  const std::int64_t rows = 4100, in = 2, classes = 3;  // two chunks
  std::vector<std::int32_t> targets;
  for (std::int64_t r = 0; r < rows; ++r) targets.push_back(static_cast<std::int32_t>(r % classes));
  const Tensor x = Tensor::variable(random_array({rows, in}, 1)),
               weight = Tensor::variable(random_array({classes, in}, 2)),
               bias = Tensor::variable(random_array({classes}, 3));
  const real share = real(0.3), t = 2;
  const TeacherLogits teacher{random_array({rows, 4}, 4), random_array({classes, 4}, 5),
                              random_array({classes}, 6), share, t};
  std::vector<double> each, plain_each;
  LossCounts counts{.each = &each}, plain{.each = &plain_each};
  const Tensor fused =
      distilled_cross_entropy(x, weight, bias, targets, real(0.1), teacher, 7, &counts);
  const Tensor logits = affine(x, weight, bias), log_p = log_softmax(scale(logits, 1 / t)),
               log_q = log_softmax(scale(
                   affine(Tensor(teacher.x), Tensor(teacher.weight), Tensor(teacher.bias)), 1 / t)),
               divergence = sum(exp(log_q) * (log_q - log_p));
  const Tensor composed = scale(cross_entropy(logits, targets, real(0.1), 7, &plain), 1 - share) +
                          scale(divergence, share * t * t / 7);
  const double tolerance = sizeof(real) == 8 ? 1e-9 : 0.05;
  BOOST_TEST(same(fused.value(), composed.value(), tolerance));
  BOOST_CHECK_CLOSE(counts.loss / 7, double{fused.item()}, 1e-3);
  BOOST_TEST(counts.tokens == rows);
  BOOST_TEST(counts.correct == plain.correct);
  BOOST_CHECK_CLOSE(counts.nll, plain.nll, 1e-3);
  BOOST_REQUIRE(each.size() == plain_each.size());
  for (std::size_t i = 0; i < each.size(); ++i)
    BOOST_TEST(std::abs(each[i] - plain_each[i]) < 1e-4);
  const Gradients a = backward(fused), b = backward(composed);
  for (const Tensor& p : {x, weight, bias}) BOOST_TEST(same(a[p], b[p], tolerance));
  TeacherLogits other = teacher;
  other.x = random_array({3, 4}, 4);
  EXPECT_FAIL(
      distilled_cross_entropy(x, weight, bias, targets, 0, other, 1),
      "[distilled_cross_entropy] expected teacher logits of 4100 rows and 3 classes, got x [3, 4], "
      "weight [3, 4] and bias [3]");
  other = teacher;
  other.temperature = 0;
  EXPECT_FAIL(distilled_cross_entropy(x, weight, bias, targets, 0, other, 1),
              "expected a share in [0, 1] and a temperature above 0, got 0.3 and 0");
}

BOOST_AUTO_TEST_CASE(the_loss_in_chunks_equals_the_loss_of_all_rows) {
  // A chunk has at most 4,096 rows.
  const std::int64_t rows = 4100, in = 2, classes = 3;
  std::vector<std::int32_t> targets;
  for (std::int64_t r = 0; r < rows; ++r) targets.push_back(static_cast<std::int32_t>(r % classes));
  const Tensor x = Tensor::variable(random_array({rows, in}, 1)),
               weight = Tensor::variable(random_array({classes, in}, 2)),
               bias = Tensor::variable(random_array({classes}, 3));
  const Tensor chunked = projected_cross_entropy(x, weight, bias, targets, real(0.1), 7),
               whole = cross_entropy(affine(x, weight, bias), targets, real(0.1), 7);
  const double tolerance = sizeof(real) == 8 ? 1e-9 : 0.05;  // the loss is several hundred
  BOOST_TEST(same(chunked.value(), whole.value(), tolerance));
  const Gradients a = backward(chunked), b = backward(whole);
  for (const Tensor& p : {x, weight, bias}) BOOST_TEST(same(a[p], b[p], tolerance));
}

BOOST_AUTO_TEST_CASE(where_chooses_the_first_operand_for_every_condition_but_zero) {
  const Array condition = array_of({5}, {0, 1, -2, 0.5, -0.0});
  const Tensor a = variable({5}, {1, 2, 3, 4, 5}), b = variable({5}, {10, 20, 30, 40, 50});
  const Tensor y = where(condition, a, b);
  BOOST_TEST(same(y.value(), array_of({5}, {10, 2, 3, 4, 50})));
  const Gradients g = backward(sum(y));
  BOOST_TEST(same(g[a], array_of({5}, {0, 1, 1, 1, 0})));
  BOOST_TEST(same(g[b], array_of({5}, {1, 0, 0, 0, 1})));
}

BOOST_AUTO_TEST_CASE(the_power_with_exponent_zero_has_gradient_zero_even_at_zero) {
  const Tensor x = variable({3}, {0, -2, 3});
  const Tensor y = pow(x, 0);
  BOOST_TEST(same(y.value(), Array::full({3}, 1)));
  BOOST_TEST(same(backward(sum(y))[x], Array::zeros({3})));
}

BOOST_AUTO_TEST_CASE(max_and_min_of_values_with_nan_have_no_gradient) {
  const Tensor x = variable({2, 3}, {1, std::numeric_limits<double>::quiet_NaN(), 3, 4, 5, 6});
  const Array dy = array_of({2}, {7, 8});
  BOOST_TEST(same(backward(max(x, 1), dy)[x], array_of({2, 3}, {0, 0, 0, 0, 0, 8})));
  BOOST_TEST(same(backward(min(x, 1), dy)[x], array_of({2, 3}, {0, 0, 0, 8, 0, 0})));
}

// With eps = 0, batch norm would divide by the root of the variance, which is 0.
BOOST_AUTO_TEST_CASE(batch_norm_of_equal_values_without_eps_is_the_bias_and_has_no_gradient) {
  constexpr std::int64_t rows = 3, n = 5;
  const Tensor x = Tensor::variable(Array::full({rows, n}, 3)), gain(random_array({n}, 1)),
               bias(random_array({n}, 2));
  const Tensor y = batch_norm(x, gain, bias, 0);
  BOOST_TEST(same(y.value(), broadcast_to(bias, {rows, n}).value()));
  BOOST_TEST(same(backward(y, random_array({rows, n}, 3))[x], Array::zeros({rows, n})));
  const BatchMoments given{Array::full({n}, 3), Array::zeros({n}), rows};
  BOOST_TEST(same(batch_norm(x, gain, bias, given, 0).value(), y.value()));
}

BOOST_AUTO_TEST_CASE(losses_of_two_passes_and_of_a_teacher_count_no_ignored_target) {
  const std::vector<std::int32_t> targets{1, ignored_target, 0, ignored_target, 3}, kept{1, 0, 3};
  const std::vector<std::int32_t> of_kept{0, 2, 4}, of_both_passes{0, 2, 4, 5, 7, 9};
  const Tensor x(random_array({10, 3}, 1)), weight(random_array({4, 3}, 2)),
      bias(random_array({4}, 3));
  const auto check = [&](const auto& loss) {
    std::vector<double> each, expected_each;
    LossCounts counts{.each = &each}, expected{.each = &expected_each};
    const Tensor all = loss(false, targets, &counts), some = loss(true, kept, &expected);
    BOOST_TEST(same(all.value(), some.value(), 100 * tiny));
    BOOST_TEST(counts.tokens == 3);
    BOOST_TEST(counts.correct == expected.correct);
    BOOST_TEST(std::abs(counts.nll - expected.nll) < 1e-4);
    BOOST_REQUIRE(each.size() == 3u);
    for (std::size_t i = 0; i < 3; ++i) BOOST_TEST(std::abs(each[i] - expected_each[i]) < 1e-4);
  };
  check([&](bool only_kept, const std::vector<std::int32_t>& of, LossCounts* counts) {
    const Tensor rows = only_kept ? index_select(x, of_both_passes) : x;
    return rdrop_cross_entropy(rows, weight, bias, of, real(0.1), 2, 3, counts);
  });
  check([&](bool only_kept, const std::vector<std::int32_t>& of, LossCounts* counts) {
    const Tensor own = slice(x, 0, 0, 5), taught = slice(x, 0, 5, 10);
    const auto rows = [&](const Tensor& t) { return only_kept ? index_select(t, of_kept) : t; };
    const TeacherLogits teacher{rows(taught).value(), weight.value(), {}, real(0.3), 2};
    return distilled_cross_entropy(rows(own), weight, bias, of, real(0.1), teacher, 3, counts);
  });
}

BOOST_AUTO_TEST_SUITE_END()
