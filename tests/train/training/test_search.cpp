// Greedy search, beam search and sampling with a table of probabilities as the model.
#include "train/decode/search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "tests/train/support.h"
#include "tests/train/table_decoding.h"
#include "tests/train/training.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(searching)

namespace {

using Tokens = std::vector<std::int32_t>;
constexpr float never = -std::numeric_limits<float>::infinity();
constexpr std::int32_t eos = Tokenizer::eos, A = 3, B = 4;

DecodeOptions beam_of(std::int64_t beam, double alpha = 0) {
  DecodeOptions o;
  o.beam = beam;
  o.length_penalty = alpha;
  return o;
}

std::vector<Hypothesis> search(const TableDecoding::Table& table, const DecodeOptions& options,
                               std::int64_t limit, std::int64_t sentences = 1,
                               std::uint64_t seed = 1) {
  TableDecoding decoding(sentences, table);
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(sentences));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int64_t>(i);
  std::vector<Hypothesis> best;
  for (const std::vector<Hypothesis>& all :
       Search(options, limit, seed, numbers).run(decoding, Tokens(numbers.size(), Tokenizer::bos)))
    best.push_back(all.front());
  return best;
}

/// The logits for these probabilities of </s>, A, B and C. <unk> and <s> have probability 0.
std::vector<float> logits(double end, double a, double b, double c) {
  std::vector<float> row{never, never};
  for (const double p : {end, a, b, c})
    row.push_back(p > 0 ? static_cast<float>(std::log(p)) : never);
  return row;
}

/// Reproducible random logits for the next token of a sentence with this output so far.
std::vector<float> random_row(std::uint64_t seed, std::int32_t sentence, const Tokens& tokens,
                              std::size_t n) {
  std::uint64_t index = static_cast<std::uint64_t>(sentence) + 1;
  for (const std::int32_t t : tokens) index = index * 31 + static_cast<std::uint64_t>(t);
  Random random({.seed = seed, .stream = Stream::check, .index = index});
  std::vector<float> row(n);
  for (float& z : row) z = static_cast<float>(1.5 * random.normal());
  return row;
}

std::vector<double> log_softmax(const std::vector<float>& z) {
  double sum = 0;
  for (const float v : z) sum += std::exp(double{v});
  std::vector<double> all;
  for (const float v : z) all.push_back(double{v} - std::log(sum));
  return all;
}

double penalty(std::size_t n, double alpha) {
  return std::pow((5.0 + static_cast<double>(n)) / 6.0, alpha);
}

/// Updates `best` with the best of all sequences that begin with `tokens`, by exhaustive search. A
/// sufficiently wide beam must find the same sequence.
void best_of_all(const TableDecoding::Table& table, std::int64_t limit, double alpha,
                 Tokens& tokens, double log_prob, Hypothesis& best) {
  const std::vector<double> p = log_softmax(table(0, tokens));
  const auto offer = [&](double total, std::size_t length) {
    const double score = total / penalty(length, alpha);
    if (best.score == 0 || score > best.score) best = {tokens, total, score};
  };
  offer(log_prob + p[2], tokens.size() + 1);
  for (std::int32_t t = 3; t < static_cast<std::int32_t>(p.size()); ++t) {
    tokens.push_back(t);
    const double total = log_prob + p[static_cast<std::size_t>(t)];
    if (static_cast<std::int64_t>(tokens.size()) == limit)
      offer(total, tokens.size());  // hypotheses at the length limit end without </s>
    else
      best_of_all(table, limit, alpha, tokens, total, best);
    tokens.pop_back();
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(search_with_beam_1_equals_the_argmax_at_each_step) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto table = [seed](std::int32_t s, const Tokens& tokens) {
      return random_row(seed, s, tokens, 9);
    };
    const std::vector<Hypothesis> found = search(table, beam_of(1), 12, 5);
    for (std::int32_t s = 0; s < 5; ++s) {
      Tokens tokens;
      double log_prob = 0;
      while (tokens.size() < 12) {
        const std::vector<double> p = log_softmax(table(s, tokens));
        const auto best =
            static_cast<std::int32_t>(std::max_element(p.begin() + 2, p.end()) - p.begin());
        log_prob += p[static_cast<std::size_t>(best)];
        if (best == eos) break;
        tokens.push_back(best);
      }
      const Hypothesis& h = found[static_cast<std::size_t>(s)];
      BOOST_TEST(h.tokens == tokens, boost::test_tools::per_element());
      BOOST_TEST(std::abs(h.log_prob - log_prob) < 1e-5);
    }
  }
}

