#include <array>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "autograd/base/random.h"
#include "nn/layers/activations.h"
#include "nn/models/classifier.h"
#include "nn/models/model.h"
#include "nn/options.h"
#include "nn/weights.h"
#include "tests/train/onnx_graph.h"
#include "tests/train/support.h"
#include "train/exchange/onnx/config.h"
#include "train/exchange/onnx/model.h"

using namespace heed;
using namespace heed::test;

namespace {

std::string file_of(const OnnxGraph& graph) {
  std::string bytes;
  graph.write("test", [&](std::span<const std::byte> part) {
    bytes.append(reinterpret_cast<const char*>(part.data()), part.size());
  });
  return bytes;
}

/// The names that a graph uses before they are defined, and those that are defined twice. `known`: names
/// of the outer graph.
std::vector<std::string> misused_names(const Message& graph, std::set<std::string> known) {
  std::vector<std::string> wrong;
  const auto define = [&](const std::string& name) {
    if (!known.insert(name).second) wrong.push_back("twice: " + name);
  };
  for (const std::string& input : graph.all(11)) define(Message(input).text(1));
  for (const std::string& tensor : graph.all(5)) define(Message(tensor).text(8));
  for (const std::string& bytes : graph.all(1)) {
    const Message node(bytes);
    for (const std::string& name : node.all(1))
      if (!known.contains(name)) wrong.push_back("undefined: " + name);
    for (const std::string& attribute : node.all(5)) {
      for (const std::string& branch : Message(attribute).all(6))
        for (const std::string& name : misused_names(Message(branch), known)) wrong.push_back(name);
    }
    for (const std::string& name : node.all(2)) define(name);
  }
  for (const std::string& output : graph.all(12))
    if (!known.contains(Message(output).text(1))) wrong.push_back("no output " + output);
  return wrong;
}

Config config_of(const std::string& task, const std::string& model) {
  const std::string data = task == "lm" ? "{train: {text: a}}" : "{train: {source: a, target: b}}";
  return parse_config("task: " + task + "\ndata: " + data +
                          "\nmodel: {d_model: 8, heads: 4, d_ff: 5, layers: 2" + model + "}\n",
                      "model.yaml");
}

struct BuiltModel {
  Config config;
  std::unique_ptr<Model> model;
  Parameters state;

  BuiltModel(const std::string& task, const std::string& options)
      : config(config_of(task, options)),
        model(make_model(info_of(config.task).architecture, *config.model, {10, 10, true}, 1)),
        state(model->state()) {}
};

/// The graphs of a model's files by name, with their bytes.
std::map<std::string, Message> graphs_of(const Config& config, std::span<const TensorView> views) {
  OnnxWeights weights(views);
  std::map<std::string, Message> graphs;
  for (const OnnxPart& part : onnx_parts(config, weights))
    graphs.emplace(part.name, Message(Message(file_of(part.graph.graph())).text(7)));
  return graphs;
}

std::map<std::string, Message> tensors_of(const Message& graph) {
  std::map<std::string, Message> tensors;
  for (const std::string& bytes : graph.all(5)) {
    const Message tensor(bytes);
    tensors.emplace(tensor.text(8), tensor);
  }
  return tensors;
}

std::size_t count_of(const Message& graph, const std::string& op) {
  return static_cast<std::size_t>(std::ranges::count_if(
      graph.all(1), [&](const std::string& node) { return Message(node).text(4) == op; }));
}

// ---- running -----------------------------------------------------------------------------------

/// A model with random weights, and its graphs. In int8, it has the weights that the graphs have.
struct RandomModel {
  Config config;
  std::unique_ptr<Model> model;
  std::map<std::string, Message> graphs;

  RandomModel(const std::string& data, const std::string& keys, bool int8 = false)
      : config(parse_config(data + "model: {d_model: 16, heads: 4, d_ff: 6" + keys + "}\n",
                            "model.yaml")),
        model(make_model(info_of(config.task).architecture, *config.model, {10, 10, true}, 1)) {
    Parameters state = model->state();
    std::uint64_t number = 0;
    for (NamedTensor& each : state) {
      Random random({.seed = 1, .stream = Stream::check, .index = ++number});
      const bool near_one =
          each.name.find("norm") != std::string::npos && each.tensor.shape().rank() == 1;
      for (real& value : each.tensor.mutable_value().values())
        value = static_cast<real>((near_one ? 1 : 0) + 0.4 * random.uniform() - 0.2);
    }
    const QuantisedWeights quantised(state);
    graphs = graphs_of(config, int8 ? quantised.views() : tensor_views(state));
    if (!int8) return;
    for (const TensorView& view : quantised.views()) {
      if (view.dtype != DType::i8) continue;
      const auto scales =
          std::ranges::find(quantised.views(), view.name + ".scale", &TensorView::name);
      Array& values =
          std::ranges::find(state, view.name, &NamedTensor::name)->tensor.mutable_value();
      for (std::int64_t i = 0; i < values.size(); ++i)
        values.data()[i] = static_cast<real>(static_cast<std::int8_t>(view.bytes[i])) *
                           scales->values<float>()[i / values.cols()];
    }
  }

