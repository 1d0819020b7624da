#include <array>
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "nn/models/classifier.h"
#include "nn/models/model.h"
#include "nn/options.h"
#include "tests/train/exchange_support.h"
#include "tests/train/support.h"
#include "train/exchange/export.h"
#include "train/exchange/huggingface/model.h"
#include "train/exchange/model_card.h"
#include "train/exchange/page/template.h"

using namespace heed;
using namespace heed::test;

namespace {

constexpr VocabularySizes ten_tokens{10, 10, true};

}  // namespace

BOOST_AUTO_TEST_SUITE(exchange)

BOOST_AUTO_TEST_CASE(mapped_tensors_are_rows_transposed_and_scaled) {
  const Parameters own{{"w", Tensor::variable(Array({{1, 2, 3}, {4, 5, 6}}))},
                       {"b", Tensor::variable(Array::of({7, 8, 9, 10}))},
                       {"six", Tensor::variable(Array({{1}, {2}, {3}, {4}, {5}, {6}}))}};
  const std::vector<MappedTensor> map{
      {.foreign = "same", .own = "w"},
      {.foreign = "turned", .own = "w", .transposed = true, .factor = 2},
      {.foreign = "row", .own = "w", .first = 1, .rows = 1},
      {.foreign = "pairs", .own = "b", .group = 4},
      {.foreign = "parts", .own = "six", .group = 6, .split = 3},
      {.foreign = "middle", .own = "b", .first = 1, .rows = 2, .shape = {1, 2}},
      {.foreign = "zeros", .constant = Array::zeros({2})}};
  const ForeignTensors foreign(map, own);
  const auto found = by_name(foreign);
  const auto values = [&](const std::string& name) {
    const std::span<const float> all = found.at(name).values<float>();
    return std::vector<float>(all.begin(), all.end());
  };
  const auto check = [&](const std::string& name, const std::vector<std::int64_t>& shape,
                         const std::vector<float>& expected) {
    BOOST_TEST(found.at(name).shape == shape, boost::test_tools::per_element());
    BOOST_TEST(values(name) == expected, boost::test_tools::per_element());
  };
  check("same", {2, 3}, {1, 2, 3, 4, 5, 6});
  check("turned", {3, 2}, {2, 8, 4, 10, 6, 12});
  check("row", {1, 3}, {4, 5, 6});
  check("middle", {1, 2}, {8, 9});
  check("zeros", {2}, {0, 0});
  check("pairs", {4}, {7, 9, 8, 10});
  check("parts", {6, 1}, {1, 3, 5, 2, 4, 6});
  HEED_CHECK_ERROR(Exit::failed, "[exchange] b is in no part",
                   ForeignTensors(std::span(map).first(3), own));
  HEED_CHECK_ERROR(
      Exit::failed, "[exchange] b has no rows 3 to 5",
      ForeignTensors(std::vector<MappedTensor>{{.foreign = "x", .own = "b", .first = 3, .rows = 2}},
                     own));
  HEED_CHECK_ERROR(Exit::failed, "[exchange] the model has no tensor v",
                   ForeignTensors(std::vector<MappedTensor>{{.foreign = "x", .own = "v"}}, own));
}

BOOST_AUTO_TEST_CASE(each_changed_tensor_is_reported) {
  const TempFolder folder;
  Parameters own{{"a", Tensor::variable(Array::of({1, 2}))},
                 {"b", Tensor::variable(Array::of({3, 4}))}};
  const std::vector<MappedTensor> map{{.foreign = "x", .own = "a"}, {.foreign = "y", .own = "b"}};
  const ForeignTensors foreign(map, own);
  const auto path = folder.path / "file";
  write_safetensors(path, foreign.views());
  const auto differences = [&] {
    const SafetensorsFile file = SafetensorsFile::read(path);
    return differing_tensors(foreign.views(), file.tensors());
  };
  BOOST_TEST(differences().empty());
  own[1].tensor.mutable_value().data()[1] = 5;
  const std::vector<std::string> y{"y"};
  BOOST_TEST(differences() == y, boost::test_tools::per_element());
}

