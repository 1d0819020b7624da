// Invalid arguments are refused before any computation, usually with a message of the form
// "[op] expected …, got …".
#include <boost/test/unit_test.hpp>
#include <limits>

#include "autograd/kernels/gemm.h"
#include "autograd/ops.h"
#include "tests/autograd/expect.h"

using namespace heed;

BOOST_AUTO_TEST_SUITE(ops_errors)

namespace {

Tensor of(const Shape& shape) { return Array::full(shape, 1); }
using Ids = std::vector<std::int32_t>;
constexpr real not_a_number = std::numeric_limits<real>::quiet_NaN();

}  // namespace

BOOST_AUTO_TEST_CASE(operands_that_do_not_broadcast_are_refused) {
  EXPECT_FAIL(add(of({2, 3}), of({2})),
              "[add] expected shapes that broadcast together, got [2, 3] and [2]");
  EXPECT_FAIL(sub(of({3}), of({0})),
              "[sub] expected shapes that broadcast together, got [3] and [0]");
  EXPECT_FAIL(mul(of({2, 3}), of({3, 2})), "[mul] expected");
  EXPECT_FAIL(div(of({4}), of({3})), "[div] expected");
}

// BLAS expects sizes as 32-bit integers.
BOOST_AUTO_TEST_CASE(matrices_too_large_for_blas_are_refused) {
  using kernels::Trans;
  const std::int64_t many = std::int64_t{1} << 31;
  EXPECT_FAIL(
      kernels::gemm(Trans::no, Trans::no, many, 2, 3, 1, nullptr, 3, nullptr, 2, 0, nullptr, 2),
      "[gemm] too many rows or columns for BLAS: 2147483648 x 3 times 3 x 2");
  EXPECT_FAIL(
      kernels::gemm(Trans::no, Trans::no, 2, 2, 3, 1, nullptr, many, nullptr, 2, 0, nullptr, 2),
      "[gemm] too many rows or columns for BLAS");
}

BOOST_AUTO_TEST_CASE(undefined_tensors_are_refused) {
  const Tensor none;
  for (const auto f : {heed::add, heed::sub, heed::mul, heed::div, heed::maximum, heed::minimum}) {
    EXPECT_FAIL(f(none, of({1})), "an undefined one");
    EXPECT_FAIL(f(of({1}), none), "an undefined one");
  }
  for (const auto f : {heed::neg, heed::exp, heed::log, heed::sqrt, heed::tanh, heed::relu,
                       heed::gelu, heed::gelu_tanh, heed::sigmoid, heed::silu, heed::softplus,
                       heed::abs, heed::sin, heed::cos}) {
    EXPECT_FAIL(f(none), "an undefined one");
  }
  EXPECT_FAIL(gelu(none), "[gelu] expected a tensor with values, got an undefined one");
  EXPECT_FAIL(scale(none, 2), "[scale]");
  EXPECT_FAIL(sum(none), "[sum]");
  EXPECT_FAIL(mean(none), "[mean]");
  EXPECT_FAIL(max(none), "[max]");
  EXPECT_FAIL(min(none), "[min]");
  EXPECT_FAIL(log_sum_exp(none), "[log_sum_exp]");
  EXPECT_FAIL(cumsum(none), "[cumsum]");
  EXPECT_FAIL(pow(none, 2), "[pow]");
  EXPECT_FAIL(clamp(none, 0, 1), "[clamp]");
  EXPECT_FAIL(where(Array(), of({1}), of({1})), "[where]");
  EXPECT_FAIL(where(Array::of({1}), none, of({1})), "[where]");
  EXPECT_FAIL(stack({of({1}), none}), "[stack]");
  EXPECT_FAIL(permute(none, {0}), "[permute]");
  EXPECT_FAIL(broadcast_to(none, {1}), "[broadcast_to]");
  EXPECT_FAIL(split(none, 1, 0), "[split]");
  EXPECT_FAIL(einsum("i->i", {none}), "[einsum]");
  EXPECT_FAIL(index_select(none, Ids{}), "[index_select]");
  EXPECT_FAIL(scatter_add(none, Ids{}, 1), "[scatter_add]");
  EXPECT_FAIL(gather(none, Ids{}), "[gather]");
  EXPECT_FAIL(argmax(Array()), "[argmax]");
  EXPECT_FAIL(top_k(Array(), 1), "[top_k]");
  EXPECT_FAIL(matmul(none, none), "[matmul] expected a tensor with values, got an undefined one");
  EXPECT_FAIL(reshape(none, {1}), "[reshape]");
  EXPECT_FAIL(transpose(none), "[transpose]");
  EXPECT_FAIL(slice(none, 0, 0, 0), "[slice]");
  EXPECT_FAIL(concat(std::vector<Tensor>{of({1}), none}, 0), "[concat]");
  EXPECT_FAIL(softmax(none), "[softmax]");
  EXPECT_FAIL(log_softmax(none), "[log_softmax]");
  EXPECT_FAIL(layer_norm(none, none, none), "[layer_norm]");
  EXPECT_FAIL(rms_norm(none, none), "[rms_norm]");
  EXPECT_FAIL(embedding(none, Ids{}), "[embedding]");
  EXPECT_FAIL(dropout(none, real(0.5), {}), "[dropout]");
  EXPECT_FAIL(dropout_add(of({1}), none, real(0.5), {}), "[dropout_add]");
  EXPECT_FAIL(attention(of({1, 1}), none, of({1, 1})), "[attention]");
  EXPECT_FAIL(lstm(none, of({4, 1}), none, Ids{0}), "[lstm]");
  EXPECT_FAIL(gru(of({1, 3}), none, none, Ids{0, 1}), "[gru]");
  EXPECT_FAIL(unfold(none, Ids{0}, {}), "[unfold]");
}

