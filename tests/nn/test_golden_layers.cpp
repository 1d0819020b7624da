// Every layer compared with the PyTorch module that has the same parameter names: output, and
// gradients with respect to inputs and weights.
#include <set>

#include "nn/embedding.h"
#include "nn/layers/positions.h"
#include "nn/models/classifier.h"
#include "nn/models/front_end.h"
#include "tests/nn/golden.h"

HEED_BEGIN

BOOST_AUTO_TEST_SUITE(golden)

namespace {

constexpr double tolerance = 1e-11;

ModelOptions options_of(const nlohmann::json& attributes) {
  static const std::map<std::string, Activation> activations{{"relu", Activation::relu},
                                                             {"gelu", Activation::gelu},
                                                             {"gelu_tanh", Activation::gelu_tanh},
                                                             {"silu", Activation::silu}};
  ModelOptions o;
  o.dropout = 0;
  o.d_model = attributes.value("d_model", std::int64_t{12});
  o.heads = attributes.value("heads", std::int64_t{3});
  o.d_ff = attributes.value("d_ff", std::int64_t{20});
  o.encoder_layers = attributes.value("encoder_layers", std::int64_t{1});
  o.decoder_layers = attributes.value("decoder_layers", std::int64_t{1});
  o.activation = activations.at(attributes.value("activation", "relu"));
  o.norm = attributes.value("norm", "pre") == "pre" ? NormPlace::pre : NormPlace::post;
  return o;
}

/// The layer of a case: its parameters and its function of the inputs x0, x1.
struct Subject {
  Parameters parameters;
  std::function<Tensor(const std::vector<Tensor>&)> run;
};

Subject linear(const GoldenCase& c) {
  Init init = test_init();
  const Shape shape = c.array("w/weight").shape();
  const Linear layer(shape[1], shape[0], init, c.has("w/bias"));
  return {layer.parameters(), [layer](const auto& x) { return layer(x[0]); }};
}

Subject embedding_layer(const GoldenCase& c) {
  Init init = test_init();
  const Shape shape = c.array("w/weight").shape();
  const double scale = c.attributes().at("scale");
  BOOST_TEST(std::abs(scale - std::sqrt(static_cast<double>(shape[1]))) < 1e-15);
  const Embedding layer(shape[0], shape[1], true, init);
  return {layer.parameters(), [layer, ids = c.ids("ids")](const auto&) { return layer(ids); }};
}

Subject norm(const GoldenCase& c) {
  ModelOptions o;
  o.d_model = c.array("w/weight").size();
  o.norm_kind = c.attributes().at("layer") == "layer_norm" ? NormKind::layer : NormKind::rms;
  o.norm_eps = c.attributes().at("eps");
  Init init = test_init();
  const Norm layer(o, init);
  return {layer.parameters(), [layer](const auto& x) { return layer(x[0], Pass()); }};
}

Subject attention_layer(const GoldenCase& c) {
  Init init = test_init();
  const bool cross = c.has("x1");
  const AttentionScope scope = cross                         ? AttentionScope::encoder_output
                               : c.attributes().at("causal") ? AttentionScope::past
                                                             : AttentionScope::all;
  const MultiHeadAttention layer(options_of(c.attributes()), scope, init);
  return {layer.parameters(), [layer, cross, c](const std::vector<Tensor>& x) {
            Pass pass;
            const std::vector<std::int32_t> offsets = c.ids("offsets0"),
                                            ends = c.ids(cross ? "offsets1" : "offsets0");
            const EncoderOutput encoded{x.back(), ends};
            return layer(x[0], {offsets, &encoded, pass});
          }};
}

Subject mixer(const GoldenCase& c) {
  Init init = test_init();
  ModelOptions o = options_of(c.attributes());
  const std::string name = c.attributes().at("mixer");
  o.mixer = static_cast<MixerKind>(std::ranges::find(names_of(MixerKind{}), name) -
                                   names_of(MixerKind{}).begin());
  o.conv_width = c.attributes().value("conv_width", std::int64_t{1});
  const AttentionScope scope =
      c.attributes().at("causal") ? AttentionScope::past : AttentionScope::all;
  const std::shared_ptr<const Mixer> layer = make_mixer(o, scope, init);
  return {layer->parameters(), [layer, offsets = c.ids("offsets0")](const auto& x) {
            Pass pass;
            return (*layer)(x[0], {offsets, nullptr, pass});
          }};
}

Subject feed_forward(const GoldenCase& c) {
  Init init = test_init();
  const FeedForward layer(options_of(c.attributes()), init);
  return {layer.parameters(), [layer](const auto& x) {
            Pass pass;
            return layer(x[0], pass);
          }};
}

Subject encoder_layer(const GoldenCase& c) {
  Init init = test_init();
  const TransformerBlock layer(options_of(c.attributes()), BlockKind::encoder, init);
  return {layer.parameters(), [layer, offsets = c.ids("offsets0")](const auto& x) {
            Pass pass;
            return layer(x[0], {offsets, nullptr, pass});
          }};
}

Subject decoder_layer(const GoldenCase& c) {
  Init init = test_init();
  const TransformerBlock layer(options_of(c.attributes()), BlockKind::decoder, init);
  return {layer.parameters(),
          [layer, ends = c.ids("offsets0"), offsets = c.ids("offsets1")](const auto& x) {
            Pass pass;
            const EncoderOutput encoded{x[0], ends};
            return layer(x[1], {offsets, &encoded, pass});
          }};
}

/// A stack of one layer without a final norm, which computes the same function as the layer:
/// nn.TransformerEncoder(layer, 1, norm=None) or nn.TransformerDecoder(layer, 1, norm=None).
Subject stack_of_one(const GoldenCase& c) {
  Init init = test_init();
  ModelOptions o = options_of(c.attributes());
  o.final_norm = false;
  const bool decoder = c.has("x1");
  const Stack stack(o, 1, decoder ? BlockKind::decoder : BlockKind::encoder, init);
  BOOST_TEST(stack.parameters().size() == stack.blocks[0].parameters().size());
  return {stack.blocks[0].parameters(), [stack, decoder, c](const std::vector<Tensor>& x) {
            Pass pass;
            const std::vector<std::int32_t> ends = c.ids("offsets0"),
                                            offsets = c.ids(decoder ? "offsets1" : "offsets0");
            const EncoderOutput encoded{x[0], ends};
            return stack(x.back(), {offsets, &encoded, pass});
          }};
}

Subject encoder(const GoldenCase& c) {
  Init init = test_init();
  const Stack stack(options_of(c.attributes()), c.attributes().at("layers"),
                    c.attributes().at("causal") ? BlockKind::causal : BlockKind::encoder, init);
  return {stack.parameters(), [stack, offsets = c.ids("offsets0")](const auto& x) {
            Pass pass;
            return stack(x[0], {offsets, nullptr, pass});
          }};
}

Subject front_end(const GoldenCase& c) {
  Init init = test_init();
  ModelOptions o = options_of(c.attributes());
  o.input_width = c.array("x0").cols();
  o.front_end = {FrontEndKind::conv, c.attributes().at("depth")};
  o.grid_width = c.attributes().at("line");
  const FrontEnd layer(o, init);
  return {layer.parameters(),
          [layer, offsets = c.ids("offsets0")](const auto& x) { return layer(x[0], offsets); }};
}

Subject bert(const GoldenCase& c) {
  ModelOptions o = options_of(c.attributes());
  o.positions = PositionKind::learned;
  o.max_positions = 8;
  o.segments = 2;
  o.scale_embeddings = o.tie_embeddings = false;
  const std::string pool = c.attributes().at("pool");
  o.pool = pool == "mean" ? Pool::mean : Pool::first;
  const Array y = c.array("y");
  const Labelling labelling = pool == "rows" ? Labelling::tokens : Labelling::sequences;
  const std::shared_ptr<const Classifier> model = make_classifier(o, labelling, 9, y.cols(), 1);
  return {model->parameters(), [model, c](const auto&) {
            Pass pass;
            const std::vector<std::int32_t> ids = c.ids("ids"), offsets = c.ids("offsets0");
            return model->logits({{ids, offsets}, {}, {}}, pass);
          }};
}

Subject vit(const GoldenCase& c) {
  ModelOptions o = options_of(c.attributes());
  o.positions = PositionKind::learned;
  o.max_positions = 8;
  o.pool = c.attributes().at("pool") == "mean" ? Pool::mean : Pool::first;
  const Array patches = c.array("patches");
  o.input_width = patches.cols();
  const std::shared_ptr<const Classifier> model =
      make_classifier(o, Labelling::sequences, 0, c.array("y").cols(), 1);
  return {model->parameters(), [model, c, patches, o](const auto&) {
            Pass pass;
            // With a class token, each image begins with a row of zeros (data/inputs/images.h).
            std::vector<float> rows;
            std::vector<std::int32_t> offsets{0};
            const std::vector<std::int32_t> bounds = c.ids("offsets0");
            for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
              if (o.pool == Pool::first) rows.resize(rows.size() + o.input_width);
              for (std::int64_t r = bounds[i]; r < bounds[i + 1]; ++r) {
                for (std::int64_t k = 0; k < o.input_width; ++k)
                  rows.push_back(static_cast<float>(patches.row(r)[k]));
              }
              offsets.push_back(static_cast<std::int32_t>(std::ssize(rows) / o.input_width));
            }
            return model->logits({{{}, offsets, rows, o.input_width}, {}, {}}, pass);
          }};
}

