#include "data/batches/masking.h"

#include <map>
#include <set>

#include "tests/data/batches.h"

using namespace heed;
using namespace heed::testing;

BOOST_AUTO_TEST_SUITE(masking)

namespace {

constexpr std::int32_t mask = 3, first = 4, vocabulary = 1004;

/// Lines of 20 consecutive ids. Line i begins with id 4 + (20 i mod 1000), so that a token
/// identifies its position and, among 50 lines, its line.
Dataset lines(std::int64_t n, const MaskOptions& options) {
  Dataset data;
  data.batching = &masked_lines();
  data.masking = Masking{options, mask, first, vocabulary, {}, {}};
  for (std::int64_t i = 0; i < n; ++i) {
    std::vector<std::int32_t> ids(20);
    for (std::size_t k = 0; k < ids.size(); ++k)
      ids[k] = first + static_cast<std::int32_t>((20 * i + static_cast<std::int64_t>(k)) % 1000);
    data.source.push(ids);
    data.target.push({});
    data.masking->followed.push_back(i + 1 < n);
  }
  return data;
}

}  // namespace

BOOST_AUTO_TEST_CASE(hidden_tokens_are_masked_random_or_unchanged_in_ratio_80_10_10) {
  const Dataset data = lines(3000, {});
  std::int64_t labels = 0, masked = 0, unchanged = 0, random = 0;
  for (const Batch& batch : batches_of(data, 0)) {
    for (std::int64_t i = 0; i < batch.sequences(); ++i) {
      const auto ids = batch.source.part(i, i + 1).ids;
      const auto line = data.source[batch.samples[i]];
      BOOST_REQUIRE(ids.size() == 22u);
      BOOST_TEST((ids.front() == Tokenizer::bos && ids.back() == Tokenizer::eos));
      std::int64_t hidden = 0;
      for (std::size_t k = 0; k < line.size(); ++k) {
        const std::int32_t label = batch.labels[batch.source.offsets[i] + k + 1], id = ids[k + 1];
        if (label == no_label) {
          BOOST_REQUIRE(id == line[k]);
          continue;
        }
        BOOST_REQUIRE(label == line[k]);
        ++hidden;
        masked += id == mask;
        unchanged += id == label;
        random += id != mask && id != label;
        BOOST_REQUIRE((id == mask || id >= first));
      }
      BOOST_TEST(hidden == 3);  // 15 % of 20
      labels += hidden;
    }
  }
  BOOST_REQUIRE(labels == 9000);
  // 5 standard deviations of a binomial distribution
  BOOST_TEST(std::abs(static_cast<double>(masked) - 0.8 * 9000) < 5 * std::sqrt(0.16 * 9000));
  BOOST_TEST(std::abs(static_cast<double>(unchanged) - 0.1 * 9000) < 5 * std::sqrt(0.09 * 9000));
  BOOST_TEST(std::abs(static_cast<double>(random) - 0.1 * 9000) < 5 * std::sqrt(0.09 * 9000));
}

BOOST_AUTO_TEST_CASE(epochs_hide_different_tokens_and_evaluations_hide_the_same_tokens) {
  const Dataset data = lines(100, {});
  const std::vector<Batch> zero = batches_of(data, 0);
  BOOST_TEST((batches_of(data, 0) == zero));
  BOOST_TEST((batches_of(data, 0, 2) != zero));
  const auto hidden = [](const std::vector<Batch>& batches) {
    std::map<std::int64_t, std::vector<std::int32_t>> all;
    for (const Batch& b : batches) {
      for (std::int64_t i = 0; i < b.sequences(); ++i) {
        const auto at = b.labels.begin();
        all[b.samples[i]] = {at + b.source.offsets[i], at + b.source.offsets[i + 1]};
      }
    }
    return all;
  };
  const auto a = hidden(zero), b = hidden(batches_of(data, 1));
  std::int64_t equal = 0;
  for (const auto& [sample, labels] : a) equal += labels == b.at(sample);
  BOOST_TEST(equal < 5);
  const BatchOptions one{.batch_tokens = 400, .seed = 1}, two{.batch_tokens = 60, .seed = 9};
  BOOST_TEST((hidden(evaluation_batches(data, one)) == hidden(evaluation_batches(data, two))));
}

BOOST_AUTO_TEST_CASE(number_of_labels_follows_mask_rate_and_is_at_least_one) {
  Dataset data = lines(50, {.rate = 0.5});
  data.source = {};
  for (std::int32_t i = 0; i < 50; ++i) data.source.push(std::vector<std::int32_t>{first + i});
  for (const Batch& b : evaluation_batches(data, {.batch_tokens = 30}))
    BOOST_TEST(b.label_count() == b.sequences());
  const Dataset half = lines(50, {.rate = 0.5});
  for (const Batch& b : evaluation_batches(half, {.batch_tokens = 400}))
    BOOST_TEST(b.label_count() == 10 * b.sequences());
}

BOOST_AUTO_TEST_CASE(whole_words_are_hidden_together) {
  Dataset data = lines(400, {.rate = 0.3, .whole_words = true});
  for (std::int32_t id = 0; id < vocabulary; ++id)  // words of 1, 2, 3 and 4 pieces in turn
    data.masking->continues.push_back(id >= first &&
                                      std::set{2, 4, 5, 7, 8, 9}.contains((id - first) % 10));
  for (const Batch& b : batches_of(data, 0)) {
    for (std::int64_t i = 0; i < b.sequences(); ++i) {
      const auto line = data.source[b.samples[i]];
      std::int64_t hidden = 0;
      for (std::size_t k = 0; k < line.size(); ++k) {
        const bool label = b.labels[b.source.offsets[i] + k + 1] != no_label;
        hidden += label;
        if (k == 0 || !data.masking->continues[line[k]]) continue;
        BOOST_REQUIRE(label == (b.labels[b.source.offsets[i] + k] != no_label));
      }
      BOOST_REQUIRE((hidden >= 3 && hidden <= 6));  // 6 is 30 % of 20
    }
  }
}

