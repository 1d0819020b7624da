// Dropout masks are a function of (seed, step, shard, index of the dropout in the pass) and drop
// values at the configured rate.
#include "nn/models/classifier.h"
#include "nn/models/swin.h"
#include "tests/nn/support.h"

HEED_BEGIN

BOOST_AUTO_TEST_SUITE(dropout_in_layers)

namespace {

ModelOptions with_dropout(double rate) {
  ModelOptions o = small_options();
  o.dropout = rate;
  return o;
}

Array run(const Generative& model, const Pairs& pairs, Pass pass) {
  return model.hidden(pairs.input(), pass).value();
}

}  // namespace

BOOST_AUTO_TEST_CASE(dropout_masks_depend_only_on_seed_step_and_shard) {
  const Pairs pairs({4, 3}, {3, 5}, 11);
  for (const bool lm : {false, true}) {
    const ModelOptions o = with_dropout(0.3);
    const std::unique_ptr<Generative> model =
        lm ? make_language_model(o, 11, 1) : make_seq2seq(o, 11, 11, true, 1);
    const Pass pass{true, 5, 17, 2};
    const Array y = run(*model, pairs, pass);
    BOOST_TEST(same_bits(run(*model, pairs, pass), y));
    BOOST_TEST(!same_bits(run(*model, pairs, {true, 6, 17, 2}), y));
    BOOST_TEST(!same_bits(run(*model, pairs, {true, 5, 18, 2}), y));
    BOOST_TEST(!same_bits(run(*model, pairs, {true, 5, 17, 3}), y));
    BOOST_TEST(!same_bits(run(*model, pairs, {false, 5, 17, 2}), y));
  }
}

BOOST_AUTO_TEST_CASE(each_dropout_rate_affects_only_its_layer) {
  const std::vector<std::int32_t> offsets{0, 4, 9};
  const Tensor x(normal({9, 6}, 1));
  for (const auto& [rate, function] : std::vector<std::pair<double DropoutRates::*, Activation>>{
           {&DropoutRates::residual, Activation::relu},
           {&DropoutRates::attention, Activation::relu},
           {&DropoutRates::activation, Activation::relu},
           {&DropoutRates::activation, Activation::swiglu}}) {
    ModelOptions o = with_dropout(0);
    o.activation = function;
    o.dropout.*rate = 0.5;
    Init init = test_init();
    const TransformerBlock encoder(o, BlockKind::encoder, init);
    const TransformerBlock decoder(o, BlockKind::decoder, init);
    const EncoderOutput encoded{x, offsets};
    const auto changed = [&](const auto& run) {
      Pass training{true, 5, 17, 2}, at_rest;
      return !same_bits(run(training).value(), run(at_rest).value());
    };
    BOOST_TEST(changed([&](Pass& pass) { return encoder.feed_forward(x, pass); }) ==
               (rate == &DropoutRates::activation));
    const bool attention = rate == &DropoutRates::attention;
    const auto changed_by = [&](const auto& layer) {
      return changed([&](Pass& pass) { return layer(x, {offsets, &encoded, pass}); });
    };
    BOOST_TEST(changed_by(*decoder.mixer) == attention);
    BOOST_TEST(changed_by(*decoder.cross_attention) == attention);
    BOOST_TEST(changed_by(encoder));
    BOOST_TEST(changed_by(decoder));
  }
}

BOOST_AUTO_TEST_CASE(each_dropout_uses_next_key_of_pass) {
  const ModelOptions o = with_dropout(0.5);
  Init init = test_init();
  const FeedForward feed(o, init);
  const MultiHeadAttention self(o, AttentionScope::past, init),
      cross(o, AttentionScope::encoder_output, init);
  const Residual around(o, init);
  for (const Parameters& all : {feed.parameters(), self.parameters(), cross.parameters()})
    randomise(all);
  const Tensor x(normal({9, 6}, 1));
  const std::vector<std::int32_t> offsets{0, 4, 9};
  const EncoderOutput encoded{x, offsets};
  const auto check = [](auto layer) {
    const auto run = [&](std::uint64_t seed, std::uint64_t step, std::uint32_t shard) {
      Pass pass{true, seed, step, shard};
      const Array first = layer(pass);
      BOOST_TEST(!same_bits(layer(pass), first));  // the next dropout of the same pass
      return first;
    };
    const Array y = run(5, 17, 2);
    BOOST_TEST(same_bits(run(5, 17, 2), y));
    BOOST_TEST(!same_bits(run(6, 17, 2), y));
    BOOST_TEST(!same_bits(run(5, 18, 2), y));
    BOOST_TEST(!same_bits(run(5, 17, 3), y));
  };
  check([&](Pass& pass) { return feed(x, pass).value(); });
  for (const MultiHeadAttention& attend : {self, cross})
    check([&](Pass& pass) { return attend(x, {offsets, &encoded, pass}).value(); });
  check(
      [&](Pass& pass) { return around(x, pass, [](const Tensor& rows) { return rows; }).value(); });
}

BOOST_AUTO_TEST_CASE(evaluation_applies_no_dropout) {
  const Pairs pairs({4, 3}, {3, 5}, 11);
  const std::unique_ptr<Generative> with = make_seq2seq(with_dropout(0.5), 11, 11, true, 1);
  const std::unique_ptr<Generative> without = make_seq2seq(with_dropout(0), 11, 11, true, 1);
  BOOST_TEST(
      same_bits(run(*with, pairs, {false, 5, 17, 2}), run(*without, pairs, {true, 9, 1, 0})));
}

