// The batches in which a search decodes.
#include <algorithm>

#include "tests/train/support.h"
#include "tests/train/training.h"
#include "train/decode/search.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(searching_with_models)

namespace {

/// A model that records how many hypotheses each step decodes.
class RecordingModel final : public Generative {
 public:
  explicit RecordingModel(const Generative& model) : model_(model) {}

  Parameters parameters() const override { return model_.parameters(); }
  std::int64_t position_limit() const override { return model_.position_limit(); }
  EncoderOutput encode(const SideView& source, Pass& pass) const override {
    return model_.encode(source, pass);
  }
  Tensor decoder_rows(std::span<const std::int32_t> ids, const Context& context) const override {
    const auto width = static_cast<std::int64_t>(ids.size());
    if (ids[0] == Tokenizer::bos) lines.push_back(width);
    widest = std::max(widest, width);
    return model_.decoder_rows(ids, context);
  }
  const Linear& output() const override { return model_.output(); }

  mutable std::vector<std::int64_t> lines;  ///< of each batch
  mutable std::int64_t widest = 0;

 private:
  const Generative& model_;
};

}  // namespace

// A hypothesis is a line of a beam; each line of a sampled output is one hypothesis.
BOOST_AUTO_TEST_CASE(batches_have_at_least_32_hypotheses_and_at_most_the_limit) {
  const Dataset data = reversals(60, 5);
  const std::unique_ptr<Generative> model = small_seq2seq();
  struct Case {
    std::int64_t beam, limit, batches;
    bool sample;
    std::vector<std::int64_t> lines;
  };
  for (const Case& each : {Case{1, 512, 4, false, {30, 30}},
                           {4, 512, 4, false, {15, 15, 15, 15}},
                           {4, 512, 20, false, {8, 8, 8, 8, 8, 8, 8, 4}},
                           {4, 40, 1, false, {10, 10, 10, 10, 10, 10}},
                           {5, 20, 1, true, {20, 20, 20}},
                           {5, 512, 4, true, {30, 30}}}) {
    const RecordingModel recording(*model);
    DecodeOptions o;
    o.beam = each.beam;
    o.batch_sequences = each.limit;
    o.sample = each.sample;
    o.max_length = 3;
    Team team(1);
    translate(FrozenModel(recording), data, o, 1, team, {}, each.batches);
    BOOST_TEST(recording.lines == each.lines, boost::test_tools::per_element());
    BOOST_TEST(recording.widest <= each.limit);
  }
}

BOOST_AUTO_TEST_SUITE_END()