BOOST_AUTO_TEST_CASE(invalid_operands_of_recurrences_and_unfold_are_refused) {
  const Tensor weight = of({8, 2}), x = of({5, 8});
  EXPECT_FAIL(lstm(x, of({6, 2}), {}, Ids{0, 5}), "[lstm] expected a weight [4 d, d], got [6, 2]");
  EXPECT_FAIL(gru(x, weight, {}, Ids{0, 5}), "[gru] expected a weight [3 d, d], got [8, 2]");
  EXPECT_FAIL(lstm(of({5, 6}), weight, {}, Ids{0, 5}),
              "[lstm] expected x [rows, 8] for weight [8, 2], got [5, 6]");
  EXPECT_FAIL(lstm(x, weight, of({2}), Ids{0, 5}), "[lstm] expected a bias [8], got [2]");
  for (const Ids& offsets : {Ids{}, Ids{0}, Ids{0, 4}, Ids{1, 5}, Ids{0, 3, 2, 5}}) {
    EXPECT_FAIL(lstm(x, weight, {}, offsets),
                "[lstm] expected non-decreasing offsets from 0 to the number of rows (5)");
    EXPECT_FAIL(unfold(x, offsets, {}),
                "[unfold] expected non-decreasing offsets from 0 to the number of rows (5)");
  }
  EXPECT_FAIL(unfold(of({5}), Ids{0, 5}, {}), "[unfold] expected x [rows, d], got [5]");
  EXPECT_FAIL(unfold(x, Ids{0, 5}, {.width = 3, .before = 3}),
              "[unfold] expected a window that contains its row, got height 1, width 3, above 0 "
              "and before 3");
  EXPECT_FAIL(unfold(x, Ids{0, 5}, {.height = 2, .above = -1}),
              "[unfold] expected a window that contains its row, got height 2, width 1, above "
              "-1 and before 0");
  EXPECT_FAIL(
      unfold(x, Ids{0, 5}, {.stride = 0}),
      "[unfold] expected a stride of at least 1 and a line length of at least 0, got 0 and 0");
  EXPECT_FAIL(
      unfold(x, Ids{0, 2, 5}, {.line = 2}),
      "[unfold] expected sequence lengths that are multiples of the line length (2), got 3");
}

