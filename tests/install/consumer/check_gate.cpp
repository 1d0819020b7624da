/// Checks the gradients of the op and of the layer in double, and that a wrong gradient is
/// detected.
#define BOOST_TEST_MODULE gate
#define BOOST_TEST_DYN_LINK
#include <boost/test/unit_test.hpp>
#include <string>
#include <type_traits>

#include <heed/autograd/gradcheck.h>
#include "gate.h"

using heed::gradcheck;
static_assert(std::is_same_v<heed::real, double>, "heed::f64 must use double");

BOOST_AUTO_TEST_CASE(op_passes_gradcheck) {
  BOOST_TEST(gradcheck(heed::cube, heed::Tensor(heed::example({3, 5}))));
}

BOOST_AUTO_TEST_CASE(layer_and_parameters_pass_gradcheck) {
  const heed::GradcheckResult result =
      gradcheck(heed::Gate(3, 2, 1), heed::Tensor(heed::example({5, 3})));
  BOOST_TEST(result);
  BOOST_TEST(result.parameters.size() == 4u);  // x, w, b, v
}

// The tape's extensions are linked into a program that uses an installed heed.
BOOST_AUTO_TEST_CASE(saved_value_that_changes_before_backward_is_refused) {
  heed::Tensor x = heed::Tensor::variable(heed::example({3, 5}));
  const heed::Tensor y = heed::cube(x);
  x.mutable_value().data()[0] = 7;
  BOOST_CHECK_EXCEPTION(backward(y, heed::example({3, 5})), heed::Error, [](const auto& error) {
    return std::string(error.what()).find("was changed after the forward pass") !=
           std::string::npos;
  });
}

/// The op with the wrong derivative 2 x² in place of 3 x².
struct WrongCube : heed::Cube {
  void backward(const heed::Array& dy, heed::Grad dx) const {
    heed::Array g(x.shape());
    for (std::int64_t i = 0; i < x.size(); ++i)
      g.data()[i] = 2 * x.data()[i] * x.data()[i] * dy.data()[i];
    dx.add(g);
  }
};

BOOST_AUTO_TEST_CASE(wrong_gradient_fails_gradcheck_and_its_input_is_named) {
  const auto wrong = [](const heed::Tensor& x) { return heed::apply(WrongCube{}, x); };
  const heed::GradcheckResult result =
      gradcheck({.names = {"the input"}}, wrong, heed::Tensor(heed::example({3, 5})));
  BOOST_TEST(!result.passed());
  BOOST_TEST(result.report().find("the input") != std::string::npos);
}
