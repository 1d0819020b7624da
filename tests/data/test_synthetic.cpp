#include "data/sources/synthetic.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <sstream>

#include "tests/data/support.h"

using namespace heed;
using namespace heed::testing;

BOOST_AUTO_TEST_SUITE(synthetic)

namespace {

constexpr auto all_kinds = {
    SyntheticKind::copy,     SyntheticKind::reverse, SyntheticKind::sort,
    SyntheticKind::addition, SyntheticKind::dates,   SyntheticKind::brackets,
    SyntheticKind::recall,   SyntheticKind::summary, SyntheticKind::captions,
    SyntheticKind::tones,    SyntheticKind::motion,  SyntheticKind::grammar};

SyntheticOptions options(SyntheticKind kind) {
  return {.name = kind, .train = 3000, .valid = 300, .test = 200, .min_length = 1, .max_length = 8};
}

template <class Check>
void each_pair(const Corpus& corpus, Check check) {
  for (const Split* split : {&corpus.train, &corpus.valid, &corpus.test}) {
    BOOST_REQUIRE(split->source.size() == split->target.size());
    for (std::size_t i = 0; i < split->source.size(); ++i)
      check(split->source[i], split->target[i]);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(splits_are_disjoint_and_have_requested_sizes) {
  for (const auto kind : all_kinds) {
    const Corpus corpus = synthetic_corpus(options(kind), 7);
    BOOST_TEST(corpus.train.source.size() == 3000u);
    BOOST_TEST(corpus.valid.source.size() == 300u);
    BOOST_TEST(corpus.test.source.size() == 200u);
    std::map<std::string, std::set<int>> where;
    int split = 0;
    for (const Split* s : {&corpus.train, &corpus.valid, &corpus.test}) {
      for (const auto& line : s->source) where[line].insert(split);
      ++split;
    }
    for (const auto& [line, splits] : where) BOOST_TEST(splits.size() == 1u, line);
    const std::set<std::string> valid(corpus.valid.source.begin(), corpus.valid.source.end());
    BOOST_TEST(valid.size() == 300u);  // no duplicate line
  }
}

BOOST_AUTO_TEST_CASE(train_contains_no_date_of_valid_or_test) {
  const Corpus corpus = synthetic_corpus(
      {.name = SyntheticKind::dates, .train = 50000, .valid = 1000, .test = 1000}, 1);
  const std::set<std::string> train(corpus.train.target.begin(), corpus.train.target.end());
  const std::set<std::string> valid(corpus.valid.target.begin(), corpus.valid.target.end());
  for (const auto& date : corpus.valid.target) BOOST_TEST(!train.contains(date));
  for (const auto& date : corpus.test.target)
    BOOST_TEST((!train.contains(date) && !valid.contains(date)));
}

BOOST_AUTO_TEST_CASE(corpus_is_function_of_seed) {
  for (const auto kind : all_kinds) {
    const Corpus a = synthetic_corpus(options(kind), 7), b = synthetic_corpus(options(kind), 7);
    const Corpus c = synthetic_corpus(options(kind), 8);
    BOOST_TEST((a.train.source == b.train.source && a.test.target == b.test.target));
    BOOST_TEST((a.train.source != c.train.source && a.test.source != c.test.source));
  }
}

BOOST_AUTO_TEST_CASE(bracket_labels_equal_nesting_depth) {
  auto o = options(SyntheticKind::brackets);
  o.min_length = 2;
  std::set<std::size_t> lengths;
  std::set<std::string> depths;
  each_pair(synthetic_corpus(o, 3), [&](const std::string& source, const std::string& target) {
    const auto brackets = split_at(source, ' '), labels = split_at(target, ' ');
    BOOST_REQUIRE(brackets.size() == labels.size());
    lengths.insert(brackets.size());
    std::string closing;  // the expected closing brackets
    for (std::size_t i = 0; i < brackets.size(); ++i) {
      const std::size_t kind = std::string("([{").find(brackets[i]);
      if (kind != std::string::npos) closing += ")]}"[kind];
      BOOST_REQUIRE(labels[i] == std::to_string(closing.size()));
      depths.insert(labels[i]);
      if (kind != std::string::npos) continue;
      BOOST_REQUIRE((!closing.empty() && brackets[i] == closing.substr(closing.size() - 1)));
      closing.pop_back();
    }
    BOOST_REQUIRE(closing.empty());
  });
  BOOST_TEST((lengths == std::set<std::size_t>{4, 6, 8, 10, 12, 14, 16}));
  BOOST_TEST(depths.size() >= 6u);
}

BOOST_AUTO_TEST_CASE(recall_label_is_the_value_of_the_key_at_the_given_distance) {
  for (const std::int64_t distance : {0, 1, 3}) {
    auto o = options(SyntheticKind::recall);
    o.min_length = 3;
    o.symbols = 9;
    o.distance = distance;
    std::set<std::size_t> positions;
    std::set<std::string> values;
    each_pair(synthetic_corpus(o, 3), [&](const std::string& source, const std::string& target) {
      const auto words = split_at(source, ' '), labels = split_at(target, ' ');
      BOOST_REQUIRE(words.size() == labels.size());
      BOOST_REQUIRE(words[words.size() - 2] == "?");
      std::map<std::string, std::string> value_of;
      for (std::size_t i = 0; i + 2 < words.size(); i += 2) {
        BOOST_REQUIRE(value_of.emplace(words[i], words[i + 1]).second);
        if (words[i] == words.back()) positions.insert((words.size() - 2 - i) / 2);
      }
      BOOST_REQUIRE((value_of.size() >= 3 && value_of.size() <= 8));
      BOOST_REQUIRE(labels.back() == value_of.at(words.back()));
      values.insert(labels.back());
      for (std::size_t i = 0; i + 1 < labels.size(); ++i) BOOST_REQUIRE(labels[i] == "-");
    });
    BOOST_TEST(values.size() == 10u);
    BOOST_TEST(positions.size() == (distance == 0 ? 8u : 1u));
    if (distance > 0) BOOST_TEST(*positions.begin() == static_cast<std::size_t>(distance));
  }
}

BOOST_AUTO_TEST_CASE(copy_reverse_and_sort_targets_are_correct) {
  for (const auto kind : {SyntheticKind::copy, SyntheticKind::reverse, SyntheticKind::sort}) {
    auto o = options(kind);
    o.min_length = 2;
    o.symbols = 5;
    std::set<std::string> symbols;
    std::set<std::size_t> lengths;
    each_pair(synthetic_corpus(o, 3), [&](const std::string& source, const std::string& target) {
      auto words = split_at(source, ' ');
      lengths.insert(words.size());
      for (const auto& word : words) symbols.insert(word);
      if (kind == SyntheticKind::reverse) std::reverse(words.begin(), words.end());
      if (kind == SyntheticKind::sort) std::sort(words.begin(), words.end());
      BOOST_TEST(split_at(target, ' ') == words, boost::test_tools::per_element());
    });
    BOOST_TEST((symbols == std::set<std::string>{"a", "b", "c", "d", "e"}));
    BOOST_TEST((lengths == std::set<std::size_t>{2, 3, 4, 5, 6, 7, 8}));
  }
}

BOOST_AUTO_TEST_CASE(addition_targets_are_sums) {
  auto o = options(SyntheticKind::addition);
  std::set<std::size_t> digits;
  each_pair(synthetic_corpus(o, 3), [&](const std::string& source, const std::string& target) {
    const auto plus = source.find('+');
    const std::string a = source.substr(0, plus), b = source.substr(plus + 1);
    BOOST_TEST(std::to_string(std::stoll(a) + std::stoll(b)) == target);
    BOOST_TEST(std::to_string(std::stoll(a)) == a);  // no leading zeros
    digits.insert(a.size());
    digits.insert(b.size());
  });
  BOOST_TEST(*digits.begin() == 1u);
  BOOST_TEST(*digits.rbegin() == 8u);
  BOOST_TEST(digits.size() == 8u);
  o.min_length = o.max_length = 18;  // sums near the limit of 64 bits
  each_pair(synthetic_corpus(o, 4), [&](const std::string& source, const std::string& target) {
    const auto plus = source.find('+');
    BOOST_TEST(std::to_string(std::stoull(source.substr(0, plus)) +
                              std::stoull(source.substr(plus + 1))) == target);
  });
}

BOOST_AUTO_TEST_CASE(summands_contain_every_digit) {
  for (const std::int64_t length : {1, 3}) {
    const SyntheticOptions o{.name = SyntheticKind::addition,
                             .train = 3000,
                             .valid = 5,
                             .test = 5,
                             .min_length = length,
                             .max_length = length};
    std::map<std::size_t, std::string> found;  // key: position in the source
    each_pair(synthetic_corpus(o, 3), [&](const std::string& source, const std::string&) {
      for (std::size_t i = 0; i < source.size(); ++i) {
        std::string& digits = found[i];
        if (digits.find(source[i]) == std::string::npos) digits += source[i];
      }
    });
    const auto n = static_cast<std::size_t>(length);
    BOOST_TEST(found.size() == 2 * n + 1);
    for (auto& [position, digits] : found) {
      if (position == n) continue;  // the plus sign
      std::sort(digits.begin(), digits.end());
      // Only a summand of one digit may begin with 0.
      const bool leads = n > 1 && (position == 0 || position == n + 1);
      BOOST_TEST(digits == (leads ? "123456789" : "0123456789"));
    }
  }
}

// A word may have different tags in different sentences.
BOOST_AUTO_TEST_CASE(grammar_sentence_determines_one_tag_for_each_word) {
  SyntheticOptions o = options(SyntheticKind::grammar);
  o.max_length = 3;
  std::map<std::string, std::set<std::string>> tags_of_word, tags_of_sentence;
  std::set<std::string> all;
  each_pair(synthetic_corpus(o, 5), [&](const std::string& source, const std::string& target) {
    std::istringstream words(source), tags(target);
    std::string word, tag;
    while (words >> word) {
      BOOST_REQUIRE(static_cast<bool>(tags >> tag));
      tags_of_word[word].insert(tag);
      all.insert(tag);
    }
    BOOST_TEST(!(tags >> tag));
    BOOST_TEST(source.ends_with(" ."));
    tags_of_sentence[source].insert(target);
  });
  BOOST_TEST((all == std::set<std::string>{"ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "NOUN",
                                           "PART", "PRON", "PUNCT", "SCONJ", "VERB"}));
  const auto several = [](const auto& entry) { return entry.second.size() > 1; };
  BOOST_TEST(std::ranges::count_if(tags_of_word, several) >= 25);
  BOOST_TEST(std::ranges::count_if(tags_of_sentence, several) == 0);
  BOOST_TEST((tags_of_word["light"] == std::set<std::string>{"ADJ", "NOUN", "VERB"}));
}

// The summary is the text without the clauses that begin with a conjunction.
BOOST_AUTO_TEST_CASE(summary_consists_of_main_clauses) {
  SyntheticOptions o = options(SyntheticKind::summary);
  o.max_length = 3;
  std::set<std::int64_t> sentences;
  each_pair(synthetic_corpus(o, 3), [&](const std::string& source, const std::string& target) {
    std::string main_clauses;
    for (std::size_t begin = 0; begin < source.size();) {
      const std::size_t end = source.find('.', begin);
      const std::string sentence = source.substr(begin, end - begin);
      for (std::size_t at = 0; at <= sentence.size();) {
        const std::size_t comma = std::min(sentence.find(", ", at), sentence.size());
        std::string clause = sentence.substr(at, comma - at);
        const std::string first = clause.substr(0, clause.find(' '));
        const bool depends = std::set<std::string>{"because", "while", "although", "when",
                                                   "Because", "While", "Although", "When"}
                                 .contains(first);
        if (!depends) {
          clause[0] = static_cast<char>(std::toupper(clause[0]));
          main_clauses += (main_clauses.empty() ? "" : " ") + clause + ".";
        }
        at = comma + 2;
      }
      begin = end + 2;
    }
    BOOST_TEST(main_clauses == target);
    sentences.insert(std::ranges::count(target, '.'));
  });
  BOOST_TEST((sentences == std::set<std::int64_t>{1, 2, 3}));
}

BOOST_AUTO_TEST_CASE(mixture_contains_pairs_of_each_task_with_its_name_as_prefix) {
  SyntheticOptions o = options(SyntheticKind::mixture);
  o.of = {"sort", "addition"};
  const Corpus all = synthetic_corpus(o, 5);
  BOOST_TEST(all.train.source.size() == 6000u);
  std::size_t begin = 0;
  for (const auto& [kind, name] : {std::pair(SyntheticKind::sort, std::string("sort")),
                                   std::pair(SyntheticKind::addition, std::string("addition"))}) {
    const Split expected = synthetic_corpus(options(kind), 5).test;
    BOOST_REQUIRE(all.test.source.size() == 400u);
    for (std::size_t i = 0; i < expected.source.size(); ++i) {
      BOOST_TEST(all.test.source[begin + i] == name + ": " + expected.source[i]);
      BOOST_TEST(all.test.target[begin + i] == expected.target[i]);
    }
    begin += expected.source.size();
  }
  BOOST_REQUIRE(all.test.parts.size() == 2u);
  BOOST_TEST((all.test.parts[1].name == "addition" && all.test.parts[1].size == 200));
}

BOOST_AUTO_TEST_CASE(drawings_and_motion_use_the_whole_of_an_image_that_is_not_a_square) {
  using Numbers = std::array<std::int64_t, 2>;  // of a row and of a column
  for (const auto& size : {Numbers{16, 40}, Numbers{40, 16}}) {
    const ImageOptions image{.height = size[0], .width = size[1], .channels = 3};
    Numbers last{}, corner{};
    SyntheticOptions o{.name = SyntheticKind::captions, .train = 500, .valid = 5, .test = 5};
    each_pair(synthetic_corpus(o, 3, image), [&](const std::string& source, const std::string&) {
      for (const std::string& shape : split_at(source.substr(source.find(':') + 1), ';')) {
        const auto words = split_at(shape, ' ');  // colour, kind, left, top, size
        const std::int64_t side = std::stoll(words.at(4));
        for (const std::size_t axis : {0, 1}) {
          const std::int64_t begin = std::stoll(words[3 - axis]);
          BOOST_REQUIRE(begin >= 0);
          last[axis] = std::max(last[axis], begin + side);
        }
      }
    });
    BOOST_TEST((last == size));
    o.name = SyntheticKind::motion;
    each_pair(synthetic_corpus(o, 3, image), [&](const std::string& source, const std::string&) {
      const auto words = split_at(source.substr(source.find(':') + 1), ' ');  // left, top, size
      for (const std::size_t axis : {0, 1})
        corner[axis] = std::max<std::int64_t>(corner[axis], std::stoll(words[1 - axis]));
    });
    BOOST_TEST((corner == Numbers{size[0] - 1, size[1] - 1}));
  }
}

BOOST_AUTO_TEST_CASE(synthetic_task_with_too_few_different_lines_is_refused) {
  SyntheticOptions o = options(SyntheticKind::copy);
  o.symbols = 2;
  o.max_length = 3;  // 14 lines in total
  expect_error(Exit::usage, {"too few different lines"}, [&] { synthetic_corpus(o, 1); });
}

BOOST_AUTO_TEST_SUITE_END()
