// Notes about products in bf16.
#include <string>

#include "autograd/kernels/fast/gemm/bf16.h"
#include "tests/train/support.h"
#include "train/tasks/precision.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(precision_notes)

BOOST_AUTO_TEST_CASE(training_in_bf16_is_told_that_float32_is_faster) {
  BOOST_TEST(
      slow_bf16_note({264, 148}) ==
      "note: train.precision is bf16, but products in bf16 are slower than in float32 on this "
      "processor (148 and 264 GFLOP/s); compare the steps with heed bench CONFIG --precisions");
  BOOST_TEST(slow_bf16_note({148, 264}) == "");
  BOOST_TEST(slow_bf16_note({148, 148}) == "");
}

BOOST_AUTO_TEST_CASE(a_note_about_a_precision_appears_only_if_it_is_requested) {
  BOOST_TEST(training_precision_note(Precision::float32) == "");
  BOOST_TEST(bf16_note(false, "decode.precision") == "");
  const std::string& obstacle = kernels::bf16_obstacle();
  BOOST_TEST(bf16_note(true, "decode.precision") ==
             (obstacle.empty()
                  ? ""
                  : "note: decode.precision is bf16, but " + obstacle + "; using float32 instead"));
}

BOOST_AUTO_TEST_CASE(measured_rates_are_those_of_products_in_each_precision) {
  if (!kernels::bf16_obstacle().empty()) return;
  const ProductRates rates = product_rates();
  for (const double rate : {rates.float32, rates.bf16}) {
    BOOST_TEST(rate > 0.1);
    BOOST_TEST(rate < 1e5);
  }
  BOOST_TEST(rates.float32 != rates.bf16);
}

BOOST_AUTO_TEST_SUITE_END()
