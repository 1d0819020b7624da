// Training in float32, compared with the reference Transformer (tests/nn/test_reference.cpp: float64).
#include "tests/nn/reference_models.h"

namespace heed::test {

BOOST_AUTO_TEST_SUITE(reference_steps)

BOOST_AUTO_TEST_CASE(weights_after_100_steps_are_close_to_those_of_the_definition) {
  check_100_steps({12, 2, 20, 2, 2}, 1e-3);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heed::test
