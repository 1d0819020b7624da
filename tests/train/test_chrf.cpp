#include <boost/test/unit_test.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/train/support.h"
#include "train/metrics/chrf.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(chrf)
using Lines = std::vector<std::string>;

namespace {
void check_score(const Lines& hypotheses, const Lines& references, double expected) {
  const double score = corpus_chrf(hypotheses, references).score;
  BOOST_TEST(std::abs(score - expected) < 1e-9, score << " instead of " << expected);
}
}  // namespace

BOOST_AUTO_TEST_CASE(scores_equal_those_of_the_reference_implementation) {
  const auto golden =
      nlohmann::json::parse(get(HEED_SOURCE_DIR "/tests/train/metrics_golden.json"));
  for (const auto& corpus : golden["corpora"]) {
    const auto hypotheses = corpus["hypotheses"].get<Lines>();
    const auto references = corpus["references"].get<Lines>();
    check_score(hypotheses, references, corpus["chrf"]);
  }
}

// An example that Hugging Face publishes with sacreBLEU's score, and the examples from sacreBLEU's
// tests of the effective order. These tests use beta = 3, with which the scores are the same.
BOOST_AUTO_TEST_CASE(scores_equal_published_scores_of_sacrebleu) {
  check_score({"The relationship between cats and dogs is not exactly friendly.",
               "a good bookshop is just a genteel black hole that knows how to read."},
              {"The relationship between dogs and cats is not exactly friendly.",
               "A good bookshop is just a genteel Black Hole that knows how to read."},
              84.64214891738334);
  check_score({"a"}, {"a"}, 100.0);
  check_score({""}, {"reference"}, 0.0);
  check_score({"a b c"}, {"a b c"}, 100.0);
  check_score({"a b c"}, {"abc"}, 100.0);
  check_score({""}, {"c"}, 0.0);
  check_score({"a", "b"}, {"a", "c"}, 50.0);
  check_score({"aa"}, {"ab"}, 25.0);
}

// "abcd" scored against "ab": 2 of 4 characters match 2 of 2, and 1 of 3 bigrams matches 1 of 1.
// Orders 3 to 6 are dropped because the reference has no such n-grams. P = 5/12, R = 1,
// F2 = 5 · P · R / (4 P + R).
BOOST_AUTO_TEST_CASE(score_equals_a_value_computed_by_hand) {
  check_score({"abcd"}, {"ab"}, 100.0 * 5.0 * (5.0 / 12.0) / (4.0 * 5.0 / 12.0 + 1.0));
  // The second line has n-grams of all orders. The first line still adds nothing to the counts from
  // order 3 on.
  const double p1 = 10.0 / 12.0, p2 = 8.0 / 10.0;  // orders 3 to 6 have precision 1
  const double p = (p1 + p2 + 4.0) / 6.0;
  check_score({"abcd", "hgfedcba"}, {"ab", "hgfedcba"}, 100.0 * 5.0 * p / (4.0 * p + 1.0));
}

BOOST_AUTO_TEST_CASE(white_space_is_ignored_and_invalid_bytes_are_scored_as_characters) {
  check_score({}, {}, 0.0);
  check_score({""}, {""}, 0.0);
  check_score({"x"}, {""}, 0.0);
  check_score({"日本\u3000語"}, {"日本語"}, 100.0);  // all white space is removed
  check_score({"Ä"}, {"ä"}, 0.0);
  check_score({"\xff\xfe"}, {"\xff\xfe"}, 100.0);  // each byte of invalid UTF-8 is a character
  check_score({"\xff"}, {"\xfe"}, 0.0);
}

BOOST_AUTO_TEST_CASE(signature_has_the_format_of_sacrebleu) {
  BOOST_TEST(
      corpus_chrf(Lines{"a"}, Lines{"a"})
          .signature.starts_with("nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:heed-"));
}

BOOST_AUTO_TEST_CASE(unequal_numbers_of_lines_are_refused) {
  HEED_CHECK_ERROR(Exit::bad_input,
                   "chrF: the numbers of lines to score (1) and of reference lines (2) differ",
                   corpus_chrf(Lines{"a"}, Lines{"a", "b"}));
}

BOOST_AUTO_TEST_SUITE_END()