BOOST_AUTO_TEST_CASE(dropout_keys_are_distinct_within_and_across_shards) {
  Pass pass{true, 5, 17, 3};
  std::vector<std::uint32_t> parts;
  for (int i = 0; i < 1000; ++i) parts.push_back(pass.next_key().part);
  Pass next_shard{true, 5, 17, 4};
  for (int i = 0; i < 1000; ++i) parts.push_back(next_shard.next_key().part);
  std::sort(parts.begin(), parts.end());
  BOOST_TEST((std::adjacent_find(parts.begin(), parts.end()) == parts.end()));
}

// Residual dropout of ones: each value is 0 or 1 / (1 − q), where q is p rounded to a multiple
// of 2⁻¹⁶.
BOOST_AUTO_TEST_CASE(residual_dropout_has_configured_rate_and_preserves_mean) {
  Init init = test_init();
  const Tensor x(Array::zeros({400, 50}));
  for (const double p : {0.1, 0.5, 0.9}) {
    ModelOptions o = with_dropout(p);
    o.d_model = 50;
    Pass pass{true, 1, 1, 0};
    const Array y = Residual(o, init)(x, pass, [](const Tensor& rows) {
                      return Tensor(Array::full(rows.shape(), 1));
                    }).value();
    std::int64_t remaining = 0;
    const double q = std::round(65536 * p) / 65536;  // 16 random bits per value
    for (const real v : y.values()) {
      BOOST_TEST((v == 0 || std::abs(v * (1 - q) - 1) < 1e-12));
      remaining += v != 0;
    }
    const double n = 20000, expected = (1 - p) * n, spread = std::sqrt(n * p * (1 - p));
    BOOST_TEST(std::abs(static_cast<double>(remaining) - expected) < 4 * spread,
               "p " << p << ": " << remaining << " values remain");
  }
}

// Without blocks and a final norm, the output of a model is that of its input layer.
BOOST_AUTO_TEST_CASE(residual_dropout_drops_values_of_embeddings) {
  ModelOptions o = with_dropout(0);
  o.dropout.residual = 0.4;
  o.encoder_layers = o.decoder_layers = 0;
  o.norm = NormPlace::none;
  const auto check = [](const std::string& name, const auto& rows_in) {
    Pass training{true, 5, 17, 2}, keys = training, evaluation;
    const Tensor all(rows_in(evaluation)), found(rows_in(training));
    BOOST_TEST(difference(found.value(), dropout(all, 0.4, keys.next_key()).value()) < 1e-14, name);
  };
  const Pairs pairs({4, 3}, {3, 5}, 11);
  const auto check_decoder = [&](const std::string& name, const Generative& model) {
    check(name, [&](Pass& pass) {
      return model.decoder_rows(pairs.target_in, {pairs.target_offsets, nullptr, pass}).value();
    });
  };
  const auto translator = make_seq2seq(o, 11, 11, true, 1);
  check("encoder",
        [&](Pass& pass) { return translator->encode(pairs.source_side(), pass).rows.value(); });
  check_decoder("decoder", *translator);
  check_decoder("language model", *make_language_model(o, 11, 1));
  const auto tagger = make_classifier(o, Labelling::rows, 11, 5, 1);
  check("classifier", [&](Pass& pass) {
    return tagger->deferred_logits({pairs.source_side(), {}, {}}, pass).rows.value();
  });
  o.kind = ModelKind::swin;
  o.input_width = 3;
  o.grid_height = 2;
  o.grid_width = 4;
  o.swin = {2, {0}};
  Init init = test_init();
  const SwinEncoder swin(o, init);
  const Array random = normal({16, 3}, 1);
  const std::vector<float> patches(random.values().begin(), random.values().end());
  const std::vector<std::int32_t> images{0, 8, 16};
  check("swin", [&](Pass& pass) { return swin({{}, images, patches, 3}, pass).value(); });
}

BOOST_AUTO_TEST_CASE(attention_and_feed_forward_dropout_preserve_mean) {
  // The layers are linear in the values to which dropout is applied, so the mean of their outputs
  // over many masks approaches the output without dropout.
  ModelOptions o = with_dropout(0.25);
  Init init = test_init();
  const FeedForward feed(o, init);
  const MultiHeadAttention self(o, AttentionScope::all, init),
      cross(o, AttentionScope::encoder_output, init);
  for (const Parameters& all : {feed.parameters(), self.parameters(), cross.parameters()})
    randomise(all);
  const Tensor x(normal({3, 6}, 1));
  const std::vector<std::int32_t> offsets{0, 3};
  const EncoderOutput encoded{x, offsets};
  const auto average = [&](auto layer) {
    Pass plain;
    const Array without = layer(plain);
    std::vector<double> sum(static_cast<std::size_t>(without.size())), squares(sum.size());
    const int runs = 4000;
    for (int i = 0; i < runs; ++i) {
      Pass pass{true, 1, static_cast<std::uint64_t>(i), 0};
      const Array y = layer(pass);
      for (std::size_t k = 0; k < sum.size(); ++k) {
        sum[k] += y.data()[k];
        squares[k] += y.data()[k] * y.data()[k];
      }
    }
    for (std::size_t k = 0; k < sum.size(); ++k) {
      const double mean = sum[k] / runs, deviation = std::sqrt(squares[k] / runs - mean * mean);
      BOOST_TEST(deviation > 1e-3);
      BOOST_TEST(std::abs(mean - without.data()[k]) < 5 * deviation / std::sqrt(runs));
    }
  };
  average([&](Pass& pass) { return feed(x, pass).value(); });
  for (const MultiHeadAttention& attend : {self, cross})
    average([&](Pass& pass) { return attend(x, {offsets, &encoded, pass}).value(); });
}

BOOST_AUTO_TEST_SUITE_END()

HEED_END