BOOST_AUTO_TEST_CASE(beam_search_finds_a_better_sequence_than_greedy_search) {
  // A is more probable at first, but every sequence with A is less probable than B </s>:
  // P(A …) ≤ 0.6 · 0.4, P(B </s>) = 0.4 · 0.9.
  const auto table = [](std::int32_t, const Tokens& tokens) {
    if (tokens.empty()) return logits(0, 0.6, 0.4, 0);
    if (tokens == Tokens{A}) return logits(0.4, 0.3, 0.3, 0);
    if (tokens == Tokens{B}) return logits(0.9, 0.1, 0, 0);
    return logits(1, 0, 0, 0);
  };
  const Hypothesis greedy = search(table, beam_of(1), 10)[0],
                   beam = search(table, beam_of(2), 10)[0];
  BOOST_TEST(greedy.tokens == Tokens{A}, boost::test_tools::per_element());
  BOOST_TEST(beam.tokens == Tokens{B}, boost::test_tools::per_element());
  BOOST_TEST(std::abs(greedy.log_prob - std::log(0.24)) < 1e-6);
  BOOST_TEST(std::abs(beam.log_prob - std::log(0.36)) < 1e-6);
}

BOOST_AUTO_TEST_CASE(wide_beam_finds_the_best_of_all_sequences) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const auto table = [seed](std::int32_t s, const Tokens& tokens) {
      return random_row(seed, s, tokens, 6);
    };
    for (const double alpha : {0.0, 0.6, 2.0}) {
      Hypothesis best;
      Tokens tokens;
      best_of_all(table, 4, alpha, tokens, 0, best);
      const Hypothesis found = search(table, beam_of(200, alpha), 4)[0];
      BOOST_TEST(found.tokens == best.tokens, boost::test_tools::per_element());
      BOOST_TEST(std::abs(found.score - best.score) < 1e-5);
      BOOST_TEST(found.score >= search(table, beam_of(1, alpha), 4)[0].score - 1e-6);
    }
  }
}

BOOST_AUTO_TEST_CASE(scores_are_normalised_by_length) {
  // The log-probability of </s> alone is log 0.3. That of the longer output A </s> is lower:
  // log(0.7 · 0.4).
  const auto table = [](std::int32_t, const Tokens& tokens) {
    return tokens.empty() ? logits(0.3, 0.7, 0, 0) : logits(0.4, 0, 0.3, 0.3);
  };
  for (const double alpha : {0.0, 0.6, 1.0}) {
    const Hypothesis h = search(table, beam_of(2, alpha), 10)[0];
    const double shorter = std::log(0.3), longer = std::log(0.28) / std::pow(7.0 / 6.0, alpha);
    BOOST_TEST(h.tokens.size() == (longer > shorter ? 1u : 0u), "alpha " << alpha);
    BOOST_TEST(std::abs(h.score - std::max(shorter, longer)) < 1e-6);
    BOOST_TEST(std::abs(h.score - h.log_prob / penalty(h.tokens.size() + 1, alpha)) < 1e-12);
  }
}

