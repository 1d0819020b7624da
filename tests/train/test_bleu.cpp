#include <boost/test/unit_test.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/train/support.h"
#include "train/metrics/bleu.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(bleu)
using Lines = std::vector<std::string>;

namespace {
const nlohmann::json& golden() {
  static const nlohmann::json values =
      nlohmann::json::parse(get(HEED_SOURCE_DIR "/tests/train/metrics_golden.json"));
  return values;
}

void check_close(double value, double expected) {
  BOOST_TEST(std::abs(value - expected) < 1e-9, value << " instead of " << expected);
}

void check_golden(const BleuScore& bleu, const nlohmann::json& expected) {
  BOOST_TEST((bleu.matches == expected["matches"].get<std::array<std::int64_t, bleu_order>>()));
  BOOST_TEST((bleu.totals == expected["totals"].get<std::array<std::int64_t, bleu_order>>()));
  BOOST_TEST(bleu.hypothesis_length == expected["hyp_len"].get<std::int64_t>());
  BOOST_TEST(bleu.reference_length == expected["ref_len"].get<std::int64_t>());
  check_close(bleu.brevity_penalty, expected["brevity_penalty"]);
  check_close(bleu.score, expected["score"]);
}
}  // namespace

BOOST_AUTO_TEST_CASE(tokens_of_13a_equal_those_of_mteval) {
  BOOST_TEST(tokenize_13a("Hello, world!") == "Hello , world !");
  BOOST_TEST(tokenize_13a("It costs 1,000.50 today.") == "It costs 1,000.50 today .");
  BOOST_TEST(tokenize_13a("He's a well-known man (25-30).") ==
             "He's a well-known man ( 25 - 30 ) .");
  BOOST_TEST(tokenize_13a("a..b") == "a . . b");
  BOOST_TEST(tokenize_13a("&quot;x&quot; &amp; &lt;y&gt; &amp;lt;") == "\" x \" & < y > <");
  BOOST_TEST(tokenize_13a("one<skipped>two") == "onetwo");
  BOOST_TEST(tokenize_13a("  \t ") == "");
  BOOST_TEST(tokenize_13a("") == "");
}

BOOST_AUTO_TEST_CASE(tokenizer_13a_splits_at_unicode_spaces_and_keeps_unicode_punctuation) {
  BOOST_TEST(tokenize_13a("a\u00A0b\u3000c\u2009d") == "a b c d");
  BOOST_TEST(tokenize_13a("„Größe“ ist über 5€.") == "„Größe“ ist über 5€ .");
  BOOST_TEST(tokenize_13a("\xff. x") == "\xff . x");  // invalid UTF-8 is copied
  BOOST_TEST(tokenize_13a("a-\n\u3000\n") == "a-");   // trailing white space is removed first
}

// Python's str.split counts the separators of files, groups, records and units among the white space.
BOOST_AUTO_TEST_CASE(words_are_split_at_the_white_space_of_python) {
  for (const char space : {' ', '\t', '\n', '\v', '\f', '\r', '\x1c', '\x1d', '\x1e', '\x1f'})
    BOOST_TEST(tokenize_13a(std::string("a") + space + "b") == "a b", static_cast<int>(space));
  for (const char other : {'\x08', '\x0e', '\x1b', '\x7f'})
    BOOST_TEST(tokenize_13a(std::string("a") + other + "b") == std::string("a") + other + "b");
}

BOOST_AUTO_TEST_CASE(tokens_of_13a_equal_those_of_the_reference_implementation) {
  for (const auto& pair : golden()["tokens"])
    BOOST_TEST(tokenize_13a(pair[0].get<std::string>()) == pair[1].get<std::string>());
}

BOOST_AUTO_TEST_CASE(chinese_characters_are_separate_tokens) {
  BOOST_TEST(tokenize_zh("我爱Apple，不是pear.") == "我 爱 Apple ， 不 是 pear .");
  BOOST_TEST(tokenize_zh("2021年3月, 5.5%") == "2021 年 3 月 , 5.5 %");
  BOOST_TEST(tokenize_zh("“好”—x") ==
             "“ 好 ” — x");  // sacreBLEU counts curly quotes and dashes as Chinese
  BOOST_TEST(tokenize_zh(" .5\u3000") == ".5");     // white space around a line is removed first
  BOOST_TEST(tokenize_zh("&quot;") == "& quot ;");  // unlike 13a, zh keeps entities
  BOOST_TEST(tokenize_zh("\xff\xe4 日") == "\xff\xe4 日");
  for (const auto& pair : golden()["tokens_zh"])
    BOOST_TEST(tokenize_zh(pair[0].get<std::string>()) == pair[1].get<std::string>());
}

// Every character beyond ASCII is placed between letters, from which the tokenizer separates it if it
// is Chinese. Surrogates are not characters. 19 characters are white space.
BOOST_AUTO_TEST_CASE(chinese_characters_are_those_of_the_reference_implementation) {
  const auto ranges = golden()["chinese_ranges"].get<std::vector<std::pair<char32_t, char32_t>>>();
  int spaces = 0;
  for (char32_t c = 0x80; c < 0x110000; ++c) {
    if (c == 0xD800) c = 0xE000;
    std::string bytes;
    if (c < 0x800) {
      bytes = {static_cast<char>(0xC0 | c >> 6)};
    } else if (c < 0x10000) {
      bytes = {static_cast<char>(0xE0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 0x3F))};
    } else {
      bytes = {static_cast<char>(0xF0 | c >> 18), static_cast<char>(0x80 | (c >> 12 & 0x3F)),
               static_cast<char>(0x80 | (c >> 6 & 0x3F))};
    }
    bytes += static_cast<char>(0x80 | (c & 0x3F));
    const bool chinese = std::ranges::any_of(
        ranges, [&](const auto& range) { return range.first <= c && c <= range.second; });
    const std::string found = tokenize_zh("a" + bytes + "b");
    if (found == "a b")
      ++spaces;
    else if (found != (chinese ? "a " + bytes + " b" : "a" + bytes + "b"))
      BOOST_ERROR(fmt::format("U+{:04X}: {}", static_cast<std::uint32_t>(c), found));
  }
  BOOST_TEST(spaces == 19);
}

