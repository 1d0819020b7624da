#include <fmt/format.h>

#include <array>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <map>

#include "nn/models/model.h"
#include "nn/options.h"
#include "tests/train/exchange_support.h"
#include "tests/train/support.h"
#include "train/exchange/ctranslate2/ctranslate2.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(ctranslate2)

namespace {

constexpr VocabularySizes nine_pieces{9, 9, true};

Config translation_model(const std::string& more) {
  return parse_config(
      "task: seq2seq\ndata: {train: {source: a, target: b}}\n"
      "model: {d_model: 8, heads: 2, d_ff: 5, layers: 2" +
          more + "}\n",
      "s.yaml");
}

/// Two tensors and an alias.
std::string small_ct2(const TempFolder& folder) {
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  const std::int8_t flag = 1;
  const std::vector<TensorView> tensors{
      {"a/w", DType::f32, {2, 3}, std::as_bytes(std::span(values))},
      {"flag", DType::i8, {}, std::as_bytes(std::span(&flag, 1))}};
  write_file_durably(folder / "model.bin", [&](FileWriter& file) {
    write_ctranslate2(file, "Spec", 7, tensors, {{"b/w", "a/w"}});
  });
  return get(folder / "model.bin");
}

template <class T>
T attribute_of(const CTranslate2Model& model, const std::string& name) {
  for (const auto& [key, value] : model.attributes)
    if (key == name) return std::get<T>(value);
  BOOST_ERROR("no attribute " << name);
  return {};
}

}  // namespace

// The bytes follow ModelSpec._serialize of the Python package, specs/model_spec.py.
BOOST_AUTO_TEST_CASE(file_has_the_bytes_of_the_converters) {
  const TempFolder folder;
  const auto u32 = [](std::uint32_t n) { return std::string(reinterpret_cast<char*>(&n), 4); };
  const auto name = [](const std::string& text) {
    return std::string(1, static_cast<char>(text.size() + 1)) + '\0' + text + '\0';
  };
  std::string expected = u32(6) + name("Spec") + u32(7) + u32(2);
  expected += name("a/w") + '\2' + u32(2) + u32(3) + '\0' + u32(24);
  for (const float v : {1.F, 2.F, 3.F, 4.F, 5.F, 6.F})
    expected.append(reinterpret_cast<const char*>(&v), 4);
  expected += name("flag") + '\0' + '\1' + u32(1) + '\1';
  expected += u32(1) + name("b/w") + name("a/w");
  BOOST_TEST(small_ct2(folder) == expected);
}

BOOST_AUTO_TEST_CASE(tensors_and_aliases_survive_the_file) {
  const TempFolder folder;
  const CTranslate2File file = CTranslate2File::parse(small_ct2(folder), "f");
  BOOST_TEST(file.specification == "Spec");
  BOOST_TEST(file.revision == 7);
  BOOST_TEST(file.tensors.at(0).description() == "F32 [2, 3]");
  float last = 0;
  std::copy_n(file.tensors.at(0).bytes.data() + 20, 4, reinterpret_cast<std::byte*>(&last));
  BOOST_TEST(last == 6);
  BOOST_TEST(file.tensors.at(1).description() == "I8 []");
  BOOST_TEST(file.aliases.at(0).first == "b/w");
  BOOST_TEST(file.aliases.at(0).second == "a/w");
}

BOOST_AUTO_TEST_CASE(malformed_files_are_refused) {
  const TempFolder folder;
  const std::string good = small_ct2(folder);
  const auto parse = [](const std::string& bytes) { CTranslate2File::parse(bytes, "f"); };
  every_prefix_is_refused(good, parse);
  damaged_files_do_no_harm(good, parse);
  HEED_CHECK_ERROR(Exit::bad_input, "f: data after the last alias (1 B)", parse(good + 'x'));
  HEED_CHECK_ERROR(Exit::bad_input, "f: version 5 of CTranslate2's format; heed reads version 6",
                   parse('\5' + good.substr(1)));
  std::string other = good;
  other.replace(other.rfind("a/w"), 3, "c/w");
  HEED_CHECK_ERROR(Exit::bad_input, "f: b/w is an alias of c/w, which is missing", parse(other));
  other = good;
  other[good.find("a/w") + 4 + 1 + 4] = 4;  // after the name and the rank: the second extent
  HEED_CHECK_ERROR(Exit::bad_input, "f: a/w of shape [2, 4] and type F32 has 24 bytes",
                   parse(other));
  other = good;
  other.replace(other.find("b/w"), 3, "a/w");
  HEED_CHECK_ERROR(Exit::bad_input, "f: a/w occurs twice", parse(other));
}

