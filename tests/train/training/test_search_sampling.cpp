// Sampled frequencies match the probabilities within four standard deviations.
#include <cmath>
#include <limits>
#include <map>

#include "tests/train/support.h"
#include "tests/train/table_decoding.h"
#include "tests/train/training.h"
#include "train/decode/search.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(sampling_tokens)

namespace {

using Tokens = std::vector<std::int32_t>;
constexpr float never = -std::numeric_limits<float>::infinity();
constexpr std::int64_t draws = 20000;

const std::vector<double> shares{0,    0,   0.05, 0.4,
                                 0.25, 0.2, 0.1};  // probabilities by id; </s> has id 2

std::vector<float> row() {
  std::vector<float> z;
  for (const double p : shares) z.push_back(p > 0 ? static_cast<float>(std::log(p)) : never);
  return z;
}

DecodeOptions sampling() {
  DecodeOptions o;
  o.sample = true;
  o.beam = 5;  // has no effect on sampling
  return o;
}

/// Samples one token for each of `draws` sentences, which are numbered from `first`.
std::vector<Hypothesis> draw(const DecodeOptions& options, std::uint64_t seed = 1,
                             std::int64_t first = 0) {
  TableDecoding decoding(draws, [](std::int32_t, const Tokens&) { return row(); });
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < draws; ++i) numbers.push_back(first + i);
  std::vector<Hypothesis> drawn;
  for (const auto& all :
       Search(options, 1, seed, numbers).run(decoding, Tokens(draws, Tokenizer::bos)))
    drawn.push_back(all.front());
  return drawn;
}

std::int32_t token_of(const Hypothesis& h) {
  return h.tokens.empty() ? Tokenizer::eos : h.tokens[0];
}