Subject transformer(const GoldenCase& c) {
  Init init = test_init();
  const ModelOptions o = options_of(c.attributes());
  const Stack encoder(o, o.encoder_layers, BlockKind::encoder, init);
  const Stack decoder(o, o.decoder_layers, BlockKind::decoder, init);
  Parameters all;
  append(all, "encoder", encoder);
  append(all, "decoder", decoder);
  return {all,
          [encoder, decoder, ends = c.ids("offsets0"), offsets = c.ids("offsets1")](const auto& x) {
            Pass pass;
            const EncoderOutput encoded{encoder(x[0], {ends, nullptr, pass}), ends};
            return decoder(x[1], {offsets, &encoded, pass});
          }};
}

const std::map<std::string, std::function<Subject(const GoldenCase&)>> layers{
    {"linear", linear},
    {"embedding", embedding_layer},
    {"layer_norm", norm},
    {"rms_norm", norm},
    {"attention", attention_layer},
    {"mixer", mixer},
    {"feed_forward", feed_forward},
    {"encoder_layer", encoder_layer},
    {"decoder_layer", decoder_layer},
    {"encoder", encoder},
    {"front_end", front_end},
    {"bert", bert},
    {"vit", vit},
    {"transformer", transformer}};

double worst = 0;  // maximum over all cases, for the final message