// The Llama of transformers, computed by the formulas of its paper from the exported tensors alone, is compared with
// heed's model in tests/clients. Here: every tensor of the class occurs once, with the shape that the class expects.
BOOST_AUTO_TEST_CASE(tensors_have_the_shapes_of_the_class) {
  const Config config = language_model(
      ", positions: rotary, norm_kind: rms, activation: swiglu, attention: {kv_heads: 1}");
  const HuggingFaceModel llama = huggingface_model(config, ten_tokens);
  BOOST_TEST(llama.architecture == "LlamaForCausalLM");
  const auto model = make_language_model(*config.model, 10, 1);
  const ForeignTensors tensors(llama.parts, model->state());
  const auto found = by_name(tensors);
  BOOST_TEST(found.size() == 2 + 2 * 16 + 1);  // embeddings and output, layers, norm
  const auto shape = [&](const std::string& name) { return found.at(name).description(); };
  BOOST_TEST(shape("model.embed_tokens.weight") == "F32 [10, 8]");
  BOOST_TEST(shape("lm_head.weight") == "F32 [10, 8]");
  BOOST_TEST(shape("model.layers.1.self_attn.q_proj.weight") == "F32 [8, 8]");
  BOOST_TEST(shape("model.layers.1.self_attn.k_proj.weight") == "F32 [4, 8]");
  BOOST_TEST(shape("model.layers.1.self_attn.v_proj.bias") == "F32 [4]");
  BOOST_TEST(shape("model.layers.0.mlp.gate_proj.weight") == "F32 [5, 8]");
  BOOST_TEST(shape("model.layers.0.mlp.down_proj.weight") == "F32 [8, 5]");
  // Embeddings are scaled, the output is not.
  const float own = model->parameters()[0].tensor.value().data()[7];
  BOOST_TEST(found.at("lm_head.weight").values<float>()[7] == own);
  BOOST_TEST(found.at("model.embed_tokens.weight").values<float>()[7] == own * std::sqrt(8.0F));
  BOOST_TEST(llama.config["tie_word_embeddings"] == false);
  BOOST_TEST(llama.config["num_key_value_heads"] == 1);
  BOOST_TEST(llama.config["intermediate_size"] == 5);

  const Config unscaled = language_model(", positions: learned, scale_embeddings: false");
  const HuggingFaceModel gpt2 = huggingface_model(unscaled, ten_tokens);
  BOOST_TEST(gpt2.architecture == "GPT2LMHeadModel");
  BOOST_TEST(gpt2.config["tie_word_embeddings"] == true);
  BOOST_TEST(gpt2.config["n_positions"] == 7);
  const auto second = make_language_model(*unscaled.model, 10, 1);
  const ForeignTensors transposed(gpt2.parts, second->state());
  BOOST_TEST(by_name(transposed).at("transformer.h.1.attn.c_attn.weight").description() ==
             "F32 [8, 24]");
  BOOST_TEST(by_name(transposed).at("transformer.wpe.weight").description() == "F32 [7, 8]");
}