BOOST_AUTO_TEST_CASE(ties_are_resolved_by_the_order_of_hypotheses_and_then_of_ids) {
  const auto level = [](std::int32_t, const Tokens&) { return std::vector<float>(8, 1.0f); };
  // Of the tokens that can be generated, </s> has the smallest id.
  BOOST_TEST(search(level, beam_of(1), 5)[0].tokens.empty());
  const auto endless = [](std::int32_t, const Tokens&) {
    std::vector<float> row(8, 1.0f);
    row[2] = never;
    return row;
  };
  for (const std::int64_t beam : {1, 2, 3, 5, 100}) {
    const Tokens tokens = search(endless, beam_of(beam), 4)[0].tokens;
    BOOST_TEST(tokens == Tokens({3, 3, 3, 3}), boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(unk_and_bos_are_never_generated) {
  const auto table = [](std::int32_t, const Tokens& tokens) {
    return tokens.size() < 3 ? std::vector<float>{9, 8, 1, 2, 0}
                             : std::vector<float>{9, 8, 5, 0, 0};
  };
  for (const std::int64_t beam : {1, 4}) {
    const std::vector<Hypothesis> found = search(table, beam_of(beam), 6);
    for (const std::int32_t t : found[0].tokens) BOOST_TEST(t >= 3);
  }
  DecodeOptions sampling = beam_of(1);
  sampling.sample = true;
  for (const Hypothesis& h : search(table, sampling, 6, 200)) {
    for (const std::int32_t t : h.tokens) BOOST_TEST(t >= 3);
  }
  // The probability of <unk> and <s> is not redistributed: log p is computed from the model's
  // distribution.
  BOOST_TEST(std::abs(search(table, beam_of(1), 1)[0].log_prob - log_softmax({9, 8, 1, 2, 0})[3]) <
             1e-6);
}

BOOST_AUTO_TEST_CASE(hypotheses_end_at_the_length_limit) {
  const auto endless = [](std::int32_t, const Tokens&) { return logits(0, 0.5, 0.3, 0.2); };
  for (const std::int64_t limit : {1, 2, 7}) {
    for (const std::int64_t beam : {1, 3}) {
      const Hypothesis h = search(endless, beam_of(beam), limit)[0];
      BOOST_TEST(h.tokens == Tokens(static_cast<std::size_t>(limit), A),
                 boost::test_tools::per_element());
      BOOST_TEST(std::abs(h.log_prob - static_cast<double>(limit) * std::log(0.5)) < 1e-5);
    }
  }
}

BOOST_AUTO_TEST_CASE(finished_sentences_are_removed_from_the_batch) {
  // Sentence s ends after s + 1 tokens.
  const auto table = [](std::int32_t s, const Tokens& tokens) {
    return static_cast<std::int32_t>(tokens.size()) > s ? logits(1, 0, 0, 0) : logits(0, 1, 0, 0);
  };
  TableDecoding decoding(3, table);
  const auto found = Search(beam_of(1), 20, 1, {0, 1, 2}).run(decoding, Tokens(3, Tokenizer::bos));
  for (std::size_t s = 0; s < 3; ++s) BOOST_TEST(found[s][0].tokens.size() == s + 1);
  BOOST_TEST(decoding.widths == (std::vector<std::int64_t>{3, 3, 2, 1}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(finished_hypothesis_reduces_the_width_of_the_beam) {
  const auto table = [](std::int32_t, const Tokens& tokens) {
    return tokens.size() < 4 ? logits(0.3, 0.4, 0.2, 0.1) : logits(1, 0, 0, 0);
  };
  TableDecoding decoding(1, table);
  Search(beam_of(3), 20, 1, {0}).run(decoding, {Tokenizer::bos});
  // </s> ends; A and B continue. Then A </s> ends and only A A continues.
  BOOST_TEST(decoding.widths == (std::vector<std::int64_t>{1, 2, 1, 1, 1}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(outputs_are_independent_of_the_batch) {
  const auto table = [](std::int32_t s, const Tokens& tokens) {
    return random_row(7, s, tokens, 9);
  };
  for (const std::int64_t beam : {1, 2, 5}) {
    const std::vector<Hypothesis> together = search(table, beam_of(beam, 0.6), 10, 8);
    for (std::int32_t s = 0; s < 8; ++s) {
      const auto alone = [&](std::int32_t, const Tokens& tokens) { return table(s, tokens); };
      const Hypothesis one = search(alone, beam_of(beam, 0.6), 10)[0];
      BOOST_TEST(one.tokens == together[static_cast<std::size_t>(s)].tokens,
                 boost::test_tools::per_element());
      BOOST_TEST(one.score == together[static_cast<std::size_t>(s)].score);
    }
  }
}

BOOST_AUTO_TEST_CASE(nonfinite_logits_end_only_their_sentence) {
  for (const float z : {std::numeric_limits<float>::quiet_NaN(), never}) {
    const auto table = [z](std::int32_t s, const Tokens&) {
      return s == 1 ? std::vector<float>(6, z) : logits(0.1, 0.9, 0, 0);
    };
    const std::vector<Hypothesis> found = search(table, beam_of(2), 5, 3);
    BOOST_TEST(found[1].tokens.empty());
    BOOST_TEST(found[0].tokens.size() == 5u);
    BOOST_TEST(found[2].tokens.size() == 5u);
  }
}

BOOST_AUTO_TEST_CASE(empty_batch_has_no_hypotheses) {
  BOOST_TEST(
      search([](std::int32_t, const Tokens&) { return logits(1, 0, 0, 0); }, beam_of(2), 5, 0)
          .empty());
}

BOOST_AUTO_TEST_CASE(outputs_have_at_least_the_minimum_length) {
  const auto ends = [](std::int32_t, const Tokens&) { return logits(0.9, 0.06, 0.04, 0); };
  for (const std::int64_t beam : {1, 3}) {
    DecodeOptions o = beam_of(beam);
    BOOST_TEST(search(ends, o, 9)[0].tokens.empty());
    o.min_length = 3;
    const Hypothesis found = search(ends, o, 9)[0];
    BOOST_TEST((found.tokens == Tokens{A, A, A}));
    // Without </s>, A has 0.6 of the remaining probability.
    BOOST_TEST(std::abs(found.log_prob - (3 * std::log(0.6) + std::log(0.9))) < 1e-6);
    o.min_length = 20;  // the length limit ends the output
    BOOST_TEST(search(ends, o, 5)[0].tokens.size() == 5u);
    o.sample = true;
    o.min_length = 2;
    for (std::uint64_t seed = 1; seed < 20; ++seed)
      BOOST_TEST(search(ends, o, 9, 1, seed)[0].tokens.size() >= 2u);
  }
}

BOOST_AUTO_TEST_CASE(beam_search_returns_hypotheses_by_descending_score) {
  // </s> alone has probability 0.5, A </s> has 0.3 and B </s> has 0.2.
  const auto table = [](std::int32_t, const Tokens& tokens) {
    return tokens.empty() ? logits(0.5, 0.3, 0.2, 0) : logits(1, 0, 0, 0);
  };
  TableDecoding decoding(1, table);
  const std::vector<Hypothesis> found =
      Search(beam_of(3), 9, 1, {0}).run(decoding, {Tokenizer::bos})[0];
  BOOST_REQUIRE(found.size() == 3u);
  BOOST_TEST(
      (found[0].tokens.empty() && found[1].tokens == Tokens{A} && found[2].tokens == Tokens{B}));
  for (const auto& [i, p] : {std::pair(0, 0.5), std::pair(1, 0.3), std::pair(2, 0.2)})
    BOOST_TEST(std::abs(found[static_cast<std::size_t>(i)].score - std::log(p)) < 1e-6);
}

BOOST_AUTO_TEST_CASE(outputs_begin_with_their_prefix) {
  const auto table = [](std::int32_t sentence, const Tokens& tokens) {
    return sentence == 1 || tokens.size() == 2 ? logits(0.7, 0.1, 0.2, 0)
                                               : logits(0.3, 0.6, 0.1, 0);
  };
  for (const std::int64_t beam : {1, 3}) {
    TableDecoding decoding(3, table);
    Search search(beam_of(beam), 9, 1, {0, 1, 2});
    search.begin_with({{B, B}, {}, {A}});
    const auto found = search.run(decoding, Tokens(3, Tokenizer::bos));
    BOOST_TEST((found[0][0].tokens == Tokens{B, B}));
    BOOST_TEST(std::abs(found[0][0].log_prob - (2 * std::log(0.1) + std::log(0.7))) < 1e-6);
    BOOST_TEST(found[1][0].tokens.empty());
    BOOST_TEST((found[2][0].tokens == Tokens{A, A}));
    for (const auto& all : found) BOOST_TEST(all.size() <= static_cast<std::size_t>(beam));
  }
  TableDecoding decoding(1, table);  // a prefix longer than the limit is truncated
  Search search(beam_of(1), 2, 1, {0});
  search.begin_with({{B, A, B}});
  BOOST_TEST((search.run(decoding, {Tokenizer::bos})[0][0].tokens == Tokens{B, A}));
}

BOOST_AUTO_TEST_CASE(tokens_are_reported_when_they_are_generated) {
  const auto table = [](std::int32_t, const Tokens& tokens) {
    return tokens.size() < 3 ? logits(0.1, 0.2, 0.7, 0) : logits(1, 0, 0, 0);
  };
  TableDecoding decoding(1, table);
  Search search(beam_of(1), 9, 1, {0});
  Tokens reported;
  search.on_token([&](std::int32_t token) {
    reported.push_back(token);
    BOOST_TEST(decoding.widths.size() == reported.size());  // one decoding step for each token
  });
  BOOST_TEST((search.run(decoding, {Tokenizer::bos})[0][0].tokens == reported));
  BOOST_TEST((reported == Tokens{B, B, B}));
}

BOOST_AUTO_TEST_CASE(repetition_penalty_lowers_the_logits_of_generated_tokens) {
  // The logits are −2 for </s>, 3 for A, −1 for B and −1.5 for C.
  const auto same = [](std::int32_t, const Tokens&) {
    return std::vector<float>{never, never, -2, 3, -1, -1.5F};
  };
  DecodeOptions o = beam_of(1);
  BOOST_TEST((search(same, o, 3)[0].tokens == Tokens{A, A, A}));
  o.repetition_penalty = 1.5;  // the logit of A is 3, then 2, however often A occurs
  BOOST_TEST((search(same, o, 3)[0].tokens == Tokens{A, A, A}));
  o.repetition_penalty = 50;  // the logit of A becomes 0.06, still the largest
  BOOST_TEST((search(same, o, 2)[0].tokens == Tokens{A, A}));
  const auto negative = [](std::int32_t, const Tokens&) {
    return std::vector<float>{never, never, -2.5F, -1, -1.2F, -2};
  };
  o.repetition_penalty = 2;  // once generated, A has logit −2 and B −2.4
  BOOST_TEST((search(negative, o, 4)[0].tokens == Tokens{A, B, A, A}));
}

// Sampling has a beam of one whatever decode.beam is. Wider beams may still drop their tokens.
BOOST_AUTO_TEST_CASE(only_searches_with_one_hypothesis_report_tokens) {
  const auto table = [](std::int32_t, const Tokens& tokens) {
    return tokens.size() < 3 ? logits(0, 0, 1, 0) : logits(1, 0, 0, 0);
  };
  for (const bool sample : {false, true}) {
    DecodeOptions o = beam_of(5);
    o.sample = sample;
    TableDecoding decoding(1, table);
    Search search(o, 9, 1, {0});
    Tokens reported;
    search.on_token([&](std::int32_t token) { reported.push_back(token); });
    BOOST_TEST((search.run(decoding, {Tokenizer::bos})[0][0].tokens == Tokens{B, B, B}));
    BOOST_TEST((reported == (sample ? Tokens{B, B, B} : Tokens{})));
  }
}

BOOST_AUTO_TEST_SUITE_END()