/// Checks the frequency of each token against these weights, which need not sum to 1, and that no
/// other token was drawn.
void check_shares(const std::vector<Hypothesis>& drawn, std::map<std::int32_t, double> weights) {
  double sum = 0;
  for (const auto& [token, w] : weights) sum += w;
  std::map<std::int32_t, double> counts;
  for (const Hypothesis& h : drawn) ++counts[token_of(h)];
  for (const auto& [token, n] : counts)
    BOOST_TEST(weights.count(token) == 1u,
               "token " << token << " was drawn although its probability is 0");
  for (const auto& [token, w] : weights) {
    const double p = w / sum, n = static_cast<double>(draws);
    BOOST_TEST(std::abs(counts[token] - n * p) <= 4 * std::sqrt(n * p * (1 - p)),
               "token " << token << ": " << counts[token] << " times, expected " << n * p);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(frequencies_of_sampled_tokens_match_the_probabilities) {
  const std::vector<Hypothesis> drawn = draw(sampling());
  check_shares(drawn, {{2, 0.05}, {3, 0.4}, {4, 0.25}, {5, 0.2}, {6, 0.1}});
  for (std::size_t i = 0; i < 100; ++i) {
    BOOST_TEST(std::abs(drawn[i].log_prob -
                        std::log(shares[static_cast<std::size_t>(token_of(drawn[i]))])) < 1e-6);
  }
}

BOOST_AUTO_TEST_CASE(temperature_below_1_sharpens_and_above_1_flattens_the_distribution) {
  for (const double t : {0.5, 2.0}) {
    DecodeOptions o = sampling();
    o.temperature = t;
    std::map<std::int32_t, double> weights;
    for (std::int32_t i = 2; i < 7; ++i)
      weights[i] = std::pow(shares[static_cast<std::size_t>(i)], 1 / t);
    check_shares(draw(o), weights);
  }
  DecodeOptions cold = sampling();
  cold.temperature = 1e-3;
  check_shares(draw(cold), {{3, 1}});
}

BOOST_AUTO_TEST_CASE(top_k_keeps_the_k_most_probable_tokens) {
  for (const std::int64_t k : {1, 2, 3, 99}) {
    DecodeOptions o = sampling();
    o.top_k = k;
    std::map<std::int32_t, double> weights{{3, 0.4}, {4, 0.25}, {5, 0.2}, {6, 0.1}, {2, 0.05}};
    if (k < 4) weights.erase(6), weights.erase(2);
    if (k < 3) weights.erase(5);
    if (k < 2) weights.erase(4);
    check_shares(draw(o), weights);
  }
}

BOOST_AUTO_TEST_CASE(top_p_keeps_the_smallest_set_of_tokens_whose_probability_reaches_p) {
  DecodeOptions o = sampling();
  o.top_p = 0.3;
  check_shares(draw(o), {{3, 1}});
  o.top_p = 0.5;
  check_shares(draw(o), {{3, 0.4}, {4, 0.25}});
  o.top_p = 0.7;
  check_shares(draw(o), {{3, 0.4}, {4, 0.25}, {5, 0.2}});
  o.top_k = 2;  // top_p applies after top_k: 0.4 / 0.65 = 0.615
  o.top_p = 0.61;
  check_shares(draw(o), {{3, 1}});
  o.top_p = 0.62;
  check_shares(draw(o), {{3, 0.4}, {4, 0.25}});
}

BOOST_AUTO_TEST_CASE(top_p_counts_probabilities_at_the_given_temperature) {
  DecodeOptions o = sampling();
  o.temperature = 2;  // shares of the square roots: 0.30, 0.24, 0.21, 0.15, 0.11
  o.top_p = 0.6;
  check_shares(draw(o), {{3, std::sqrt(0.4)}, {4, std::sqrt(0.25)}, {5, std::sqrt(0.2)}});
  o.temperature = 0.5;  // shares of the squares: 0.58, 0.23, 0.15, 0.04, 0.01
  o.top_p = 0.57;
  check_shares(draw(o), {{3, 1}});
  o.top_k = 2;  // of the first two: 0.72, 0.28
  o.top_p = 0.7;
  check_shares(draw(o), {{3, 1}});
}

BOOST_AUTO_TEST_CASE(draws_depend_only_on_seed_and_sentence_number) {
  const auto tokens = [](const std::vector<Hypothesis>& drawn, std::int64_t from = 0) {
    Tokens all;
    for (std::size_t i = static_cast<std::size_t>(from); i < drawn.size(); ++i)
      all.push_back(token_of(drawn[i]));
    return all;
  };
  const Tokens once = tokens(draw(sampling()));
  BOOST_TEST((tokens(draw(sampling())) == once));
  BOOST_TEST((tokens(draw(sampling(), 2)) != once));
  // Sentence 100 draws the same random numbers at any index in a batch.
  const Tokens shifted = tokens(draw(sampling(), 1, 100));
  BOOST_TEST(std::equal(once.begin() + 100, once.end(), shifted.begin()));
}

BOOST_AUTO_TEST_CASE(sampling_draws_a_new_random_number_for_each_token) {
  const auto level = [](std::int32_t, const Tokens&) {
    std::vector<float> z(23, 0.0f);
    z[2] = never;
    return z;
  };
  TableDecoding decoding(1, level);
  const Tokens drawn =
      Search(sampling(), 2000, 1, {0}).run(decoding, {Tokenizer::bos})[0][0].tokens;
  BOOST_TEST(drawn.size() == 2000u);
  std::map<std::int32_t, int> counts;
  int repeats = 0;
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    ++counts[drawn[i]];
    repeats += i > 0 && drawn[i] == drawn[i - 1];
  }
  BOOST_TEST(counts.size() == 20u);
  for (const auto& [token, n] : counts) BOOST_TEST(std::abs(n - 100) < 4 * std::sqrt(95.0));
  BOOST_TEST(std::abs(repeats - 100) < 4 * std::sqrt(95.0));
}

BOOST_AUTO_TEST_CASE(log_probabilities_of_samples_are_those_of_the_whole_distribution) {
  for (const double t : {0.5, 1.0}) {
    DecodeOptions o = sampling();
    o.temperature = t;
    o.top_k = 3;
    o.top_p = 0.9;
    const std::vector<Hypothesis> drawn = draw(o);
    for (std::size_t i = 0; i < 100; ++i)
      BOOST_TEST(std::abs(drawn[i].log_prob -
                          std::log(shares[static_cast<std::size_t>(token_of(drawn[i]))])) < 1e-6);
  }
}

BOOST_AUTO_TEST_SUITE_END()
