// Mixers and activations that are registered like those of plugins: in whole models, and with the
// mistakes that check_mixer detects. The built-in mixers pass the same checks.
#include "autograd/gradcheck.h"
#include "nn/layers/attention.h"
#include "nn/layers/convolution.h"
#include "nn/layers/feed_forward.h"
#include "nn/layers/mixer_check.h"
#include "tests/autograd/expect.h"
#include "tests/nn/support.h"

HEED_BEGIN

BOOST_AUTO_TEST_SUITE(mixers)

namespace {

/// The mistake that a test mixer makes.
enum class MixerMistake {
  none,
  reads_ahead,
  reads_others,
  widens,
  divides_by_zero,
  forgets_in_steps
};

/// A linear projection of the mean of the rows up to and including the current one, or of all rows
/// with AttentionScope::all. Uses the default step().
struct MeanMixer : Mixer {
  MeanMixer(const ModelOptions& options, AttentionScope which, Init& init,
            MixerMistake mixer_mistake = MixerMistake::none)
      : proj(options.d_model, options.d_model, init), scope(which), mistake(mixer_mistake) {}

  Tensor operator()(const Tensor& x, const Context& context) const override {
    std::vector<std::int32_t> offsets(context.offsets.begin(), context.offsets.end());
    if (mistake == MixerMistake::reads_others) offsets = {0, offsets.back()};
    std::vector<Tensor> means;
    for (std::size_t s = 0; s + 1 < offsets.size(); ++s) {
      const std::int64_t n = offsets[s + 1] - offsets[s];
      if (n == 0) continue;
      const bool past = scope == AttentionScope::past && mistake != MixerMistake::reads_ahead;
      const Tensor weights = softmax(Array::zeros({n, n}), past ? causal_mask(n) : Array());
      means.push_back(matmul(weights, slice(x, 0, offsets[s], offsets[s + 1])));
    }
    const Tensor y = proj(concat(means, 0));
    if (mistake == MixerMistake::widens) return concat(std::vector<Tensor>{y, y}, 1);
    if (mistake == MixerMistake::divides_by_zero) return div(y, scale(y, 0));
    return y;
  }
  Parameters parameters() const override {
    Parameters all;
    append(all, "proj", proj);
    return all;
  }

  Linear proj;
  AttentionScope scope;
  MixerMistake mistake;
};

/// A MeanMixer with a step() that adds up rows: entries[t] contains the sum of rows 0 to t.
struct RunningMean final : MeanMixer {
  using MeanMixer::MeanMixer;

  Tensor step(const Tensor& x, const Context& context) const override {
    const Cache& cache = *context.cache;
    std::vector<Array>& entries = context.cache->layers[context.layer].entries;
    Array sums = x.value().clone();
    for (std::int64_t i = 0; i < sums.rows() && !entries.empty(); ++i) {
      const std::size_t before = entries.size() - 1;
      const auto row = mistake == MixerMistake::forgets_in_steps ? i : cache.paths[i][before];
      for (std::int64_t k = 0; k < sums.cols(); ++k) sums.row(i)[k] += entries[before].row(row)[k];
    }
    entries.push_back(sums);
    return proj(scale(Tensor(sums), real(1) / static_cast<real>(entries.size())));
  }
};

template <class Type>
MixerKind registered(const std::string& name, MixerMistake mistake) {
  add_mixer(name, [mistake](const ModelOptions& o, AttentionScope scope, Init& init) {
    return std::make_unique<Type>(o, scope, init, mistake);
  });
  return static_cast<MixerKind>(names_of(MixerKind{}).size() - 1);
}

MixerKind mean_mixer() {
  static const MixerKind kind = registered<MeanMixer>("test.mean", MixerMistake::none);
  return kind;
}
MixerKind running_mean() {
  static const MixerKind kind = registered<RunningMean>("test.running", MixerMistake::none);
  return kind;
}

/// The built-in mixers that decode with a state of constant size.
constexpr std::array running{MixerKind::lstm, MixerKind::gru, MixerKind::conv};

ModelOptions options_with(MixerKind mixer) {
  ModelOptions o = small_options();
  o.mixer = mixer;
  o.conv_width = 3;
  return o;
}

Tensor squash(const Tensor& x) { return x / sqrt(x * x + real(1)); }

Activation registered_activation(const std::string& name, ActivationFunction f) {
  add_activation(name, f);
  return static_cast<Activation>(names_of(Activation{}).size() - 1);
}

constexpr std::uint32_t vocabulary = 9;

}  // namespace