BOOST_AUTO_TEST_CASE(invalid_operands_of_index_ops_are_refused) {
  EXPECT_FAIL(index_select(of({3, 2}), Ids{0, 3}),
              "[index_select] expected ids in [0, 3), got 3 at position 1");
  EXPECT_FAIL(index_select(of({}), Ids{}),
              "[index_select] expected at least one axis, got a scalar");
  EXPECT_FAIL(scatter_add(of({2, 2}), Ids{0}, 3),
              "[scatter_add] expected one id per entry of [2, 2] (2 in all), got 1");
  EXPECT_FAIL(scatter_add(of({1}), Ids{-1}, 3), "[scatter_add] expected ids in [0, 3), got -1");
  EXPECT_FAIL(scatter_add(of({1}), Ids{0}, -3), "[scatter_add] expected n of at least 0");
  EXPECT_FAIL(
      gather(of({2, 3}), Ids{0, 1, 2}),
      "[gather] expected the same number of ids for each of the 2 rows of [2, 3], got 3 in all");
  EXPECT_FAIL(gather(of({2, 3}), Ids{0, 3}),
              "[gather] expected ids in [0, 3), got 3 at position 1");
  EXPECT_FAIL(top_k(Array::of({1, 2}), 3), "[top_k] expected k in [0, 2] for [2], got 3");
  EXPECT_FAIL(argmax(Array::zeros({2, 0})),
              "[argmax] expected at least one value in a row, got shape [2, 0]");
}

BOOST_AUTO_TEST_CASE(invalid_einsum_equations_are_refused) {
  const Tensor x = of({2, 3});
  EXPECT_FAIL(einsum("ij", {x}), "got \"ij\": missing ->");
  EXPECT_FAIL(einsum("ii->i", {x}), "duplicate letter i");
  EXPECT_FAIL(einsum("ij->k", {x}), "letter k of the result is in no operand");
  EXPECT_FAIL(einsum("i.->i", {x}), "unexpected character .");
  EXPECT_FAIL(einsum("ij,jk->ik", {x}),
              "[einsum] expected as many operands as in \"ij,jk->ik\" (2), got 1");
  EXPECT_FAIL(einsum("i->i", {x}), "operand 0 has the letters \"i\", but its shape is [2, 3]");
  EXPECT_FAIL(einsum("ij,jk->ik", {x, x}), "letter j has extent 3 in [2, 3] and 2 in [2, 3]");
}

