#include "train/metrics/confusion.h"

#include "tests/train/support.h"

using namespace heed;

BOOST_AUTO_TEST_SUITE(confusion)

// y_true = [0,0,0,0,1,1,1,2,2,2], y_pred = [0,0,1,2,1,1,0,2,2,2]; sklearn.metrics computes
// precision 2/3, 2/3, 3/4, recall 1/2, 2/3, 1, F1 4/7, 2/3, 6/7, accuracy 0.7.
BOOST_AUTO_TEST_CASE(measures_equal_those_of_scikit_learn) {
  const int right[] = {0, 0, 0, 0, 1, 1, 1, 2, 2, 2}, given[] = {0, 0, 1, 2, 1, 1, 0, 2, 2, 2};
  Confusion c;
  for (std::size_t i = 0; i < 10; ++i) c.add(right[i], given[i]);
  const double precision[] = {2.0 / 3, 2.0 / 3, 3.0 / 4}, recall[] = {0.5, 2.0 / 3, 1},
               f1[] = {4.0 / 7, 2.0 / 3, 6.0 / 7};
  for (std::size_t i = 0; i < 3; ++i) {
    BOOST_TEST(c.classes()[i].precision() == precision[i], boost::test_tools::tolerance(1e-15));
    BOOST_TEST(c.classes()[i].recall() == recall[i], boost::test_tools::tolerance(1e-15));
    BOOST_TEST(c.classes()[i].f1() == f1[i], boost::test_tools::tolerance(1e-15));
  }
  BOOST_TEST(c.accuracy() == 0.7);
  BOOST_TEST(c.macro_f1() == (4.0 / 7 + 2.0 / 3 + 6.0 / 7) / 3,
             boost::test_tools::tolerance(1e-15));
  const auto name = [](int label) { return std::string(1, static_cast<char>('a' + label)); };
  const nlohmann::json json = c.json(name);
  BOOST_TEST((json["confusion"] == nlohmann::json{{"a", {{"a", 2}, {"b", 1}, {"c", 1}}},
                                                  {"b", {{"a", 1}, {"b", 2}}},
                                                  {"c", {{"c", 3}}}}));
  for (int i = 0; i < 3; ++i) {
    BOOST_TEST(
        (json["classes"][name(i)] == nlohmann::json{{"precision", c.classes()[i].precision()},
                                                    {"recall", c.classes()[i].recall()},
                                                    {"f1", c.classes()[i].f1()},
                                                    {"occurrences", i == 0 ? 4 : 3}}));
  }
  const std::vector<std::string> text = c.text(name);
  BOOST_REQUIRE(text.size() == 9u);
  BOOST_TEST(text[0] == "label  precision  recall      F1  occurrences");
  BOOST_TEST(text[1] == "a         0.6667  0.5000  0.5714            4");
  BOOST_TEST(text[4] == "true label (rows) and predicted label (columns):");
  BOOST_TEST(text[5] == "            a       b       c");
  BOOST_TEST(text[6] == "a           2       1       1");
}

// y_true = [0,0,1,1,1,3], y_pred = [0,2,1,1,0,1]: f1_score(y_true, y_pred, average="macro") of
// scikit-learn is the mean over the labels 0 to 3 of 1/2, 2/3, 0 and 0.
BOOST_AUTO_TEST_CASE(macro_f1_includes_labels_that_only_targets_or_only_outputs_contain) {
  const int right[] = {0, 0, 1, 1, 1, 3}, given[] = {0, 2, 1, 1, 0, 1};
  Confusion c;
  for (std::size_t i = 0; i < 6; ++i) c.add(right[i], given[i]);
  BOOST_TEST(c.macro_f1() == (0.5 + 2.0 / 3) / 4, boost::test_tools::tolerance(1e-15));
}

BOOST_AUTO_TEST_CASE(label_that_is_never_predicted_correctly_has_f1_0) {
  Confusion c;
  BOOST_TEST(c.macro_f1() == 0);
  c.add(5, 6, 3);
  BOOST_REQUIRE(c.classes().size() == 2u);
  for (const Confusion::Class& each : c.classes()) BOOST_TEST(each.f1() == 0);
  BOOST_TEST(c.accuracy() == 0);
}

// Columns are as wide as the longest label, counted in characters.
BOOST_AUTO_TEST_CASE(tables_of_labels_beyond_ascii_are_aligned) {
  Confusion c;
  c.add(0, 0, 3);
  c.add(1, 0, 2);
  const std::vector<std::string> text =
      c.text([](int label) { return label == 0 ? "Größe" : "Äußerung"; });
  BOOST_REQUIRE(text.size() == 7u);
  BOOST_TEST(text[0] == "label     precision  recall      F1  occurrences");
  BOOST_TEST(text[1] == "Größe        0.6000  1.0000  0.7500            3");
  BOOST_TEST(text[2] == "Äußerung     0.0000  0.0000  0.0000            2");
  BOOST_TEST(text[4] == "             Größe  Äußerung");
  BOOST_TEST(text[5] == "Größe            3         0");
  BOOST_TEST(text[6] == "Äußerung         2         0");
}

BOOST_AUTO_TEST_CASE(matrix_is_printed_for_up_to_12_labels) {
  Confusion c;
  const auto name = [](int label) { return std::string(1, static_cast<char>('a' + label)); };
  for (int label = 0; label < 12; ++label) c.add(label, label);
  BOOST_TEST(c.text(name).size() == 1u + 12u + 2u + 12u);
  c.add(0, 12);  // a label that only outputs contain
  BOOST_TEST(c.text(name).size() == 1u + 13u);
}

BOOST_AUTO_TEST_SUITE_END()