BOOST_AUTO_TEST_CASE(malformed_or_duplicate_activation_name_is_refused) {
  const auto refused = [](const std::string& name) -> std::string {
    try {
      add_activation(name, squash);
    } catch (const Error& error) {
      BOOST_TEST((error.code == Exit::bad_input));
      return error.what();
    }
    return "accepted";
  };
  for (const char* name : {"", "squash", ".squash", "mine.", "mine..squash", "mine.2", "2.mine",
                           "mine.squash!", "mine squash", "m.ü"}) {
    BOOST_TEST(refused(name) == fmt::format("activation \"{}\": expected a name of words joined by "
                                            "dots, as in mine.activation",
                                            name));
  }
  for (const char* name : {"test.a", "_t.b2", "test.more.dots"}) {
    BOOST_TEST(refused(name) == "accepted");
    BOOST_TEST(refused(name) == fmt::format("activation {} is registered twice", name));
  }
  BOOST_TEST(name_of(Activation::sigmoid) == "sigmoid");
  BOOST_TEST(names_of(MixerKind{}).front() == "attention");
}

BOOST_AUTO_TEST_CASE(mixer_without_registered_factory_is_refused) {
  const std::size_t number = open_names(MixerKind{}).registered("test.elsewhere");
  Init init = test_init();
  EXPECT_FAIL(
      make_mixer(options_with(static_cast<MixerKind>(number)), AttentionScope::all, init),
      "mixer test.elsewhere is registered only for the other number type (float or double)");
}

BOOST_AUTO_TEST_CASE(mixer_parameters_have_mixer_prefix) {
  Init init = test_init(), same = test_init();
  const TransformerBlock block(options_with(mean_mixer()), BlockKind::decoder, init);
  std::vector<std::string> names;
  for (const NamedTensor& p : block.parameters()) names.push_back(p.name);
  BOOST_TEST((names[0] == "mixer.proj.weight" && names[1] == "mixer.proj.bias"));
  BOOST_TEST(names[2].starts_with("multihead_attn."));
  const TransformerBlock attention(small_options(), BlockKind::decoder, same);
  BOOST_TEST(attention.parameters()[0].name == "self_attn.in_proj_weight");
}