  const ModelOptions& options() const { return *config.model; }
  std::int64_t layers() const { return options().decoder_layers; }
  OnnxArray empty_cache() const {
    const std::int64_t heads = options().attention.kv_heads;
    return OnnxArray::of({2, heads == 0 ? options().heads : heads, 0, 4});
  }

  Array rows(const ModelInput& input) const {
    Pass pass;
    if (const auto* const writer = dynamic_cast<const Generative*>(model.get()))
      return writer->logits(input, pass).value();
    return dynamic_cast<const Classifier&>(*model).logits(input, pass).value();
  }
};

using Ids = std::vector<std::int32_t>;

/// Columns [first, end) of two sequences of ids, of which shorter ones have been filled.
OnnxArray columns_of(const std::array<Ids, 2>& both, std::size_t first, std::size_t end) {
  OnnxArray all{{2, static_cast<std::int64_t>(end - first)}, {}};
  for (const Ids& ids : both)
    all.values.insert(all.values.end(), ids.begin() + static_cast<std::ptrdiff_t>(first),
                      ids.begin() + static_cast<std::ptrdiff_t>(end));
  return all;
}

SideView view_of(const Ids& ids, Ids& offsets) {
  offsets = {0, static_cast<std::int32_t>(ids.size())};
  return {ids, offsets};
}

/// Compares rows [from, …) of sequence `sequence` of a batch with all rows of `expected`.
void check_rows(const OnnxArray& logits, std::int64_t sequence, std::int64_t from,
                const Array& expected, const std::string& what) {
  double largest = 0;
  for (std::int64_t r = 0; r < expected.rows(); ++r) {
    for (std::int64_t c = 0; c < expected.cols(); ++c) {
      OnnxShape at{sequence, from + r, c};
      if (logits.rank() == 2) at = {sequence, c};
      const double difference = std::abs(logits.at(at) - double{expected.row(r)[c]});
      largest = difference <= largest ? largest : difference;  // NaN remains
    }
  }
  BOOST_TEST(largest < 2e-4, what << ", sequence " << sequence << ": " << largest);
}

/// Rows of `expected` from `from` on.
Array later_rows(const Array& expected, std::int64_t from) {
  return expected.sliced(from, expected.rows());
}

std::string one_tensor_file() {
  static const std::vector<float> values{1, 2, 3, 4, 5, 6};
  OnnxGraph graph;
  graph.tensor({"w", DType::f32, {2, 3}, std::as_bytes(std::span(values))});
  return file_of(graph);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(onnx)

BOOST_AUTO_TEST_CASE(a_file_has_the_fields_of_onnx_proto) {
  const std::vector<float> values{1.5F, -2};
  OnnxGraph graph, branch;
  const std::vector<OnnxDimension> shape{"batch_size", std::int64_t{300}};
  graph.input("x", DType::f32, shape);
  graph.tensor({"w", DType::f32, {2}, std::as_bytes(std::span(values))});
  const std::string inputs[] = {"x", "", "w"}, outputs[] = {"y"};
  const OnnxAttribute attributes[] = {{"axis", std::int64_t{-1}},
                                      {"epsilon", 0.25F},
                                      {"perm", std::vector<std::int64_t>{1, 0}},
                                      {"then_branch", &branch}};
  graph.node("Norm", inputs, outputs, attributes);
  graph.output("y", DType::i64, {});
  const Message model(file_of(graph));
  BOOST_TEST(model.numbers(1).at(0) == 8);  // version of the format
  BOOST_TEST(Message(model.text(8)).text(1).empty());
  BOOST_TEST(Message(model.text(8)).numbers(2).at(0) == 17);  // operator set
  const Message written(model.text(7)), node(written.text(1));
  BOOST_TEST(node.all(1) == (std::vector<std::string>{"x", "", "w"}),
             boost::test_tools::per_element());
  BOOST_TEST(node.text(2) == "y");
  BOOST_TEST(node.text(4) == "Norm");
  const std::vector<std::string> named = node.all(5);
  BOOST_REQUIRE(named.size() == 4);
  const Message axis(named[0]), epsilon(named[1]), perm(named[2]), then_branch(named[3]);
  BOOST_TEST(axis.text(1) == "axis");
  BOOST_TEST(static_cast<std::int64_t>(axis.numbers(3).at(0)) == -1);
  BOOST_TEST(axis.numbers(20).at(0) == 2);
  float number = 0;
  std::memcpy(&number, epsilon.text(2).data(), 4);
  BOOST_TEST(number == 0.25F);
  BOOST_TEST(epsilon.numbers(20).at(0) == 1);
  BOOST_TEST(perm.numbers(8) == (std::vector<std::uint64_t>{1, 0}),
             boost::test_tools::per_element());
  BOOST_TEST(perm.numbers(20).at(0) == 7);
  BOOST_TEST(then_branch.numbers(20).at(0) == 5);
  const Message tensor(written.text(5));
  BOOST_TEST(tensor.numbers(1).at(0) == 2);
  BOOST_TEST(tensor.numbers(2).at(0) == 1);  // float
  BOOST_TEST(tensor.text(9) == std::string("\0\0\xC0\x3F\0\0\0\xC0", 8));
  const Message input(written.text(11)), type(Message(input.text(2)).text(1));
  BOOST_TEST(input.text(1) == "x");
  BOOST_TEST(type.numbers(1).at(0) == 1);
  const std::vector<std::string> dimensions = Message(type.text(2)).all(1);
  BOOST_TEST(Message(dimensions.at(0)).text(2) == "batch_size");
  BOOST_TEST(Message(dimensions.at(1)).numbers(1).at(0) == 300);
  const Message output(Message(Message(written.text(12)).text(2)).text(1));
  BOOST_TEST(output.numbers(1).at(0) == 7);  // int64
  BOOST_TEST(output.all(2).empty());         // a shape that is unspecified
}

BOOST_AUTO_TEST_CASE(every_activation_has_a_formula) {
  for (const std::string_view name : names_of(Activation{})) {
    const BuiltModel built("lm", fmt::format(", activation: {}", name));
    BOOST_TEST(graphs_of(built.config, tensor_views(built.state)).size() == 1, name);
  }
}

BOOST_AUTO_TEST_CASE(every_model_uses_each_name_after_its_definition) {
  for (const std::string task : {"lm", "seq2seq", "classify", "tag"}) {
    for (const std::string options :
         {", positions: learned", ", positions: rotary, attention: {kv_heads: 2}",
          ", positions: rotary, rotary_pairs: adjacent, block: parallel",
          ", positions: alibi, norm: post, final_norm: false", ", positions: relative_shaw",
          ", positions: relative_t5, norm_kind: rms", ", positions: relative_xl, norm: none",
          ", positions: relative_xl, bias: false, embedding_norm: true",
          ", activation: swiglu, attention: {pattern: window, window: 2, map: sum}",
          ", attention: {pattern: topk, top_k: 2}", ", attention: {pattern: linear}",
          ", attention: {map: hard}"}) {
      const BuiltModel built(task, options);
      const QuantisedWeights int8(built.state);
      for (const auto& views : {tensor_views(built.state), int8.views()}) {
        for (const auto& [name, graph] : graphs_of(built.config, views)) {
          const std::vector<std::string> wrong = misused_names(graph, {});
          BOOST_TEST(wrong.empty(), task << options << " " << name << ": "
                                         << (wrong.empty() ? "" : wrong.front()));
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(tensors_of_a_language_model_are_its_weights) {
  const BuiltModel built("lm", ", positions: learned, context: 7");
  const auto graphs = graphs_of(built.config, tensor_views(built.state));
  BOOST_REQUIRE(graphs.size() == 1);
  const auto tensors = tensors_of(graphs.at("model"));
  for (const NamedTensor& parameter : built.state) {
    const auto found = tensors.find(parameter.name);
    BOOST_REQUIRE_MESSAGE(found != tensors.end(), parameter.name);
    const Array& values = parameter.tensor.value();
    BOOST_TEST(found->second.text(9) ==
                   std::string(reinterpret_cast<const char*>(values.data()),
                               static_cast<std::size_t>(values.size()) * sizeof(float)),
               parameter.name);
  }
  std::set<std::string> inputs;
  for (const std::string& input : graphs.at("model").all(11)) inputs.insert(Message(input).text(1));
  BOOST_TEST(inputs == (std::set<std::string>{"input_ids", "attention_mask",
                                              "past_key_values.0.key", "past_key_values.0.value",
                                              "past_key_values.1.key", "past_key_values.1.value"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(numbers_of_the_config_are_constants_of_the_graph) {
  const std::string keys =
      ", positions: rotary, norm_eps: 1.0e-3, attention: {scale: 0.3, kv_heads: 2}";
  const auto numbers_of = [](const Message& graph) {
    std::multiset<float> all;
    for (const auto& [name, tensor] : tensors_of(graph)) {
      if (tensor.numbers(2).at(0) != 1 || tensor.text(9).size() != 4) continue;
      float number = 0;
      std::memcpy(&number, tensor.text(9).data(), 4);
      all.insert(number);
    }
    return all;
  };
  for (const std::string task : {"lm", "seq2seq", "tag"}) {
    for (const bool rms : {false, true}) {
      const BuiltModel built(task, keys + (rms ? ", norm_kind: rms" : ""));
      for (const auto& [name, graph] : graphs_of(built.config, tensor_views(built.state))) {
        const std::multiset<float> numbers = numbers_of(graph);
        BOOST_TEST(numbers.contains(0.3F), task << ' ' << name);             // of the scores
        BOOST_TEST(numbers.contains(std::sqrt(8.0F)), task << ' ' << name);  // of the embeddings
        BOOST_TEST(numbers.contains(1e-3F) == rms, task << ' ' << name);
        std::size_t norms = 0;
        for (const std::string& bytes : graph.all(1)) {
          const Message node(bytes);
          if (node.text(4) != "LayerNormalization") continue;
          ++norms;
          float epsilon = 0;
          for (const std::string& attribute : node.all(5))
            if (Message(attribute).text(1) == "epsilon")
              std::memcpy(&epsilon, Message(attribute).text(2).data(), 4);
          BOOST_TEST(epsilon == 1e-3F, task << ' ' << name);
        }
        const bool cross = name == "decoder_model_merged";
        BOOST_TEST(norms == (rms ? 0U : cross ? 7U : 5U), task << ' ' << name);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(cross_attention_has_one_branch_per_layer_and_weights_outside_it) {
  const BuiltModel built("seq2seq", "");
  const QuantisedWeights int8(built.state);
  const auto graphs = graphs_of(built.config, int8.views());
  const Message& decoder = graphs.at("decoder_model_merged");
  BOOST_TEST(graphs.contains("encoder_model"));
  BOOST_TEST(count_of(decoder, "If") == 2);
  for (const std::string& bytes : decoder.all(1)) {
    for (const std::string& attribute : Message(bytes).all(5)) {
      for (const std::string& branch : Message(attribute).all(6)) {
        BOOST_TEST(count_of(Message(branch), "DequantizeLinear") == 0);
        BOOST_TEST(Message(branch).all(5).empty());
      }
    }
  }
  // Rows 8 to 23 of the projection make keys and values, rows 0 to 7 queries.
  const auto tensors = tensors_of(decoder);
  const std::string name = "decoder.layers.1.multihead_attn.in_proj_weight";
  const TensorView& whole = *std::ranges::find(int8.views(), name, &TensorView::name);
  const std::string all(reinterpret_cast<const char*>(whole.bytes.data()), whole.bytes.size());
  BOOST_TEST(tensors.at(name + "[0:8]").text(9) == all.substr(0, 64));
  BOOST_TEST(tensors.at(name + "[8:24]").text(9) == all.substr(64));
  BOOST_TEST(tensors.at(name + "[8:24]").numbers(2).at(0) == 3);  // int8
  BOOST_TEST(tensors.at(name + ".scale[8:24]").numbers(1).at(0) == 16);
}

BOOST_AUTO_TEST_CASE(a_model_that_onnx_cannot_express_is_refused_by_key) {
  const auto refuse = [](const std::string& options, const std::string& message) {
    HEED_CHECK_ERROR(Exit::usage, message, require_onnx(config_of("lm", options)));
  };
  refuse(", mixer: lstm", "model.mixer is lstm");
  refuse(", attention: {pattern: bigbird}", "model.attention.pattern is bigbird");
  refuse(", positions: rotary, memory: 4", "model.memory is 4");
  refuse(", positions: relative_t5, t5_distance: 1000001", "model.t5_distance is 1000001");
  require_onnx(config_of("lm", ", positions: relative_t5, t5_distance: 1000000"));
}

BOOST_AUTO_TEST_CASE(a_tensor_that_no_graph_uses_is_an_error) {
  BuiltModel built("lm", "");
  built.state.push_back({"decoder.layers.0.extra", Tensor(Array::zeros({2}))});
  HEED_CHECK_ERROR(Exit::failed, "[onnx] decoder.layers.0.extra is in no graph",
                   graphs_of(built.config, tensor_views(built.state)));
}

BOOST_AUTO_TEST_CASE(configs_name_the_cache_of_a_model_without_a_class) {
  const Config alibi = config_of("lm", ", positions: alibi");
  const HuggingFaceModel decoder = onnx_config(alibi, {10, 10, true});
  BOOST_TEST(decoder.config["n_layer"] == 2);
  BOOST_TEST(decoder.config["model_type"] == "gpt2");
  const HuggingFaceModel pairs =
      onnx_config(config_of("seq2seq", ", positions: rotary"), {10, 10, true});
  BOOST_TEST(pairs.config["decoder_layers"] == 2);
  BOOST_TEST(pairs.config["is_encoder_decoder"] == true);
  BOOST_TEST(pairs.generation_config["decoder_start_token_id"] == 1);
  const HuggingFaceModel labels =
      onnx_config(config_of("classify", ", positions: rotary"), {10, 2, false});
  BOOST_TEST(labels.config["architectures"][0] == "BertForSequenceClassification");
}

// ---- running: the graphs compute what heed's model computes ----------------------------------------

// The second sequence begins with three columns of padding, as clients fill batches of prompts.
BOOST_AUTO_TEST_CASE(graphs_of_language_models_compute_their_logits_with_and_without_a_cache) {
  const std::array<Ids, 2> ids{{{3, 5, 2, 9, 4, 7, 8}, {0, 0, 0, 6, 8, 3, 5}}},
      mask{{{1, 1, 1, 1, 1, 1, 1}, {0, 0, 0, 1, 1, 1, 1}}};
  for (
      const std::string keys :
      {", positions: learned", ", positions: sinusoidal, scale_embeddings: false",
       ", positions: rotary, attention: {kv_heads: 2, scale: 0.3}, rotary_base: 20",
       ", positions: rotary, rotary_pairs: adjacent, block: parallel, norm_kind: rms",
       ", positions: alibi, norm: post, final_norm: false, activation: gelu",
       ", positions: relative_shaw, shaw_distance: 3, attention: {kv_heads: 2}",
       ", positions: relative_t5, t5_buckets: 4, t5_distance: 5, norm_kind: rms, activation: geglu",
       ", positions: relative_xl, activation: swiglu, tie_embeddings: false",
       ", positions: relative_xl, bias: false, attention: {scale: 0.3}",
       ", positions: none, norm: none, residual: false, activation: tanh",
       ", activation: sigmoid, attention: {pattern: window, window: 2}",
       ", embedding_norm: true, activation: gelu_tanh, attention: {pattern: topk, top_k: 2}",
       ", activation: silu, output_bias: true, attention: {pattern: linear}",
       ", activation: geglu_tanh, attention: {map: hard}",
       ", attention: {map: sum, scale: none}"}) {
    for (const bool int8 : {false, true}) {
      const RandomModel built("task: lm\ndata: {train: {text: a}}\n",
                              ", layers: 2, context: 9" + keys, int8);
      const auto run = [&](std::size_t first, std::size_t end, const OnnxArrays* before) {
        OnnxArrays inputs{{"input_ids", columns_of(ids, first, end)},
                          {"attention_mask", columns_of(mask, 0, end)}};
        for (std::int64_t layer = 0; layer < built.layers(); ++layer) {
          for (const std::string part : {".key", ".value"}) {
            const std::string name = std::to_string(layer) + part;
            inputs["past_key_values." + name] =
                before == nullptr ? built.empty_cache() : before->at("present." + name);
          }
        }
        return onnx_values(built.graphs.at("model"), inputs);
      };
      const OnnxArrays whole = run(0, 7, nullptr), begun = run(0, 5, nullptr),
                       continued = run(5, 7, &begun);
      for (const std::int64_t sequence : {0, 1}) {
        const std::int64_t padding = 3 * sequence;
        Ids offsets;
        const Ids own(ids[sequence].begin() + padding, ids[sequence].end());
        const Array expected = built.rows({{}, view_of(own, offsets)});
        check_rows(whole.at("logits"), sequence, padding, expected, keys);
        check_rows(continued.at("logits"), sequence, 0, later_rows(expected, 5 - padding),
                   keys + ", with a cache");
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(graphs_of_encoder_and_decoder_compute_the_logits_of_the_model) {
  const std::array<Ids, 2> source{{{3, 5, 9, 4, 2}, {6, 8, 2, 0, 0}}},
      mask{{{1, 1, 1, 1, 1}, {1, 1, 1, 0, 0}}}, target{{{1, 4, 5, 6}, {1, 7, 3, 9}}};
  for (const std::string keys :
       {", positions: learned", ", positions: rotary, attention: {kv_heads: 2, scale: 0.3}",
        ", norm_kind: rms, norm: post, activation: geglu",
        ", positions: relative_shaw, shaw_distance: 2",
        ", positions: relative_t5, t5_buckets: 8, t5_distance: 5, bias: false",
        ", positions: relative_xl, tie_embeddings: false",
        ", block: parallel, embedding_norm: true", ", attention: {pattern: window, window: 2}",
        ", attention: {pattern: linear}", ", attention: {map: hard}"}) {
    for (const bool int8 : {false, true}) {
      const RandomModel built("task: seq2seq\ndata: {train: {source: a, target: b}}\n",
                              ", layers: {encoder: 1, decoder: 2}" + keys, int8);
      const OnnxArray states = onnx_values(built.graphs.at("encoder_model"),
                                           {{"input_ids", columns_of(source, 0, 5)},
                                            {"attention_mask", columns_of(mask, 0, 5)}})
                                   .at("last_hidden_state");
      const auto run = [&](std::size_t first, std::size_t end, const OnnxArrays* before) {
        OnnxArrays inputs{{"input_ids", columns_of(target, first, end)},
                          {"encoder_hidden_states", states},
                          {"encoder_attention_mask", columns_of(mask, 0, 5)},
                          {"use_cache_branch", {{1}, {before == nullptr ? 0.0 : 1.0}}}};
        for (std::int64_t layer = 0; layer < built.layers(); ++layer) {
          for (const std::string part :
               {".decoder.key", ".decoder.value", ".encoder.key", ".encoder.value"}) {
            const std::string name = std::to_string(layer) + part;
            inputs["past_key_values." + name] =
                before == nullptr ? built.empty_cache() : before->at("present." + name);
          }
        }
        return onnx_values(built.graphs.at("decoder_model_merged"), inputs);
      };
      const OnnxArrays whole = run(0, 4, nullptr), begun = run(0, 2, nullptr),
                       continued = run(2, 4, &begun);
      for (const std::int64_t sequence : {0, 1}) {
        Ids read, written;
        const Ids own(source[sequence].begin(), source[sequence].end() - 2 * sequence);
        const Array expected = built.rows({view_of(own, read), view_of(target[sequence], written)});
        check_rows(whole.at("logits"), sequence, 0, expected, keys);
        check_rows(continued.at("logits"), sequence, 0, later_rows(expected, 2),
                   keys + ", with a cache");
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(graphs_of_labels_compute_the_logits_of_the_model) {
  const std::array<Ids, 2> ids{{{3, 2, 9, 2, 2}, {6, 8, 2, 0, 0}}},
      mask{{{1, 1, 1, 1, 1}, {1, 1, 1, 0, 0}}};
  const std::string pairs = "data: {train: {source: a, target: b}}\n";
  for (const auto& [data, keys] : std::vector<std::pair<std::string, std::string>>{
           {"task: tag\n" + pairs, ", positions: rotary, rotary_pairs: adjacent"},
           {"task: tag\n" + pairs, ", positions: alibi"},
           {"task: tag\n" + pairs,
            ", positions: relative_xl, attention: {pattern: window, window: 2}"},
           {"task: tag\n" + pairs, ", attention: {pattern: linear}, norm_kind: batch"},
           {"task: classify\n" + pairs, ", pool: first, segments: 2"},
           {"task: classify\n" + pairs, ", pool: mean, positions: learned"},
           {"task: mlm\ndata: {train: {text: a}}\ntokenizer: {kind: word, specials: [<mask>]}\n",
            ", segments: 2, head_transform: true, embedding_norm: true, positions: learned, "
            "norm: post, final_norm: false, output_bias: true, activation: gelu"}}) {
    const RandomModel built(data, ", layers: 2" + keys);
    const OnnxArray logits =
        onnx_values(built.graphs.at("model"), {{"input_ids", columns_of(ids, 0, 5)},
                                               {"attention_mask", columns_of(mask, 0, 5)}})
            .at("logits");
    for (const std::int64_t sequence : {0, 1}) {
      Ids offsets;
      const Ids own(ids[sequence].begin(), ids[sequence].end() - 2 * sequence);
      check_rows(logits, sequence, 0, built.rows({view_of(own, offsets), {}}), data + keys);
    }
  }
}

// An image has 4 lines of 8 patches; a patch has 2 × 2 pixels with 3 channels, side by side.
BOOST_AUTO_TEST_CASE(graphs_of_images_compute_the_logits_of_the_model) {
  const std::string image =
      "data: {input: image, image: {height: 8, width: 16, channels: 3, patch: 2}, "
      "train: {source: a, target: b}}\n";
  Random random({.seed = 2, .stream = Stream::check, .index = 1});
  OnnxArray pixels{{2, 3, 8, 16}, {}};
  for (int i = 0; i < 2 * 3 * 8 * 16; ++i)
    pixels.values.push_back(static_cast<double>(static_cast<float>(random.uniform() - 0.5)));
  for (const auto& [task, keys] : std::vector<std::pair<std::string, std::string>>{
           {"classify", ", layers: 2, pool: first, positions: learned"},
           {"classify", ", layers: 2, pool: mean, front_end: {kind: conv, layers: 2}"},
           {"classify", ", kind: swin, pool: mean, swin: {window: 2, depths: [2, 1]}"},
           {"classify", ", kind: swin, pool: mean, swin: {window: 3, depths: [2]}, norm_kind: rms"},
           {"seq2seq", ", layers: 1, positions: learned"}}) {
    const RandomModel built("task: " + task + "\n" + image, keys);
    OnnxArray logits;
    const Ids target{1, 4, 5};
    if (task == "classify") {
      logits = onnx_values(built.graphs.at("model"), {{"pixel_values", pixels}}).at("logits");
    } else {
      OnnxArrays inputs{{"input_ids", columns_of({target, target}, 0, 3)},
                        {"encoder_hidden_states",
                         onnx_values(built.graphs.at("encoder_model"), {{"pixel_values", pixels}})
                             .at("last_hidden_state")},
                        {"use_cache_branch", {{1}, {0}}}};
      for (const std::string part :
           {"decoder.key", "decoder.value", "encoder.key", "encoder.value"})
        inputs["past_key_values.0." + part] = built.empty_cache();
      logits = onnx_values(built.graphs.at("decoder_model_merged"), inputs).at("logits");
    }
    for (const std::int64_t number : {0, 1}) {
      std::vector<float> rows;
      if (has_class_row(built.config)) rows.resize(12);
      for (std::int64_t patch = 0; patch < 32; ++patch)
        for (std::int64_t i = 0; i < 12; ++i)
          rows.push_back(static_cast<float>(
              pixels.at({number, i % 3, patch / 8 * 2 + i / 6, patch % 8 * 2 + i / 3 % 2})));
      const Ids offsets{0, static_cast<std::int32_t>(rows.size() / 12)};
      Ids written;
      const SideView source{{}, offsets, rows, 12};
      check_rows(logits, number, 0,
                 built.rows({source, task == "classify" ? SideView{} : view_of(target, written)}),
                 task + keys);
    }
  }
}

// Two sequences of 7 and 5 rows with 3 values. The last window of each of the two convolutions that
// the second sequence fills reaches one row beyond its end.
BOOST_AUTO_TEST_CASE(graphs_of_features_compute_the_logits_of_the_model) {
  const std::string features =
      "data: {input: features, features: {width: 3}, train: {source: a, target: b}}\n";
  Random random({.seed = 3, .stream = Stream::check, .index = 1});
  OnnxArray rows{{2, 7, 3}, {}};
  for (int i = 0; i < 2 * 7 * 3; ++i)
    rows.values.push_back(static_cast<double>(static_cast<float>(random.uniform() - 0.5)));
  const OnnxArray mask{{2, 7}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0}};
  for (const auto& [task, keys] : std::vector<std::pair<std::string, std::string>>{
           {"classify", ", layers: 1, pool: first"},
           {"classify", ", layers: 1, pool: mean, front_end: {kind: conv, layers: 2}"},
           {"seq2seq", ", layers: 1, front_end: {kind: conv, layers: 2}"}}) {
    const RandomModel built("task: " + task + "\n" + features, keys);
    const OnnxArrays read{{"input_features", rows}, {"attention_mask", mask}};
    OnnxArray logits;
    const Ids target{1, 4, 5};
    if (task == "classify") {
      logits = onnx_values(built.graphs.at("model"), read).at("logits");
    } else {
      OnnxArrays inputs{
          {"input_ids", columns_of({target, target}, 0, 3)},
          {"encoder_hidden_states",
           onnx_values(built.graphs.at("encoder_model"), read).at("last_hidden_state")},
          {"encoder_attention_mask", mask},
          {"use_cache_branch", {{1}, {0}}}};
      for (const std::string part :
           {"decoder.key", "decoder.value", "encoder.key", "encoder.value"})
        inputs["past_key_values.0." + part] = built.empty_cache();
      logits = onnx_values(built.graphs.at("decoder_model_merged"), inputs).at("logits");
    }
    for (const std::int64_t number : {0, 1}) {
      std::vector<float> own;
      if (has_class_row(built.config)) own.resize(3);
      for (std::int64_t i = 0; i < (number == 0 ? 21 : 15); ++i)
        own.push_back(static_cast<float>(rows.at({number, i / 3, i % 3})));
      const Ids offsets{0, static_cast<std::int32_t>(own.size() / 3)};
      Ids written;
      const SideView source{{}, offsets, own, 3};
      check_rows(logits, number, 0,
                 built.rows({source, task == "classify" ? SideView{} : view_of(target, written)}),
                 task + keys);
    }
  }
}

// ---- reading -----------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(tensors_are_read_as_written) {
  const OnnxFile file = OnnxFile::parse(one_tensor_file(), "file");
  BOOST_REQUIRE(file.tensors().size() == 1);
  const TensorView& w = file.tensors()[0];
  BOOST_TEST(w.name == "w");
  BOOST_TEST(w.description() == "F32 [2, 3]");
  float last = 0;
  std::memcpy(&last, w.bytes.data() + 20, 4);
  BOOST_TEST(last == 6);
}

BOOST_AUTO_TEST_CASE(a_truncated_file_is_refused) {
  const std::string whole = one_tensor_file();
  for (std::size_t size = 0; size < whole.size(); ++size)
    HEED_CHECK_ERROR(Exit::bad_input, "cut: damaged, or no ONNX file",
                     OnnxFile::parse(whole.substr(0, size), "cut"));
}

BOOST_AUTO_TEST_CASE(a_damaged_byte_is_refused_or_changes_a_value) {
  const std::string whole = one_tensor_file();
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const int bit : {0, 3, 7}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      try {
        const OnnxFile file = OnnxFile::parse(damaged, "damaged");
        for (const TensorView& view : file.tensors())
          BOOST_TEST(static_cast<std::size_t>(view.size()) * size_of(view.dtype) ==
                     view.bytes.size());
      } catch (const Error& error) {
        BOOST_TEST((error.code == Exit::bad_input));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(hostile_tensors_are_refused) {
  // A file with one tensor: dimensions, element type, bytes.
  const auto file = [](std::vector<std::int64_t> shape, std::int64_t type, std::size_t bytes) {
    ProtobufMessage tensor, graph, set, model;
    for (const std::int64_t size : shape) tensor.integer(1, size);
    tensor.integer(2, type).text(8, "t").text(9, std::string(bytes, 'x'));
    set.integer(2, 17);
    return model.text(8, set.bytes).text(7, graph.text(5, tensor.bytes).bytes).bytes;
  };
  const auto refuse = [](const std::string& bytes, const std::string& what) {
    HEED_CHECK_ERROR(Exit::bad_input, what, OnnxFile::parse(bytes, "file"));
  };
  const OnnxFile sound = OnnxFile::parse(file({3}, 1, 12), "file");
  BOOST_TEST(sound.tensors().size() == 1);
  refuse(file({-1}, 1, 4), "the shape of tensor t");
  refuse(file({1'000'000'000, 1'000'000'000}, 1, 4), "the shape of tensor t");
  refuse(file({0, std::int64_t{1} << 62, 4}, 1, 4), "the number of bytes of tensor t");
  refuse(file({3}, 1, 8), "the number of bytes of tensor t");
  refuse(file({3}, 8, 12), "the type of tensor t");  // strings
  refuse(ProtobufMessage().integer(1, 8).bytes, "the graph");
  refuse(ProtobufMessage().text(7, "\x0A\x01x").bytes, "the operator set");
  refuse(std::string(12, '\xFF'), "an integer");
}

BOOST_AUTO_TEST_SUITE_END()
