#pragma once
/// Datasets for the tests of batches, in which every token tells where it comes from.
#include <algorithm>

#include "data/batches/batcher.h"
#include "tests/data/support.h"

namespace heed::testing {

/// Pairs of random lengths 1 … longest; token values are 10, 11, 12, … through the whole dataset.
inline Dataset random_pairs(std::int64_t n, std::uint32_t longest, std::uint64_t seed = 1) {
  Random random({.seed = seed, .stream = Stream::check, .index = 5});
  Dataset data;
  std::int32_t token = 10;
  const auto sequence = [&](bool end) {
    std::vector<std::int32_t> ids(1 + random.below(longest));
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
  for (std::int32_t i = 0; i < n; ++i) data.stream.push_back(100 + i);
  return data;
}

/// Offsets fit the tokens, and (pairs) each sequence is the one that `samples` names.
inline void check_batch(const Batch& b, const Dataset& data) {
  const auto n = b.sequences();
  BOOST_REQUIRE(n > 0);
  BOOST_REQUIRE(static_cast<std::int64_t>(b.samples.size()) == n);
  BOOST_REQUIRE(b.target_offsets.front() == 0);
  BOOST_REQUIRE(b.target_offsets.back() == static_cast<std::int32_t>(b.target_in.size()));
  BOOST_REQUIRE(b.target_in.size() == b.target_out.size());
  const auto in = [&](std::int64_t i) {
    return std::vector<std::int32_t>(b.target_in.begin() + b.target_offsets[i],
                                     b.target_in.begin() + b.target_offsets[i + 1]);
  };
  const auto out = [&](std::int64_t i) {
    return std::vector<std::int32_t>(b.target_out.begin() + b.target_offsets[i],
                                     b.target_out.begin() + b.target_offsets[i + 1]);
  };
  if (data.language_model()) {
    BOOST_REQUIRE((b.source.empty() && b.source_offsets.empty()));
    for (std::int64_t i = 0; i < n; ++i) {
      BOOST_REQUIRE(!in(i).empty());
      for (std::size_t k = 0; k < in(i).size(); ++k) {
        BOOST_REQUIRE(in(i)[k] == data.stream[static_cast<std::size_t>(b.samples[i]) + k]);
        BOOST_REQUIRE(out(i)[k] == data.stream[static_cast<std::size_t>(b.samples[i]) + k + 1]);
      }
    }
    return;
  }
  BOOST_REQUIRE(b.source_offsets.back() == static_cast<std::int32_t>(b.source.size()));
  for (std::int64_t i = 0; i < n; ++i) {
    const auto source = data.source[b.samples[i]], target = data.target[b.samples[i]];
    BOOST_REQUIRE(std::equal(source.begin(), source.end(), b.source.begin() + b.source_offsets[i],
                             b.source.begin() + b.source_offsets[i + 1]));
    std::vector<std::int32_t> expected(target.begin(), target.end());
    expected.push_back(Tokenizer::eos);
    BOOST_REQUIRE(out(i) == expected);
    expected.pop_back();
    expected.insert(expected.begin(), Tokenizer::bos);
    BOOST_REQUIRE(in(i) == expected);
  }
}

inline bool same(const Batch& a, const Batch& b) {
  return a.source == b.source && a.source_offsets == b.source_offsets &&
         a.target_in == b.target_in && a.target_out == b.target_out &&
         a.target_offsets == b.target_offsets && a.samples == b.samples;
}

}  // namespace heed::testing