BOOST_AUTO_TEST_CASE(int8_rows_have_a_scale) {
  const std::vector<float> values{0.5F, -2, 1, 0, 0, 0, 0.1F, 0.05F, 0.0751F};
  const ScaledRows rows =
      ctranslate2_int8({"w", DType::f32, {3, 3}, std::as_bytes(std::span(values))});
  const std::vector<int> numbers(rows.values.begin(), rows.values.end());
  BOOST_TEST(numbers == (std::vector<int>{32, -127, 64, 0, 0, 0, 127, 64, 95}),
             boost::test_tools::per_element());
  BOOST_TEST(rows.scales == (std::vector<float>{63.5F, 1, 127 / 0.1F}),
             boost::test_tools::per_element());
  const std::vector<float> wrong{1, NAN};
  HEED_CHECK_ERROR(Exit::usage, "w has a value that is not finite",
                   ctranslate2_int8({"w", DType::f32, {1, 2}, std::as_bytes(std::span(wrong))}));
}

BOOST_AUTO_TEST_CASE(tied_tables_are_stored_once) {
  const Config config = translation_model("");
  const CTranslate2Model model = ctranslate2_model(config, nine_pieces);
  BOOST_TEST(model.specification == "TransformerSpec");
  const auto own = make_seq2seq(*config.model, 9, 9, true, 1);
  const ForeignTensors tensors(model.parts, own->state());
  const auto found = by_name(tensors);
  BOOST_TEST(found.at("encoder/embeddings_0/weight").description() == "F32 [9, 8]");
  BOOST_TEST(model.aliases.size() == 2);
  for (const auto& [alias, of] : model.aliases) BOOST_TEST(of == "encoder/embeddings_0/weight");
  BOOST_TEST(found.at("encoder/position_encodings/encodings").description() == "F32 [1024, 8]");
  BOOST_TEST(found.at("decoder/layer_1/self_attention/linear_0/weight").description() ==
             "F32 [24, 8]");
  BOOST_TEST(found.at("decoder/layer_1/attention/linear_1/weight").description() == "F32 [16, 8]");
  BOOST_TEST(attribute_of<std::int16_t>(model, "decoder/num_heads") == 2);
  BOOST_TEST(attribute_of<std::int8_t>(model, "encoder/pre_norm") == 1);
  BOOST_TEST(attribute_of<std::int8_t>(model, "encoder/scale_embeddings") == 1);

  const Config separate = translation_model(", tie_embeddings: false");
  const CTranslate2Model untied = ctranslate2_model(separate, {9, 7, false});
  BOOST_TEST(untied.aliases.empty());
  const auto second = make_seq2seq(*separate.model, 9, 7, false, 1);
  const ForeignTensors others(untied.parts, second->state());
  BOOST_TEST(by_name(others).at("decoder/projection/bias").description() == "F32 [7]");
}

BOOST_AUTO_TEST_CASE(attributes_follow_the_config) {
  const CTranslate2Model model = ctranslate2_model(
      language_model(
          ", positions: rotary, rotary_pairs: adjacent, activation: geglu, norm_eps: 1e-4, "
          "attention: {kv_heads: 1, scale: 0.5}, rotary_base: 500"),
      nine_pieces);
  BOOST_TEST(model.specification == "TransformerDecoderSpec");
  const std::string attention = "decoder/layer_1/self_attention/";
  BOOST_TEST(attribute_of<std::int32_t>(model, attention + "num_heads_kv") == 1);
  BOOST_TEST(attribute_of<float>(model, attention + "queries_scale") == 0.5F);
  BOOST_TEST(attribute_of<std::int32_t>(model, attention + "rotary_dim") == 4);
  BOOST_TEST(attribute_of<std::int8_t>(model, attention + "rotary_interleave") == 1);
  BOOST_TEST(attribute_of<std::int8_t>(model, "decoder/activation") == 3);
  BOOST_TEST(model.config["layer_norm_epsilon"] == 1e-4);
  const auto part = [&](const std::string& name) {
    return *std::ranges::find(model.parts, "decoder/layer_0/ffn/" + name, &MappedTensor::foreign);
  };
  BOOST_TEST(part("linear_0/weight").first == 0);  // the gate
  BOOST_TEST(part("linear_0_noact/weight").first == 5);
  BOOST_TEST(attribute_of<float>(model, attention + "rotary_base") == 500);
  BOOST_TEST(model.config["multi_query_attention"] == true);

  const CTranslate2Model alibi = ctranslate2_model(
      language_model(", positions: alibi, norm: post, scale_embeddings: false, activation: silu"),
      nine_pieces);
  BOOST_TEST(attribute_of<std::int8_t>(alibi, "decoder/alibi") == 1);
  BOOST_TEST(attribute_of<std::int8_t>(alibi, "decoder/pre_norm") == 0);
  BOOST_TEST(attribute_of<std::int8_t>(alibi, "decoder/scale_embeddings") == 0);
  BOOST_TEST(attribute_of<std::int8_t>(alibi, "decoder/activation") == 2);
  BOOST_TEST(alibi.config["multi_query_attention"] == false);
}