void compare(const Array& actual, const Array& expected, const std::string& what) {
  const double d = difference(actual, expected);
  worst = std::max(worst, d);
  BOOST_TEST(d <= tolerance, what << " differs by " << d);
}

void check(const GoldenCase& c, const Subject& subject) {
  c.load("w/", subject.parameters);
  std::vector<Tensor> x;
  for (int i = 0; c.has("x" + std::to_string(i)); ++i)
    x.push_back(Tensor::variable(c.array("x" + std::to_string(i))));
  const Tensor y = subject.run(x);
  compare(y.value(), c.array("y"), "y");
  const Gradients gradients = backward(y, c.array("dy"));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::string name = "dx" + std::to_string(i);
    compare(gradients[x[i]], c.array(name), name);
  }
  for (const NamedTensor& p : subject.parameters)
    compare(gradients[p.tensor], c.array("dw/" + p.name), "dw/" + p.name);
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_layer_agrees_with_pytorch) {
  const SafetensorsFile file = golden_file("layers.safetensors");
  std::set<std::string> seen;
  for (const auto& [name, text] : file.metadata()) {
    const GoldenCase c(file, name);
    BOOST_TEST_CONTEXT(name) {
      const std::string layer = c.attributes().at("layer");
      seen.insert(layer);
      if (layer == "positions") {
        const Array y = c.array("y");
        compare(sinusoids(0, y.rows(), c.attributes().at("d_model")), y, "y");
        continue;
      }
      const auto found = layers.find(layer);
      BOOST_REQUIRE_MESSAGE(found != layers.end(), "unknown layer " << layer);
      check(c, found->second(c));
      if (layer == "encoder_layer" || layer == "decoder_layer") check(c, stack_of_one(c));
    }
  }
  BOOST_TEST(file.metadata().size() == 42u);
  BOOST_TEST(seen.size() == layers.size() + 1);
  BOOST_TEST_MESSAGE("maximum difference from PyTorch: " << worst);
}

BOOST_AUTO_TEST_SUITE_END()

HEED_END
