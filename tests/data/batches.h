#pragma once
/// Datasets for the tests of batches. Each token identifies its position in the dataset.
#include <algorithm>

#include "data/batches/batcher.h"
#include "tests/data/support.h"

namespace heed::testing {

/// Pairs of sequences with random lengths from 1 to max_length. Tokens are numbered 10, 11, 12, …
/// over the whole dataset.
inline Dataset random_pairs(std::int64_t n, std::uint32_t max_length, std::uint64_t seed = 1) {
  Random random({.seed = seed, .stream = Stream::check, .index = 5});
  Dataset data;
  std::int32_t token = 10;
  const auto sequence = [&](bool end) {
    std::vector<std::int32_t> ids(1 + random.below(max_length));
    for (auto& id : ids) id = token++;
    if (end) ids.push_back(Tokenizer::eos);
    return ids;
  };
  for (std::int64_t i = 0; i < n; ++i) {
    data.source.push(sequence(true));
    data.target.push(sequence(false));
  }
  return data;
}

inline Dataset counting_text(std::int32_t n) {
  Dataset data;
  data.batching = &windows();
  for (std::int32_t i = 0; i < n; ++i) data.stream.push_back(100 + i);
  return data;
}

/// The batches of an epoch, with at most 400 rows on each side.
inline std::vector<Batch> batches_of(const Dataset& data, std::int64_t epoch,
                                     std::uint64_t seed = 1) {
  BatchStream stream(data, {.batch_tokens = 400, .seed = seed});
  stream.seek({epoch, 0});
  std::vector<Batch> all;
  while (stream.position().epoch == epoch) all.push_back(stream.next());
  return all;
}

/// Checks that offsets match the tokens and that the sequences are those of `samples`.
inline void check_batch(const Batch& b, const Dataset& data) {
  const auto n = b.sequences();
  BOOST_REQUIRE(n > 0);
  BOOST_REQUIRE(static_cast<std::int64_t>(b.samples.size()) == n);
  BOOST_REQUIRE(b.target.offsets.front() == 0);
  BOOST_REQUIRE(b.target.rows() == static_cast<std::int64_t>(b.target.ids.size()));
  BOOST_REQUIRE(b.target.ids.size() == b.labels.size());
  const auto in = [&](std::int64_t i) { return b.target.part(i, i + 1).ids; };
  const auto out = [&](std::int64_t i) {
    return std::vector<std::int32_t>(b.labels.begin() + b.target.offsets[i],
                                     b.labels.begin() + b.target.offsets[i + 1]);
  };
  if (data.batching == &windows()) {
    BOOST_REQUIRE((b.source == Side{}));
    for (std::int64_t i = 0; i < n; ++i) {
      BOOST_REQUIRE(!in(i).empty());
      for (std::size_t k = 0; k < in(i).size(); ++k) {
        BOOST_REQUIRE(in(i)[k] == data.stream[static_cast<std::size_t>(b.samples[i]) + k]);
        BOOST_REQUIRE(out(i)[k] == data.stream[static_cast<std::size_t>(b.samples[i]) + k + 1]);
      }
    }
    return;
  }
  BOOST_REQUIRE(b.source.rows() == static_cast<std::int64_t>(b.source.ids.size()));
  for (std::int64_t i = 0; i < n; ++i) {
    const auto source = data.source[b.samples[i]], target = data.target[b.samples[i]];
    BOOST_REQUIRE(std::ranges::equal(source, b.source.part(i, i + 1).ids));
    std::vector<std::int32_t> expected(target.begin(), target.end());
    expected.push_back(Tokenizer::eos);
    BOOST_REQUIRE(out(i) == expected);
    expected.pop_back();
    expected.insert(expected.begin(), Tokenizer::bos);
    BOOST_REQUIRE(in(i) == expected);
  }
}

}  // namespace heed::testing