// All tensors of the model have different values, so a part with the name of another one is detected.
BOOST_AUTO_TEST_CASE(parts_of_joined_matrices_have_the_names_of_the_exported_class) {
  struct Part {
    std::string foreign, own;
    std::int64_t first = 0;
    bool transposed = false;
  };
  const auto attention = [](const std::string& foreign, const std::string& own,
                            const std::array<const char*, 4>& names, std::int64_t keys = 8) {
    const std::string in = own + ".in_proj_weight";
    return std::vector<Part>{{foreign + names[0] + ".weight", in, 0},
                             {foreign + names[1] + ".weight", in, 8},
                             {foreign + names[2] + ".weight", in, 8 + keys},
                             {foreign + names[3] + ".weight", own + ".out_proj.weight"}};
  };
  const auto check = [&](const std::string& architecture, const Config& config,
                         const std::vector<std::vector<Part>>& lists) {
    const HuggingFaceModel described = huggingface_model(config, ten_tokens);
    BOOST_REQUIRE(described.architecture == architecture);
    const auto model = make_model(info_of(config.task).architecture, *config.model, ten_tokens, 1);
    const Parameters state = model->state();
    float next = 0;
    for (const NamedTensor& tensor : state) {
      Tensor values = tensor.tensor;
      for (real& value : values.mutable_value().values()) value = next++;
    }
    const ForeignTensors tensors(described.parts, state);
    const auto found = by_name(tensors);
    for (const std::vector<Part>& list : lists) {
      for (const Part& part : list) {
        BOOST_TEST_CONTEXT(architecture << ": " << part.foreign) {
          const Array& own = std::ranges::find(state, part.own, &NamedTensor::name)->tensor.value();
          const std::span<const float> values = found.at(part.foreign).values<float>();
          const std::int64_t columns = own.size() / own.shape()[0],
                             rows = std::ssize(values) / columns;
          for (std::int64_t r = 0; r < rows; ++r) {
            for (std::int64_t c = 0; c < columns; ++c)
              BOOST_REQUIRE(values[part.transposed ? c * rows + r : r * columns + c] ==
                            own.data()[(part.first + r) * columns + c]);
          }
        }
      }
    }
  };
  const auto pairs = [](const std::string& keys) {
    return parse_config(
        "task: seq2seq\ndata: {train: {source: a, target: b}}\n"
        "model: {d_model: 8, heads: 2, d_ff: 5, layers: {encoder: 1, decoder: 2}, " +
            keys + "}\n",
        "s.yaml");
  };
  const auto image = [](const std::string& keys) {
    return parse_config(
        "task: classify\ndata: {input: image, image: {height: 8, width: 16, channels: 3, patch: 2}, "
        "train: {source: a, target: b}}\n"
        "model: {d_model: 8, heads: 2, d_ff: 12, activation: gelu, " +
            keys + "}\n",
        "i.yaml");
  };
  check("LlamaForCausalLM",
        language_model(
            ", positions: rotary, norm_kind: rms, activation: geglu, attention: {kv_heads: 1}"),
        {attention("model.layers.1.self_attn.", "decoder.layers.1.self_attn",
                   {"q_proj", "k_proj", "v_proj", "o_proj"}, 4),
         {{"model.layers.1.mlp.gate_proj.weight", "decoder.layers.1.linear1.weight"},
          {"model.layers.1.mlp.up_proj.weight", "decoder.layers.1.linear1.weight", 5},
          {"model.layers.1.mlp.down_proj.weight", "decoder.layers.1.linear2.weight"},
          {"model.layers.1.input_layernorm.weight", "decoder.layers.1.norm1.weight"},
          {"model.layers.1.post_attention_layernorm.weight", "decoder.layers.1.norm2.weight"},
          {"model.norm.weight", "decoder.norm.weight"}}});
  check("GPT2LMHeadModel", language_model(", positions: learned, scale_embeddings: false"),
        {{{"transformer.h.1.attn.c_attn.weight", "decoder.layers.1.self_attn.in_proj_weight", 0,
           true},
          {"transformer.h.1.attn.c_proj.weight", "decoder.layers.1.self_attn.out_proj.weight", 0,
           true},
          {"transformer.h.1.mlp.c_fc.weight", "decoder.layers.1.linear1.weight", 0, true},
          {"transformer.h.1.mlp.c_proj.weight", "decoder.layers.1.linear2.weight", 0, true},
          {"transformer.h.1.ln_1.bias", "decoder.layers.1.norm1.bias"},
          {"transformer.h.1.ln_2.bias", "decoder.layers.1.norm2.bias"},
          {"transformer.wpe.weight", "positions.weight"}}});
  const std::array<const char*, 4> of_bart{"q_proj", "k_proj", "v_proj", "out_proj"};
  const std::string layer = "model.decoder.layers.1.", own = "decoder.layers.1.";
  const std::vector<std::vector<Part>> bart{
      attention("model.encoder.layers.0.self_attn.", "encoder.layers.0.self_attn", of_bart),
      attention(layer + "self_attn.", own + "self_attn", of_bart),
      attention(layer + "encoder_attn.", own + "multihead_attn", of_bart),
      {{"model.encoder.embed_positions.weight", "source_positions.weight"},
       {"model.decoder.embed_positions.weight", "target_positions.weight"},
       {layer + "self_attn_layer_norm.bias", own + "norm1.bias"},
       {layer + "encoder_attn_layer_norm.bias", own + "norm2.bias"},
       {layer + "final_layer_norm.weight", own + "norm3.weight"},
       {layer + "fc1.weight", own + "linear1.weight"},
       {layer + "fc2.weight", own + "linear2.weight"}}};
  check("MarianMTModel", pairs("positions: learned, norm: post, final_norm: false"), bart);
  check("BlenderbotForConditionalGeneration", pairs("positions: learned"), bart);
  const std::array<const char*, 4> of_t5{"q", "k", "v", "o"};
  check("T5ForConditionalGeneration",
        pairs("positions: relative_t5, attention: {scale: none}, norm_kind: rms, bias: false, "
              "tie_output: false, activation: geglu_tanh"),
        {attention("encoder.block.0.layer.0.SelfAttention.", "encoder.layers.0.self_attn", of_t5),
         attention("decoder.block.1.layer.0.SelfAttention.", own + "self_attn", of_t5),
         attention("decoder.block.1.layer.1.EncDecAttention.", own + "multihead_attn", of_t5),
         {{"encoder.block.0.layer.1.DenseReluDense.wi_0.weight", "encoder.layers.0.linear1.weight"},
          {"decoder.block.1.layer.2.DenseReluDense.wi_0.weight", own + "linear1.weight"},
          {"decoder.block.1.layer.2.DenseReluDense.wi_1.weight", own + "linear1.weight", 5},
          {"decoder.block.1.layer.1.layer_norm.weight", own + "norm2.weight"},
          {"decoder.block.1.layer.2.layer_norm.weight", own + "norm3.weight"},
          {"decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
           "target_positions.weight"},
          {"lm_head.weight", "output.weight"}}});
  const std::string bert = "bert.encoder.layer.1.", encoder = "encoder.layers.1.";
  check("BertForMaskedLM",
        parse_config(
            "task: mlm\ndata: {train: {text: a}}\n"
            "model: {d_model: 8, heads: 2, d_ff: 5, layers: 2, positions: learned, norm: post, "
            "final_norm: false, embedding_norm: true, head_transform: true, output_bias: true, "
            "scale_embeddings: false, segments: 2}\n",
            "b.yaml"),
        {attention(bert + "attention.", encoder + "self_attn",
                   {"self.query", "self.key", "self.value", "output.dense"}),
         {{bert + "attention.output.LayerNorm.weight", encoder + "norm1.weight"},
          {bert + "output.LayerNorm.weight", encoder + "norm2.weight"},
          {bert + "intermediate.dense.weight", encoder + "linear1.weight"},
          {"bert.embeddings.LayerNorm.bias", "embedding_norm.bias"},
          {"bert.embeddings.token_type_embeddings.weight", "segments.weight"},
          {"cls.predictions.transform.dense.weight", "transform.dense.weight"},
          {"cls.predictions.transform.LayerNorm.bias", "transform.norm.bias"}}});
  check("ViTForImageClassification",
        image("layers: 2, pool: first, positions: learned, max_positions: 33"),
        {attention("vit.encoder.layer.1.attention.", encoder + "self_attn",
                   {"attention.query", "attention.key", "attention.value", "output.dense"}),
         {{"vit.encoder.layer.1.layernorm_before.weight", encoder + "norm1.weight"},
          {"vit.encoder.layer.1.layernorm_after.weight", encoder + "norm2.weight"},
          {"vit.encoder.layer.1.intermediate.dense.weight", encoder + "linear1.weight"}}});
  check(
      "SwinForImageClassification",
      image("kind: swin, pool: mean, swin: {window: 2, depths: [2, 1]}"),
      {attention("swin.encoder.layers.0.blocks.1.attention.", "encoder.stages.0.layers.1.self_attn",
                 {"self.query", "self.key", "self.value", "output.dense"}),
       {{"swin.encoder.layers.0.blocks.1.layernorm_after.weight",
         "encoder.stages.0.layers.1.norm2.weight"},
        {"swin.encoder.layers.0.blocks.1.attention.self.relative_position_bias_table",
         "encoder.stages.0.layers.1.positions.weight"},
        {"swin.encoder.layers.0.downsample.reduction.weight",
         "encoder.stages.1.merge.projection.weight"}}});
}

