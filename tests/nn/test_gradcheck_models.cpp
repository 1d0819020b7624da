// The gradients of the loss of whole models with respect to each parameter, compared with finite
// differences.
#include "autograd/gradcheck.h"
#include "nn/models/classifier.h"
#include "tests/autograd/expect.h"
#include "tests/nn/support.h"

HEED_BEGIN

BOOST_AUTO_TEST_SUITE(gradcheck_models)

namespace {

/// Checks the gradient of the training loss with respect to every parameter. Label smoothing makes
/// every class contribute.
GradcheckResult check_loss(const Model& model, const Pairs& pairs, double dropout,
                           bool training = false) {
  randomise(model.parameters());
  return gradcheck_parameters(
      [&] {
        Pass pass{training || dropout > 0, 5, 17, 2};
        return model.loss(pairs.input(), {0.1, 7.0}, pass);
      },
      model.parameters());
}

}  // namespace

BOOST_AUTO_TEST_CASE(seq2seq_with_and_without_tied_embeddings_passes_gradcheck) {
  const Pairs pairs({3, 1, 2}, {2, 4, 1}, 7);
  for (const bool tied : {true, false}) {
    for (const bool shared : {true, false}) {
      for (const double dropout : {0.0, 0.3}) {
        ModelOptions o = small_options();
        o.tie_embeddings = tied;
        o.dropout = dropout;
        const std::unique_ptr<Model> model = make_seq2seq(o, shared ? 7 : 9, 7, shared, 1);
        BOOST_TEST_CONTEXT("tied " << tied << ", shared " << shared << ", dropout " << dropout) {
          BOOST_TEST(check_loss(*model, pairs, dropout));
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(seq2seq_passes_gradcheck_with_each_norm_and_position_scheme) {
  const Pairs pairs({3, 0, 2}, {2, 1, 3}, 7);  // the second source is empty
  for (const NormPlace place : {NormPlace::pre, NormPlace::post}) {
    for (const PositionKind positions : every<PositionKind>()) {
      ModelOptions o = small_options();
      o.heads = 3;
      o.norm = place;
      o.norm_kind = place == NormPlace::pre ? NormKind::rms : NormKind::layer;
      o.positions = positions;
      o.max_positions = 4;
      o.activation = Activation::gelu;
      o.scale_embeddings = positions != PositionKind::none;
      BOOST_TEST(check_loss(*make_seq2seq(o, 7, 7, true, 1), pairs, 0));
    }
  }
}

/// Every combination of norms and blocks that a config allows, in each kind of model.
BOOST_AUTO_TEST_CASE(models_pass_gradcheck_with_every_norm_and_block) {
  const Pairs pairs({3, 1, 4}, {2, 4, 1}, 7);
  int combinations = 0;
  for (const NormPlace place : every<NormPlace>()) {
    for (const NormKind kind : every<NormKind>()) {
      if (place == NormPlace::none && kind != NormKind::layer) continue;  // the kind has no effect
      for (const bool final_norm : {true, false}) {
        if (!final_norm && place != NormPlace::post) continue;
        for (const BlockForm form : every<BlockForm>()) {
          for (const bool residual : {true, false}) {
            ModelOptions o = small_options();
            o.norm = place;
            o.norm_kind = kind;
            o.final_norm = final_norm;
            o.block = form;
            o.residual = residual;
            Pairs labelled = pairs;
            labelled.target_out.resize(labelled.source.size(), 1);  // a tagger labels the source
            Pairs text = pairs;
            text.source_offsets.clear();
            BOOST_TEST_CONTEXT(name_of(place) << ", " << name_of(kind) << ", " << name_of(form)
                                              << (residual ? "" : ", no residual")
                                              << (final_norm ? "" : ", no final norm")) {
              BOOST_TEST(check_loss(*make_classifier(o, Labelling::rows, 7, 7, 1), labelled, 0));
              ++combinations;
              if (kind == NormKind::batch) {
                BOOST_TEST(
                    check_loss(*make_classifier(o, Labelling::rows, 7, 7, 1), labelled, 0, true));
                EXPECT_FAIL(make_language_model(o, 7, 1), "batch norm requires an encoder");
                continue;
              }
              BOOST_TEST(check_loss(*make_seq2seq(o, 7, 7, true, 1), pairs, 0));
              BOOST_TEST(check_loss(*make_language_model(o, 7, 1), text, 0));
              combinations += 2;
            }
          }
        }
      }
    }
  }
  BOOST_TEST(combinations == 96);
}

BOOST_AUTO_TEST_CASE(deep_seq2seq_passes_gradcheck_in_random_directions) {
  const Pairs pairs({3, 1, 4}, {2, 4, 1}, 7);
  ModelOptions o = small_options();
  o.encoder_layers = o.decoder_layers = 2;
  o.dropout = 0.2;
  const std::unique_ptr<Model> model = make_seq2seq(o, 7, 7, true, 1);
  randomise(model->parameters());
  BOOST_TEST(gradcheck_parameters(
      [&] {
        Pass pass{true, 5, 17, 2};
        return model->loss(pairs.input(), {0.1, 7.0}, pass);
      },
      model->parameters(), {.directions = 3}));
}

BOOST_AUTO_TEST_CASE(language_model_with_and_without_tied_embeddings_passes_gradcheck) {
  Pairs pairs({}, {3, 1, 5}, 7);
  pairs.source_offsets.clear();
  for (const bool tied : {true, false}) {
    for (const double dropout : {0.0, 0.3}) {
      ModelOptions o = small_options();
      o.positions = PositionKind::learned;
      o.context = 5;
      o.tie_embeddings = tied;
      o.dropout = dropout;
      o.decoder_layers = 2;
      BOOST_TEST(check_loss(*make_language_model(o, 7, 1), pairs, dropout));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

HEED_END