BOOST_AUTO_TEST_CASE(positions_of_each_stack_are_those_of_the_config) {
  // A language model has a row for each position of its context, both stacks of a translation model
  // have one for each of max_positions.
  for (const char* scheme : {"sinusoidal", "none"}) {
    const std::string positions = fmt::format(", positions: {}", scheme);
    const Config text = language_model(positions);
    Config pairs = translation_model(positions);
    pairs.model->max_positions = 12;
    const auto rows = [&](const Config& config, const std::string& stack) {
      const CTranslate2Model model = ctranslate2_model(config, nine_pieces);
      const auto own = make_model(info_of(config.task).architecture, *config.model, nine_pieces, 1);
      const ForeignTensors tensors(model.parts, own->state());
      return by_name(tensors).at(stack + "/position_encodings/encodings").description();
    };
    BOOST_TEST(rows(text, "decoder") == "F32 [7, 8]");
    BOOST_TEST(rows(pairs, "encoder") == "F32 [12, 8]");
    BOOST_TEST(rows(pairs, "decoder") == "F32 [12, 8]");
  }
  const CTranslate2Model t5 = ctranslate2_model(
      translation_model(", positions: relative_t5, t5_distance: 50"), nine_pieces);
  for (const std::string stack : {"encoder", "decoder"}) {
    for (const int layer : {0, 1})
      BOOST_TEST(attribute_of<std::int32_t>(
                     t5, fmt::format("{}/layer_{}/self_attention/relative_attention_max_distance",
                                     stack, layer)) == 50);
    const std::string table = stack + "/layer_0/self_attention/relative_attention_bias";
    const auto part = std::ranges::find(t5.parts, table, &MappedTensor::foreign);
    BOOST_REQUIRE(part != t5.parts.end());
    BOOST_TEST(part->own ==
               (stack == "encoder" ? "source_positions.weight" : "target_positions.weight"));
  }
}

BOOST_AUTO_TEST_CASE(every_attention_of_a_translation_model_has_the_options_of_the_config) {
  const CTranslate2Model model =
      ctranslate2_model(translation_model(", attention: {kv_heads: 1, scale: 0.5}"), nine_pieces);
  for (const std::string layer : {"encoder/layer_0/", "decoder/layer_0/", "decoder/layer_1/"}) {
    for (const std::string kind : {"self_attention/", "attention/"}) {
      if (layer.starts_with("encoder") && kind == "attention/") continue;
      BOOST_TEST_CONTEXT(layer + kind) {
        BOOST_TEST(attribute_of<float>(model, layer + kind + "queries_scale") == 0.5F);
        BOOST_TEST(attribute_of<std::int32_t>(model, layer + kind + "num_heads_kv") == 1);
      }
    }
  }
}

// ops::ActivationType of CTranslate2: ReLU, GELUTanh, Swish, GELU, GELUSigmoid, Tanh, Sigmoid. A gated layer has the
// activation of its gate.
BOOST_AUTO_TEST_CASE(activations_have_the_numbers_of_ctranslate2) {
  for (const auto& [name, number] : {std::pair("relu", 0),
                                     {"gelu_tanh", 1},
                                     {"silu", 2},
                                     {"gelu", 3},
                                     {"tanh", 5},
                                     {"sigmoid", 6},
                                     {"swiglu", 2},
                                     {"geglu", 3},
                                     {"geglu_tanh", 1}}) {
    const CTranslate2Model model =
        ctranslate2_model(language_model(fmt::format(", activation: {}", name)), nine_pieces);
    BOOST_TEST(attribute_of<std::int8_t>(model, "decoder/activation") == number, name);
  }
}

