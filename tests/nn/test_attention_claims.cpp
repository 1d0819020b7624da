// The claims of Vaswani et al. 2017, section 3.2.1, about the scale of the scores.
#include <cmath>

#include "nn/layers/attention.h"
#include "tests/nn/support.h"

HEED_BEGIN

BOOST_AUTO_TEST_SUITE(attention_claims)

namespace {

/// The variance, over all i, of the inner product of row i of q and row i of k.
double variance_of_products(const Array& q, const Array& k) {
  double sum = 0, squares = 0;
  for (std::int64_t i = 0; i < q.rows(); ++i) {
    double product = 0;
    for (std::int64_t c = 0; c < q.cols(); ++c) product += q.row(i)[c] * k.row(i)[c];
    sum += product;
    squares += product * product;
  }
  const double mean = sum / static_cast<double>(q.rows());
  return squares / static_cast<double>(q.rows()) - mean * mean;
}

}  // namespace

BOOST_AUTO_TEST_CASE(inner_product_of_unit_variance_rows_has_variance_equal_to_dimension) {
  for (const std::int64_t size : {8, 64, 512}) {
    const double variance = variance_of_products(normal({4000, size}, 1), normal({4000, size}, 2));
    BOOST_TEST(std::abs(variance / static_cast<double>(size) - 1) < 0.1, size << ": " << variance);
  }
}

/// The claim assumes that queries and keys have unit variance. With Glorot initialisation of
/// in_proj [3 d, d], they have variance 1/2, so the variance of their inner products is a quarter
/// of the dimension.
BOOST_AUTO_TEST_CASE(initial_score_variance_is_a_quarter_of_the_dimension) {
  for (const std::int64_t d : {8, 64, 512}) {
    double ratio = 0;
    constexpr int draws = 5;
    for (std::uint64_t seed = 1; seed <= draws; ++seed) {
      Init init(seed);
      const MultiHeadAttention layer = attention_of(d, 1, AttentionScope::all, 0, init);
      const Tensor q(normal({1000, d}, 1)), k(normal({1000, d}, 2));
      const Tensor zeros(Array::zeros({3 * d}));
      ratio += variance_of_products(affine_rows(q, layer.in_proj_weight, zeros, 0, d).value(),
                                    affine_rows(k, layer.in_proj_weight, zeros, d, 2 * d).value()) /
               static_cast<double>(d) / draws;
    }
    BOOST_TEST(std::abs(ratio - 0.25) < (d == 8 ? 0.1 : 0.03), d << ": " << ratio);
  }
}

BOOST_AUTO_TEST_SUITE_END()

HEED_END
