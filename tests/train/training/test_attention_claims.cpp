// Properties of attention in trained models.
#include <cmath>
#include <numeric>

#include "nn/layers/positions.h"
#include "nn/models/classifier.h"
#include "tests/train/trainer_support.h"
#include "train/decode/model_input.h"
#include "train/loop/trainer.h"
#include "train/views/report/attention/maps.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(attention_claims)

namespace {

AttentionMaps maps_of(Trainer& trainer, const std::string& line, const std::string& output) {
  const LoadedModel trained = trainer.loaded_model();
  return attention_maps(trained, trainer.task().config(),
                        trainer.task().batch_of_line(trained.tokenizers, line, output));
}

/// The number of rows of attention weights with a negative weight or a sum other than 1.
std::int64_t not_convex(const AttentionMaps& maps) {
  std::int64_t count = 0;
  for (const LayerWeights& layer : maps.layers) {
    for (const HeadWeights& head : layer.heads) {
      for (std::int64_t i = 0; i < head.weights.rows(); ++i) {
        const real* const row = head.weights.row(i);
        double sum = 0;
        for (std::int64_t j = 0; j < head.weights.cols(); ++j) sum += row[j];
        const bool negative =
            std::any_of(row, row + head.weights.cols(), [](real w) { return w < 0; });
        count += negative || std::abs(sum - 1) > 1e-5 ? 1 : 0;
      }
    }
  }
  return count;
}

}  // namespace

// To reverse a line with one layer per stack, the decoder row that predicts symbol i attends to
// symbol n − 1 − i.
BOOST_AUTO_TEST_CASE(cross_attention_of_reversal_follows_the_anti_diagonal,
                     *boost::unit_test::label("learns")) {
  const TempFolder folder;
  Config c = small_run(1000);
  c.tokenizer.kind = TokenizerKind::words;  // no tokens for spaces
  c.data.synthetic = {.name = SyntheticKind::reverse, .train = 8000, .valid = 20, .test = 60};
  c.data.synthetic.min_length = 3;
  c.data.synthetic.max_length = 8;
  c.model->d_model = 32;
  c.model->d_ff = 64;
  c.model->heads = 2;
  c.model->dropout = 0;
  c.optim.lr = 3e-3;
  c.optim.schedule = {.name = ScheduleKind::cosine, .warmup = 100, .steps = c.train.steps};
  c.train.batch_tokens = 1024;
  c.train.validate_every = c.train.save_every = c.train.steps;
  Run run(c, folder / "run");
  Trainer trainer(run.config, run.paths(), run.data, run.run_log);
  BOOST_TEST(trainer.train() == 0);
  // Checks the mean of the heads' weights on the test lines.
  std::int64_t right = 0, rows = 0, bad = 0;
  const Dataset& test = run.data.test;
  for (std::size_t s = 0; s < test.source_lines.size(); ++s) {
    const AttentionMaps maps = maps_of(trainer, test.source_lines[s], test.target_lines[s]);
    bad += not_convex(maps);
    const LayerWeights& cross = maps.layers.back();
    BOOST_REQUIRE(cross.name == "decoder.layers.0.multihead_attn");
    const std::int64_t n = std::ssize(maps.source) - 1;  // excludes </s>
    for (std::int64_t i = 0; i < n; ++i) {
      std::vector<double> weights(maps.source.size());
      for (const HeadWeights& head : cross.heads)
        for (std::size_t j = 0; j < weights.size(); ++j) weights[j] += head.weights.row(i)[j];
      const auto largest = std::ranges::max_element(weights) - weights.begin();
      right += largest == n - 1 - i ? 1 : 0;
      ++rows;
    }
  }
  BOOST_TEST(bad == 0);
  BOOST_REQUIRE(rows > 200);
  HEED_CHECK_LEARNED("share of rows that attend to the correct symbol",
                     static_cast<double>(right) / static_cast<double>(rows), >=, 0.8);
}

// The encoder output for a token depends on the position of the token only if the model encodes
// positions.
BOOST_AUTO_TEST_CASE(encoder_without_positions_is_permutation_equivariant,
                     *boost::unit_test::label("learns")) {
  const TempFolder folder;
  for (const PositionKind kind : {PositionKind::none, PositionKind::sinusoidal}) {
    BOOST_TEST_CONTEXT(name_of(kind)) {
      Config c = small_run(30);
      c.task = TaskKind::tag;
      c.data = {};
      put(folder / "source", "a b c d\nb a d c\nd c c a\n");
      put(folder / "target", "x y z x\ny x x z\nx z z x\n");
      c.data.train = {{(folder / "source").string()}, {(folder / "target").string()}, {}};
      c.tokenizer.kind = TokenizerKind::words;
      c.model->encoder_layers = 2;
      c.model->positions = kind;
      Run run(c, folder / std::string(name_of(kind)));
      Trainer trainer(run.config, run.paths(), run.data, run.run_log);
      trainer.train();
      const LoadedModel trained = trainer.loaded_model();
      const auto& model = dynamic_cast<const Classifier&>(trained.model);
      const auto logits = [&](const std::string& line) {
        const Batch batch = trainer.task().batch_of_line(trained.tokenizers, line, "");
        Pass pass;
        const NoGrad no_grad;
        return model.logits(model_input(batch), pass).value();
      };
      BOOST_TEST(not_convex(maps_of(trainer, "a b c d", "")) == 0);
      const Array plain = logits("a b c d a"), permuted = logits("c a d a b");
      constexpr std::array<std::int64_t, 5> from{2, 0, 3, 4, 1};
      double worst = 0;
      for (std::int64_t i = 0; i < 5; ++i)
        for (std::int64_t k = 0; k < plain.cols(); ++k)
          worst = std::max(worst, std::abs(double{permuted.row(i)[k]} - plain.row(from[i])[k]));
      if (kind == PositionKind::none) {
        BOOST_TEST(worst < 1e-5);
      } else {
        HEED_CHECK_TRAINED("log10 of the maximum change of a logit by the permutation",
                           std::log10(worst), >, -2);
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
