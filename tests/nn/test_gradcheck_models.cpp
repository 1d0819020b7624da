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

/// A model of each kind, for a vocabulary of 7.
std::vector<std::unique_ptr<Model>> every_model(const ModelOptions& o) {
  std::vector<std::unique_ptr<Model>> models;
  models.push_back(make_seq2seq(o, 7, 7, true, 1));
  models.push_back(make_language_model(o, 7, 1));
  models.push_back(make_classifier(o, Labelling::tokens, 7, 7, 1));
  return models;
}
/// Input for model `i` of every_model.
Pairs input_of(std::size_t i) {
  Pairs pairs({3, 1, 4}, {2, 4, 1}, 7);
  if (i == 1) pairs.source_offsets.clear();
  if (i == 2) pairs.target_out = random_ids(pairs.source_offsets.back(), 7, 3);
  return pairs;
}

BOOST_AUTO_TEST_CASE(models_pass_gradcheck_without_biases_and_with_norms_of_embeddings) {
  for (const bool bias : {true, false}) {
    for (const OutputBias output : every<OutputBias>()) {
      for (const bool tied : {true, false}) {
        ModelOptions o = small_options();
        o.bias = bias;
        o.output_bias = output;
        o.tie_embeddings = tied || bias;
        o.tie_output = tied;
        o.embedding_norm = o.head_transform = true;
        o.norm = tied ? NormPlace::post : NormPlace::pre;
        o.norm_kind = bias ? NormKind::layer : NormKind::rms;
        o.positions = tied ? PositionKind::relative_xl : PositionKind::sinusoidal;
        o.activation = Activation::gelu_tanh;
        const auto models = every_model(o);
        for (std::size_t i = 0; i < models.size(); ++i)
          BOOST_TEST(check_loss(*models[i], input_of(i), 0));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_model_without_biases_has_the_loss_of_one_whose_biases_are_zero) {
  for (const PositionKind positions : {PositionKind::relative_xl, PositionKind::rotary}) {
    ModelOptions o = small_options();
    o.heads = 3;
    o.positions = positions;
    o.norm_kind = NormKind::rms;  // no other bias
    o.activation = Activation::geglu_tanh;
    const auto with = every_model(o);
    o.bias = false;
    const auto without = every_model(o);
    for (std::size_t i = 0; i < with.size(); ++i) {
      randomise(without[i]->parameters());
      std::size_t next = 0, biases = 0;
      for (NamedTensor p : with[i]->parameters()) {
        const bool is_bias = p.name.ends_with("bias") && !p.name.ends_with("positions.bias");
        biases += is_bias ? 1 : 0;
        Array& to = p.tensor.mutable_value();
        if (is_bias)
          std::fill_n(to.data(), to.size(), real(0));
        else
          std::copy_n(without[i]->parameters().at(next++).tensor.value().data(), to.size(),
                      to.data());
      }
      BOOST_TEST(next == without[i]->parameters().size());
      BOOST_TEST(biases >= 4);
      const Pairs pairs = input_of(i);
      const auto loss = [&](const Model& model) {
        Pass pass;
        return model.loss(pairs.input(), {0.1, 7.0}, pass).value().data()[0];
      };
      BOOST_TEST(loss(*with[i]) == loss(*without[i]));
    }
  }
}

/// norm(f(x Wᵀ + b)) Eᵀ + c and the norm of the embeddings, compared with the same ops one by one.
BOOST_AUTO_TEST_CASE(head_transform_embedding_norm_and_output_bias_equal_their_formulas) {
  ModelOptions o = small_options();
  o.encoder_layers = 0;
  o.final_norm = false;
  o.norm = NormPlace::post;
  o.norm_eps = 0.01;
  o.activation = Activation::tanh;
  o.positions = PositionKind::learned;
  o.max_positions = 7;
  o.embedding_norm = o.head_transform = true;
  o.output_bias = OutputBias::yes;
  const auto model = make_classifier(o, Labelling::tokens, 7, 7, 1);
  randomise(model->parameters());
  const auto p = [&](const std::string& name) {
    for (const NamedTensor& each : model->parameters())
      if (each.name == name) return each.tensor;
    throw std::runtime_error("no parameter " + name);
  };
  const Pairs pairs = input_of(2);
  const auto norm = [&](const Tensor& x, const std::string& name) {
    const Tensor centred = sub(x, mean(x, 1, true));
    const Tensor variance = mean(mul(centred, centred), 1, true);
    return add(
        mul(div(centred, sqrt(add(variance, Tensor(Array::full({1}, 0.01))))), p(name + ".weight")),
        p(name + ".bias"));
  };
  std::vector<std::int32_t> places;
  for (std::size_t s = 0; s + 1 < pairs.source_offsets.size(); ++s)
    for (std::int32_t i = pairs.source_offsets[s]; i < pairs.source_offsets[s + 1]; ++i)
      places.push_back(i - pairs.source_offsets[s]);
  Tensor x = scale(index_select(p("embedding.weight"), pairs.source), std::sqrt(6.0));
  x = norm(add(x, index_select(p("positions.weight"), places)), "embedding_norm");
  x = norm(
      tanh(add(matmul(x, p("transform.dense.weight"), false, true), p("transform.dense.bias"))),
      "transform.norm");
  x = add(matmul(x, p("embedding.weight"), false, true), p("output.bias"));
  Pass pass;
  BOOST_TEST(difference(model->logits(pairs.input(), pass).value(), x.value()) < 1e-12);
}

BOOST_AUTO_TEST_SUITE_END()

HEED_END
