// Training in float32, compared with the reference Transformer (tests/nn/test_reference.cpp: float64).
#include "tests/nn/reference_models.h"

namespace heed::test {

BOOST_AUTO_TEST_SUITE(reference_steps)

BOOST_AUTO_TEST_CASE(weights_after_100_steps_are_close_to_those_of_the_definition) {
  constexpr std::uint32_t vocabulary = 11;
  const reference::Sizes sizes{12, 2, 20, 2, 2};
  Init init(5);
  const reference::EncoderDecoder translator(sizes, vocabulary, init);
  BOOST_TEST(difference_after_100_steps(
                 translator, *make_seq2seq(options_of(sizes), vocabulary, vocabulary, true, 1),
                 vocabulary, false) < 1e-3);
  const reference::LanguageModel language_model(sizes, vocabulary, init);
  BOOST_TEST(difference_after_100_steps(language_model,
                                        *make_language_model(options_of(sizes), vocabulary, 1),
                                        vocabulary, true) < 1e-3);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heed::test
