// In float32, the gradient checker detects only large errors, and its report says so.
#include <boost/test/unit_test.hpp>

#include "autograd/gradcheck.h"
#include "tests/autograd/planted.h"

using namespace heed;

BOOST_AUTO_TEST_SUITE(gradcheck_any_real_suite)

BOOST_AUTO_TEST_CASE(correct_gradients_pass_and_wrong_gradients_fail_in_both_builds) {
  const GradcheckResult result =
      gradcheck([](const Tensor& x, const Tensor& w) { return tanh(matmul(x, w)); }, normal({3, 4}),
                normal({4, 2}, 2));
  BOOST_TEST(result);
  BOOST_TEST(says(result.report(), "float32") == (sizeof(real) == 4));
  BOOST_TEST(gradcheck([](const Tensor& x) { return softmax(x); }, normal({3, 5})));
  const auto doubled =
      planted([](const Array& x) { return x.clone(); },
              [](const Array&, const Array&, const Array& dy) {
                return generate(dy.shape(), [&](auto i) { return 2 * dy.data()[i]; });
              });
  EXPECT_WRONG(gradcheck(doubled, normal({3, 5})),
               "missing or wrong factor: analytic / numeric = ");
}

BOOST_AUTO_TEST_SUITE_END()
