#include <bit>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <deque>

#include "data/tokenizers/imported.h"
#include "tests/train/import_support.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(import_folders)

namespace {

const std::string gpt2_keys = "positions: learned, context: 9, scale_embeddings: false";

const Exported& gpt2() {
  static const Exported model(model_yaml("lm", "kind: char", gpt2_keys));
  return model;
}

/// A copy of the export of a small GPT-2.
class Gpt2Folder {
 public:
  Gpt2Folder() { gpt2().write(path); }

  /// Changes a key of config.json; a discarded value removes it.
  void set(const std::string& key, const nlohmann::json& value) const {
    nlohmann::json config = json_of(path / "config.json");
    config[key] = value;
    put(path / "config.json", config.dump());
  }
  void rewrite(const std::function<void(std::vector<TensorView>&)>& change) const {
    rewrite_tensors(weights(), change);
  }
  Folder weights() const { return path / "model.safetensors"; }
  void check_refused(const std::string& reason) const {
    const auto before = std::distance(std::filesystem::directory_iterator(path), {});
    HEED_CHECK_ERROR(Exit::bad_input, reason, import_huggingface(path));
    BOOST_TEST(std::distance(std::filesystem::directory_iterator(path), {}) == before);
  }

  TempFolder temporary;
  Folder path = temporary / "model";
};

/// Values as raw bytes of another type.
template <class T>
std::string converted(const TensorView& tensor, T (*convert)(float)) {
  std::string bytes;
  for (const float value : tensor.values<float>()) {
    const T number = convert(value);
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  return bytes;
}

std::uint16_t bf16_of(float value) {  // truncated
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
}

}  // namespace

BOOST_AUTO_TEST_CASE(an_export_that_is_imported_and_exported_again_has_the_same_bytes) {
  const std::string rotary =
      "positions: rotary, rotary_base: 500, norm_kind: rms, norm_eps: 1.0e-6, context: 9, ";
  const std::vector<std::array<std::string, 3>> cases{
      {"lm", "kind: char", gpt2_keys + ", activation: gelu_tanh"},
      {"lm", "kind: byte", "positions: sinusoidal, context: 9"},
      {"lm", "kind: word", "positions: none, context: 9, activation: tanh"},
      {"lm", "algorithm: unigram, vocab_size: 40",
       rotary + "activation: swiglu, attention: {kv_heads: 1}"},
      {"lm", "algorithm: bpe, vocab_size: 40, specials: [<mask>]",
       rotary + "activation: geglu, scale_embeddings: false"},
      {"seq2seq", "algorithm: bpe, vocab_size: 40",
       "positions: sinusoidal, norm: post, final_norm: false, activation: silu"},
      {"seq2seq", "kind: char", "max_positions: 130, positions: learned, scale_embeddings: false"},
      {"seq2seq", "kind: char",
       "positions: relative_t5, t5_buckets: 8, attention: {scale: none}, norm_kind: rms, bias: false, "
       "tie_output: false, scale_embeddings: false, activation: geglu_tanh"},
      {"mlm", "algorithm: unigram, vocab_size: 40, specials: [<mask>]",
       "positions: learned, max_positions: 300, norm: post, final_norm: false, embedding_norm: true, "
       "head_transform: true, output_bias: true, scale_embeddings: false, activation: gelu"},
      {"mlm", "kind: word, specials: [<mask>]",
       "positions: learned, max_positions: 300, norm: post, final_norm: false, embedding_norm: true, "
       "head_transform: true, output_bias: true, scale_embeddings: false, activation: relu, segments: 2"},
      {"mlm", "kind: word, specials: [<mask>]",
       "positions: learned, max_positions: 300, norm: post, final_norm: false, embedding_norm: true, "
       "head_transform: true, output_bias: true"},
      {"seq2seq", "algorithm: unigram, vocab_size: 40, specials: [<a>, <b>]", "positions: none"},
      {"classify", "", vit_keys},
      {"classify", "", swin_keys}};
  for (const auto& [task, tokenizer, keys] : cases) {
    BOOST_TEST_CONTEXT(task << " " << tokenizer << " " << keys) {
      const TempFolder folder;
      Exported first(task == "classify" ? image_yaml(keys) : model_yaml(task, tokenizer, keys));
      first.write(folder / "a");
      ImportedModel imported = import_huggingface(folder / "a");
      BOOST_TEST((imported.tokenizers.source->kind() == first.tokenizers.source->kind()));
      first.config = imported.config;
      first.tokenizers = imported.tokenizers;
      first.model = std::move(imported.model);
      first.write(folder / "b");
      std::vector<std::string> files{"config.json", "model.safetensors"};
      if (task == "classify")
        files.emplace_back("preprocessor_config.json");
      else
        files.insert(files.end(), {"tokenizer.json", "tokenizer_config.json"});
      for (const std::string& file : files)
        BOOST_TEST((bytes_of(folder / "a" / file) == bytes_of(folder / "b" / file)), file);
    }
  }
}

BOOST_AUTO_TEST_CASE(exported_embedding_tables_contain_the_factor_of_scaled_embeddings) {
  const std::array<std::pair<std::string, std::string>, 2> tables{
      {{"embedding.weight", "bert.embeddings.word_embeddings.weight"},
       {"segments.weight", "bert.embeddings.token_type_embeddings.weight"}}};
  for (const bool scaled : {false, true}) {
    const TempFolder folder;
    const Exported model(model_yaml(
        "mlm", "kind: word, specials: [<mask>]",
        fmt::format("positions: learned, norm: post, final_norm: false, embedding_norm: true, "
                    "head_transform: true, segments: 2, scale_embeddings: {}",
                    scaled)));
    model.write(folder / "bert");
    const SafetensorsFile file = SafetensorsFile::read(folder / "bert" / "model.safetensors");
    const double factor = scaled ? std::sqrt(8.0) : 1;  // d_model is 8
    for (const auto& [own, foreign] : tables) {
      const Parameters all = model.model->parameters();
      const auto table = std::ranges::find(all, own, &NamedTensor::name);
      BOOST_REQUIRE(table != all.end());
      const auto values = file.find(foreign)->values<float>();
      for (std::int64_t i = 0; i < table->tensor.size(); ++i)
        BOOST_TEST(std::abs(values[i] - factor * table->tensor.value().data()[i]) < 1e-6);
    }
  }
}

/// Files of the hub have keys and tensors that the class does not read.
BOOST_AUTO_TEST_CASE(what_a_class_does_not_read_is_no_obstacle) {
  const TempFolder folder;
  Exported(model_yaml("seq2seq", "kind: char", "norm: post, final_norm: false, positions: learned"))
      .write(folder / "marian");
  nlohmann::json marian = json_of(folder / "marian" / "config.json");
  marian["normalize_before"] = marian["add_final_layer_norm"] = false;
  put(folder / "marian" / "config.json", marian.dump());
  BOOST_TEST(import_huggingface(folder / "marian").architecture == "MarianMTModel");
  Exported(model_yaml("mlm", "kind: char, specials: [<mask>]",
                      "positions: learned, norm: post, final_norm: false, embedding_norm: true, "
                      "head_transform: true, output_bias: true, scale_embeddings: false"))
      .write(folder / "bert");
  const std::vector<float> values(16, 1);
  rewrite_tensors(folder / "bert" / "model.safetensors", [&](std::vector<TensorView>& views) {
    views.push_back(
        {"bert.pooler.dense.bias", DType::f32, {8}, std::as_bytes(std::span(values).first(8))});
    views.push_back(
        {"cls.seq_relationship.weight", DType::f32, {2, 8}, std::as_bytes(std::span(values))});
  });
  BOOST_TEST(import_huggingface(folder / "bert").architecture == "BertForMaskedLM");
  Exported(image_yaml(vit_keys)).write(folder / "vit");
  nlohmann::json vit = json_of(folder / "vit" / "config.json");
  vit.erase("id2label");
  put(folder / "vit" / "config.json", vit.dump());
  HEED_CHECK_ERROR(Exit::bad_input, "expected floating-point numbers of shape [2",
                   import_huggingface(folder / "vit"));  // two labels, LABEL_0 and LABEL_1
  vit["id2label"] = {"a", "b"};
  put(folder / "vit" / "config.json", vit.dump());
  HEED_CHECK_ERROR(Exit::bad_input, "expected the names of the labels by their ids",
                   import_huggingface(folder / "vit"));
}

// Marian files may omit sinusoidal positions (Vaswani et al. 2017); all sines precede the cosines.
BOOST_AUTO_TEST_CASE(positions_that_marian_computes_are_sines_before_cosines) {
  const TempFolder folder;
  Exported(model_yaml("seq2seq", "kind: char",
                      "norm: post, final_norm: false, positions: learned, max_positions: 130"))
      .write(folder / "a");
  rewrite_tensors(folder / "a" / "model.safetensors", [](std::vector<TensorView>& views) {
    const auto removed = std::erase_if(views, [](const TensorView& view) {
      return view.name.find("embed_positions") != std::string::npos;
    });
    BOOST_TEST(removed == 2);
  });
  const ImportedModel imported = import_huggingface(folder / "a");
  for (const char* name : {"source_positions.weight", "target_positions.weight"}) {
    const Parameters state = imported.model->state();
    const Array& table = std::ranges::find(state, name, &NamedTensor::name)->tensor.value();
    BOOST_REQUIRE((table.rows() == 130 && table.cols() == 8));
    for (std::int64_t p = 0; p < 130; ++p) {
      for (std::int64_t i = 0; i < 4; ++i) {
        const double angle = static_cast<double>(p) * std::pow(10, -static_cast<double>(i));
        BOOST_CHECK_SMALL(double{table.row(p)[i]} - std::sin(angle), 1e-5);
        BOOST_CHECK_SMALL(double{table.row(p)[4 + i]} - std::cos(angle), 1e-5);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(gains_and_biases_of_norms_may_have_their_former_names) {
  const TempFolder folder;
  const Exported bert(
      model_yaml("mlm", "kind: char, specials: [<mask>]",
                 "positions: learned, norm: post, final_norm: false, embedding_norm: true, "
                 "head_transform: true, output_bias: true, scale_embeddings: false"));
  bert.write(folder / "a");
  int renamed = 0;
  std::deque<std::vector<float>> values;  // those of a new model are 1 and 0
  rewrite_tensors(folder / "a" / "model.safetensors", [&](std::vector<TensorView>& views) {
    for (TensorView& view : views) {
      const std::size_t at = view.name.find("LayerNorm.");
      if (at == std::string::npos) continue;
      view.name.replace(at + 10, std::string::npos,
                        view.name.ends_with("weight") ? "gamma" : "beta");
      values.emplace_back(8, static_cast<float>(++renamed));
      view.bytes = std::as_bytes(std::span(values.back()));
    }
  });
  BOOST_TEST(renamed == 8);  // of the embeddings, twice of the layer, of the head
  double sum = 0;
  for (const NamedTensor& tensor : import_huggingface(folder / "a").model->state()) {
    if (tensor.name.find("norm") != std::string::npos) sum += tensor.tensor.value().data()[7];
  }
  BOOST_TEST(sum == 36);
}

BOOST_AUTO_TEST_CASE(values_of_two_bytes_and_sharded_files_are_read) {
  const Gpt2Folder folder;
  std::deque<std::string> kept;
  std::vector<TensorView> first, second;
  folder.rewrite([&](std::vector<TensorView>& views) {
    for (TensorView& view : views) {
      kept.push_back(converted(view, bf16_of));
      view.dtype = DType::bf16;
      view.bytes = as_bytes(kept.back());
    }
    for (const TensorView& view : views) (first.size() < 9 ? first : second).push_back(view);
    write_safetensors(folder.path / "one.safetensors", first);
    write_safetensors(folder.path / "two.safetensors", second);
  });
  const ImportedModel whole = import_huggingface(folder.path);
  std::filesystem::remove(folder.weights());
  nlohmann::json map;
  for (const TensorView& view : first) map[view.name] = "one.safetensors";
  for (const TensorView& view : second) map[view.name] = "two.safetensors";
  put(folder.path / "model.safetensors.index.json",
      nlohmann::json{{"metadata", nlohmann::json::object()}, {"weight_map", map}}.dump());
  const ImportedModel sharded = import_huggingface(folder.path);
  const Parameters own = gpt2().model->state();
  for (std::size_t p = 0; p < own.size(); ++p) {
    const Array &a = own[p].tensor.value(), &b = whole.model->state()[p].tensor.value(),
                &c = sharded.model->state()[p].tensor.value();
    for (std::int64_t i = 0; i < a.size(); ++i) {
      BOOST_TEST(b.data()[i] == std::bit_cast<float>(std::uint32_t{bf16_of(a.data()[i])} << 16));
      BOOST_TEST(c.data()[i] == b.data()[i]);
    }
  }
  BOOST_TEST(own.size() == 2 + 2 * 12 + 2);
}

BOOST_AUTO_TEST_CASE(names_may_lack_the_prefix_of_the_class) {
  const Gpt2Folder folder;
  folder.rewrite([](std::vector<TensorView>& views) {
    for (TensorView& view : views) view.name = view.name.substr(std::strlen("transformer."));
  });
  const ImportedModel imported = import_huggingface(folder.path);
  BOOST_TEST(imported.model->state()[3].tensor.value().data()[1] ==
             gpt2().model->state()[3].tensor.value().data()[1]);
}

BOOST_AUTO_TEST_CASE(keys_that_heed_does_not_honour_are_refused_by_name) {
  const std::vector<std::tuple<std::string, nlohmann::json, std::string>> cases{
      {"scale_attn_weights", false, "\"scale_attn_weights\" is false, which heed does not support"},
      {"quantization_config", {{"bits", 4}}, "\"quantization_config\" is {\"bits\":4}, a key that"},
      {"embd_pdrop", 0.5, "\"embd_pdrop\" is 0.5; heed has 0.25 here"},
      {"activation_function", "mish",
       "\"activation_function\" is \"mish\", which heed does not support"},
      {"eos_token_id", {1, 2}, "\"eos_token_id\" is [1,2]; heed expects one id of at most"},
      {"eos_token_id", 3, "\"eos_token_id\" is 3; heed has 2 here"},
      {"architectures", {"OPTForCausalLM"}, "\"architectures\" is [\"OPTForCausalLM\"]"},
      {"architectures", nullptr, "\"architectures\" is null; heed imports one of GPT2LMHeadModel"},
      {"vocab_size", 100, "\"vocab_size\" is 100, but the tokenizer has"},
      {"vocab_size", 1e18, "\"vocab_size\" is 1e+18; expected a whole number"},
      {"n_embd", 1'000'000'000, "invalid:\nmodel.d_model"},
      {"n_inner", -1, "(in config.json, model.d_ff is \"n_inner\")"},
      {"model_type", "llama",
       "\"model_type\" is \"llama\", but that of GPT2LMHeadModel is \"gpt2\""},
      {"n_embd", "8", "\"n_embd\" is \"8\"; expected a whole number"},
      {"n_embd", 8.5, "\"n_embd\" is 8.5; expected a whole number"},
      {"n_head", 0, "heed's config of this model is invalid"},
      {"n_layer", 3, "the tensor transformer.h.2.ln_1.weight is missing"},
      {"n_layer", 1, "has no tensor transformer.h.1."},
      {"n_inner", 7, "mlp.c_fc.bias is F32 [6]; expected floating-point numbers of shape [7]"},
      {"tie_word_embeddings", "no", "\"tie_word_embeddings\" is \"no\"; heed has true here"}};
  for (const auto& [key, value, reason] : cases) {
    const Gpt2Folder folder;
    folder.set(key, value);
    BOOST_TEST_CONTEXT(key) folder.check_refused(reason);
  }
}

BOOST_AUTO_TEST_CASE(values_that_the_class_reads_otherwise_than_heed_are_refused) {
  const std::string t5 =
      model_yaml("seq2seq", "kind: char",
                 "positions: relative_t5, attention: {scale: none}, norm_kind: rms, bias: false, "
                 "tie_output: false, scale_embeddings: false, activation: geglu_tanh");
  check_key(t5, "dense_act_fn", "gelu",
            "\"dense_act_fn\" is \"gelu\", but feed_forward_proj is \"gated-gelu\"");
  check_key(t5, "is_gated_act", false, "\"is_gated_act\" is false");
  // In Swin, the norms of the patches and of the merging layers have an epsilon of their own.
  check_key(image_yaml(swin_keys), "layer_norm_eps", 1e-3, "model.norm_eps is 0.001 (it has 1e-5)");
  check_key(image_yaml(swin_keys), "num_heads", {2, 4, 8}, "\"num_heads\" is [2,4,8]");
  HEED_CHECK_ERROR(Exit::usage, "it does not shift windows in stage 1, whose patches are 8 by 4",
                   Exported(image_yaml("kind: swin, pool: mean, swin: {window: 4, depths: [2]}"))
                       .write(TempFolder() / "a"));
}

BOOST_AUTO_TEST_CASE(missing_keys_of_a_class_have_its_own_values) {
  const std::string rotary = model_yaml(
      "lm", "kind: char",
      "positions: rotary, norm_kind: rms, norm_eps: 1.0e-6, context: 9, activation: swiglu, bias: false, "
      "tie_embeddings: false, scale_embeddings: false");
  const TempFolder folder;
  Exported(rotary).write(folder / "a");
  const nlohmann::json llama = json_of(folder / "a" / "config.json");
  const auto imported = [&](const char* name, const char* type, const std::string& without,
                            const nlohmann::json& more) {
    nlohmann::json config = llama;
    config.erase(without);
    config.update({{"architectures", {name}}, {"model_type", type}});
    if (!more.is_null()) config.update(more);
    put(folder / "a" / "config.json", config.dump());
    return import_huggingface(folder / "a");
  };
  const std::string context = "max_position_embeddings";
  BOOST_TEST(imported("LlamaForCausalLM", "llama", context, {}).config.model->context == 2048);
  BOOST_TEST(imported("Qwen2ForCausalLM", "qwen2", context, {{"attention_bias", false}})
                 .config.model->context == 32768);
  const char* const mistral = "MistralForCausalLM";
  BOOST_TEST(
      imported(mistral, "mistral", context, {{"sliding_window", nullptr}}).config.model->context ==
      131072);
  BOOST_TEST(imported(mistral, "mistral", "none", {}).config.model->context == 9);
  BOOST_TEST(imported(mistral, "mistral", "none", {{"sliding_window", 9}}).config.model->context ==
             9);
  HEED_CHECK_ERROR(Exit::bad_input, "\"sliding_window\" is 4096, which heed does not support",
                   imported(mistral, "mistral", context, {}));
  HEED_CHECK_ERROR(Exit::bad_input, "\"sliding_window\" is 8,",
                   imported(mistral, "mistral", "none", {{"sliding_window", 8}}));
  // The base of rotary positions, where transformers 4 and 5 write it.
  const auto base = [&](const nlohmann::json& before, const nlohmann::json& now) {
    return imported("LlamaForCausalLM", "llama", context,
                    {{"rope_theta", before}, {"rope_parameters", now}})
        .config.model->rotary_base;
  };
  BOOST_TEST(base(nullptr, {{"rope_theta", 250.0}, {"rope_type", "default"}}) == 250);
  BOOST_TEST(base(nullptr, {{"rope_theta", 250.0}}) == 250);
  BOOST_TEST(base(300.0, nullptr) == 300);
  BOOST_TEST(base(nullptr, nullptr) == 10000);
  // A bias that the class does not have is ignored by the library and would be used by heed.
  static const std::vector<float> ones(8, 1);
  rewrite_tensors(folder / "a" / "model.safetensors", [](std::vector<TensorView>& views) {
    views.push_back(
        {"model.layers.0.self_attn.o_proj.bias", DType::f32, {8}, std::as_bytes(std::span(ones))});
  });
  for (const auto& each : {std::pair("LlamaForCausalLM", "llama"), {"Qwen2ForCausalLM", "qwen2"}})
    HEED_CHECK_ERROR(Exit::bad_input, "has no tensor model.layers.0.self_attn.o_proj.bias",
                     imported(each.first, each.second, "none",
                              {{"mlp_bias", true}, {"attention_bias", nullptr}}));
  HEED_CHECK_ERROR(
      Exit::bad_input, "rope_theta is 10000.0, but 500.0 in rope_parameters",
      imported("LlamaForCausalLM", "llama", "none",
               {{"rope_theta", 10000.0}, {"rope_parameters", {{"rope_theta", 500.0}}}}));
  HEED_CHECK_ERROR(Exit::bad_input, "rope_parameters: rope_type is \"linear\"",
                   imported("LlamaForCausalLM", "llama", "none",
                            {{"rope_parameters", {{"factor", 2.0}, {"rope_type", "linear"}}}}));
}

BOOST_AUTO_TEST_CASE(any_folder_gives_the_run_a_name) {
  const Gpt2Folder folder;
  for (const auto& [name, expected] :
       {std::pair<std::string, std::string>("my 'model", "my--model"),
        {".hid", "hid"},
        {"-dash", "dash"},
        {std::string(200, 'n'), std::string(100, 'n')}}) {
    std::filesystem::copy(folder.path, folder.temporary / name);
    BOOST_TEST(import_huggingface(folder.temporary / name).config.name == expected);
    BOOST_TEST(import_huggingface(folder.temporary / name / ".").config.name == expected);
  }
}

BOOST_AUTO_TEST_CASE(config_files_that_are_no_config_are_refused) {
  const Gpt2Folder folder;
  const Folder file = folder.path / "config.json";
  for (const std::string text :
       {"", "[]", "{\"n_embd\": NaN}", "{\"n_embd\": 1e999}", "{\"a\":1,\"a\":2}"}) {
    put(file, text);
    BOOST_TEST_CONTEXT(text) folder.check_refused("config.json");
  }
  put(file, std::string(2 << 20, ' '));
  folder.check_refused("config.json");
  std::filesystem::remove(file);
  folder.check_refused("config.json");
}

BOOST_AUTO_TEST_CASE(links_and_names_outside_the_folder_are_refused) {
  const TempFolder elsewhere;
  for (const char* const name : {"config.json", "model.safetensors", "tokenizer.json"}) {
    const Gpt2Folder folder;
    std::filesystem::rename(folder.path / name, elsewhere / "file");
    std::filesystem::create_symlink(elsewhere / "file", folder.path / name);
    BOOST_TEST_CONTEXT(name) folder.check_refused(name);
  }
  const Gpt2Folder folder;
  std::filesystem::rename(folder.weights(), folder.temporary / "w.safetensors");
  for (const std::string name : {"../w.safetensors", "/etc/passwd", "..", "", ".hidden"}) {
    put(folder.path / "model.safetensors.index.json",
        nlohmann::json{{"weight_map", {{"a", name}}}}.dump());
    BOOST_TEST_CONTEXT(name) folder.check_refused("is not the name of a file in this folder");
  }
  put(folder.path / "model.safetensors.index.json",
      R"({"weight_map": {"a": "missing.safetensors"}})");
  folder.check_refused("missing.safetensors");
}

BOOST_AUTO_TEST_CASE(damaged_weights_are_refused) {
  const auto header = [](const std::string& json) {
    const std::uint64_t length = json.size();
    return std::string(reinterpret_cast<const char*>(&length), sizeof length) + json;
  };
  const auto tensor = [](const std::string& shape, const std::string& offsets) {
    return R"({"x":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
  };
  const Gpt2Folder folder;
  const std::string whole = bytes_of(folder.weights());
  for (const std::string& bytes :
       {whole.substr(0, whole.size() - 1), whole.substr(0, 20), whole + "x", std::string("short"),
        header(tensor("[1000000000,1000000000]", "[0,4]")) + "1234",
        header(tensor("[4611686018427387904,4]", "[0,0]")),
        header(R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
               R"("y":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})") +
            "123456"}) {
    put(folder.weights(), bytes);
    folder.check_refused("model.safetensors");
  }
}

BOOST_AUTO_TEST_CASE(tensors_that_do_not_fit_are_refused_by_name) {
  const std::string bias = "transformer.h.0.mlp.c_proj.bias",
                    matrix = "transformer.h.0.mlp.c_proj.weight", table = "transformer.wte.weight";
  using Change = std::function<void(std::vector<TensorView>&)>;
  const std::vector<std::pair<Change, std::string>> cases{
      {[&](auto& views) { tensor_named(views, bias).name = "transformer.h.0.rotary"; },
       "has no tensor transformer.h.0.rotary"},
      {[&](auto& views) { std::erase_if(views, [&](auto& v) { return v.name == bias; }); },
       "the tensor " + bias + " is missing"},
      {[&](auto& views) {
         tensor_named(views, bias).shape = {2, 4};
       },
       bias + " is F32 [2, 4]; expected floating-point numbers of shape [8]"},
      {[&](auto& views) { tensor_named(views, bias).dtype = DType::i32; }, bias + " is I32 [8]"},
      {[&](auto& views) {
         static const std::vector<float> values{0, 0, 0, 0, 0, 0, 0, NAN};
         tensor_named(views, bias).bytes = std::as_bytes(std::span(values));
       },
       bias + " (F32 [8]) contains nan as a number of 32 bits, in place 7"},
      {[&](auto& views) {
         static const std::vector<double> values{0, 0, -1e300, 0, 0, 0, 0, 0};
         tensor_named(views, bias).dtype = DType::f64;
         tensor_named(views, bias).bytes = std::as_bytes(std::span(values));
       },
       bias + " (F64 [8]) contains -inf as a number of 32 bits, in place 2"},
      {[&](auto& views) {
         static const std::vector<float> values(8 * 6, INFINITY);  // a matrix that is transposed
         tensor_named(views, matrix).bytes = std::as_bytes(std::span(values));
       },
       matrix + " (F32 [6, 8]) contains inf"},
      {[&](auto& views) {
         TensorView copy = tensor_named(views, bias);
         copy.name = bias.substr(std::strlen("transformer."));
         views.push_back(copy);
       },
       "occurs twice"},
      {[&](auto& views) {
         TensorView output = tensor_named(views, table);
         output.name = "lm_head.weight";
         static const std::string zeros(output.bytes.size(), '\0');
         output.bytes = as_bytes(zeros);
         views.push_back(output);
       },
       "lm_head.weight differs from " + table}};
  for (const auto& [change, reason] : cases) {
    const Gpt2Folder folder;
    folder.rewrite(change);
    BOOST_TEST_CONTEXT(reason) folder.check_refused(reason);
  }
}

BOOST_AUTO_TEST_CASE(folders_without_safe_weights_or_tokenizer_are_refused) {
  const Gpt2Folder folder;
  std::filesystem::rename(folder.weights(), folder.path / "pytorch_model.bin");
  folder.check_refused("is a pickled file, which can run code when it is read: convert it");
  std::filesystem::remove(folder.path / "pytorch_model.bin");
  folder.check_refused("there are no weights");
  const Gpt2Folder second;
  nlohmann::json tokenizer = json_of(second.path / "tokenizer.json");
  tokenizer["normalizer"] = {{"type", "NFKC"}};
  put(second.path / "tokenizer.json", tokenizer.dump());
  second.check_refused("heed has tokenizers of this kind, but with other values at /normalizer");
  std::filesystem::remove(second.path / "tokenizer.json");
  second.check_refused("there is no tokenizer");
  HEED_CHECK_ERROR(Exit::bad_input,
                   "gone: no such folder; heed reads models that are on this machine",
                   import_huggingface(second.path / "gone"));
  std::filesystem::rename(second.path / "config.json", second.path / "config.yaml");
  second.check_refused("a run of heed, which needs no import");
}

BOOST_AUTO_TEST_SUITE_END()
