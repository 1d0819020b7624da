// Search with real models: translation in batches, text generation, scores.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "nn/layers/positions.h"
#include "nn/options.h"
#include "tests/learning.h"
#include "tests/train/support.h"
#include "tests/train/training.h"
#include "train/decode/search.h"
#include "train/loop/step.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(searching_with_models)

namespace {

using Tokens = std::vector<std::int32_t>;

/// A translation or language model, trained for 120 steps, so that its outputs differ and most of
/// them end with </s>.
std::unique_ptr<Generative> trained(bool lm) {
  const Dataset data = lm ? random_text(800) : reversals(200);
  std::unique_ptr<Generative> model =
      lm ? small_lm(0, training_seed()) : small_seq2seq(0, training_seed());
  BatchStream stream(data,
                     {.batch_tokens = 150, .batch_sequences = lm ? 8 : 0, .context = lm ? 8 : 0});
  Optimizer optimizer({}, model->parameters());
  Team team(2);
  TrainStep step(*model, optimizer, team, {.clip_norm = 1.0});
  for (std::int64_t t = 1; t <= 120; ++t) step.run(shard(stream.next(), 4), t, training_rate(4e-3));
  return model;
}
const Generative& trained_seq2seq() {
  static const std::unique_ptr<Generative> model = trained(false);
  return *model;
}
const Generative& trained_lm() {
  static const std::unique_ptr<Generative> model = trained(true);
  return *model;
}

/// A language model that predicts all tokens except </s> with equal probability at every position,
/// and </s> never or, with `ends`, almost always.
std::unique_ptr<Generative> level_lm(bool ends = false) {
  ModelOptions o = small_model();
  o.tie_embeddings = false;
  std::unique_ptr<Generative> model = make_language_model(o, vocabulary, 1);
  for (NamedTensor& p : model->parameters()) {
    if (!p.name.starts_with("output.")) continue;
    const std::span<real> values = p.tensor.mutable_value().values();
    std::fill(values.begin(), values.end(), real(0));
    if (p.name == "output.bias") values[Tokenizer::eos] = ends ? 1000 : -1000;
  }
  return model;
}

DecodeOptions options(std::int64_t beam, std::int64_t batch = 64) {
  DecodeOptions o;
  o.beam = beam;
  o.max_length = 12;
  o.batch_sequences = batch;
  return o;
}

/// The logits of every position with teacher forcing: [tokens, vocabulary].
Array forced_logits(const Generative& model, std::span<const std::int32_t> source,
                    const Tokens& target_in) {
  const Tokens source_offsets{0, static_cast<std::int32_t>(source.size())};
  const Tokens target_offsets{0, static_cast<std::int32_t>(target_in.size())};
  Pass pass;
  const SideView side = source.empty() ? SideView{} : SideView{source, source_offsets};
  return model.logits({side, {target_in, target_offsets}}, pass).value();
}

double log_p(const Array& logits, std::int64_t row, std::int32_t token) {
  double sum = 0;
  for (std::int64_t t = 0; t < logits.cols(); ++t) sum += std::exp(double{logits.row(row)[t]});
  return double{logits.row(row)[token]} - std::log(sum);
}

std::int32_t argmax(const Array& logits, std::int64_t row) {
  const real* const z = logits.row(row);
  return static_cast<std::int32_t>(std::max_element(z + 2, z + logits.cols()) - z);
}

}  // namespace

BOOST_AUTO_TEST_CASE(translations_are_independent_of_the_batch,
                     *boost::unit_test::label("learns")) {
  const Dataset data = reversals(60, 5);
  for (const std::int64_t beam : {1, 4}) {
    Team two(2), one(1);
    const std::vector<Hypothesis> together =
        translate(FrozenModel(trained_seq2seq()), data, options(beam), 1, two);
    BOOST_TEST(together.size() == 60u);
    std::size_t ended = 0;
    for (const std::int64_t batch : {1, 7, 40, 512}) {  // maximum batch sizes; 512 makes one batch
      const std::vector<Hypothesis> apart =
          translate(FrozenModel(trained_seq2seq()), data, options(beam, batch), 1, one, {}, 1);
      for (std::size_t i = 0; i < apart.size(); ++i) {
        BOOST_TEST(apart[i].tokens == together[i].tokens, boost::test_tools::per_element());
        BOOST_TEST(std::abs(apart[i].score - together[i].score) < 1e-4);
        ended += apart[i].tokens.size() < 12;
      }
    }
    HEED_CHECK_TRAINED(fmt::format("beam {}: outputs that end with </s>", beam), ended, >, 120);
  }
}

