#include "data/batches/batcher.h"

#include <cstdlib>
#include <map>
#include <numeric>
#include <set>

#include "tests/data/batches.h"

using namespace heed;
using namespace heed::testing;

BOOST_AUTO_TEST_SUITE(batcher)

namespace {

std::vector<Batch> epoch(BatchStream& stream) {
  std::vector<Batch> batches;
  const auto e = stream.position().epoch;
  while (stream.position().epoch == e) batches.push_back(stream.next());
  return batches;
}

std::vector<std::int64_t> all_samples(const std::vector<Batch>& batches) {
  std::vector<std::int64_t> all;
  for (const auto& b : batches) all.insert(all.end(), b.samples.begin(), b.samples.end());
  return all;
}

void check_permutation(std::vector<std::int64_t> samples, std::int64_t n) {
  std::sort(samples.begin(), samples.end());
  std::vector<std::int64_t> expected(static_cast<std::size_t>(n));
  std::iota(expected.begin(), expected.end(), std::int64_t{0});
  BOOST_TEST((samples == expected));
}

std::int64_t cost(const Batch& b) { return std::max(b.source.rows(), b.target.rows()); }

}  // namespace

BOOST_AUTO_TEST_CASE(every_sample_occurs_once_per_epoch) {
  for (const std::int64_t n : {1, 2, 7, 100, 3000}) {
    const Dataset data = random_pairs(n, 12);
    for (const BatchOptions& o :
         {BatchOptions{.batch_tokens = 60}, BatchOptions{.batch_tokens = 1},
          BatchOptions{.batch_sequences = 8}, BatchOptions{.batch_sequences = 1}}) {
      BatchStream stream(data, o);
      for (int e = 0; e < 3; ++e) {
        const auto batches = epoch(stream);
        for (const auto& b : batches) check_batch(b, data);
        check_permutation(all_samples(batches), n);
        BOOST_TEST(static_cast<std::int64_t>(batches.size()) == stream.batches_in(e));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(each_epoch_draws_new_segmentations) {
  const std::vector<std::string> lines = sentences(60, 1);
  const std::shared_ptr<const Tokenizer> tokenizer = train_tokenizer(
      {.kind = TokenizerKind::sentencepiece, .algorithm = PieceAlgorithm::bpe, .vocab_size = 150},
      sentences(400, 1), 1);
  Dataset data = tokenize({lines, lines, {}}, *tokenizer, *tokenizer, {.training = true}, 1);
  const std::vector<Batch> usual = evaluation_batches(data, {.batch_tokens = 200});
  data.segmentation = {tokenizer, tokenizer, {.alpha = 0.3}, 1000};
  const auto line_of = [&](const Side& side, std::int64_t i) {
    const Side one = side.part(i, i + 1);
    return tokenizer->decode(one.ids);
  };
  BatchStream stream(data, {.batch_tokens = 200}), again(data, {.batch_tokens = 200});
  std::map<std::int64_t, std::set<std::vector<std::int32_t>>> seen;
  std::size_t equal_pairs = 0;
  for (int e = 0; e < 4; ++e) {
    const std::vector<Batch> batches = epoch(stream);
    check_permutation(all_samples(batches), 60);
    again.seek({e, 1});
    BOOST_TEST((again.next() == batches[1]));
    for (const Batch& b : batches) {
      for (std::int64_t i = 0; i < b.sequences(); ++i) {
        const std::string line = tokenizer->decode(tokenizer->encode(lines[b.samples[i]]));
        BOOST_TEST(line_of(b.source, i) == line);
        BOOST_TEST(line_of(b.target, i) == line);
        const Side source = b.source.part(i, i + 1), target = b.target.part(i, i + 1);
        seen[b.samples[i]].insert(source.ids);
        const bool equal = std::equal(source.ids.begin(), source.ids.end() - 1,
                                      target.ids.begin() + 1, target.ids.end());
        equal_pairs += equal ? 1 : 0;
      }
    }
  }
  BOOST_TEST(equal_pairs < 60u);  // of 240: the sides are segmented independently
  for (const auto& [sample, segmentations] : seen) BOOST_TEST(segmentations.size() > 1u);
  // Sampled segmentation affects neither evaluation nor lines that it would make too long.
  BOOST_TEST((evaluation_batches(data, {.batch_tokens = 200}) == usual));
  // The longest segmentation of the epoch is used if it has max_length tokens, but not if it has more.
  BatchStream unlimited(data, {.batch_tokens = 200});
  const std::vector<Batch> sampled = epoch(unlimited);
  const auto first_epoch = [&] {
    BatchStream limited(data, {.batch_tokens = 200});
    return epoch(limited);
  };
  std::int64_t longest = 0;
  for (const Batch& b : sampled) {
    for (const Side* side : {&b.source, &b.target})
      for (std::int64_t i = 0; i < b.sequences(); ++i)
        longest = std::max<std::int64_t>(longest, side->offsets[i + 1] - side->offsets[i] - 1);
  }
  data.segmentation->max_length = longest;
  BOOST_TEST((first_epoch() == sampled));
  data.segmentation->max_length = longest - 1;
  BOOST_TEST((first_epoch() != sampled));
  data.segmentation->max_length = 1;
  BatchStream short_lines(data, {.batch_tokens = 200});
  for (const Batch& b : epoch(short_lines)) check_batch(b, data);
}

BOOST_AUTO_TEST_CASE(batches_are_nearly_full_and_within_the_limits) {
  const Dataset data = random_pairs(5000, 30);
  BatchStream stream(data, {.batch_tokens = 300});
  const auto batches = epoch(stream);
  std::int64_t total = 0;
  for (const auto& b : batches) {
    BOOST_TEST(cost(b) <= 300);
    total += cost(b);
  }
  BOOST_TEST(static_cast<double>(total) / static_cast<double>(batches.size()) > 0.9 * 300);

  BatchStream counted(data, {.batch_tokens = 300, .batch_sequences = 16});
  std::size_t incomplete = 0;
  for (const auto& b : epoch(counted)) {
    BOOST_TEST(b.sequences() <= 16);
    incomplete += b.sequences() != 16;
  }
  BOOST_TEST(incomplete <= 4u);  // the last batch of each chunk of 1,600 samples
}

BOOST_AUTO_TEST_CASE(sample_longer_than_batch_tokens_forms_a_separate_batch) {
  Dataset data = random_pairs(50, 5);
  data.source.push(std::vector<std::int32_t>{9, 9, Tokenizer::eos});
  data.target.push(std::vector<std::int32_t>(100, 7));
  BatchStream stream(data, {.batch_tokens = 20});
  for (const auto& b : epoch(stream)) {
    if (cost(b) > 20)
      BOOST_TEST(b.samples == (std::vector<std::int64_t>{50}), boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(similar_lengths_are_batched_together) {
  const Dataset data = random_pairs(5000, 60);
  BatchStream stream(data, {.batch_tokens = 600});
  double spread = 0;
  const auto batches = epoch(stream);
  for (const auto& b : batches) {
    std::int64_t low = 1 << 30, high = 0;
    for (const auto i : b.samples) {
      low = std::min(low, data.target.length(i));
      high = std::max(high, data.target.length(i));
    }
    spread += static_cast<double>(high - low);
  }
  BOOST_TEST(spread / static_cast<double>(batches.size()) < 3.0);  // random batches: about 55
}

BOOST_AUTO_TEST_CASE(batch_order_is_function_of_seed_and_epoch) {
  const Dataset data = random_pairs(2000, 12);
  BatchStream a(data, {.batch_tokens = 100, .seed = 5}), b(data, {.batch_tokens = 100, .seed = 5});
  BatchStream other_seed(data, {.batch_tokens = 100, .seed = 6});
  std::vector<std::vector<std::int64_t>> orders;
  for (int e = 0; e < 3; ++e) {
    orders.push_back(all_samples(epoch(a)));
    BOOST_TEST((orders.back() == all_samples(epoch(b))));
    BOOST_TEST((orders.back() != all_samples(epoch(other_seed))));
  }
  BOOST_TEST((orders[0] != orders[1] && orders[1] != orders[2]));

  // The order of the batches is also shuffled: their numbers of samples rise and fall.
  BatchStream again(data, {.batch_tokens = 100, .seed = 5});
  int falls = 0;
  std::size_t before = 0;
  for (const auto& batch : epoch(again)) {
    falls += batch.samples.size() < before;
    before = batch.samples.size();
  }
  BOOST_TEST(falls > 20);
}

BOOST_AUTO_TEST_CASE(all_orders_of_samples_are_equally_frequent) {
  // Samples of equal length, one per batch: sorting keeps their shuffled order.
  Dataset data;
  for (std::int32_t i = 0; i < 3; ++i) {
    data.source.push(std::vector<std::int32_t>{10 + i, Tokenizer::eos});
    data.target.push(std::vector<std::int32_t>{20 + i});
  }
  BatchStream stream(data, {.batch_sequences = 1});
  std::map<std::vector<std::int64_t>, int> seen;
  for (int e = 0; e < 6000; ++e) ++seen[all_samples(epoch(stream))];
  BOOST_TEST(seen.size() == 6u);
  for (const auto& [order, times] : seen)
    BOOST_TEST(std::abs(times - 1000) < 150);  // 5 standard deviations
}

BOOST_AUTO_TEST_CASE(seek_resumes_at_any_position) {
  for (const bool text : {false, true}) {
    const Dataset data = text ? counting_text(2000) : random_pairs(500, 12);
    const BatchOptions o{.batch_tokens = 100, .context = 10, .seed = 3};
    BatchStream straight(data, o);
    for (int step = 0; step < 150; ++step) {
      BatchStream jumped(data, o);
      jumped.seek(straight.position());
      BOOST_TEST((jumped.position() == straight.position()));
      BOOST_TEST(jumped.epochs_done() == straight.epochs_done());
      BOOST_TEST((jumped.next() == straight.next()));
      BOOST_TEST((jumped.position() == straight.position()));
    }
    BOOST_TEST(straight.position().epoch >= 2);
    const auto n = straight.batches_in(7);
    straight.seek({7, n - 1});
    straight.next();
    BOOST_TEST((straight.position() == Position{8, 0}));
    BOOST_TEST(straight.epochs_done() == 8.0);
    expect_error(Exit::bad_input, {"epoch 7"}, [&] { straight.seek({7, n}); });
    expect_error(Exit::bad_input, {"batch -1"}, [&] { straight.seek({7, -1}); });
    expect_error(Exit::bad_input, {"epoch -1"}, [&] { straight.seek({-1, 0}); });
    BOOST_TEST((straight.position() == Position{8, 0}));  // failed seeks have no effect
  }
}

BOOST_AUTO_TEST_CASE(text_windows_predict_each_token_once) {
  for (const std::int32_t n : {2, 3, 10, 11, 12, 500}) {
    const Dataset data = counting_text(n);
    for (const BatchOptions& o : {BatchOptions{.batch_tokens = 50, .context = 10},
                                  BatchOptions{.batch_sequences = 3, .context = 10},
                                  BatchOptions{.batch_tokens = 5, .context = 10},
                                  BatchOptions{.batch_sequences = 3, .context = 1000}}) {
      BatchStream stream(data, o);
      std::set<std::int64_t> shifts;
      for (int e = 0; e < 20; ++e) {
        std::vector<std::int64_t> predicted;
        const auto batches = epoch(stream);
        BOOST_TEST(static_cast<std::int64_t>(batches.size()) == stream.batches_in(e));
        for (const auto& b : batches) {
          check_batch(b, data);
          BOOST_TEST(b.sequences() <=
                     (o.batch_sequences > 0 ? 3 : std::max<std::int64_t>(1, o.batch_tokens / 10)));
          for (std::int64_t i = 0; i < b.sequences(); ++i) {
            BOOST_TEST(b.target.offsets[i + 1] - b.target.offsets[i] <= o.context);
            shifts.insert(b.samples[i] % o.context);
          }
          for (const auto token : b.labels) predicted.push_back(token - 101);
        }
        check_permutation(predicted, n - 1);  // every token except the first is predicted once
      }
      if (n == 500 && o.context == 10)
        BOOST_TEST(shifts.size() >= 7u);  // the shift differs between epochs
    }
  }
}

BOOST_AUTO_TEST_CASE(text_lanes_continue_across_batches) {
  for (const std::int32_t n : {2, 9, 10, 11, 12, 45, 500}) {
    const Dataset data = counting_text(n);
    const BatchOptions o{.batch_sequences = 3, .context = 10, .lanes = true};
    BatchStream stream(data, o);
    std::set<std::int64_t> firsts;
    const auto follows = [&](const Batch& b, const Batch& before) {
      for (std::int64_t i = 0; i < b.sequences(); ++i)
        BOOST_TEST(b.samples[i] == before.samples[i] + 10);
    };
    for (int e = 0; e < 10; ++e) {
      const auto batches = epoch(stream);
      firsts.insert(batches[0].samples[0]);
      std::set<std::int64_t> seen;
      for (std::size_t t = 0; t < batches.size(); ++t) {
        check_batch(batches[t], data);
        BOOST_TEST(batches[t].continues == (t > 0));
        BOOST_TEST(batches[t].sequences() == batches[0].sequences());
        if (t > 0) follows(batches[t], batches[t - 1]);
        for (const std::int64_t s : batches[t].samples) BOOST_TEST(seen.insert(s).second);
        BOOST_TEST((shard(batches[t], 2).back().continues == (t > 0)));
      }
      // Less than one window is omitted at the start, and less than one per lane at the end.
      BOOST_TEST(10 * static_cast<std::int64_t>(seen.size()) >= std::min(10, n - 40));
    }
    if (n == 500) BOOST_TEST(firsts.size() > 5u);  // the shift differs between epochs
    const auto evaluated = evaluation_batches(data, o);
    std::vector<std::int64_t> predicted;
    for (std::size_t t = 0; t < evaluated.size(); ++t) {
      check_batch(evaluated[t], data);
      BOOST_TEST(evaluated[t].continues == (t > 0));
      if (t > 0) follows(evaluated[t], evaluated[t - 1]);
      for (const auto token : evaluated[t].labels) predicted.push_back(token - 101);
    }
    check_permutation(predicted, n - 1);
  }
}

BOOST_AUTO_TEST_CASE(evaluation_contains_each_pair_once) {
  const Dataset data = random_pairs(700, 20);
  const auto batches = evaluation_batches(data, {.batch_tokens = 100});
  const auto again = evaluation_batches(data, {.batch_tokens = 100, .seed = 9});
  BOOST_TEST(batches.size() == again.size());
  std::int64_t before = 0;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    check_batch(batches[i], data);
    BOOST_TEST(cost(batches[i]) <= 100);
    BOOST_TEST((batches[i] == again[i]));  // evaluation ignores the seed
    for (const auto s : batches[i].samples) {
      BOOST_TEST(data.source.length(s) >= before);
      before = data.source.length(s);
    }
  }
  check_permutation(all_samples(batches), 700);
  BOOST_TEST(evaluation_batches(Dataset{}, {}).empty());
}

BOOST_AUTO_TEST_CASE(evaluation_predicts_each_token_of_text_once) {
  for (const std::int32_t n : {2, 10, 11, 12, 95, 101}) {
    const Dataset data = counting_text(n);
    std::int32_t next = 101;
    std::int64_t start = 0;
    for (const auto& b : evaluation_batches(data, {.batch_tokens = 30, .context = 10})) {
      check_batch(b, data);
      BOOST_TEST(b.sequences() <= 3);
      for (const auto s : b.samples) {
        BOOST_TEST(s == start);
        start += 10;
      }
      for (const auto token : b.labels) BOOST_TEST(token == next++);
    }
    BOOST_TEST(next == 100 + n);
  }
}

BOOST_AUTO_TEST_CASE(make_batch_returns_samples_in_given_order) {
  const Dataset data = random_pairs(10, 5);
  const Batch b = make_batch(data, {7, 2, 2});
  check_batch(b, data);
  BOOST_TEST(b.samples == (std::vector<std::int64_t>{7, 2, 2}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(untrainable_dataset_is_refused) {
  Dataset nothing;
  nothing.skipped_long = 12;
  expect_error(Exit::bad_input, {"no sample", "12 longer", "data.max_length"},
               [&] { BatchStream(nothing, {}); });
  const Dataset one = counting_text(1);
  expect_error(Exit::bad_input, {"data.train: the text has 1 token"},
               [&] { BatchStream(one, {.context = 4}); });
}

BOOST_AUTO_TEST_SUITE_END()
