// Names, shapes and initial values of parameters.
#include <set>
#include <string>

#include "nn/embedding.h"
#include "nn/layers/block.h"
#include "nn/layers/positions.h"
#include "nn/models/classifier.h"
#include "tests/nn/support.h"

HEED_BEGIN

BOOST_AUTO_TEST_SUITE(parameters)

namespace {

using Named = std::vector<std::string>;  ///< "name [shape]"

Named described(const Parameters& parameters) {
  Named all;
  for (const NamedTensor& p : parameters) all.push_back(p.name + " " + p.tensor.shape().str());
  return all;
}
void check_names(const Parameters& parameters, const Named& expected) {
  const Named got = described(parameters);
  BOOST_TEST(got == expected, boost::test_tools::per_element());
}
/// Appends each name, preceded by the prefix.
void add(Named& all, const std::string& prefix, const Named& names) {
  for (const std::string& name : names) all.push_back(prefix + name);
}

// Parameters for d_model 6 and d_ff 5, in the order of torch.nn.
const Named attention_names{"in_proj_weight [18, 6]", "in_proj_bias [18]", "out_proj.weight [6, 6]",
                            "out_proj.bias [6]"};
const Named feed_forward_names{"linear1.weight [5, 6]", "linear1.bias [5]", "linear2.weight [6, 5]",
                               "linear2.bias [6]"};
const Named norm_names{"weight [6]", "bias [6]"};

Named encoder_layer_names() {
  Named all;
  add(all, "self_attn.", attention_names);
  add(all, "", feed_forward_names);
  for (const char* norm : {"norm1.", "norm2."}) add(all, norm, norm_names);
  return all;
}
Named decoder_layer_names() {
  Named all;
  add(all, "self_attn.", attention_names);
  add(all, "multihead_attn.", attention_names);
  add(all, "", feed_forward_names);
  for (const char* norm : {"norm1.", "norm2.", "norm3."}) add(all, norm, norm_names);
  return all;
}
Named stack_names(const std::string& prefix, const Named& layer, int depth,
                  bool final_norm = true) {
  Named all;
  for (int i = 0; i < depth; ++i) add(all, prefix + "layers." + std::to_string(i) + ".", layer);
  if (final_norm) add(all, prefix + "norm.", norm_names);
  return all;
}

struct Moments {
  double mean = 0, deviation = 0, largest = 0;
};
Moments moments(const Array& a) {
  Moments m;
  const auto n = static_cast<double>(a.size());
  for (const real v : a.values()) {
    m.mean += v / n;
    m.largest = std::max(m.largest, std::abs(double{v}));
  }
  for (const real v : a.values()) m.deviation += (v - m.mean) * (v - m.mean) / n;
  m.deviation = std::sqrt(m.deviation);
  return m;
}

const Array& value(const Model& model, const std::string& name) {
  static Array found;
  for (const NamedTensor& p : model.parameters()) {
    if (p.name == name) return found = p.tensor.value();
  }
  BOOST_FAIL("no parameter " << name);
  return found;
}

}  // namespace

BOOST_AUTO_TEST_CASE(parameter_names_of_layers_agree_with_pytorch) {
  ModelOptions o = small_options();
  Init init = test_init();
  check_names(MultiHeadAttention(o, AttentionScope::all, init).parameters(), attention_names);
  check_names(FeedForward(o, init).parameters(), feed_forward_names);
  check_names(Linear(6, 4, init).parameters(), {"weight [4, 6]", "bias [4]"});
  check_names(Linear(6, 4, init, false).parameters(), {"weight [4, 6]"});
  check_names(Norm(o, init).parameters(), norm_names);
  check_names(Embedding(7, 6, true, init).parameters(), {"weight [7, 6]"});
  check_names(Positions(o, true, init).parameters(), {});
  o.positions = PositionKind::learned;
  check_names(Positions(o, true, init).parameters(), {"weight [16, 6]"});
  for (const BlockKind kind : {BlockKind::encoder, BlockKind::causal})
    check_names(TransformerBlock(o, kind, init).parameters(), encoder_layer_names());
  check_names(TransformerBlock(o, BlockKind::decoder, init).parameters(), decoder_layer_names());
  o.norm_kind = NormKind::rms;
  check_names(Norm(o, init).parameters(), {"weight [6]"});
  o.norm_kind = NormKind::batch;
  check_names(Norm(o, init).parameters(), norm_names);
  const std::unique_ptr<Model> tagger = make_classifier(o, Labelling::rows, 7, 5, 1);
  Named buffers;
  for (const std::string norm : {"layers.0.norm1", "layers.0.norm2", "norm"}) {
    for (const char* part : {"running_mean", "running_var"})
      buffers.push_back(fmt::format("encoder.{}.{} [6]", norm, part));
  }
  check_names(tagger->buffers(), buffers);
}