// CTranslate2's converters write these attributes and keys; its defaults are not heed's.
BOOST_AUTO_TEST_CASE(alibi_and_special_pieces_have_the_conventions_of_heed) {
  const CTranslate2Model alibi =
      ctranslate2_model(language_model(", positions: alibi"), nine_pieces);
  // Positive positions would be the distance from the first key, instead of that from the query.
  BOOST_TEST(attribute_of<std::int8_t>(alibi, "decoder/alibi_use_positive_positions") == 0);
  BOOST_TEST(!alibi.config.contains("decoder_start_token"));
  const CTranslate2Model pairs = ctranslate2_model(translation_model(""), nine_pieces);
  // The </s> at the end of a source is a piece of its text: tokenizer.json appends it.
  for (const auto& [key, value] :
       std::map<std::string, nlohmann::ordered_json>{{"unk_token", "<unk>"},
                                                     {"bos_token", "<s>"},
                                                     {"eos_token", "</s>"},
                                                     {"decoder_start_token", "<s>"},
                                                     {"add_source_bos", false},
                                                     {"add_source_eos", false}})
    BOOST_TEST(pairs.config.at(key) == value, key);
  BOOST_TEST(pairs.revision == 7U);
  BOOST_TEST(alibi.revision == 8U);
}

// Tensors of the same shape, which other names would exchange.
BOOST_AUTO_TEST_CASE(layers_have_the_names_of_ctranslate2) {
  const auto check = [](const CTranslate2Model& model,
                        const std::vector<std::array<std::string, 2>>& names) {
    for (const auto& [foreign, own] : names) {
      const auto part = std::ranges::find(model.parts, foreign, &MappedTensor::foreign);
      BOOST_REQUIRE_MESSAGE(part != model.parts.end(), foreign);
      BOOST_TEST(part->own == own, foreign);
      BOOST_TEST(part->first == (foreign.ends_with("attention/linear_1/bias") &&
                                         !foreign.ends_with("self_attention/linear_1/bias")
                                     ? 8
                                     : 0),
                 foreign);
    }
  };
  const std::string layer = "decoder/layer_1/", own = "decoder.layers.1.";
  check(ctranslate2_model(translation_model(", tie_embeddings: false"), {9, 9, false}),
        {{layer + "self_attention/layer_norm/gamma", own + "norm1.weight"},
         {layer + "self_attention/linear_0/bias", own + "self_attn.in_proj_bias"},
         {layer + "self_attention/linear_1/bias", own + "self_attn.out_proj.bias"},
         {layer + "attention/layer_norm/beta", own + "norm2.bias"},
         {layer + "attention/linear_0/bias", own + "multihead_attn.in_proj_bias"},
         {layer + "attention/linear_1/bias", own + "multihead_attn.in_proj_bias"},
         {layer + "attention/linear_2/bias", own + "multihead_attn.out_proj.bias"},
         {layer + "ffn/layer_norm/gamma", own + "norm3.weight"},
         {layer + "ffn/linear_0/weight", own + "linear1.weight"},
         {layer + "ffn/linear_1/weight", own + "linear2.weight"},
         {"encoder/layer_0/self_attention/layer_norm/gamma", "encoder.layers.0.norm1.weight"},
         {"encoder/layer_0/ffn/layer_norm/gamma", "encoder.layers.0.norm2.weight"},
         {"encoder/layer_norm/gamma", "encoder.norm.weight"},
         {"decoder/layer_norm/gamma", "decoder.norm.weight"},
         {"encoder/embeddings_0/weight", "source_embedding.weight"},
         {"decoder/embeddings/weight", "target_embedding.weight"},
         {"decoder/projection/weight", "output.weight"}});
  const CTranslate2Model parallel =
      ctranslate2_model(language_model(", block: parallel, positions: rotary"), nine_pieces);
  check(parallel, {{layer + "shared_layer_norm/gamma", own + "norm1.weight"},
                   {layer + "shared_layer_norm/beta", own + "norm1.bias"},
                   {layer + "self_attention/linear_1/bias", own + "self_attn.out_proj.bias"},
                   {layer + "ffn/linear_1/bias", own + "linear2.bias"}});
  for (const MappedTensor& part : parallel.parts)
    BOOST_TEST(part.foreign.find("ffn/layer_norm") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(what_ctranslate2_lacks_is_refused_by_key) {
  HEED_CHECK_ERROR(Exit::usage,
                   "encoder-decoder: model.positions is alibi (it has learned or sinusoidal or "
                   "rotary or relative_t5 or none)",
                   ctranslate2_model(translation_model(", positions: alibi"), nine_pieces));
  HEED_CHECK_ERROR(Exit::usage, "decoder: model.norm is none (it has pre or post)",
                   ctranslate2_model(language_model(", norm: none"), nine_pieces));
  HEED_CHECK_ERROR(
      Exit::usage, "export to onnx",
      ctranslate2_model(
          parse_config("task: classify\ndata: {train: {source: a, target: b}}\n", "c.yaml"),
          nine_pieces));
}

BOOST_AUTO_TEST_SUITE_END()