// Import reads what export writes, so keys that were exchanged in both would still yield the same run. All values
// of a model differ.
BOOST_AUTO_TEST_CASE(keys_of_config_json_have_the_values_that_their_names_say) {
  const std::string
      pairs = "task: seq2seq\ndata: {train: {source: a, target: b}}\n",
      image =
          "task: classify\ndata: {input: image, image: {height: 8, width: 16, channels: 3, "
          "patch: 2}, train: {source: a, target: b}}\n",
      text = "task: lm\ndata: {train: {text: a}}\n",
      drops = "dropout: {residual: 0.125, attention: 0.25, activation: 0.375}, ";
  struct Case {
    std::string architecture, data, model;
    nlohmann::json keys;
  };
  const std::vector<Case> cases{
      {"GPT2LMHeadModel",
       text,
       drops + "layers: 3, context: 7, positions: learned, norm_eps: 1.0e-4, activation: gelu_tanh",
       {{"n_positions", 7},
        {"n_embd", 8},
        {"n_layer", 3},
        {"n_head", 4},
        {"n_inner", 5},
        {"activation_function", "gelu_pytorch_tanh"},
        {"layer_norm_epsilon", 1e-4},
        {"embd_pdrop", 0.125},
        {"resid_pdrop", 0.125},
        {"attn_pdrop", 0.25},
        {"vocab_size", 10},
        {"bos_token_id", 1},
        {"eos_token_id", 2}}},
      {"LlamaForCausalLM",
       text,
       drops + "layers: 3, context: 7, positions: rotary, rotary_base: 500, norm_kind: rms, "
               "norm_eps: 1.0e-4, activation: geglu, attention: {kv_heads: 2}, bias: false",
       {{"max_position_embeddings", 7},
        {"hidden_size", 8},
        {"num_hidden_layers", 3},
        {"num_attention_heads", 4},
        {"num_key_value_heads", 2},
        {"intermediate_size", 5},
        {"head_dim", 2},
        {"hidden_act", "gelu"},
        {"rms_norm_eps", 1e-4},
        {"rope_theta", 500.0},
        {"attention_dropout", 0.25},
        {"attention_bias", false},
        {"mlp_bias", false}}},
      {"MarianMTModel",
       pairs,
       drops +
           "layers: {encoder: 1, decoder: 2}, positions: learned, max_positions: 130, norm: post, final_norm: false, "
           "activation: silu",
       {{"d_model", 8},
        {"encoder_layers", 1},
        {"decoder_layers", 2},
        {"encoder_attention_heads", 4},
        {"decoder_attention_heads", 4},
        {"encoder_ffn_dim", 5},
        {"decoder_ffn_dim", 5},
        {"activation_function", "silu"},
        {"max_position_embeddings", 130},
        {"scale_embedding", true},
        {"dropout", 0.125},
        {"attention_dropout", 0.25},
        {"activation_dropout", 0.375},
        {"decoder_start_token_id", 1}}},
      {"T5ForConditionalGeneration",
       pairs,
       "dropout: 0.125, layers: {encoder: 1, decoder: 2}, positions: relative_t5, t5_buckets: 12, "
       "t5_distance: 50, attention: {scale: none}, norm_kind: rms, norm_eps: 1.0e-4, bias: false, "
       "tie_output: false, activation: swiglu",
       {{"d_model", 8},
        {"d_kv", 2},
        {"d_ff", 5},
        {"num_layers", 1},
        {"num_decoder_layers", 2},
        {"num_heads", 4},
        {"relative_attention_num_buckets", 12},
        {"relative_attention_max_distance", 50},
        {"feed_forward_proj", "gated-silu"},
        {"layer_norm_epsilon", 1e-4},
        {"dropout_rate", 0.125},
        {"tie_word_embeddings", false}}},
      {"BertForMaskedLM",
       "task: mlm\ndata: {train: {text: a}}\n",
       drops + "layers: 3, max_positions: 300, positions: learned, norm: post, final_norm: false, "
               "embedding_norm: true, head_transform: true, segments: 2, norm_eps: 1.0e-4",
       {{"hidden_size", 8},
        {"num_hidden_layers", 3},
        {"num_attention_heads", 4},
        {"intermediate_size", 5},
        {"hidden_act", "relu"},
        {"max_position_embeddings", 300},
        {"layer_norm_eps", 1e-4},
        {"hidden_dropout_prob", 0.125},
        {"attention_probs_dropout_prob", 0.25},
        {"type_vocab_size", 2}}},
      {"ViTForImageClassification",
       image,
       drops + "layers: 3, pool: first",
       {{"image_size", {8, 16}},
        {"num_channels", 3},
        {"patch_size", 2},
        {"hidden_size", 8},
        {"num_hidden_layers", 3},
        {"num_attention_heads", 4},
        {"intermediate_size", 5},
        {"hidden_dropout_prob", 0.125},
        {"attention_probs_dropout_prob", 0.25}}},
      {"SwinForImageClassification",
       image,
       drops + "kind: swin, pool: mean, swin: {window: 2, depths: [2, 1]}",
       {{"embed_dim", 8},
        {"depths", {2, 1}},
        {"num_heads", {4, 8}},
        {"window_size", 2},
        {"mlp_ratio", 0.625},
        {"patch_size", 2}}}};
  for (const auto& [architecture, data, model, keys] : cases) {
    const Config config =
        parse_config(data + "model: {d_model: 8, heads: 4, d_ff: 5, " + model + "}\n", "m.yaml");
    const HuggingFaceModel found = huggingface_model(config, ten_tokens);
    BOOST_TEST(found.architecture == architecture);
    for (const auto& [key, value] : keys.items())
      BOOST_TEST(nlohmann::json(found.config.at(key)) == value, architecture << ": " << key);
  }
}