BOOST_AUTO_TEST_CASE(parameter_names_of_seq2seq_agree_with_torch_nn_transformer) {
  for (const bool tied : {true, false}) {
    for (const bool shared : {true, false}) {
      ModelOptions o = small_options();
      o.encoder_layers = 2;
      o.decoder_layers = 3;
      o.tie_embeddings = tied;
      Named expected;
      if (tied && shared) {
        expected = {"embedding.weight [7, 6]"};
      } else {
        expected = {shared ? "source_embedding.weight [7, 6]" : "source_embedding.weight [9, 6]",
                    "target_embedding.weight [7, 6]"};
      }
      add(expected, "", stack_names("encoder.", encoder_layer_names(), 2));
      add(expected, "", stack_names("decoder.", decoder_layer_names(), 3));
      if (!tied) add(expected, "output.", {"weight [7, 6]", "bias [7]"});
      check_names(make_seq2seq(o, shared ? 7 : 9, 7, shared, 1)->parameters(), expected);
    }
  }
}

BOOST_AUTO_TEST_CASE(models_without_final_norm_have_no_final_norm_parameters) {
  ModelOptions o = small_options();
  o.norm = NormPlace::post;
  o.final_norm = false;
  Named expected{"embedding.weight [7, 6]"};
  add(expected, "", stack_names("encoder.", encoder_layer_names(), 1, false));
  add(expected, "", stack_names("decoder.", decoder_layer_names(), 1, false));
  check_names(make_seq2seq(o, 7, 7, true, 1)->parameters(), expected);
  Named of_lm{"embedding.weight [7, 6]"};
  add(of_lm, "", stack_names("decoder.", encoder_layer_names(), 1, false));
  check_names(make_language_model(o, 7, 1)->parameters(), of_lm);
}

BOOST_AUTO_TEST_CASE(parameter_names_of_language_model_and_positions_are_as_documented) {
  ModelOptions o = small_options();
  o.decoder_layers = 2;
  o.positions = PositionKind::learned;
  Named expected{"embedding.weight [7, 6]", "positions.weight [16, 6]"};
  add(expected, "", stack_names("decoder.", encoder_layer_names(), 2));
  check_names(make_language_model(o, 7, 1)->parameters(), expected);
  o.tie_embeddings = false;
  add(expected, "output.", {"weight [7, 6]", "bias [7]"});
  check_names(make_language_model(o, 7, 1)->parameters(), expected);

  const Named names = described(make_seq2seq(o, 7, 7, true, 1)->parameters());
  BOOST_TEST(std::count(names.begin(), names.end(), "source_positions.weight [16, 6]") == 1);
  BOOST_TEST(std::count(names.begin(), names.end(), "target_positions.weight [16, 6]") == 1);
}

