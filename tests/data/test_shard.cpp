#include <numeric>

#include "data/batches/batcher.h"
#include "tests/data/batches.h"

using namespace heed;
using namespace heed::testing;

BOOST_AUTO_TEST_SUITE(shards)

namespace {

/// Checks that the concatenated shards equal the batch.
void check_cover(const std::vector<Batch>& shards, const Batch& batch) {
  Batch joined;
  const auto append = [](auto& to, const auto& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  const auto join = [&](Side& to, const Side& from) {
    to.width = from.width;
    append(to.ids, from.ids);
    append(to.features, from.features);
    if (to.offsets.empty() && !from.offsets.empty()) to.offsets.push_back(0);
    const std::int32_t before = static_cast<std::int32_t>(to.rows());
    for (std::int64_t i = 0; i < from.sequences(); ++i)
      to.offsets.push_back(before + from.offsets[i + 1]);
  };
  for (const auto& s : shards) {
    join(joined.source, s.source);
    join(joined.target, s.target);
    append(joined.labels, s.labels);
    append(joined.samples, s.samples);
  }
  BOOST_TEST((joined == batch));
}

}  // namespace

BOOST_AUTO_TEST_CASE(shards_cover_the_batch_and_are_balanced) {
  for (const bool text : {false, true}) {
    const Dataset data = text ? counting_text(3000) : random_pairs(400, 25);
    for (const TokenCost cost : {TokenCost{}, TokenCost{1, 1.75}, TokenCost{5.5e6, 9.6e6}}) {
      const auto cost_of = [cost](const Batch& b) {
        return cost.source * static_cast<double>(b.source.rows()) +
               cost.target * static_cast<double>(b.target.rows());
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
          for (std::size_t k = 0; k < parts.size(); ++k) BOOST_TEST((parts[k] == again[k]));
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(shards_balance_cost_of_source_and_target) {
  // Four pairs: two with long sources and short targets, then two with short sources and long
  // targets.
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

BOOST_AUTO_TEST_CASE(sequences_of_equal_length_are_distributed_evenly) {
  const Dataset data = counting_text(12 * 64 + 1);
  const auto batches = evaluation_batches(data, {.batch_sequences = 12, .context = 64});
  BOOST_TEST(batches.size() == 1u);
  for (const auto& part : shard(batches[0], 4)) BOOST_TEST(part.sequences() == 3);
}

BOOST_AUTO_TEST_CASE(shards_contain_feature_rows_of_their_sequences) {
  Batch batch;
  batch.source.width = 3;
  batch.source.offsets = {0, 2, 3, 7};
  for (int i = 0; i < 7 * 3; ++i) batch.source.features.push_back(static_cast<float>(i));
  batch.labels = {10, 11, 12, 13, 14, 15, 16};
  batch.samples = {4, 5, 6};
  BOOST_TEST(batch.sequences() == 3);
  BOOST_TEST((&batch.labelled() == &batch.source));
  const std::vector<Batch> parts = shard(batch, 3);
  check_cover(parts, batch);
  BOOST_TEST(parts.size() == 3u);
  BOOST_TEST(parts[1].source.features.front() == 6);  // the first value of row 2
  BOOST_TEST(parts[2].source.features.front() == 9);
  BOOST_TEST((parts[2].labels == std::vector<std::int32_t>{13, 14, 15, 16}));
}

BOOST_AUTO_TEST_CASE(labels_are_divided_with_source_in_batch_without_target) {
  Batch batch;
  for (const int length : {1, 2, 3, 1, 1})
    batch.source.push(std::vector<std::int32_t>(static_cast<std::size_t>(length), length));
  for (std::int32_t i = 0; i < 8; ++i) batch.labels.push_back(i);
  batch.samples = {0, 1, 2, 3, 4};
  for (const std::int64_t count : {1, 2, 3, 9}) {
    const std::vector<Batch> parts = shard(batch, count);
    check_cover(parts, batch);
    for (const Batch& part : parts) {
      BOOST_TEST((part.target == Side{}));
      BOOST_TEST(static_cast<std::int64_t>(part.labels.size()) == part.source.rows());
    }
  }
}

BOOST_AUTO_TEST_CASE(batch_of_few_sequences_has_fewer_shards) {
  const Dataset data = random_pairs(3, 5);
  BOOST_TEST(shard(make_batch(data, {0, 1, 2}), 8).size() == 3u);
  BOOST_TEST(shard(Batch{}, 4).empty());
  expect_error(Exit::failed, {"count"}, [&] { shard(make_batch(data, {0}), 0); });
}

BOOST_AUTO_TEST_SUITE_END()