// transformers searches as heed does, as far as it can: without <unk> and <s>, which represent no text.
BOOST_AUTO_TEST_CASE(generation_config_has_the_options_of_decoding) {
  const auto generation = [](const std::string& data, const std::string& model) {
    return huggingface_model(
               parse_config(
                   data + "model: {d_model: 8, heads: 2, " + model +
                       "}\ndecode: {min_length: 3, max_length: 200, repetition_penalty: 1.5}\n",
                   "m.yaml"),
               ten_tokens)
        .generation_config;
  };
  const std::string pairs = "task: seq2seq\ndata: {train: {source: a, target: b}}\n";
  const auto text = generation("task: lm\ndata: {train: {text: a}}\n",
                               "positions: learned, context: 7"),
             bart = generation(pairs, "norm: post, final_norm: false"),
             t5 = generation(pairs,
                             "positions: relative_t5, attention: {scale: none}, norm_kind: rms, "
                             "bias: false, tie_output: false");
  for (const auto& each : {text, bart, t5}) {
    BOOST_TEST(each.at("min_new_tokens") == 3);
    BOOST_TEST(each.at("repetition_penalty") == 1.5);
    BOOST_TEST((nlohmann::json(each.at("suppress_tokens")) == nlohmann::json{0, 1}));
    BOOST_TEST(each.at("do_sample") == false);
    BOOST_TEST(each.at("num_beams") == 1);
    BOOST_TEST(each.at("eos_token_id") == 2);
  }
  BOOST_TEST(text.at("max_length") == 7);
  BOOST_TEST(bart.at("max_new_tokens") == 200);
  BOOST_TEST(t5.at("max_new_tokens") == 200);
  BOOST_TEST(t5.at("decoder_start_token_id") == 1);
}

