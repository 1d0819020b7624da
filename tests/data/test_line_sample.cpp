#include "data/tokenizers/vocabulary.h"

#include <set>

#include "tests/data/support.h"

using namespace heed;

BOOST_AUTO_TEST_SUITE(line_sample)

BOOST_AUTO_TEST_CASE(few_lines_are_all_returned_in_order) {
  const std::vector<std::string> lines{"a", "b", "c"};
  for (const std::size_t max_lines : {3, 4}) {
    const auto sample = sample_lines(lines, max_lines, 1);
    BOOST_TEST(sample.size() == 3u);
    for (std::size_t i = 0; i < sample.size(); ++i) BOOST_TEST(sample[i] == &lines[i]);
  }
  BOOST_TEST(sample_lines({}, 3, 1).empty());
}

BOOST_AUTO_TEST_CASE(sample_of_many_lines_is_uniform_and_without_replacement) {
  const std::vector<std::string> lines(20);
  std::vector<int> times(lines.size());
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const auto sample = sample_lines(lines, 5, seed);
    BOOST_TEST(sample.size() == 5u);
    BOOST_TEST(std::set(sample.begin(), sample.end()).size() == 5u);
    BOOST_TEST((sample == sample_lines(lines, 5, seed)));
    for (const std::string* line : sample) ++times[static_cast<std::size_t>(line - lines.data())];
  }
  // A line is expected in 2000 · 5 / 20 = 500 samples, with a standard deviation of 19.
  for (const int count : times) BOOST_TEST((count > 400 && count < 600));
}

BOOST_AUTO_TEST_SUITE_END()
