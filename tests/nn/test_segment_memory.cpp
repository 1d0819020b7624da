// A language model that stores keys and values of earlier segments (ModelOptions::memory).
#include <algorithm>
#include <numeric>

#include "autograd/gradcheck.h"
#include "tests/nn/support.h"

HEED_BEGIN

BOOST_AUTO_TEST_SUITE(segment_memory)

namespace {

constexpr std::int64_t vocabulary = 9;

ModelOptions remembering(std::int64_t memory) {
  ModelOptions o = small_options();
  o.d_model = 8;
  o.decoder_layers = 2;
  o.positions = PositionKind::rotary;
  o.shaw_distance = 2;
  o.t5_buckets = 4;
  o.t5_distance = 4;
  o.memory = memory;
  return o;
}

/// Segment [begin, end) of each of several texts of equal length, with the next tokens as labels.
struct Segment {
  std::vector<std::int32_t> ids, labels, offsets{0};

  Segment(const std::vector<std::vector<std::int32_t>>& texts, std::size_t begin, std::size_t end) {
    for (const auto& text : texts) {
      ids.insert(ids.end(), text.begin() + begin, text.begin() + end);
      labels.insert(labels.end(), text.begin() + begin + 1, text.begin() + end + 1);
      offsets.push_back(static_cast<std::int32_t>(ids.size()));
    }
  }
  ModelInput input(Lanes lanes = {}) const {
    ModelInput all{{}, {ids, offsets}, labels};
    all.lanes = lanes;
    return all;
  }
};

std::vector<std::vector<std::int32_t>> texts(std::size_t count, std::int64_t length) {
  std::vector<std::vector<std::int32_t>> all;
  for (std::size_t i = 0; i < count; ++i)
    all.push_back(random_ids(length, vocabulary, static_cast<std::uint32_t>(i)));
  return all;
}

/// The logits of one text, read in segments that end at the positions `ends`.
Array in_segments(const Generative& model, const std::vector<std::int32_t>& text,
                  const std::vector<std::size_t>& ends) {
  std::optional<SegmentMemory> memory = model.segment_memory();
  Array all({static_cast<std::int64_t>(ends.back()), vocabulary});
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    const Segment segment({text}, begin, end);
    memory->begin(begin > 0, 1, static_cast<std::int64_t>(end - begin));
    Pass pass;
    const Array logits = model.logits(segment.input({&*memory, 0}), pass).value();
    std::copy_n(logits.data(), logits.size(), all.row(static_cast<std::int64_t>(begin)));
    memory->advance();
    begin = end;
  }
  return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(logits_of_segments_with_memory_equal_those_of_one_long_window) {
  const std::vector<std::int32_t> text = texts(1, 14).front();
  for (const PositionKind positions : every<PositionKind>()) {
    if (info_of(positions).vectors != nullptr) continue;
    for (const PatternKind pattern : every<PatternKind>()) {
      if (!info_of(pattern).memory) continue;
      for (const std::int64_t kv_heads : {0, 1}) {
        ModelOptions o = remembering(13);
        o.positions = positions;
        o.attention = {.pattern = pattern, .window = 6, .kv_heads = kv_heads, .top_k = 4};
        const auto model = make_language_model(o, vocabulary, 1);
        randomise(model->parameters());
        Pass pass;
        const Array whole = model->logits(Segment({text}, 0, 13).input(), pass).value();
        BOOST_TEST_CONTEXT(name_of(positions) << ", " << name_of(pattern)) {
          BOOST_TEST(difference(in_segments(*model, text, {4, 8, 12, 13}), whole) < 1e-11);
          BOOST_TEST(difference(in_segments(*model, text, {1, 7, 13}), whole) < 1e-11);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(segment_memory_is_limited_to_given_length) {
  const std::vector<std::int32_t> text = texts(1, 14).front();
  ModelOptions o = remembering(3);
  o.decoder_layers = 1;  // each key and value then depends on one token only
  o.positions = PositionKind::none;
  const auto model = make_language_model(o, vocabulary, 1);
  randomise(model->parameters());
  const Array found = in_segments(*model, text, {5, 10, 13});
  // Each row reads the last 3 tokens before its segment and the segment up to the row.
  for (const std::int64_t row : {5, 7, 9, 10, 12}) {
    const std::int64_t from = (row < 10 ? 5 : 10) - 3;
    Pass pass;
    const Array logits =
        model->logits(Segment({text}, from, static_cast<std::size_t>(row) + 1).input(), pass)
            .value();
    BOOST_TEST(difference(found.sliced(row, row + 1), logits.sliced(row - from, row - from + 1)) <
               1e-11);
  }
}

BOOST_AUTO_TEST_CASE(each_lane_stores_end_of_earlier_segments) {
  SegmentMemory memory(4, 1, 2);
  const auto write = [&](std::int64_t lanes, std::int64_t rows, real first) {
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      std::vector<real> values(static_cast<std::size_t>(2 * rows));
      std::iota(values.begin(), values.end(), first + real(100) * static_cast<real>(lane));
      memory.write(0, lane, values.data(), rows);
    }
    memory.advance();
  };
  const auto lane = [&](std::int64_t i) {
    return std::vector<real>(memory.lane(0, i), memory.lane(0, i) + 2 * memory.length());
  };
  memory.begin(true, 2, 3);  // the memory is still empty
  BOOST_TEST(memory.length() == 0);
  write(2, 3, 0);
  BOOST_TEST((lane(1) == std::vector<real>{100, 101, 102, 103, 104, 105}));
  memory.begin(true, 2, 3);
  write(2, 3, 10);
  BOOST_TEST((lane(0) == std::vector<real>{4, 5, 10, 11, 12, 13, 14, 15}));
  memory.begin(true, 1, 6);  // the second lane has ended
  write(1, 6, 20);
  BOOST_TEST((lane(0) == std::vector<real>{24, 25, 26, 27, 28, 29, 30, 31}));
  EXPECT_FAIL(memory.begin(true, 2, 3),
              "[segment_memory] a batch of 2 lanes cannot continue a batch of 1");
  memory.begin(false, 2, 3);
  BOOST_TEST(memory.length() == 0);
}

BOOST_AUTO_TEST_CASE(gradients_with_memory_pass_gradcheck_and_are_bitwise_equal_with_recompute) {
  for (const PositionKind positions :
       {PositionKind::rotary, PositionKind::relative_xl, PositionKind::relative_t5}) {
    ModelOptions o = remembering(4);
    o.positions = positions;
    const auto model = make_language_model(o, vocabulary, 1);
    randomise(model->parameters());
    const auto both = texts(2, 12);
    std::optional<SegmentMemory> memory = model->segment_memory();
    const Segment first(both, 0, 5), second(both, 5, 8);
    Pass pass;
    memory->begin(false, 2, 5);
    model->loss(first.input({&*memory, 0}), {}, pass);
    memory->advance();
    memory->begin(true, 2, 3);
    const auto loss = [&](bool recompute) {
      Pass again{.recompute = recompute};
      return model->loss(second.input({&*memory, 0}), {0.1, 6.0}, again);
    };
    BOOST_TEST(
        gradcheck_parameters([&] { return loss(false); }, model->parameters(), {.directions = 3}));
    const Gradients stored = backward(loss(false)), again = backward(loss(true));
    for (const NamedTensor& p : model->parameters())
      BOOST_TEST(same_bits(stored[p.tensor], again[p.tensor]), p.name);
    memory->advance();
    const std::vector<real> after(memory->lane(1, 1), memory->lane(1, 1) + 4 * memory->width());
    // The second lane alone, as in a shard that contains only this lane.
    std::optional<SegmentMemory> alone = model->segment_memory();
    for (const auto& [begin, end] : {std::pair{0, 5}, std::pair{5, 8}}) {
      alone->begin(begin > 0, 2, end - begin);
      model->loss(Segment({both[1]}, begin, end).input({&*alone, 1}), {}, pass);
      alone->advance();
    }
    for (std::size_t i = 0; i < after.size(); ++i)
      BOOST_TEST(std::abs(alone->lane(1, 1)[i] - after[i]) < 1e-12);
  }
}

BOOST_AUTO_TEST_SUITE_END()

HEED_END