BOOST_AUTO_TEST_CASE(a_model_card_has_the_last_test_and_the_origin_of_the_weights) {
  const TempFolder folder;
  const RunFolder run{folder.path};
  const Config config =
      parse_config("name: little\ntask: lm\ndata: {train: {text: a}}\n", "m.yaml");
  const auto card = [&](const Config& of, bool chosen) {
    return model_card(run, of, "GPT2LMHeadModel", "step 4, the best", chosen);
  };
  BOOST_TEST(contains(card(config, true), "This run was not evaluated on test data."));
  put(run.metrics(),
      "{\"kind\":\"test\",\"step\":2,\"loss\":3.5}\n"
      "{\"kind\":\"test\",\"step\":4,\"loss\":1.25,\"perplexity\":3.490342957461841}\n"
      "{\"kind\":\"valid\",\"step\":5,\"loss\":9}\n");
  put(run.path / "run.json",
      R"({"version":"1.2","started":"2026-01-01","data":{"train":"12ab","test":"34cd"}})");
  const std::string text = card(config, true);
  BOOST_TEST(contains(
      text, "# little\n\nA GPT2LMHeadModel for the task lm, trained from scratch with heed"));
  BOOST_TEST(contains(text, "Weights: step 4, the best."));
  BOOST_TEST(contains(text, "| loss | 1.2500 |\n| perplexity | 3.4903 |\n\n"));
  BOOST_TEST(contains(text, "- trained with heed: 1.2\n- begun: 2026-01-01\n"));
  BOOST_TEST(contains(text, "SHA-256 of the train data as token ids: 12ab\n"));
  BOOST_TEST(contains(text, "SHA-256 of the test data as token ids: 34cd\n"));
  // Other weights of the run have other results.
  BOOST_TEST(contains(card(config, false), "These weights were not evaluated."));
  BOOST_TEST(!contains(card(config, false), "1.2500"));
  const Config tuned =
      parse_config("task: lm\ndata: {train: {text: a}}\nmodel: {init_from: other}\n", "m.yaml");
  BOOST_TEST(contains(card(tuned, true), "trained from the weights of another model with heed"));
}