BOOST_AUTO_TEST_CASE(scores_equal_those_of_the_reference_implementation) {
  for (const auto& corpus : golden()["corpora"]) {
    const auto hypotheses = corpus["hypotheses"].get<Lines>();
    const auto references = corpus["references"].get<Lines>();
    check_golden(corpus_bleu(hypotheses, references), corpus["bleu"]);
    check_golden(corpus_bleu(hypotheses, references, BleuTokenizer::none), corpus["bleu_none"]);
    check_golden(corpus_bleu(hypotheses, references, BleuTokenizer::zh), corpus["bleu_zh"]);
    check_golden(corpus_bleu(hypotheses, references, BleuTokenizer::characters),
                 corpus["bleu_char"]);
  }
}

// The counts and the expected score are from sacreBLEU's tests.
BOOST_AUTO_TEST_CASE(score_of_counts_equals_the_value_in_sacrebleus_tests) {
  BleuScore counts;
  counts.matches = {9, 7, 5, 3};
  counts.totals = {10, 8, 6, 4};
  counts.hypothesis_length = counts.reference_length = 11;
  compute_bleu(counts);
  BOOST_TEST(std::abs(counts.score - 83.75922397) < 1e-7);
}

// `clipped`: only 1 of 3 words matches, because the reference contains "the" once. 0 of 2 bigrams
// and 0 of 1 trigram match. The score is 0 because there is no 4-gram.
BOOST_AUTO_TEST_CASE(scores_equal_values_computed_by_hand) {
  const BleuScore clipped = corpus_bleu(Lines{"the the the"}, Lines{"the cat"});
  BOOST_TEST((clipped.matches == std::array<std::int64_t, 4>{1, 0, 0, 0}));
  BOOST_TEST((clipped.totals == std::array<std::int64_t, 4>{3, 2, 1, 0}));
  BOOST_TEST(clipped.score == 0.0);
  check_close(clipped.precisions[1], 25.0);  // 100 / (2 · 2)
  check_close(clipped.precisions[2], 25.0);  // 100 / (4 · 1)

  // 4 of 4 words and 2 of 3 bigrams match. The precisions of 0 of 2 trigrams and 0 of 1 4-gram are
  // both smoothed to 1/4. The brevity penalty is exp(1 − 5/4).
  const BleuScore smoothed = corpus_bleu(Lines{"a b d e"}, Lines{"a b c d e"});
  BOOST_TEST((smoothed.matches == std::array<std::int64_t, 4>{4, 2, 0, 0}));
  check_close(smoothed.precisions[2], 25.0);
  check_close(smoothed.precisions[3], 25.0);
  check_close(smoothed.brevity_penalty, std::exp(-0.25));
  check_close(smoothed.score, 100.0 * std::exp(-0.25) * std::pow(2.0 / 3.0 / 16.0, 0.25));
}

BOOST_AUTO_TEST_CASE(empty_lines_score_0_and_equal_lines_score_100) {
  BOOST_TEST(corpus_bleu(Lines{"", ""}, Lines{"a b", "c"}).score == 0.0);
  BOOST_TEST(corpus_bleu(Lines{"", ""}, Lines{"a b", "c"}).brevity_penalty == 0.0);
  BOOST_TEST(corpus_bleu(Lines{"a b c d"}, Lines{""}).score == 0.0);
  BOOST_TEST(corpus_bleu(Lines{}, Lines{}).score == 0.0);
  check_close(corpus_bleu(Lines{"a b c d"}, Lines{"a b c d"}).score, 100.0);
}

BOOST_AUTO_TEST_CASE(signature_and_text_have_the_format_of_sacrebleu) {
  const BleuScore bleu = corpus_bleu(Lines{"a b c d e"}, Lines{"a b c d"});
  BOOST_TEST(
      bleu.signature.starts_with("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:heed-"));
  BOOST_TEST(bleu.signature.size() >
             std::string("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:heed-").size());
  BOOST_TEST(bleu.text() ==
             "BLEU = 66.87 80.0/75.0/66.7/50.0 (BP = 1.000 ratio = 1.250 hyp_len = 5 ref_len = 4)");
  BOOST_TEST(corpus_bleu(Lines{"a"}, Lines{"a"}, BleuTokenizer::none)
                 .signature.starts_with("nrefs:1|case:mixed|eff:no|tok:none|smooth:exp|"));
  BOOST_TEST(corpus_bleu(Lines{"a"}, Lines{"a"}, BleuTokenizer::zh)
                 .signature.starts_with("nrefs:1|case:mixed|eff:no|tok:zh|smooth:exp|"));
}

BOOST_AUTO_TEST_CASE(unequal_numbers_of_lines_are_refused) {
  HEED_CHECK_ERROR(Exit::bad_input,
                   "BLEU: the numbers of lines to score (2) and of reference lines (1) differ",
                   corpus_bleu(Lines{"a", "b"}, Lines{"a"}));
}

BOOST_AUTO_TEST_SUITE_END()
