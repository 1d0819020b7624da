#include <numeric>

#include "data/batches/batcher.h"
#include "tests/data/batches.h"

using namespace heed;
using namespace heed::testing;

namespace {

/// Shards one after the other are the batch again.
void check_cover(const std::vector<Batch>& shards, const Batch& batch) {
  Batch joined;
  joined.target_offsets = {0};
  if (!batch.source_offsets.empty()) joined.source_offsets = {0};
  const auto append = [](auto& to, const auto& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  for (const auto& s : shards) {
    for (std::int64_t i = 0; i < s.sequences(); ++i) {
      joined.target_offsets.push_back(joined.target_offsets.back() + s.target_offsets[i + 1] -
                                      s.target_offsets[i]);
      if (!s.source_offsets.empty()) {
        joined.source_offsets.push_back(joined.source_offsets.back() + s.source_offsets[i + 1] -
                                        s.source_offsets[i]);
      }
    }
    append(joined.source, s.source);
    append(joined.target_in, s.target_in);
    append(joined.target_out, s.target_out);
    append(joined.samples, s.samples);
  }
  BOOST_TEST(same(joined, batch));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(shards)

BOOST_AUTO_TEST_CASE(cover_exactly_and_are_alike) {
  for (const bool text : {false, true}) {
    const Dataset data = text ? counting_text(3000) : random_pairs(400, 25);
    for (const TokenCost cost : {TokenCost{}, TokenCost{1, 1.75}, TokenCost{5.5e6, 9.6e6}}) {
      const auto cost_of = [cost](const Batch& b) {
        return cost.source * static_cast<double>(b.source.size()) +
               cost.target * static_cast<double>(b.target_out.size());
      };
      BatchStream stream(data, {.batch_tokens = 400, .context = 30});
      for (int step = 0; step < 15; ++step) {
        const Batch batch = stream.next();
        double costliest = 0;
        for (const auto& one : shard(batch, batch.sequences() * 1000, cost)) {
          BOOST_TEST(one.sequences() == 1);
          costliest = std::max(costliest, cost_of(one));
        }
        for (const std::int64_t count : {1, 2, 3, 4, 7, 1000}) {
          const auto parts = shard(batch, count, cost);
          BOOST_TEST(static_cast<std::int64_t>(parts.size()) <= count);
          check_cover(parts, batch);
          for (const auto& part : parts) {
            check_batch(part, data);
            BOOST_TEST(cost_of(part) <=
                       cost_of(batch) / static_cast<double>(count) + costliest * (1 + 1e-9));
          }
          const auto again = shard(batch, count, cost);
          for (std::size_t k = 0; k < parts.size(); ++k) BOOST_TEST(same(parts[k], again[k]));
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_side_that_costs_more_weighs_more) {
  // Four pairs: two of long sources and short targets, then two the other way round.
  Dataset data;
  for (const auto& [source, target] : {std::pair{30, 2}, {30, 2}, {2, 30}, {2, 30}}) {
    data.source.push(std::vector<std::int32_t>(static_cast<std::size_t>(source), 5));
    data.target.push(std::vector<std::int32_t>(static_cast<std::size_t>(target), 5));
  }
  const Batch batch = make_batch(data, {0, 1, 2, 3});
  BOOST_TEST(shard(batch, 2)[0].sequences() == 2);
  BOOST_TEST(shard(batch, 2, {1, 10})[0].sequences() == 3);
  BOOST_TEST(shard(batch, 2, {10, 1})[0].sequences() == 1);
}

BOOST_AUTO_TEST_CASE(equal_sequences_are_dealt_evenly) {
  const Dataset data = counting_text(12 * 64 + 1);
  const auto batches = evaluation_batches(data, {.batch_sequences = 12, .context = 64});
  BOOST_TEST(batches.size() == 1u);
  for (const auto& part : shard(batches[0], 4)) BOOST_TEST(part.sequences() == 3);
}

BOOST_AUTO_TEST_CASE(few_or_no_sequences) {
  const Dataset data = random_pairs(3, 5);
  BOOST_TEST(shard(make_batch(data, {0, 1, 2}), 8).size() == 3u);
  BOOST_TEST(shard(Batch{}, 4).empty());
  expect_error(Exit::failed, {"count"}, [&] { shard(make_batch(data, {0}), 0); });
}

BOOST_AUTO_TEST_SUITE_END()