BOOST_AUTO_TEST_CASE(invalid_axes_and_ranges_are_refused) {
  EXPECT_FAIL(max(of({2, 0}), 1), "[max] expected at least one value, got shape [2, 0]");
  EXPECT_FAIL(log_sum_exp(of({})), "[log_sum_exp] expected an axis of [], got -1");
  EXPECT_FAIL(cumsum(of({3}), 1), "[cumsum] expected an axis of [3], got 1");
  EXPECT_FAIL(clamp(of({3}), 2, 1), "[clamp] expected low <= high, got 2 and 1");
  EXPECT_FAIL(stack({of({2}), of({3})}), "[stack] expected tensors of one shape, got [2] and [3]");
  EXPECT_FAIL(stack(std::vector<Tensor>{}), "[stack] expected at least one tensor");
  EXPECT_FAIL(stack({of({2})}, 2), "[stack] expected a new axis in [-2, 1] for shape [2], got 2");
  EXPECT_FAIL(permute(of({2, 3}), {0, 0}),
              "[permute] expected each axis of [2, 3] once, got {0, 0}");
  EXPECT_FAIL(permute(of({2, 3}), {0}), "[permute] expected each axis of [2, 3] once, got {0}");
  EXPECT_FAIL(broadcast_to(of({2}), {3}),
              "[broadcast_to] expected shapes that broadcast together, got [2] and [3]");
  EXPECT_FAIL(split(of({4, 3}), 3, 0),
              "[split] expected a number of parts that divides 4 (axis 0 of [4, 3]), got 3");
  EXPECT_FAIL(sum(of({2, 3}), 2), "[sum] expected an axis of [2, 3], got 2");
  EXPECT_FAIL(mean(of({2, 3}), -3), "[mean] expected an axis of [2, 3], got -3");
  EXPECT_FAIL(sum(of({}), 0), "[sum] expected an axis of [], got 0");
  EXPECT_FAIL(mean(of({0})), "[mean] expected at least one value, got shape [0]");
  EXPECT_FAIL(mean(of({3, 0}), 1), "[mean] expected at least one value");
  EXPECT_FAIL(transpose(of({3})), "[transpose] expected an axis of [3], got -2");
  EXPECT_FAIL(transpose(of({3, 4}), 0, 2), "[transpose] expected an axis of [3, 4], got 2");
  EXPECT_FAIL(slice(of({3, 4}), 2, 0, 1), "[slice] expected an axis of [3, 4], got 2");
  EXPECT_FAIL(slice(of({3, 4}), 1, 2, 5),
              "[slice] expected a range within [0, 4) on axis 1 of [3, 4], got [2, 5)");
  EXPECT_FAIL(slice(of({3, 4}), 0, 2, 1), "got [2, 1)");
  EXPECT_FAIL(slice(of({3, 4}), 0, -1, 1), "got [-1, 1)");
  EXPECT_FAIL(reshape(of({2, 3}), {4}), "[reshape] [2, 3] has 6 values, but [4] has 4");
  EXPECT_FAIL(concat(std::vector<Tensor>{}, 0), "[concat] expected at least one tensor");
  EXPECT_FAIL(concat(std::vector<Tensor>{of({})}, 0), "[concat] expected an axis of [], got 0");
  EXPECT_FAIL(concat(std::vector<Tensor>{of({2, 3}), of({2, 3, 1})}, 0),
              "[concat] expected shapes equal to [2, 3]");
  EXPECT_FAIL(concat(std::vector<Tensor>{of({2, 3}), of({2, 4})}, 0),
              "[concat] expected shapes equal to [2, 3] on every axis but 0, got [2, 4]");
}

BOOST_AUTO_TEST_CASE(invalid_operands_of_softmax_and_norms_are_refused) {
  EXPECT_FAIL(softmax(of({2, 3}), Array({2})), "[softmax] expected shapes that broadcast together");
  EXPECT_FAIL(softmax(of({3}), Array({2, 3})),
              "[softmax] expected a mask that broadcasts to [3], got [2, 3]");
  EXPECT_FAIL(log_softmax(of({1, 3}), Array({2, 1})),
              "[log_softmax] expected a mask that broadcasts to [1, 3], got [2, 1]");
  EXPECT_FAIL(layer_norm(of({2, 3}), of({2}), Tensor()),
              "[layer_norm] expected gain of shape [3] for x [2, 3], got [2]");
  EXPECT_FAIL(layer_norm(of({2, 3}), Tensor(), of({3, 1})),
              "[layer_norm] expected bias of shape [3]");
  EXPECT_FAIL(layer_norm(of({2, 3}), Tensor(), Tensor(), -1),
              "[layer_norm] expected eps >= 0, got -1");
  EXPECT_FAIL(rms_norm(of({2, 3}), of({1})),
              "[rms_norm] expected gain of shape [3] for x [2, 3], got [1]");
  EXPECT_FAIL(rms_norm(of({2, 3}), Tensor(), not_a_number),
              "[rms_norm] expected eps >= 0, got nan");
}

BOOST_AUTO_TEST_CASE(invalid_ids_and_tables_of_an_embedding_are_refused) {
  EXPECT_FAIL(embedding(of({3, 2}), Ids{0, 3}),
              "[embedding] expected ids in [0, 3), got 3 at position 1");
  EXPECT_FAIL(embedding(of({3, 2}), Ids{0, 1, -1}),
              "[embedding] expected ids in [0, 3), got -1 at position 2");
  EXPECT_FAIL(embedding(of({0, 2}), Ids{0}),
              "[embedding] expected ids in [0, 0), got 0 at position 0");
  EXPECT_FAIL(embedding(of({3}), Ids{0}), "[embedding] expected a table [vocabulary, d], got [3]");
}