BOOST_AUTO_TEST_CASE(int8_translations_are_bitwise_independent_of_the_batch,
                     *boost::unit_test::label("learns")) {
  const Dataset data = reversals(60, 5);
  Team two(2), one(1);
  const FrozenModel frozen(trained_seq2seq(), DecodePrecision::int8),
      unquantised(trained_seq2seq());
  for (const std::int64_t beam : {1, 4}) {
    const auto together = translate(frozen, data, options(beam), 1, two),
               in_float = translate(unquantised, data, options(beam), 1, two);
    std::size_t same = 0, other_scores = 0;
    for (std::size_t i = 0; i < together.size(); ++i) {
      same += together[i].tokens == in_float[i].tokens;
      other_scores += together[i].score != in_float[i].score;
    }
    HEED_CHECK_TRAINED(fmt::format("beam {}: outputs that int8 does not change", beam), same, >,
                       40);
    // Scores differ only if decoding uses int8.
    HEED_CHECK_TRAINED(fmt::format("beam {}: scores that int8 changes", beam), other_scores, >, 50);
    for (const std::int64_t batch : {1, 7, 512}) {
      const auto apart = translate(frozen, data, options(beam, batch), 1, one, {}, 1);
      for (std::size_t i = 0; i < apart.size(); ++i) {
        BOOST_TEST(apart[i].tokens == together[i].tokens, boost::test_tools::per_element());
        BOOST_TEST(apart[i].score == together[i].score);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(outputs_with_and_without_a_cache_are_equal) {
  const Dataset data = reversals(60, 9);
  Team team(2);
  for (const std::int64_t beam : {1, 5}) {
    DecodeOptions plain = options(beam);
    plain.cached = false;
    const auto with = translate(FrozenModel(trained_seq2seq()), data, options(beam), 1, team),
               without = translate(FrozenModel(trained_seq2seq()), data, plain, 1, team);
    for (std::size_t i = 0; i < with.size(); ++i) {
      BOOST_TEST(with[i].tokens == without[i].tokens, boost::test_tools::per_element());
      BOOST_TEST(std::abs(with[i].score - without[i].score) < 1e-4);
    }
  }
  DecodeOptions greedy = options(1), plain = options(1);
  plain.cached = false;
  const Tokens prompt{3, 4, 5};
  BOOST_TEST(continue_text(FrozenModel(trained_lm()), prompt, greedy, 1, 0) ==
                 continue_text(FrozenModel(trained_lm()), prompt, plain, 1, 0),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(samples_depend_on_line_numbers, *boost::unit_test::label("learns")) {
  const Dataset data = reversals(40, 6);
  Team team(2);
  const FrozenModel frozen(trained_seq2seq());
  DecodeOptions o = options(1);
  o.sample = true;
  const auto drawn = [&](std::int64_t first) {
    std::vector<std::int64_t> numbers(40);
    std::iota(numbers.begin(), numbers.end(), first);
    return translate(frozen, data, o, 1, team, numbers);
  };
  const auto own = translate(frozen, data, o, 1, team), numbered = drawn(0), others = drawn(1);
  std::size_t different = 0;
  for (std::size_t i = 0; i < own.size(); ++i) {
    BOOST_TEST(own[i].tokens == numbered[i].tokens, boost::test_tools::per_element());
    different += own[i].tokens != others[i].tokens;
  }
  BOOST_TEST(different > 0);
}

BOOST_AUTO_TEST_CASE(best_of_nbest_equals_the_single_output, *boost::unit_test::label("learns")) {
  const Dataset data = reversals(40, 6);
  Team team(2);
  const FrozenModel frozen(trained_seq2seq());
  for (const bool sample : {false, true}) {
    DecodeOptions o = options(4);
    o.sample = sample;
    const auto one = translate(frozen, data, o, 1, team);
    const auto several = translate(frozen, data, o, 1, team, TranslateRequest{.nbest = 3});
    std::size_t different = 0;
    for (std::size_t i = 0; i < one.size(); ++i) {
      BOOST_TEST(several[i].size() == 3u);
      BOOST_TEST(one[i].tokens == several[i][0].tokens, boost::test_tools::per_element());
      for (std::size_t k = 1; k < several[i].size(); ++k) {
        different += several[i][k].tokens != one[i].tokens;
        if (!sample) BOOST_TEST(several[i][k].score <= several[i][k - 1].score);
      }
    }
    // Each sentence has two further outputs.
    HEED_CHECK_TRAINED(sample ? "sampled: further outputs that differ from the best"
                              : "beam: further outputs that differ from the best",
                       different, >, one.size());
  }
}

// The model is not trained, so that each sample is one of very many.
BOOST_AUTO_TEST_CASE(samples_of_equal_sentences_are_drawn_with_different_random_numbers) {
  Dataset data;
  for (int i = 0; i < 30; ++i) {
    data.source.push(Tokens{3, 7, 4, Tokenizer::eos});
    data.target.push({});
  }
  DecodeOptions o = options(1);
  o.sample = true;
  o.min_length = 6;
  const std::unique_ptr<Generative> model = small_seq2seq();
  Team team(2);
  std::set<Tokens> different;
  for (const auto& samples :
       translate(FrozenModel(*model), data, o, 1, team, TranslateRequest{.nbest = 4})) {
    for (const Hypothesis& h : samples) different.insert(h.tokens);
  }
  BOOST_TEST(different.size() == 30u * 4u);
}

BOOST_AUTO_TEST_CASE(each_output_begins_with_its_prefix) {
  const Dataset data = reversals(40, 6);
  Team team(2);
  std::vector<Tokens> prefixes;
  for (std::int32_t i = 0; i < 40; ++i) prefixes.push_back({3 + i % 10, 3 + i / 10});
  prefixes[7] = {};
  const auto begun = translate(FrozenModel(trained_seq2seq()), data, options(2), 1, team,
                               TranslateRequest{.prefixes = prefixes});
  for (std::size_t i = 0; i < begun.size(); ++i) {
    const Tokens& tokens = begun[i][0].tokens;
    BOOST_TEST((std::ranges::mismatch(prefixes[i], tokens).in1 == prefixes[i].end()));
  }
}

BOOST_AUTO_TEST_CASE(best_continuation_equals_the_output_of_continue_text) {
  const FrozenModel frozen(trained_lm());
  DecodeOptions o = options(3);
  o.max_length = 4;
  const std::vector<Hypothesis> found = continuations(frozen, Tokens{4, 5}, o, 1, 0);
  BOOST_TEST(found.size() == 3u);
  BOOST_TEST(found[0].tokens == continue_text(frozen, Tokens{4, 5}, o, 1, 0),
             boost::test_tools::per_element());
  DecodeOptions samples = options(1);
  samples.sample = true;
  samples.max_length = 4;
  for (std::int64_t number = 0; number < 20; ++number) {
    BOOST_TEST(continuations(frozen, Tokens{4, 5}, samples, 1, number)[0].tokens ==
                   continue_text(frozen, Tokens{4, 5}, samples, 1, number),
               boost::test_tools::per_element());
  }
  o.max_length = 9;  // the context has 8 tokens
  BOOST_CHECK_EXCEPTION(continuations(frozen, Tokens{4, 5}, o, 1, 0), Error, [](const Error& e) {
    return std::string(e.what()).find("exceed the context of 8") != std::string::npos;
  });
  Tokens reported;
  o = options(1);
  const Tokens text =
      continue_text(frozen, Tokens{4}, o, 1, 0, [&](std::int32_t t) { reported.push_back(t); });
  BOOST_TEST((reported == text));
}

// The model has random weights, so that the first token and the random keys matter.
BOOST_AUTO_TEST_CASE(an_empty_prompt_equals_a_prompt_of_the_end_token) {
  ModelOptions o = small_model();
  o.init = InitKind::normal;
  o.init_std = 0.6;
  const std::unique_ptr<Generative> model = make_language_model(o, vocabulary, 3);
  const FrozenModel frozen(*model);
  DecodeOptions d = options(1);
  d.min_length = d.max_length = 5;
  const Array after_end = forced_logits(*model, {}, {Tokenizer::eos}),
              after_begin = forced_logits(*model, {}, {Tokenizer::bos});
  const auto best = [](const Array& logits) {
    return static_cast<std::int32_t>(std::max_element(logits.row(0) + 3, logits.row(1)) -
                                     logits.row(0));
  };
  BOOST_REQUIRE(best(after_end) != best(after_begin));
  BOOST_TEST(continue_text(frozen, {}, d, 1, 0)[0] == best(after_end));
  BOOST_TEST(continuations(frozen, {}, d, 1, 0)[0].tokens[0] == best(after_end));
  d.sample = true;
  for (std::int64_t number = 0; number < 20; ++number)
    BOOST_TEST(continuations(frozen, {}, d, 1, number)[0].tokens ==
                   continue_text(frozen, {}, d, 1, number),
               boost::test_tools::per_element());
}

// The last token of a continuation is not read, so a text may exceed the context of 8 tokens by one.
BOOST_AUTO_TEST_CASE(hypotheses_of_a_continuation_may_fill_the_context) {
  const std::unique_ptr<Generative> model = level_lm();
  DecodeOptions o = options(2);
  for (const std::int64_t prompt : {0, 1, 3, 8}) {
    const Tokens text(static_cast<std::size_t>(prompt), 4);
    o.max_length = 9 - std::max<std::int64_t>(prompt, 1);
    BOOST_TEST(std::ssize(continuations(FrozenModel(*model), text, o, 1, 0)[0].tokens) ==
               o.max_length);
    ++o.max_length;
    BOOST_CHECK_THROW(continuations(FrozenModel(*model), text, o, 1, 0), Error);
  }
}

BOOST_AUTO_TEST_CASE(sampled_translations_are_independent_of_the_batch) {
  const Dataset data = reversals(40, 6);
  DecodeOptions a = options(1), b = options(1, 3);
  a.sample = b.sample = true;
  Team two(2), one(1);
  const auto x = translate(FrozenModel(trained_seq2seq()), data, a, 1, two),
             y = translate(FrozenModel(trained_seq2seq()), data, b, 1, one);
  for (std::size_t i = 0; i < x.size(); ++i)
    BOOST_TEST(x[i].tokens == y[i].tokens, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(sampled_translations_are_determined_by_the_sentence_number) {
  const Dataset data = reversals(40, 6);
  DecodeOptions o = options(1);
  o.sample = true;
  Team team(2);
  const auto all = translate(FrozenModel(trained_seq2seq()), data, o, 1, team);
  Dataset part;
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 39; i >= 0; i -= 3) {
    part.source.push(data.source[i]);
    numbers.push_back(i);
  }
  const auto some = translate(FrozenModel(trained_seq2seq()), part, o, 1, team, numbers);
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    BOOST_TEST(some[k].tokens == all[static_cast<std::size_t>(numbers[k])].tokens,
               boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(greedy_tokens_are_the_argmax_of_a_full_forward_pass) {
  const Dataset data = reversals(40, 7);
  Team team(2);
  const std::vector<Hypothesis> found =
      translate(FrozenModel(trained_seq2seq()), data, options(1), 1, team);
  for (std::int64_t i = 0; i < 40; ++i) {
    const Hypothesis& h = found[static_cast<std::size_t>(i)];
    Tokens in{Tokenizer::bos};
    in.insert(in.end(), h.tokens.begin(), h.tokens.end());
    Tokens out = h.tokens;
    if (out.size() < 12)
      out.push_back(Tokenizer::eos);  // otherwise, the length limit ended the output
    const Array logits = forced_logits(trained_seq2seq(), data.source[i], in);
    double log_prob = 0;
    for (std::size_t t = 0; t < out.size(); ++t) {
      BOOST_TEST(argmax(logits, static_cast<std::int64_t>(t)) == out[t]);
      log_prob += log_p(logits, static_cast<std::int64_t>(t), out[t]);
    }
    BOOST_TEST(std::abs(h.log_prob - log_prob) < 1e-4);
  }
}

BOOST_AUTO_TEST_CASE(log_probability_of_a_hypothesis_equals_the_score_of_its_tokens,
                     *boost::unit_test::label("learns")) {
  const Dataset data = reversals(40, 8);
  Team team(2);
  const std::vector<Hypothesis> beam =
      translate(FrozenModel(trained_seq2seq()), data, options(5), 1, team);
  Dataset scored;  // its targets are the translations
  std::vector<std::size_t> which;
  for (std::size_t i = 0; i < beam.size(); ++i) {
    if (beam[i].tokens.size() == 12) continue;
    scored.source.push(data.source[static_cast<std::int64_t>(i)]);
    scored.target.push(beam[i].tokens);
    which.push_back(i);
  }
  HEED_CHECK_TRAINED("outputs that end with </s>", which.size(), >, 30);
  const std::vector<Batch> batches = evaluation_batches(scored, {.batch_tokens = 64});
  const std::vector<double> scores =
      score_targets(FrozenModel(trained_seq2seq()), batches, scored.size(), team);
  for (std::size_t k = 0; k < which.size(); ++k) {
    const Hypothesis& h = beam[which[k]];
    BOOST_TEST(std::abs(h.log_prob - scores[k]) < 1e-4);
    BOOST_TEST(
        std::abs(h.score - h.log_prob / std::pow((6.0 + static_cast<double>(h.tokens.size())) / 6.0,
                                                 0.6)) < 1e-12);
  }
}

BOOST_AUTO_TEST_CASE(scores_of_targets_are_independent_of_the_batch) {
  const Dataset data = reversals(40, 9);
  const FrozenModel model(trained_seq2seq());
  Team team(2);
  const std::vector<double> together =
      score_targets(model, evaluation_batches(data, {.batch_tokens = 300}), 40, team);
  for (const std::int64_t tokens : {1, 50})
    BOOST_TEST((score_targets(model, evaluation_batches(data, {.batch_tokens = tokens}), 40,
                              team) == together));
}

BOOST_AUTO_TEST_CASE(scores_of_targets_are_sums_of_log_probabilities) {
  const Dataset data = reversals(30, 9);
  Team team(2);
  const std::vector<double> scores = score_targets(
      FrozenModel(trained_seq2seq()), evaluation_batches(data, {.batch_tokens = 50}), 30, team);
  for (std::int64_t i = 0; i < 30; ++i) {
    Tokens in{Tokenizer::bos}, out(data.target[i].begin(), data.target[i].end());
    in.insert(in.end(), out.begin(), out.end());
    out.push_back(Tokenizer::eos);
    const Array logits = forced_logits(trained_seq2seq(), data.source[i], in);
    double sum = 0;
    for (std::size_t t = 0; t < out.size(); ++t)
      sum += log_p(logits, static_cast<std::int64_t>(t), out[t]);
    BOOST_TEST(std::abs(scores[static_cast<std::size_t>(i)] - sum) < 1e-4);
  }
}

BOOST_AUTO_TEST_CASE(learned_positions_limit_the_length_of_outputs) {
  ModelOptions o = small_model();
  o.positions = PositionKind::learned;
  o.max_positions = 9;
  const std::unique_ptr<Generative> model = make_seq2seq(o, vocabulary, vocabulary, true, 1);
  const Dataset data = reversals(5);
  Team team(1);
  DecodeOptions d = options(2);
  d.max_length = 50;
  for (const Hypothesis& h : translate(FrozenModel(*model), data, d, 1, team))
    BOOST_TEST(h.tokens.size() <= 9u);
}

BOOST_AUTO_TEST_CASE(empty_batch_has_no_outputs) {
  Team team(2);
  BOOST_TEST(translate(FrozenModel(trained_seq2seq()), {}, options(5), 1, team).empty());
}

BOOST_AUTO_TEST_CASE(greedy_continuation_is_the_argmax_given_the_context) {
  // The model has a context of 8 tokens, all of which affect the next token. Decoding must read
  // every token of a prompt that fits into the context.
  ModelOptions o = small_model();
  o.init = InitKind::normal;
  o.init_std = 0.6;
  const std::unique_ptr<Generative> model = make_language_model(o, vocabulary, 3);
  std::size_t compared = 0;
  for (const Tokens& prompt :
       {Tokens{5}, Tokens{3, 9, 10, 4, 6}, Tokens{3, 9, 10, 4, 6, 7, 3, 5}}) {
    DecodeOptions greedy = options(1);
    greedy.max_length = static_cast<std::int64_t>(8 - prompt.size() + 1);
    const Tokens found = continue_text(FrozenModel(*model), prompt, greedy, 1, 0);
    Tokens text = prompt;
    for (const std::int32_t token : found) {
      const Array logits = forced_logits(*model, {}, text);
      BOOST_TEST(token == argmax(logits, logits.rows() - 1), "after " << text.size() << " tokens");
      text.push_back(token);
    }
    compared += found.size();
  }
  BOOST_TEST(compared >= 6u);  // some outputs may end early
}

BOOST_AUTO_TEST_CASE(text_longer_than_the_context_is_continued_from_its_last_half_context) {
  ModelOptions o = small_model();  // context of 8 tokens
  o.init = InitKind::normal;
  o.init_std = 0.6;
  const std::unique_ptr<Generative> model = make_language_model(o, vocabulary, 3);
  const auto next_after = [&](const Tokens& text) {
    const Array logits = forced_logits(*model, {}, text);
    return argmax(logits, logits.rows() - 1);
  };
  DecodeOptions greedy = options(1);
  greedy.max_length = 1;
  Random random({.seed = 1, .stream = Stream::check, .index = 8});
  int differ = 0;
  for (int i = 0; i < 40; ++i) {
    Tokens prompt(8);
    for (std::int32_t& id : prompt)
      id = static_cast<std::int32_t>(3 + random.below(vocabulary - 3));
    const auto continued = [&] {
      const Tokens found = continue_text(FrozenModel(*model), prompt, greedy, 1, 0);
      return found.empty() ? Tokenizer::eos : found[0];
    };
    BOOST_TEST(continued() == next_after(prompt));
    differ += next_after(prompt) != next_after(Tokens(prompt.end() - 4, prompt.end())) ? 1 : 0;
    prompt.insert(prompt.begin(), 3);
    BOOST_TEST(continued() == next_after(Tokens(prompt.end() - 4, prompt.end())));
  }
  BOOST_TEST(differ >= 10);  // otherwise, the test could not detect which tokens are read
}

BOOST_AUTO_TEST_CASE(text_continues_beyond_the_context) {
  Tokens long_prompt;
  for (int i = 0; i < 50; ++i) long_prompt.push_back(3 + i % 10);
  DecodeOptions o = options(1);
  o.sample = true;
  o.max_length = 40;
  for (const Tokens& prompt : {Tokens{}, Tokens{4}, long_prompt}) {
    const Tokens found = continue_text(FrozenModel(trained_lm()), prompt, o, 3, 0);
    BOOST_TEST(found.size() <= 40u);
    for (const std::int32_t t : found) BOOST_TEST((t >= 3 && t < vocabulary));
    BOOST_TEST((continue_text(FrozenModel(trained_lm()), prompt, o, 3, 0) == found));
    BOOST_TEST((continue_text(FrozenModel(trained_lm()), prompt, o, 4, 0) != found));
    BOOST_TEST((continue_text(FrozenModel(trained_lm()), prompt, o, 3, 1) != found));
  }
}

// The model ends a text as soon as it may: within the context of 8 tokens or after several windows.
BOOST_AUTO_TEST_CASE(min_length_counts_the_tokens_of_all_windows_of_a_text) {
  const std::unique_ptr<Generative> model = level_lm(true);
  for (const Tokens& prompt : {Tokens{}, Tokens{4, 5, 6}, Tokens(11, 4)}) {
    for (const std::int64_t length : {0, 1, 5, 6, 9, 17, 23, 40}) {
      for (const bool sample : {false, true}) {
        DecodeOptions o = options(1);
        o.sample = sample;
        o.min_length = length;
        o.max_length = 30;
        const Tokens found = continue_text(FrozenModel(*model), prompt, o, 1, 0);
        BOOST_TEST(std::ssize(found) == std::min<std::int64_t>(length, 30));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(windows_of_a_sampled_text_draw_different_random_numbers) {
  // The model predicts the same distribution at every position, so text repeats only if the random
  // numbers repeat.
  const std::unique_ptr<Generative> model = level_lm();
  DecodeOptions o = options(1);
  o.sample = true;
  o.max_length = 400;  // many windows: the context has 8 tokens
  const Tokens text = continue_text(FrozenModel(*model), Tokens{4}, o, 1, 0);
  BOOST_REQUIRE(text.size() == 400u);
  for (std::size_t lag = 1; lag <= 16; ++lag) {
    std::size_t equal = 0;
    for (std::size_t i = lag; i < text.size(); ++i) equal += text[i] == text[i - lag] ? 1 : 0;
    BOOST_TEST(equal < 100u, "lag " << lag << ": " << equal);  // about 40 of 400 by chance
  }
}

// Every token has a lower logit than the one before, so each is generated once before any repeats: a
// text of ten tokens needs two windows of the context of 8.
BOOST_AUTO_TEST_CASE(repetition_penalty_applies_to_the_tokens_of_all_windows_of_a_text) {
  const std::unique_ptr<Generative> model = level_lm();
  for (NamedTensor& p : model->parameters()) {
    if (p.name != "output.bias") continue;
    const std::span<real> bias = p.tensor.mutable_value().values();
    for (std::size_t t = 3; t < bias.size(); ++t) bias[t] = static_cast<real>(30 - t);
  }
  DecodeOptions o = options(1);
  o.repetition_penalty = 100;
  o.max_length = 10;
  for (const Tokens& prompt : {Tokens{}, Tokens{4, 5, 6}, Tokens(11, 4)}) {
    const Tokens found = continue_text(FrozenModel(*model), prompt, o, 1, 0);
    BOOST_TEST(found == (Tokens{3, 4, 5, 6, 7, 8, 9, 10, 11, 12}),
               boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_SUITE_END()