// Compared with plain loops. An even window has one more row before the current one than after it.
BOOST_AUTO_TEST_CASE(gated_convolution_reads_the_rows_of_its_window) {
  const std::vector<std::int32_t> offsets{0, 6, 6, 8};
  for (const AttentionScope scope : {AttentionScope::all, AttentionScope::past}) {
    for (const std::int64_t width : {1, 2, 3, 4, 5}) {
      ModelOptions o = small_options();
      o.conv_width = width;
      const std::int64_t d = o.d_model, after = scope == AttentionScope::past ? 0 : (width - 1) / 2;
      Init init = test_init();
      const GatedConvolution layer(o, scope, init);
      randomise(layer.parameters());
      const Array x = normal({8, d}, 5);
      Pass pass;
      const Array y = layer(x, Context{offsets, nullptr, pass}).value();
      const auto product = [&](std::int64_t row, std::int64_t first, std::int64_t last,
                               std::int64_t output) {
        double sum = layer.conv.bias.value().data()[output];
        for (std::int64_t j = 0; j < width; ++j) {
          const std::int64_t from = row + after - (width - 1) + j;
          if (from < first || from >= last) continue;
          for (std::int64_t k = 0; k < d; ++k)
            sum += layer.conv.weight.value().row(output)[j * d + k] * x.row(from)[k];
        }
        return sum;
      };
      for (const auto& [first, last] : {std::pair(0, 6), {6, 8}}) {
        for (std::int64_t row = first; row < last; ++row) {
          for (std::int64_t c = 0; c < d; ++c) {
            const double gate = 1 / (1 + std::exp(-product(row, first, last, d + c)));
            BOOST_TEST(std::abs(y.row(row)[c] - product(row, first, last, c) * gate) < 1e-12);
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(model_with_registered_mixer_and_activation_passes_gradcheck) {
  for (const bool lm : {false, true}) {
    ModelOptions o = options_with(mean_mixer());
    static const Activation activation = registered_activation("test.squash", squash);
    o.activation = activation;
    const auto model = lm ? make_language_model(o, vocabulary, 1)
                          : make_seq2seq(o, vocabulary, vocabulary, true, 1);
    Pairs pairs({5, 1, 6}, {5, 1, 6}, vocabulary);
    if (lm) pairs.source_offsets.clear();
    randomise(model->parameters());
    BOOST_TEST(gradcheck_parameters(
        [&] {
          Pass pass{true, 3, 1, 0};
          return model->loss(pairs.input(), {0.1, 7.0}, pass);
        },
        model->parameters(), {.directions = 3}));
  }
}

BOOST_AUTO_TEST_CASE(cached_decoding_with_each_mixer_equals_uncached) {
  for (const MixerKind mixer :
       {mean_mixer(), running_mean(), MixerKind::lstm, MixerKind::gru, MixerKind::conv}) {
    for (const bool lm : {false, true}) {
      ModelOptions o = options_with(mixer);
      o.encoder_layers = o.decoder_layers = 2;
      const auto model = lm ? make_language_model(o, vocabulary, 1)
                            : make_seq2seq(o, vocabulary, vocabulary, true, 1);
      const Pairs pairs({5, 1, 7}, {1, 1, 1}, vocabulary);
      randomise(model->parameters());
      const SideView source = lm ? SideView{} : pairs.source_side();
      const auto cached = model->decode(source, 3), plain = model->decode(source, 3, false);
      Random random({.seed = 4, .stream = Stream::check});
      for (int step = 0; step < 9; ++step) {
        std::vector<std::int32_t> tokens(step < 5 ? 3 : 2);
        for (std::int32_t& t : tokens) t = static_cast<std::int32_t>(random.below(vocabulary));
        BOOST_TEST(difference(cached->step(tokens), plain->step(tokens)) < 1e-10,
                   name_of(mixer) << ", step " << step);
        std::vector<std::int32_t> parents{2, 0, 0};
        if (step >= 4) parents = {1, 0};
        cached->select(parents);
        plain->select(parents);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(mixer_step_while_recording_is_refused) {
  for (const MixerKind kind : {mean_mixer(), MixerKind::lstm, MixerKind::gru, MixerKind::conv}) {
    Init init = test_init();
    const auto mixer = make_mixer(options_with(kind), AttentionScope::past, init);
    Pass pass;
    Cache cache(1);
    cache.layers.resize(1);
    EXPECT_FAIL(mixer->step(Tensor(normal({1, 6}, 1)), {{}, nullptr, pass, &cache}),
                "[mixer] a cache does not support gradients: use it under NoGrad");
  }
}

BOOST_AUTO_TEST_CASE(running_state_in_decoding_has_constant_size) {
  for (const MixerKind kind : running) {
    Init init = test_init();
    const auto mixer = make_mixer(options_with(kind), AttentionScope::past, init);
    const NoGrad no_grad;
    Pass pass;
    Cache cache(3);
    cache.layers.resize(1);
    for (std::uint32_t t = 0; t < 4; ++t) {
      cache.grow();
      mixer->step(Tensor(normal({3, 6}, t)), {{}, nullptr, pass, &cache});
      const std::vector<Array>& entries = cache.layers[0].entries;
      BOOST_TEST(entries.size() == t + 1);
      BOOST_TEST(std::ranges::count_if(entries, &Array::defined) == 1);
      BOOST_TEST(entries.back().size() == 3 * 6 * (kind == MixerKind::gru ? 1 : 2));
    }
  }
}

BOOST_AUTO_TEST_CASE(bidirectional_mixer_with_odd_d_model_is_refused) {
  for (const MixerKind kind : {MixerKind::lstm, MixerKind::gru}) {
    ModelOptions o = options_with(kind);
    o.d_model = 5;
    Init init = test_init();
    EXPECT_FAIL(make_mixer(o, AttentionScope::all, init),
                fmt::format("[{}] two directions of half the width require an even d_model, got 5",
                            name_of(kind)));
    BOOST_TEST(make_mixer(o, AttentionScope::past, init)->parameters().size() == 4u);
  }
}

BOOST_AUTO_TEST_CASE(parameter_names_of_bidirectional_gru_agree_with_pytorch) {
  Init init = test_init();
  std::vector<std::string> names;
  for (const NamedTensor& p :
       make_mixer(options_with(MixerKind::gru), AttentionScope::all, init)->parameters())
    names.push_back(fmt::format("{} {}", p.name, p.tensor.shape()));
  BOOST_TEST(
      names == (std::vector<std::string>{
                   "weight_ih_l0 [9, 6]", "weight_hh_l0 [9, 3]", "bias_ih_l0 [9]", "bias_hh_l0 [9]",
                   "weight_ih_l0_reverse [9, 6]", "weight_hh_l0_reverse [9, 3]",
                   "bias_ih_l0_reverse [9]", "bias_hh_l0_reverse [9]"}),
      boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(registered_relu_equals_fused_relu) {
  static const Activation plain = registered_activation("test.relu", relu);
  ModelOptions o = small_options();
  o.dropout = 0.5;
  Init init = test_init();
  FeedForward fused(o, init), composed = fused;
  composed.activation = plain;
  composed.registered = registered_function(plain);
  BOOST_TEST((registered_function(o.activation) == nullptr));
  randomise(fused.parameters());
  const Tensor x = Tensor::variable(normal({5, o.d_model}, 1));
  for (const bool training : {false, true}) {
    Pass a{training, 5, 17, 2}, b = a;
    const Tensor y = fused(x, a), z = composed(x, b);
    BOOST_TEST(difference(y.value(), z.value()) < 1e-12);
    BOOST_TEST(a.dropouts == b.dropouts);
    const Array dy = normal({5, o.d_model}, 2);
    BOOST_TEST(difference(backward(y, dy)[x], backward(z, dy)[x]) < 1e-12);
  }
}

BOOST_AUTO_TEST_CASE(check_mixer_reports_name_and_fault_of_incorrect_mixer) {
  const auto verdict = [](MixerKind mixer, AttentionScope scope) -> std::string {
    try {
      check_mixer(options_with(mixer), scope);
    } catch (const Error& error) {
      BOOST_TEST((error.code == Exit::failed));
      return error.what();
    }
    return "accepted";
  };
  for (const AttentionScope scope : {AttentionScope::all, AttentionScope::past}) {
    for (std::size_t i = 0; i < open_names(MixerKind{}).built_in(); ++i)
      BOOST_TEST(verdict(static_cast<MixerKind>(i), scope) == "accepted");
    BOOST_TEST(verdict(mean_mixer(), scope) == "accepted");
    BOOST_TEST(verdict(running_mean(), scope) == "accepted");
  }
  const MixerKind ahead = registered<MeanMixer>("test.ahead", MixerMistake::reads_ahead);
  BOOST_TEST(verdict(ahead, AttentionScope::all) == "accepted");
  BOOST_TEST(verdict(ahead, AttentionScope::past) ==
             "mixer test.ahead: row 0 of a sequence depends on rows 1 and later; in a decoder "
             "(AttentionScope::past), a row may read only itself and earlier rows");
  const MixerKind others = registered<MeanMixer>("test.others", MixerMistake::reads_others);
  for (const AttentionScope scope : {AttentionScope::all, AttentionScope::past})
    BOOST_TEST(verdict(others, scope) ==
               "mixer test.others: a sequence depends on another sequence of its batch; "
               "context.offsets gives the index of each sequence's first row");
  const MixerKind wide = registered<MeanMixer>("test.wide", MixerMistake::widens);
  BOOST_TEST(verdict(wide, AttentionScope::all).find("expected the same shape") !=
             std::string::npos);
  const MixerKind endless = registered<MeanMixer>("test.endless", MixerMistake::divides_by_zero);
  BOOST_TEST(verdict(endless, AttentionScope::all) ==
             "mixer test.endless: its output is not finite for finite input");
  const MixerKind forgetful =
      registered<RunningMean>("test.forgetful", MixerMistake::forgets_in_steps);
  BOOST_TEST(verdict(forgetful, AttentionScope::all) == "accepted");
  BOOST_TEST(verdict(forgetful, AttentionScope::past) ==
             "mixer test.forgetful: step-by-step decoding and a pass over the whole sequence "
             "differ at position 4; check step()");
}

BOOST_AUTO_TEST_SUITE_END()

HEED_END