/// A patch of heed is [y, x, channel], a kernel of a convolution [channel, y, x].
BOOST_AUTO_TEST_CASE(pixels_with_channels_become_channels_of_pixels) {
  const Parameters own{{"w", Tensor::variable(Array({{1, 2, 3, 4, 5, 6}, {7, 8, 9, 10, 11, 12}}))}};
  const std::vector<MappedTensor> map{
      {.foreign = "kernel", .own = "w", .channels = 2, .shape = {2, 2, 3}}};
  const ForeignTensors foreign(map, own);
  const std::span<const float> found = foreign.views()[0].values<float>();
  const std::vector<float> expected{1, 3, 5, 2, 4, 6, 7, 9, 11, 8, 10, 12};
  BOOST_TEST(std::vector<float>(found.begin(), found.end()) == expected,
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(classes_of_images_have_the_shapes_of_their_layers) {
  const std::string data =
      "task: classify\n"
      "data: {input: image, image: {height: 8, width: 8, channels: 3, patch: 2}, train: {source: a, target: b}}\n"
      "model: {d_model: 8, heads: 2, d_ff: 12, activation: gelu, ";
  const auto shapes = [](const Config& config) {
    ModelOptions options = *config.model;
    options.input_width = 12;
    options.grid_height = options.grid_width = 4;
    const auto model = make_classifier(options, Labelling::sequences, 0, 5, 1);
    const HuggingFaceModel described = huggingface_model(config, {5, 5, false});
    std::map<std::string, std::string> all;
    const ForeignTensors tensors(described.parts, model->state());  // throws if one is left out
    for (const TensorView& view : tensors.views()) all[view.name] = view.description();
    return all;
  };
  auto vit = shapes(parse_config(
      data + "layers: 1, pool: first, positions: learned, max_positions: 20, bias: false}\n", "v"));
  BOOST_TEST(vit["vit.embeddings.patch_embeddings.projection.weight"] == "F32 [8, 3, 2, 2]");
  BOOST_TEST(vit["vit.embeddings.position_embeddings"] == "F32 [1, 17, 8]");  // a class token first
  BOOST_TEST(vit["vit.embeddings.cls_token"] == "F32 [1, 1, 8]");
  BOOST_TEST(vit["vit.encoder.layer.0.attention.attention.key.bias"] == "F32 [8]");  // zeros
  const Config windows =
      parse_config(data + "kind: swin, pool: mean, swin: {window: 2, depths: [1, 1]}}\n", "s");
  auto swin = shapes(windows);
  BOOST_TEST(swin["swin.encoder.layers.0.downsample.reduction.weight"] == "F32 [16, 32]");
  BOOST_TEST(swin["swin.encoder.layers.1.blocks.0.intermediate.dense.weight"] == "F32 [24, 16]");
  BOOST_TEST(swin["classifier.weight"] == "F32 [5, 16]");
  Config wide = windows;
  wide.model->swin.window = 4;
  HEED_CHECK_ERROR(Exit::usage, "model.swin.window is 4 (it needs a divisor of 2",
                   huggingface_model(wide, {5, 5, false}));
}

BOOST_AUTO_TEST_CASE(a_path_in_a_printed_command_is_one_word) {
  BOOST_TEST(shell_word("runs/dates-onnx") == "runs/dates-onnx");
  BOOST_TEST(shell_word("-x") == "./-x");
  BOOST_TEST(shell_word("a b") == "'a b'");
  BOOST_TEST(shell_word("a'); print(1) #$(x)") == "'a'\\''); print(1) #$(x)'");
  BOOST_TEST(shell_word("") == "''");
}

BOOST_AUTO_TEST_CASE(a_model_without_a_class_is_refused_by_key) {
  HEED_CHECK_ERROR(
      Exit::usage,
      "GPT2LMHeadModel: model.positions is alibi (it has learned or sinusoidal or none)",
      huggingface_model(language_model(", positions: alibi"), ten_tokens));
  HEED_CHECK_ERROR(
      Exit::usage, "model.attention.pattern is window (it has full)",
      huggingface_model(
          language_model(", positions: learned, attention: {pattern: window, window: 2}"),
          ten_tokens));
  const Config labels =
      parse_config("task: classify\ndata: {train: {source: a, target: b}}\n", "c.yaml");
  HEED_CHECK_ERROR(Exit::usage, "ViTForImageClassification: data.input is text (it has image)",
                   huggingface_model(labels, ten_tokens));
}

BOOST_AUTO_TEST_CASE(files_of_a_page_are_read_back) {
  const std::string bytes = std::string("</script>\0\xff", 11) + std::string(9000, 'x');
  const std::string page = std::string(page_start) + page_element("a.json", "[1]") +
                           page_element("a", bytes) + std::string(page_end);
  BOOST_TEST(page_file(page, "a.json").value() == "[1]");
  BOOST_TEST((page_file(page, "a").value() == bytes));
  BOOST_TEST(!page_file(page, "b").has_value());
  const std::size_t at = page.find("data-file=\"a\"");
  const auto with = [&](std::size_t offset, char c) {
    std::string changed = page;
    changed[at + offset] = c;
    return changed;
  };
  BOOST_TEST(!page_file(with(20, '<'), "a").has_value());
  HEED_CHECK_ERROR(Exit::bad_input,
                   "a: ", page_file(with(40, page[at + 40] == 'A' ? 'B' : 'A'), "a"));
}

BOOST_AUTO_TEST_SUITE_END()