BOOST_AUTO_TEST_CASE(model_state_contains_parameters_and_buffers) {
  struct Counting final : Model {
    Tensor weight = Tensor::variable(normal({2, 2}, 1)), count = Tensor(Array::zeros({1}));
    Parameters parameters() const override { return {{"weight", weight}}; }
    Parameters buffers() const override { return {{"count", count}}; }
    Tensor loss(const ModelInput&, const LossOptions&, Pass&) const override { return sum(weight); }
    std::int64_t position_limit() const override { return 0; }
  };
  check_names(Counting().state(), {"weight [2, 2]", "count [1]"});
  const std::unique_ptr<Model> model = make_language_model(small_options(), 7, 1);
  BOOST_TEST(described(model->state()) == described(model->parameters()),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(tied_embedding_and_output_share_one_tensor) {
  const ModelOptions o = small_options();
  const std::unique_ptr<Generative> model = make_seq2seq(o, 7, 7, true, 1);
  BOOST_TEST(model->parameters().front().tensor.value().data() ==
             model->output().weight.value().data());
  BOOST_TEST(!model->output().bias.defined());
  const std::unique_ptr<Generative> lm = make_language_model(o, 7, 1);
  BOOST_TEST(lm->parameters().front().tensor.value().data() == lm->output().weight.value().data());
}

BOOST_AUTO_TEST_CASE(xavier_init_of_matrices_is_uniform_within_bounds) {
  ModelOptions o;
  o.d_model = 64;
  o.d_ff = 256;
  o.encoder_layers = o.decoder_layers = 1;
  o.tie_embeddings = false;
  const std::unique_ptr<Generative> model = make_seq2seq(o, 500, 400, false, 1);
  for (const NamedTensor& p : model->parameters()) {
    const Shape shape = p.tensor.shape();
    const Moments m = moments(p.tensor.value());
    const auto n = static_cast<double>(p.tensor.size());
    BOOST_TEST_CONTEXT(p.name) {
      if (shape.rank() == 1) {  // norms are initially the identity, biases zero
        const bool gain = p.name.find("norm") != std::string::npos && p.name.ends_with(".weight");
        BOOST_TEST((m.mean == (gain ? 1.0 : 0.0) && m.deviation == 0.0));
        continue;
      }
      const bool table = p.name.find("embedding") != std::string::npos;
      const double limit = std::sqrt(6.0 / static_cast<double>(shape[0] + shape[1]));
      const double deviation = table ? 1 / std::sqrt(64.0) : limit / std::sqrt(3.0);
      BOOST_TEST(std::abs(m.mean) < 4 * deviation / std::sqrt(n));
      BOOST_TEST(std::abs(m.deviation / deviation - 1) < 4 / std::sqrt(n));
      if (!table) BOOST_TEST((m.largest <= limit && m.largest > 0.99 * limit));
    }
  }
}

BOOST_AUTO_TEST_CASE(normal_init_has_given_standard_deviation) {
  ModelOptions o;
  o.d_model = 64;
  o.d_ff = 256;
  o.decoder_layers = 1;
  o.init = InitKind::normal;
  o.init_std = 0.03;
  const std::unique_ptr<Generative> model = make_language_model(o, 500, 1);
  for (const NamedTensor& p : model->parameters()) {
    if (p.tensor.shape().rank() == 1) continue;
    const Moments m = moments(p.tensor.value());
    const auto n = static_cast<double>(p.tensor.size());
    BOOST_TEST_CONTEXT(p.name) {
      BOOST_TEST(std::abs(m.mean) < 4 * 0.03 / std::sqrt(n));
      BOOST_TEST(std::abs(m.deviation / 0.03 - 1) < 4 / std::sqrt(n));
      BOOST_TEST(m.largest > 3 * 0.03);
    }
  }
}

BOOST_AUTO_TEST_CASE(initial_values_are_determined_by_seed) {
  const ModelOptions o = small_options();
  const auto a = make_seq2seq(o, 7, 7, true, 1), b = make_seq2seq(o, 7, 7, true, 1),
             c = make_seq2seq(o, 7, 7, true, 2);
  for (std::size_t i = 0; i < a->parameters().size(); ++i) {
    const Tensor x = a->parameters()[i].tensor;
    BOOST_TEST(same_bits(x.value(), b->parameters()[i].tensor.value()));
    if (x.shape().rank() == 2) BOOST_TEST(!same_bits(x.value(), c->parameters()[i].tensor.value()));
  }
}

BOOST_AUTO_TEST_CASE(initial_matrices_are_distinct) {
  ModelOptions o = small_options();
  o.encoder_layers = o.decoder_layers = 3;
  o.tie_embeddings = false;
  std::set<real> first;
  std::size_t matrices = 0;
  const std::unique_ptr<Generative> model = make_seq2seq(o, 7, 7, true, 1);
  for (const NamedTensor& p : model->parameters()) {
    if (p.tensor.shape().rank() != 2) continue;
    ++matrices;
    first.insert(p.tensor.value().data()[0]);
  }
  BOOST_TEST(first.size() == matrices);
}

BOOST_AUTO_TEST_CASE(initial_values_of_first_layer_do_not_depend_on_depth) {
  ModelOptions o = small_options();
  const std::unique_ptr<Generative> shallow = make_language_model(o, 7, 1);
  o.decoder_layers = 3;
  const std::unique_ptr<Generative> deep = make_language_model(o, 7, 1);
  const std::string name = "decoder.layers.0.linear2.weight";
  const Array shallow_value = value(*shallow, name);
  BOOST_TEST(same_bits(shallow_value, value(*deep, name)));
}

BOOST_AUTO_TEST_SUITE_END()

HEED_END