BOOST_AUTO_TEST_CASE(invalid_probabilities_and_residuals_of_dropout_are_refused) {
  for (const double p : {-0.1, 1.0, 2.0, -std::numeric_limits<double>::infinity()}) {
    EXPECT_FAIL(dropout(of({2}), static_cast<real>(p), {}), "[dropout] expected p in [0, 1), got");
    EXPECT_FAIL(dropout_add(of({2}), of({2}), static_cast<real>(p), {}),
                "[dropout_add] expected p in [0, 1), got");
  }
  EXPECT_FAIL(dropout(of({2}), not_a_number, {}), "[dropout] expected p in [0, 1), got nan");
  EXPECT_FAIL(dropout(of({2}), real(0.999999), {}),
              "[dropout] expected p <= 1 - 1/65536, got 0.999999");
  EXPECT_FAIL(dropout_add(of({2}), of({3}), real(0.5), {}),
              "[dropout_add] expected a residual of x's shape [2], got [3]");
  EXPECT_FAIL(dropout_add(of({2}), of({1}), 0, {}),
              "[dropout_add] expected a residual of x's shape [2], got [1]");
}

BOOST_AUTO_TEST_CASE(invalid_attention_shapes_are_refused) {
  EXPECT_FAIL(attention(of({3}), of({2, 3}), of({2, 3})),
              "[attention] expected q, k and v of shape [..., T, d], got [3]");
  EXPECT_FAIL(attention(of({2, 3}), of({2, 4}), of({2, 3})),
              "[attention] expected q and k of the same width, got [2, 3] and [2, 4]");
  EXPECT_FAIL(attention(of({2, 3}), of({2, 3}), of({4, 3})),
              "[attention] expected as many values as keys, got [4, 3] and [2, 3]");
  EXPECT_FAIL(causal_mask(-1), "[causal_mask]");
}

BOOST_AUTO_TEST_CASE(operands_of_matrix_products_that_do_not_fit_are_refused) {
  EXPECT_FAIL(matmul(of({2, 3}), of({4, 5})),
              "[matmul] expected equal inner sizes, got [2, 3] times [4, 5]");
  EXPECT_FAIL(matmul(of({4, 2}), of({5, 3}), true, true), "got [4, 2]ᵀ times [5, 3]ᵀ");
  EXPECT_FAIL(matmul(of({3}), of({3, 4})),
              "[matmul] expected at least two axes, got [3] and [3, 4]");
  EXPECT_FAIL(matmul(of({2, 3, 3}), of({4, 3, 3})),
              "[matmul] expected leading axes that broadcast, got [2, 3, 3] and [4, 3, 3]");
  EXPECT_FAIL(affine(of({2, 3}), of({3})), "[affine] expected a weight [out, in], got [3]");
  EXPECT_FAIL(affine(of({2, 3}), of({5, 4})),
              "[affine] expected x of shape [..., 4] for weight [5, 4], got [2, 3]");
  for (const std::int64_t n : {4, 6})
    EXPECT_FAIL(affine(of({2, 3}), of({5, 3}), of({n})),
                fmt::format("[affine] expected a bias [5], got [{}]", n));
  for (const auto& [begin, end] : {std::pair{-1, 2}, {3, 2}, {1, 6}})
    EXPECT_FAIL(
        affine_rows(of({2, 3}), of({5, 3}), {}, begin, end),
        fmt::format("[affine] rows [{}, {}) are out of range for weight [5, 3]", begin, end));
}

BOOST_AUTO_TEST_CASE(invalid_smoothing_and_divisors_of_losses_are_refused) {
  for (const real smoothing : {real(-0.1), real(1.5), not_a_number})
    EXPECT_FAIL(cross_entropy(of({2, 3}), Ids{0, 1}, smoothing, 2.0),
                "[cross_entropy] expected smoothing in [0, 1], got");
  for (const double divisor : {0.0, -2.0, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_FAIL(cross_entropy(of({2, 3}), Ids{0, 1}, 0, divisor),
                "[cross_entropy] expected a divisor above 0, got");
}

BOOST_AUTO_TEST_SUITE_END()
