#include "data/batches/spans.h"

#include <cmath>
#include <map>
#include <set>

#include "tests/data/batches.h"

using namespace heed;
using namespace heed::testing;
using Ids = std::vector<std::int32_t>;

namespace {

constexpr std::int32_t first_mark = 3, first_token = 103;

/// Lines of 2, 3, … tokens; the tokens of each line are 103, 104, ….
Dataset span_lines(std::int64_t n, const SpanOptions& options = {}) {
  Dataset data;
  data.batching = &hidden_spans();
  data.spans = {options, first_mark};
  for (std::int64_t i = 0; i < n; ++i) {
    Ids ids(static_cast<std::size_t>(i + 2));
    for (std::size_t k = 0; k < ids.size(); ++k)
      ids[k] = first_token + static_cast<std::int32_t>(k);
    data.source.push(ids);
    data.target.push({});
  }
  return data;
}

/// The line of a sample, restored from source and labels: the tokens after a sentinel in the labels
/// replace that sentinel in the source.
Ids joined(const Ids& source, const Ids& labels) {
  std::map<std::int32_t, Ids> hidden;
  std::int32_t mark = -1;
  for (const std::int32_t id : labels) {
    if (id == Tokenizer::eos) break;
    if (id < first_token) {
      BOOST_REQUIRE(id == (mark < 0 ? first_mark : mark + 1));
      mark = id;
    } else {
      hidden[mark].push_back(id);
    }
  }
  Ids line;
  for (const std::int32_t id : source) {
    if (id == Tokenizer::eos) break;
    if (id >= first_token) {
      line.push_back(id);
    } else {
      BOOST_REQUIRE(!hidden[id].empty());
      line.insert(line.end(), hidden[id].begin(), hidden[id].end());
    }
  }
  return line;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(spans)

BOOST_AUTO_TEST_CASE(sentinels_replace_spans_and_target_contains_hidden_tokens) {
  const Dataset data = span_lines(120);
  std::set<std::int64_t> seen;
  for (const Batch& batch : batches_of(data, 0)) {
    BOOST_TEST(std::max(batch.source.rows(), batch.target.rows()) <= 400);
    for (std::int64_t i = 0; i < batch.sequences(); ++i) {
      const auto line = data.source[batch.samples[i]];
      const Ids source = batch.source.part(i, i + 1).ids, target = batch.target.part(i, i + 1).ids,
                labels(batch.labels.begin() + batch.target.offsets[i],
                       batch.labels.begin() + batch.target.offsets[i + 1]);
      BOOST_TEST((source.back() == Tokenizer::eos && labels.back() == Tokenizer::eos));
      BOOST_TEST(source.front() == first_token);  // the line begins with visible tokens
      BOOST_TEST(labels.front() == first_mark);
      BOOST_TEST(target.front() == Tokenizer::bos);
      BOOST_TEST(std::equal(labels.begin(), labels.end() - 1, target.begin() + 1));
      BOOST_TEST(std::ranges::equal(joined(source, labels), line));
      seen.insert(batch.samples[i]);
    }
  }
  BOOST_TEST(seen.size() == 120u);
}

BOOST_AUTO_TEST_CASE(numbers_of_hidden_tokens_and_spans_follow_rate_and_mean_length) {
  Random random({.seed = 1, .stream = Stream::check});
  const auto counts = [&](std::int64_t tokens, const SpanOptions& options) {
    const std::vector<bool> hidden = hidden_tokens(tokens, options, random);
    BOOST_REQUIRE(std::ssize(hidden) == tokens);
    std::int64_t spans = 0;
    for (std::size_t i = 1; i < hidden.size(); ++i) spans += hidden[i] && !hidden[i - 1];
    return std::pair(std::ranges::count(hidden, true), spans);
  };
  BOOST_TEST((counts(100, {0.15, 3}) == std::pair(15L, 5L)));
  BOOST_TEST((counts(20, {0.15, 3}) == std::pair(3L, 1L)));
  BOOST_TEST((counts(2, {0.15, 3}) == std::pair(1L, 1L)));
  BOOST_TEST((counts(2, {0.5, 1}) == std::pair(1L, 1L)));
  BOOST_TEST((counts(3, {0.5, 1}) == std::pair(2L, 1L)));  // one visible token, so one span
  BOOST_TEST((counts(40, {0.5, 1}) == std::pair(20L, 20L)));
}

// Visible and hidden spans alternate; the first is visible and the last is hidden. With 2 hidden
// spans of one token, the 4 visible tokens can be divided into 2 spans in 3 ways.
BOOST_AUTO_TEST_CASE(all_placements_of_hidden_spans_are_equally_likely) {
  Random random({.seed = 2, .stream = Stream::check});
  std::map<std::vector<bool>, double> found;
  for (int i = 0; i < 9000; ++i) ++found[hidden_tokens(6, {0.34, 1}, random)];
  BOOST_REQUIRE(found.size() == 3u);
  for (const auto& [hidden, count] : found)
    BOOST_TEST(std::abs(count - 3000) < 5 * std::sqrt(2000.0));  // 5 standard deviations
}

BOOST_AUTO_TEST_CASE(epochs_hide_different_tokens_and_evaluations_hide_the_same_tokens) {
  const Dataset data = span_lines(60);
  BOOST_TEST((batches_of(data, 0) == batches_of(data, 0)));
  BOOST_TEST((batches_of(data, 0) != batches_of(data, 0, 2)));
  const Batch usual = make_batch(data, {40});
  BOOST_TEST((make_batch(data, {40}) == usual));
  std::set<Ids> sources;
  for (std::int64_t epoch = 0; epoch < 5; ++epoch)
    for (const Batch& batch : batches_of(data, epoch))
      for (std::int64_t i = 0; i < batch.sequences(); ++i)
        if (batch.samples[i] == 40) sources.insert(batch.source.part(i, i + 1).ids);
  BOOST_TEST(sources.size() > 3u);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(mixtures)

namespace {

/// Parts of 300, 100 and 20 samples.
Dataset parts(const MixtureOptions& options) {
  Dataset data = random_pairs(420, 6);
  data.parts = {{"large", 300}, {"small", 100}, {"tiny", 20}};
  data.mixture = options;
  return data;
}

/// The number of times that each sample occurs in an epoch.
std::map<std::int64_t, int> counts(const Dataset& data, std::int64_t epoch) {
  std::map<std::int64_t, int> counts;
  for (const Batch& batch : batches_of(data, epoch))
    for (const std::int64_t sample : batch.samples) ++counts[sample];
  return counts;
}

std::array<int, 3> of_parts(const std::map<std::int64_t, int>& counts) {
  std::array<int, 3> sums{};
  for (const auto& [sample, count] : counts) sums[sample < 300 ? 0 : sample < 400 ? 1 : 2] += count;
  return sums;
}

}  // namespace

BOOST_AUTO_TEST_CASE(epoch_of_mixture_without_limit_contains_every_sample_once) {
  const auto found = counts(parts({}), 0);
  BOOST_TEST(found.size() == 420u);
  for (const auto& [sample, count] : found) BOOST_TEST(count == 1);
}

BOOST_AUTO_TEST_CASE(parts_are_drawn_by_limited_size_and_temperature) {
  // Parts are drawn in proportion to min(size, 100): 100, 100 and 20 of 220.
  const auto limited = counts(parts({.limit = 100}), 0);
  BOOST_TEST((of_parts(limited) == std::array{191, 191, 38}));
  for (const auto& [sample, count] : limited)  // part "small": 100 samples, drawn 191 times
    BOOST_TEST((sample < 300 ? count == 1 : count == 1 || count == 2));
  // With a high temperature, all parts are drawn equally often.
  BOOST_TEST((of_parts(counts(parts({.temperature = 1000}), 0)) == std::array{140, 140, 140}));
  // With temperature 2, parts are drawn in proportion to the square roots 17.3, 10 and 4.5.
  BOOST_TEST((of_parts(counts(parts({.temperature = 2}), 0)) == std::array{229, 132, 59}));
  // The limit comes first: square roots of 100, 100 and 20.
  BOOST_TEST(
      (of_parts(counts(parts({.limit = 100, .temperature = 2}), 0)) == std::array{172, 171, 77}));
}

BOOST_AUTO_TEST_CASE(epochs_draw_different_samples_of_large_part) {
  const Dataset data = parts({.limit = 100});
  BOOST_TEST((batches_of(data, 3) == batches_of(data, 3)));
  std::set<std::int64_t> seen;
  for (std::int64_t epoch = 0; epoch < 4; ++epoch)
    for (const auto& [sample, count] : counts(data, epoch))
      if (sample < 300) seen.insert(sample);
  BOOST_TEST(seen.size() > 290u);
}

BOOST_AUTO_TEST_CASE(part_sizes_exclude_skipped_samples) {
  const Split split{.source = {"a b", "", "a", "b"},
                    .target = {"a", "b", "a", "b"},
                    .parts = {{"one", 2}, {"none", 0}, {"two", 2}}};
  const auto tokenizer =
      train_tokenizer({.kind = TokenizerKind::words}, std::vector<std::string>{"a b"}, 1);
  const Dataset data = tokenize(split, *tokenizer, *tokenizer, {.training = true});
  BOOST_REQUIRE(data.parts.size() == 3u);
  BOOST_TEST((data.parts[0].name == "one" && data.parts[0].size == 1));
  BOOST_TEST((data.parts[1].name == "none" && data.parts[1].size == 0));
  BOOST_TEST((data.parts[2].name == "two" && data.parts[2].size == 2));
}

BOOST_AUTO_TEST_CASE(prefixes_are_added_to_lines_of_their_files) {
  const TempDir dir;
  const std::string a = dir.write("a", "x\ny\n"), b = dir.write("b", "z\n"),
                    t = dir.write("t", "1\n2\n3\n");
  DataOptions options;
  options.train = {{a, b}, {t}, {}};
  options.mixture.prefixes = {"first: ", ""};
  const Split split = read_corpus(options, Reads::pairs, 1).train;
  BOOST_TEST((split.source == std::vector<std::string>{"first: x", "first: y", "z"}));
  BOOST_REQUIRE(split.parts.size() == 2u);
  BOOST_TEST((split.parts[0].name == "first" && split.parts[0].size == 2));
  BOOST_TEST((split.parts[1].name == "(no prefix)" && split.parts[1].size == 1));
  options.mixture.prefixes = {"first: "};
  expect_error(Exit::usage,
               {"data.mixture.prefixes: the number of prefixes is 1, ",
                "number of files in data.train.source is 2"},
               [&] { read_corpus(options, Reads::pairs, 1); });
}

BOOST_AUTO_TEST_SUITE_END()
