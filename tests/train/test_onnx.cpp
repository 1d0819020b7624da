#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "nn/layers/activations.h"
#include "nn/models/model.h"
#include "nn/options.h"
#include "nn/weights.h"
#include "tests/train/exchange_support.h"
#include "tests/train/support.h"
#include "train/exchange/onnx/config.h"
#include "train/exchange/onnx/model.h"

using namespace heed;
using namespace heed::test;

namespace {

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
