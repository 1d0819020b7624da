#include <boost/test/unit_test.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/train/support.h"
#include "train/metrics/rouge.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(rouge)
using Lines = std::vector<std::string>;

namespace {
void check_close(double value, double expected) {
  BOOST_TEST(std::abs(value - expected) < 1e-9, value << " instead of " << expected);
}
}  // namespace

BOOST_AUTO_TEST_CASE(words_are_sequences_of_letters_and_digits) {
  BOOST_TEST((rouge_words("The cat's 2nd-best: Ärger!") ==
              Lines{"the", "cat", "s", "2nd", "best", "ärger"}));
  BOOST_TEST(rouge_words(" .,; ").empty());
}

// F1 of the examples in section 3 of Lin 2004, whose reference is "police killed the gunman".
BOOST_AUTO_TEST_CASE(scores_equal_the_examples_of_lin_2004) {
  const Lines reference{"police killed the gunman"};
  check_close(mean_rouge(Lines{"police kill the gunman"}, reference).rouge_l, 75);
  check_close(mean_rouge(Lines{"the gunman kill police"}, reference).rouge_l, 50);
  check_close(mean_rouge(Lines{"the gunman police killed"}, reference).rouge_l, 50);
  check_close(mean_rouge(Lines{"police kill the gunman"}, reference).rouge_2, 100.0 / 3);
  check_close(mean_rouge(Lines{"the gunman kill police"}, reference).rouge_2, 100.0 / 3);
}

BOOST_AUTO_TEST_CASE(scores_equal_values_computed_by_hand) {
  // 3 of 4 output words match 3 of 6 reference words: "the" occurs only once in the reference.
  const RougeScore score =
      mean_rouge(Lines{"the the cat sat"}, Lines{"the black cat sat down there"});
  check_close(score.rouge_1, 60);
  check_close(score.rouge_2, 25);  // "cat sat" matches: 1 of 3 and 1 of 5 bigrams
  check_close(score.rouge_l, 60);
  const RougeScore two = mean_rouge(Lines{"a b", "x"}, Lines{"a b", "y"});
  check_close(two.rouge_1, 50);
  check_close(two.rouge_2, 50);
  check_close(mean_rouge(Lines{""}, Lines{"a"}).rouge_l, 0);
  check_close(mean_rouge(Lines{"", "a"}, Lines{"", "a"}).rouge_1, 50);
  check_close(mean_rouge(Lines{}, Lines{}).rouge_1, 0);
}

BOOST_AUTO_TEST_CASE(scores_equal_those_of_the_reference_implementation) {
  const auto golden =
      nlohmann::json::parse(get(HEED_SOURCE_DIR "/tests/train/metrics_golden.json"));
  for (const auto& corpus : golden["corpora"]) {
    const RougeScore score =
        mean_rouge(corpus["hypotheses"].get<Lines>(), corpus["references"].get<Lines>());
    check_close(score.rouge_1, corpus["rouge"][0]);
    check_close(score.rouge_2, corpus["rouge"][1]);
    check_close(score.rouge_l, corpus["rouge"][2]);
  }
}

BOOST_AUTO_TEST_CASE(text_contains_scores_and_signature) {
  const RougeScore score = mean_rouge(Lines{"a b"}, Lines{"a c"});
  BOOST_TEST(
      score.text().starts_with("ROUGE-1 = 50.00  ROUGE-2 = 0.00  ROUGE-L = 50.00 (rouge|nrefs:1|"));
  BOOST_TEST(score.signature.find("|tok:letters|") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(unequal_numbers_of_lines_are_refused) {
  HEED_CHECK_ERROR(Exit::bad_input,
                   "ROUGE: the numbers of lines to score (2) and of reference lines (1) differ",
                   mean_rouge(Lines{"a", "b"}, Lines{"a"}));
}

BOOST_AUTO_TEST_SUITE_END()
