// Step-by-step decoding, with and without a cache, compared with a forward pass over the whole
// sequence.
#include "tests/autograd/expect.h"
#include "tests/nn/support.h"

HEED_BEGIN

BOOST_AUTO_TEST_SUITE(cached_decoding)

namespace {

constexpr std::uint32_t vocabulary = 11;

/// One hypothesis: the index of its source, and its tokens so far.
struct Path {
  std::int64_t source;
  std::vector<std::int32_t> tokens;
};

/// The logits of a hypothesis's last token, from a forward pass over all its tokens.
Array forward_row(const Generative& model, const Pairs& sources, const Path& path, bool lm) {
  Pass pass;
  const std::vector<std::int32_t> offsets{0, static_cast<std::int32_t>(path.tokens.size())};
  const Pairs one = lm ? sources : sources.only(path.source);
  const ModelInput input{lm ? SideView{} : one.source_side(), {path.tokens, offsets}};
  const Array logits = model.logits(input, pass).value();
  return logits.sliced(logits.rows() - 1, logits.rows());
}

/// Decodes several steps; between steps, hypotheses are dropped, copied and moved as in beam
/// search.
void check_decoding(const Generative& model, bool lm, bool cached, std::uint32_t seed) {
  randomise(model.parameters());
  const Pairs sources({5, 1, 8}, {1, 1, 1}, vocabulary);
  const std::unique_ptr<Decoding> decoding =
      model.decode(lm ? SideView{} : sources.source_side(), 3, cached);
  std::vector<Path> paths{{0, {}}, {1, {}}, {2, {}}};
  Random random({.seed = seed, .stream = Stream::check});
  for (int step = 0; step < 9; ++step) {
    std::vector<std::int32_t> tokens;
    for (Path& path : paths) {
      tokens.push_back(static_cast<std::int32_t>(random.below(vocabulary)));
      path.tokens.push_back(tokens.back());
    }
    const Array logits = decoding->step(tokens);
    BOOST_REQUIRE((logits.shape() == Shape{static_cast<std::int64_t>(paths.size()), vocabulary}));
    for (std::size_t i = 0; i < paths.size(); ++i) {
      const auto row = static_cast<std::int64_t>(i);
      const double off =
          difference(logits.sliced(row, row + 1), forward_row(model, sources, paths[i], lm));
      BOOST_TEST(off < 1e-10, "step " << step << ", hypothesis " << i << " differs by " << off);
    }
    if (step % 3 == 2) continue;  // without select, all hypotheses continue
    std::vector<std::int32_t> parents;
    std::vector<Path> chosen;
    const std::uint32_t count = 1 + random.below(6);  // new number of hypotheses
    for (std::uint32_t i = 0; i < count; ++i) {
      parents.push_back(
          static_cast<std::int32_t>(random.below(static_cast<std::uint32_t>(paths.size()))));
      chosen.push_back(paths[static_cast<std::size_t>(parents.back())]);
    }
    decoding->select(parents);
    paths = chosen;
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(decoding_steps_equal_whole_forward_pass) {
  std::uint32_t seed = 1;
  for (const bool lm : {false, true}) {
    for (const NormPlace place : {NormPlace::pre, NormPlace::post}) {
      for (const PositionKind positions : {PositionKind::sinusoidal, PositionKind::learned}) {
        for (const bool tied : {true, false}) {
          ModelOptions o = small_options();
          o.d_model = 12;
          o.heads = 3;
          o.encoder_layers = o.decoder_layers = 2;
          o.dropout = 0.5;  // evaluation ignores dropout
          o.norm = place;
          o.final_norm = place == NormPlace::pre || tied;
          o.norm_kind = tied ? NormKind::layer : NormKind::rms;
          o.positions = positions;
          o.tie_embeddings = tied;
          o.activation = tied ? Activation::relu : Activation::gelu;
          const auto model = lm ? make_language_model(o, vocabulary, 1)
                                : make_seq2seq(o, vocabulary, vocabulary, true, 1);
          for (int run = 0; run < 4; ++run) check_decoding(*model, lm, run < 3, seed++);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(decoding_of_empty_source_equals_forward_pass) {
  const std::unique_ptr<Generative> model =
      make_seq2seq(small_options(), vocabulary, vocabulary, true, 1);
  randomise(model->parameters());
  const std::vector<std::int32_t> source{4, 5}, offsets{0, 0, 2};
  const std::unique_ptr<Decoding> decoding = model->decode({source, offsets}, 2);
  const std::vector<std::int32_t> tokens{1, 1};
  const Array logits = decoding->step(tokens);
  Pass pass;
  const std::vector<std::int32_t> target_offsets{0, 1, 2};
  BOOST_TEST(
      difference(logits,
                 model->logits({{source, offsets}, {tokens, target_offsets}}, pass).value()) <
      1e-10);
}

BOOST_AUTO_TEST_CASE(decoding_step_with_wrong_number_of_tokens_is_refused) {
  const std::unique_ptr<Generative> model = make_language_model(small_options(), vocabulary, 1);
  const std::vector<std::int32_t> two{3, 4};
  for (const bool cached : {true, false}) {
    const std::unique_ptr<Decoding> decoding = model->decode({}, 3, cached);
    EXPECT_FAIL(decoding->step(two),
                "[decoding] expected one token per hypothesis (3 in all), got 2");
  }
}

BOOST_AUTO_TEST_CASE(selection_of_unknown_parent_is_refused) {
  const std::unique_ptr<Generative> model = make_language_model(small_options(), vocabulary, 1);
  const std::vector<std::int32_t> two{3, 4};
  for (const bool cached : {true, false}) {
    const std::unique_ptr<Decoding> decoding = model->decode({}, 2, cached);
    decoding->step(two);
    for (const std::int32_t wrong : {-1, 2}) {
      EXPECT_FAIL(decoding->select(std::vector<std::int32_t>{0, wrong}),
                  fmt::format("[decoding] expected parents in [0, 2), got {}", wrong));
    }
  }
}

BOOST_AUTO_TEST_CASE(sequence_beyond_context_is_refused) {
  ModelOptions options = small_options();
  options.context = 4;
  const std::unique_ptr<Generative> model = make_language_model(options, vocabulary, 1);
  const std::vector<std::int32_t> ids(9, 3), offsets{0, 4, 9};
  Pass pass;
  EXPECT_FAIL(model->logits({{}, {ids, offsets}}, pass),
              "[language_model] a sequence of 5 tokens exceeds the context of 4");
  const std::unique_ptr<Decoding> decoding = model->decode({}, 1);
  const std::vector<std::int32_t> token{3};
  for (int i = 0; i < 4; ++i) decoding->step(token);
  EXPECT_FAIL(decoding->step(token), "a sequence of 5 tokens exceeds the context of 4");
}

BOOST_AUTO_TEST_CASE(recording_is_enabled_after_decoding_step) {
  const std::unique_ptr<Generative> model = make_language_model(small_options(), vocabulary, 1);
  const std::unique_ptr<Decoding> decoding = model->decode({}, 1);
  const std::vector<std::int32_t> token{3};
  decoding->step(token);
  BOOST_TEST(recording());
}

BOOST_AUTO_TEST_CASE(logits_of_sources_encoded_in_parts_equal_those_of_single_sources) {
  // The 3,000 source tokens are encoded in two parts (encode_in_parts).
  const std::int32_t sentences = 50, length = 60;
  const auto count = static_cast<std::size_t>(sentences);
  const Pairs sources(std::vector<std::int32_t>(count, length), std::vector<std::int32_t>(count, 1),
                      vocabulary);
  const std::unique_ptr<Generative> model =
      make_seq2seq(small_options(), vocabulary, vocabulary, true, 1);
  randomise(model->parameters());
  const Array together =
      model->decode(sources.source_side(), sentences)->step(std::vector<std::int32_t>(count, 1));
  for (std::int64_t i = 0; i < sentences; ++i) {
    const Array alone = forward_row(*model, sources, {i, {1}}, false);
    BOOST_TEST(difference(together.sliced(i, i + 1), alone) < 1e-10, "sentence " << i);
  }
}

BOOST_AUTO_TEST_SUITE_END()

HEED_END