// Each line begins with a piece that continues a word, but the word before it is in the other line.
BOOST_AUTO_TEST_CASE(words_do_not_extend_across_the_end_of_the_first_line) {
  Dataset data = lines(400, {.rate = 0.3, .whole_words = true, .next_sentence = true});
  for (std::int32_t id = 0; id < vocabulary; ++id)
    data.masking->continues.push_back(id >= first && (id - first) % 5 != 2);
  for (const Batch& b : batches_of(data, 0)) {
    for (std::int64_t i = 0; i < b.sequences(); ++i) {
      const auto ids = b.source.part(i, i + 1).ids;
      const auto label = b.labels.begin() + b.source.offsets[i];
      for (const std::size_t end : {21, 42})
        BOOST_REQUIRE((ids[end] == Tokenizer::eos && label[end] == no_label));
      const auto hidden = 42 - std::count(label + 1, label + 43, no_label);
      BOOST_REQUIRE((hidden > 8 && hidden <= 12));  // 12 is 30 % of both lines
    }
  }
}

BOOST_AUTO_TEST_CASE(random_tokens_are_each_ordinary_piece_equally_often) {
  Dataset data = lines(3000, {});
  data.masking->vocabulary = first + 5;
  for (std::int32_t& id : data.source.ids) id = first + id % 5;
  std::map<std::int32_t, int> counts;
  int replaced = 0;
  for (const Batch& b : batches_of(data, 0)) {
    for (std::size_t row = 0; row < b.labels.size(); ++row) {
      const std::int32_t id = b.source.ids[row];
      if (b.labels[row] == no_label || id == mask || id == b.labels[row]) continue;
      ++counts[id];
      ++replaced;
    }
  }
  BOOST_TEST(counts.size() == 5u);
  for (std::int32_t id = first; id < first + 5; ++id)  // 5 standard deviations
    BOOST_TEST(std::abs(counts[id] - replaced / 5.0) < 5 * std::sqrt(0.16 * replaced));
}

BOOST_AUTO_TEST_CASE(half_of_second_lines_follow_their_first_line) {
  const Dataset data = lines(3000, {.next_sentence = true});
  std::int64_t follows = 0, all = 0;
  for (const Batch& b : batches_of(data, 0)) {
    for (std::int64_t i = 0; i < b.sequences(); ++i) {
      const auto ids = b.source.part(i, i + 1).ids;
      const std::int32_t label = b.labels[b.source.offsets[i]];
      BOOST_REQUIRE(ids.size() == 43u);
      BOOST_REQUIRE((ids[21] == Tokenizer::eos && ids[42] == Tokenizer::eos));
      BOOST_REQUIRE((label == Tokenizer::bos || label == Tokenizer::eos));
      // A token of the second line identifies its line unless it was replaced.
      const auto next = data.source[std::min<std::int64_t>(b.samples[i] + 1, data.size() - 1)];
      std::int64_t same = 0;
      for (std::size_t k = 0; k < 20; ++k) same += ids[22 + k] == next[k];
      if (label == Tokenizer::bos) BOOST_TEST(same >= 14);
      ++all;
      follows += label == Tokenizer::bos;
      BOOST_TEST(b.source.rows() <= 400);
    }
  }
  BOOST_TEST(all == 3000);
  BOOST_TEST(std::abs(static_cast<double>(follows) - 1500) < 5 * std::sqrt(750.0));
  Dataset alone = lines(50, {.next_sentence = true});
  alone.masking->followed.assign(50, false);  // every line is a document
  for (const Batch& b : batches_of(alone, 0)) {
    for (std::int64_t i = 0; i < b.sequences(); ++i)
      BOOST_TEST(b.labels[b.source.offsets[i]] == Tokenizer::eos);
  }
}

// Five lines, so that a draw among all lines would often be the next one.
BOOST_AUTO_TEST_CASE(second_lines_that_do_not_follow_are_each_of_the_others_equally_often) {
  constexpr std::int64_t n = 5;
  const Dataset data = lines(n, {.next_sentence = true});
  std::map<std::pair<std::int64_t, std::int64_t>, int> counts;  // of a first and a second line
  int unrelated = 0;
  for (std::int64_t epoch = 0; epoch < 2000; ++epoch) {
    for (const Batch& b : batches_of(data, epoch)) {
      for (std::int64_t i = 0; i < b.sequences(); ++i) {
        if (b.labels[b.source.offsets[i]] == Tokenizer::bos) continue;
        const auto ids = b.source.part(i, i + 1).ids;
        std::vector<std::int64_t> same(n, 0);
        for (std::int64_t line = 0; line < n; ++line) {
          for (std::size_t k = 0; k < 20; ++k) same[line] += ids[22 + k] == data.source[line][k];
        }
        ++counts[{b.samples[i], std::ranges::max_element(same) - same.begin()}];
        ++unrelated;
      }
    }
  }
  BOOST_REQUIRE(unrelated > 2000);
  for (std::int64_t first = 0; first < n; ++first) {
    // The last line has no next one. Its second line is drawn from all lines but the first.
    const std::int64_t next = (first + 1) % n;
    const double mean = (first == n - 1 ? 2000.0 : 1000.0) / (n - 1);
    for (std::int64_t second = 0; second < n; ++second) {
      const int count = counts[{first, second}];
      if (second == next) {
        BOOST_TEST(count == 0);
      } else {
        BOOST_TEST(std::abs(count - mean) < 5 * std::sqrt(mean));  // 5 standard deviations
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
