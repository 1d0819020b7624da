#include <fmt/format.h>

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <map>

#include "data/tokenizers/piece_model.h"
#include "nn/models/model.h"
#include "nn/options.h"
#include "tests/train/exchange_support.h"
#include "tests/train/support.h"
#include "train/exchange/export.h"
#include "train/exchange/gguf/gguf.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(gguf)

namespace {

/// The value of a number in binary16, from its definition.
double from_float16(std::uint16_t h) {
  const int exponent = h >> 10 & 0x1F, fraction = h & 0x3FF;
  const double size =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return (h & 0x8000) != 0 ? -size : size;
}

/// A file with each type of value and of tensor.
std::string small_gguf() {
  const GgufMetadata metadata{{"number", 7U},
                              {"real", 0.5F},
                              {"flag", true},
                              {"text", "four"},
                              {"texts", std::vector<std::string>{"a", ""}},
                              {"reals", std::vector<float>{1, 2}},
                              {"numbers", std::vector<std::int32_t>{-1}},
                              {"bytes", std::vector<std::uint8_t>{9, 8, 7}},
                              {"nothing", std::vector<std::string>()}};
  const std::vector<float> values(64, 0.25F);
  std::vector<GgufTensor> tensors{{"plain", GgufType::f32, {2, 3}, {}},
                                  {"half", GgufType::f16, {5}, {}},
                                  {"blocks", GgufType::q8_0, {2, 32}, {}}};
  std::string file = gguf_header(metadata, tensors);
  for (const auto& [size, type] :
       {std::pair(6, GgufType::f32), std::pair(5, GgufType::f16), std::pair(64, GgufType::q8_0)}) {
    file += gguf_encode(std::span(values).first(static_cast<std::size_t>(size)), type);
    file.resize((file.size() + 31) / 32 * 32, '\0');
  }
  return file;
}

GgufModel model_of(const std::string& more, const Tokenizer& tokenizer) {
  return gguf_model(language_model(more), tokenizer);
}

constexpr const char* llama_keys =
    ", positions: rotary, norm_kind: rms, activation: swiglu, attention: {kv_heads: 1}";

}  // namespace

BOOST_AUTO_TEST_CASE(binary16_is_the_nearest_number) {
  for (std::uint32_t h = 0; h < 0x7C00; ++h) {
    const double value = from_float16(static_cast<std::uint16_t>(h)),
                 next = from_float16(static_cast<std::uint16_t>(h + 1));
    const auto f = [](double v) { return to_float16(static_cast<float>(v)); };
    if (f(value) != h || f(-value) != (h | 0x8000U)) BOOST_ERROR("value of " << h);
    if (h == 0x7BFF) break;  // the next one is infinite
    const std::uint32_t even = h % 2 == 0 ? h : h + 1;
    if (f((value + next) / 2) != even) BOOST_ERROR("the middle after " << h);
    if (f(value * 0.501 + next * 0.499) != h || f(value * 0.499 + next * 0.501) != h + 1)
      BOOST_ERROR("beside the middle after " << h);
  }
  BOOST_TEST(to_float16(65519.0F) == 0x7BFF);
  BOOST_TEST(to_float16(65520.0F) == 0x7C00);
  BOOST_TEST(to_float16(-INFINITY) == 0xFC00);
  BOOST_TEST((to_float16(NAN) & 0x7FFF) > 0x7C00);
}

BOOST_AUTO_TEST_CASE(blocks_of_q8_0_are_a_factor_and_32_bytes) {
  std::vector<float> values(64, 0);
  for (int i = 0; i < 32; ++i) values[static_cast<std::size_t>(i)] = static_cast<float>(i - 16) / 8;
  const std::string bytes = gguf_encode(values, GgufType::q8_0);
  BOOST_TEST(bytes.size() == 2 * 34);
  const auto at = [&](std::size_t i) { return static_cast<std::uint8_t>(bytes[i]); };
  const double factor = from_float16(static_cast<std::uint16_t>(at(0) | at(1) << 8));
  BOOST_TEST(std::abs(factor - 2.0 / 127) < 2.0 / 127 / 2048);
  for (std::size_t i = 0; i < 32; ++i) {
    const auto number = static_cast<std::int8_t>(bytes[2 + i]);
    BOOST_TEST(std::abs(number * 2.0 / 127 - values[i]) <= 1.0 / 127 + 1e-6, "element " << i);
  }
  BOOST_TEST(static_cast<int>(static_cast<std::int8_t>(bytes[2])) == -127);
  BOOST_TEST(bytes.substr(34) == std::string(34, '\0'));
}

// The bytes follow the description of the format, docs/gguf.md of ggml.
BOOST_AUTO_TEST_CASE(file_has_the_bytes_of_the_specification) {
  const auto u32 = [](std::uint32_t n) { return std::string(reinterpret_cast<char*>(&n), 4); };
  const auto u64 = [](std::uint64_t n) { return std::string(reinterpret_cast<char*>(&n), 8); };
  const std::vector<GgufTensor> tensors{{"w", GgufType::f32, {2, 3}, {}}};
  std::string expected = "GGUF" + u32(3) + u64(1) + u64(2);
  expected += u64(1) + "k" + u32(4) + u32(5);
  expected += u64(1) + "l" + u32(9) + u32(8) + u64(2) + u64(1) + "x" + u64(0);
  expected += u64(1) + "w" + u32(2) + u64(3) + u64(2) + u32(0) + u64(0);
  expected.resize(128, '\0');  // 124 bytes, to a multiple of 32
  BOOST_TEST(gguf_header({{"k", 5U}, {"l", std::vector<std::string>{"x", ""}}}, tensors) ==
             expected);
}

BOOST_AUTO_TEST_CASE(values_and_tensors_survive_the_file) {
  const GgufFile file = GgufFile::parse(small_gguf(), "small");
  BOOST_TEST(file.metadata.size() == 9);
  BOOST_TEST(std::get<std::uint32_t>(*file.find("number")) == 7);
  BOOST_TEST(std::get<float>(*file.find("real")) == 0.5F);
  BOOST_TEST(std::get<bool>(*file.find("flag")));
  BOOST_TEST(std::get<std::string>(*file.find("text")) == "four");
  BOOST_TEST(std::get<std::vector<std::string>>(*file.find("texts")).at(0) == "a");
  BOOST_TEST(std::get<std::vector<std::int32_t>>(*file.find("numbers")).at(0) == -1);
  BOOST_TEST(std::get<std::vector<std::uint8_t>>(*file.find("bytes")).at(2) == 7);
  BOOST_TEST(file.find("other") == nullptr);
  BOOST_TEST(file.tensors.at(0).shape == (std::vector<std::int64_t>{2, 3}),
             boost::test_tools::per_element());
  BOOST_TEST(file.tensors.at(1).bytes.size() == 10);
  BOOST_TEST(file.tensors.at(2).bytes.substr(2, 2) == "\x7F\x7F");
}

BOOST_AUTO_TEST_CASE(malformed_files_are_refused) {
  const std::string good = small_gguf();
  every_prefix_is_refused(good, [](const std::string& bytes) { GgufFile::parse(bytes, "f"); });
  damaged_files_do_no_harm(good, [](const std::string& bytes) { GgufFile::parse(bytes, "f"); });
  HEED_CHECK_ERROR(Exit::bad_input, "f: data after the last tensor (1 B)",
                   GgufFile::parse(good + '\0', "f"));
  HEED_CHECK_ERROR(Exit::bad_input, "f: does not begin with GGUF",
                   GgufFile::parse("ggml" + good.substr(4), "f"));
  std::string moved = good;
  moved[good.find("half") + 4 + 4 + 8 + 4] = 64;  // after the name: rank, extent, type
  HEED_CHECK_ERROR(Exit::bad_input, "f: half begins at byte 64 of the elements instead of 32",
                   GgufFile::parse(moved, "f"));
  const auto header = [](const GgufMetadata& metadata, const std::vector<GgufTensor>& tensors) {
    return gguf_header(metadata, tensors) + std::string(4096, '\0');
  };
  HEED_CHECK_ERROR(Exit::bad_input, "f: a occurs twice",
                   GgufFile::parse(header({{"a", 1U}, {"a", 2U}}, {}), "f"));
  HEED_CHECK_ERROR(
      Exit::bad_input, "w has an extent of 1000000000000",
      GgufFile::parse(header({}, {{"w", GgufType::f32, {1'000'000'000'000}, {}}}), "f"));
  constexpr std::int64_t large = 2'000'000'000;
  for (const std::int64_t third : {large, std::int64_t{3}})  // elements, or only bytes, overflow
    HEED_CHECK_ERROR(
        Exit::bad_input, "w has a type, or a size of rows, that heed does not read",
        GgufFile::parse(header({}, {{"w", GgufType::f32, {large, large, third}, {}}}), "f"));
  HEED_CHECK_ERROR(Exit::bad_input, "w has 8000000000 bytes, but only",
                   GgufFile::parse(header({}, {{"w", GgufType::f32, {large}, {}}}), "f"));
}

BOOST_AUTO_TEST_CASE(rows_of_llama_are_in_the_order_of_adjacent_pairs) {
  const auto tokenizer = tokenizer_of(TokenizerKind::characters, {"low lower"});
  const GgufModel llama = model_of(llama_keys, *tokenizer);
  BOOST_TEST(llama.architecture == "llama");
  const Config config = language_model(llama_keys);
  const auto model = make_language_model(*config.model, tokenizer->size(), 1);
  const ForeignTensors tensors(llama.parts, model->state());
  const auto found = by_name(tensors);
  BOOST_TEST(found.size() == 3 + 2 * 16);
  const Parameters state = model->state();
  // llama.cpp does not scale embeddings, and its output matrix is not that of the embeddings.
  const float table = state.front().tensor.value().data()[7];
  BOOST_TEST(state.front().name == "embedding.weight");
  BOOST_TEST(found.at("output.weight").values<float>()[7] == table);
  BOOST_TEST(found.at("token_embd.weight").values<float>()[7] == table * std::sqrt(8.0F));
  const Array& own =
      std::ranges::find(state, "decoder.layers.1.self_attn.in_proj_weight", &NamedTensor::name)
          ->tensor.value();
  // Two heads of four rows: 0 and 2, then 1 and 3, are pairs.
  const auto row = [&](const std::string& name, std::int64_t r) {
    return found.at("blk.1." + name + ".weight").values<float>()[static_cast<std::size_t>(r * 8)];
  };
  constexpr std::int64_t order[] = {0, 2, 1, 3, 4, 6, 5, 7};
  for (std::int64_t r = 0; r < 8; ++r) BOOST_TEST(row("attn_q", r) == own.row(order[r])[0]);
  for (std::int64_t r = 0; r < 4; ++r) BOOST_TEST(row("attn_k", r) == own.row(8 + order[r])[0]);
  for (std::int64_t r = 0; r < 4; ++r) BOOST_TEST(row("attn_v", r) == own.row(12 + r)[0]);

  // Heads of eight rows: the order and its inverse, of an architecture with halves and a model with adjacent pairs.
  const auto first_columns = [&](const char* architecture, const std::string& more) {
    const Config one_head = parse_config(
        "task: lm\ndata: {train: {text: a}}\nmodel: {d_model: 8, heads: 1, d_ff: 5, layers: 1, positions: rotary" +
            more + "}\n",
        "lm.yaml");
    const GgufModel described = gguf_model(one_head, *tokenizer);
    BOOST_TEST(described.architecture == architecture);
    Parameters parameters = make_language_model(*one_head.model, tokenizer->size(), 1)->state();
    Array& in = std::ranges::find(parameters, "decoder.layers.0.self_attn.in_proj_weight",
                                  &NamedTensor::name)
                    ->tensor.mutable_value();
    for (std::int64_t r = 0; r < 8; ++r) in.row(r)[0] = static_cast<real>(r);
    const ForeignTensors all(described.parts, parameters);
    const auto q = by_name(all).at("blk.0.attn_q.weight").values<float>();
    std::vector<int> columns;
    for (std::size_t r = 0; r < 8; ++r) columns.push_back(static_cast<int>(q[r * 8]));
    return columns;
  };
  BOOST_TEST(first_columns("llama", ", norm_kind: rms, activation: swiglu") ==
                 (std::vector<int>{0, 4, 1, 5, 2, 6, 3, 7}),
             boost::test_tools::per_element());
  BOOST_TEST(first_columns("starcoder2", ", rotary_pairs: adjacent, activation: gelu_tanh") ==
                 (std::vector<int>{0, 2, 4, 6, 1, 3, 5, 7}),
             boost::test_tools::per_element());
  BOOST_TEST(first_columns("starcoder2", ", activation: gelu_tanh") ==
                 (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(values_describe_model_and_vocabulary) {
  const auto characters = tokenizer_of(TokenizerKind::characters, {"b a"});
  const GgufModel llama =
      model_of(llama_keys + std::string(", rotary_base: 500, norm_eps: 1.0e-3"), *characters);
  std::map<std::string, GgufValue> values(llama.metadata.begin(), llama.metadata.end());
  BOOST_TEST(std::get<std::string>(values["general.architecture"]) == "llama");
  BOOST_TEST(std::get<std::uint32_t>(values["llama.attention.head_count_kv"]) == 1);
  BOOST_TEST(std::get<std::uint32_t>(values["llama.rope.dimension_count"]) == 4);
  BOOST_TEST(std::get<std::uint32_t>(values["llama.context_length"]) == 7);
  BOOST_TEST(std::get<std::uint32_t>(values["llama.embedding_length"]) == 8);
  BOOST_TEST(std::get<std::uint32_t>(values["llama.feed_forward_length"]) == 5);
  BOOST_TEST(std::get<std::uint32_t>(values["llama.block_count"]) == 2);
  BOOST_TEST(std::get<std::uint32_t>(values["llama.attention.head_count"]) == 2);
  BOOST_TEST(std::get<std::uint32_t>(values["llama.vocab_size"]) == 6);
  BOOST_TEST(std::get<float>(values["llama.rope.freq_base"]) == 500);
  BOOST_TEST(std::get<float>(values["llama.attention.layer_norm_rms_epsilon"]) == 1e-3F);
  for (const auto& [name, id] : {std::pair("unknown", 0), {"bos", 1}, {"eos", 2}})
    BOOST_TEST(std::get<std::uint32_t>(values[fmt::format("tokenizer.ggml.{}_token_id", name)]) ==
               static_cast<std::uint32_t>(id));
  BOOST_TEST(!std::get<bool>(values["tokenizer.ggml.add_bos_token"]));
  BOOST_TEST(!std::get<bool>(values["tokenizer.ggml.add_space_prefix"]));
  BOOST_TEST(std::get<std::string>(values["tokenizer.ggml.model"]) == "t5");
  const auto& pieces = std::get<std::vector<std::string>>(values["tokenizer.ggml.tokens"]);
  const auto& types = std::get<std::vector<std::int32_t>>(values["tokenizer.ggml.token_type"]);
  BOOST_TEST(pieces.at(static_cast<std::size_t>(characters->encode(" ").front())) == "\u2581");
  BOOST_TEST(pieces.at(static_cast<std::size_t>(characters->encode("b").front())) == "b");
  BOOST_TEST(types == (std::vector<std::int32_t>{2, 3, 3, 1, 1, 1}),
             boost::test_tools::per_element());

  const auto bytes = tokenizer_of(TokenizerKind::bytes, {"b a"});
  const GgufModel mpt = model_of(", positions: alibi, activation: gelu_tanh", *bytes);
  BOOST_TEST(mpt.architecture == "mpt");
  values = {mpt.metadata.begin(), mpt.metadata.end()};
  BOOST_TEST(std::get<float>(values["mpt.attention.max_alibi_bias"]) == 8);
  BOOST_TEST(std::get<std::string>(values["tokenizer.ggml.model"]) == "gpt2");
  BOOST_TEST(std::get<std::vector<std::string>>(values["tokenizer.ggml.tokens"]).at(3 + 32) ==
             "\u0120");

  TokenizerOptions unigram;
  unigram.vocab_size = 30;
  const auto learned =
      train_tokenizer(unigram, std::vector<std::string>(20, "low lower lowest new newer"), 1);
  const GgufModel neox = model_of(
      ", positions: rotary, rotary_base: 300, block: parallel, activation: gelu_tanh, norm_eps: 1.0e-3",
      *learned);
  BOOST_TEST(neox.architecture == "gptneox");
  values = {neox.metadata.begin(), neox.metadata.end()};
  BOOST_TEST(std::get<bool>(values["gptneox.use_parallel_residual"]));
  BOOST_TEST(std::get<float>(values["gptneox.attention.layer_norm_epsilon"]) == 1e-3F);
  BOOST_TEST(std::get<float>(values["gptneox.rope.freq_base"]) == 300);
  BOOST_TEST(std::get<std::string>(values["tokenizer.ggml.model"]) == "t5");
  BOOST_TEST(std::get<bool>(values["tokenizer.ggml.add_space_prefix"]));
  BOOST_TEST(std::get<bool>(values["tokenizer.ggml.remove_extra_whitespaces"]));
  const PieceModel own = read_piece_model(learned->content());
  for (std::size_t id = 0; id < own.pieces.size(); ++id) {
    const auto& [text, score, kind] = own.pieces[id];
    BOOST_TEST(std::get<std::vector<std::string>>(values["tokenizer.ggml.tokens"]).at(id) == text);
    BOOST_TEST(std::get<std::vector<float>>(values["tokenizer.ggml.scores"]).at(id) == score);
    BOOST_TEST(std::get<std::vector<std::int32_t>>(values["tokenizer.ggml.token_type"]).at(id) ==
               (id == 0  ? 2
                : id < 3 ? 3
                         : 1));
  }
}

// The names are those of llama.cpp's gguf-py/gguf/constants.py; all tensors of a block have the shape of another one.
BOOST_AUTO_TEST_CASE(tensors_of_a_block_have_the_names_of_llama_cpp) {
  const auto tokenizer = tokenizer_of(TokenizerKind::characters, {"low lower"});
  struct Part {
    const char *foreign, *own;
    std::int64_t first = 0;
  };
  const auto check = [&](const std::string& keys, const std::vector<Part>& parts) {
    const GgufModel model = model_of(keys, *tokenizer);
    for (const Part& part : parts) {
      const auto found = std::ranges::find(model.parts, part.foreign, &MappedTensor::foreign);
      BOOST_REQUIRE_MESSAGE(found != model.parts.end(), model.architecture << ": " << part.foreign);
      BOOST_TEST(found->own == part.own, model.architecture << ": " << part.foreign);
      BOOST_TEST(found->first == part.first, model.architecture << ": " << part.foreign);
    }
  };
  const std::vector<Part> of_all{
      {"blk.1.attn_norm.weight", "decoder.layers.1.norm1.weight"},
      {"blk.1.attn_output.weight", "decoder.layers.1.self_attn.out_proj.weight"},
      {"blk.1.ffn_down.weight", "decoder.layers.1.linear2.weight"},
      {"blk.1.ffn_down.bias", "decoder.layers.1.linear2.bias"},
      {"output_norm.weight", "decoder.norm.weight"},
      {"output.weight", "embedding.weight"}};
  const std::vector<Part> serial{{"blk.1.ffn_norm.weight", "decoder.layers.1.norm2.weight"}};
  check(llama_keys, of_all);
  check(llama_keys, serial);
  check(llama_keys, {{"blk.0.ffn_gate.weight", "decoder.layers.0.linear1.weight"},
                     {"blk.0.ffn_up.weight", "decoder.layers.0.linear1.weight", 5}});
  const std::vector<Part> joined{
      {"blk.1.attn_qkv.weight", "decoder.layers.1.self_attn.in_proj_weight"},
      {"blk.1.attn_qkv.bias", "decoder.layers.1.self_attn.in_proj_bias"},
      {"blk.1.ffn_up.weight", "decoder.layers.1.linear1.weight"}};
  for (const std::string keys : {", positions: learned, activation: gelu_tanh",
                                 ", positions: alibi, activation: gelu_tanh"}) {
    check(keys, of_all);
    check(keys, serial);
    check(keys, joined);
  }
  // GPT-NeoX has a norm for each of the parallel sublayers, heed one for both.
  const std::string neox = ", positions: rotary, block: parallel, activation: gelu_tanh";
  check(neox, of_all);
  check(neox, joined);
  check(neox, {{"blk.1.ffn_norm.weight", "decoder.layers.1.norm1.weight"},
               {"blk.1.ffn_norm.bias", "decoder.layers.1.norm1.bias"}});
}

// GPT-2 has a table of positions with a row for each token of the context, also for a model that computes
// them or has none; the other architectures have no such table.
BOOST_AUTO_TEST_CASE(positions_of_gpt2_have_a_row_for_each_token_of_the_context) {
  const auto tokenizer = tokenizer_of(TokenizerKind::characters, {"low lower"});
  for (const std::string scheme : {"learned", "sinusoidal", "none", "alibi"}) {
    const std::string keys = ", activation: gelu_tanh, positions: " + scheme;
    const Config config = language_model(keys);
    const auto model = make_language_model(*config.model, tokenizer->size(), 1);
    const GgufModel described = gguf_model(config, *tokenizer);
    const ForeignTensors tensors(described.parts, model->state());
    const auto found = by_name(tensors);
    BOOST_TEST(found.contains("position_embd.weight") == (scheme != "alibi"), scheme);
    if (scheme == "alibi") continue;
    const TensorView& table = found.at("position_embd.weight");
    BOOST_TEST(table.description() == "F32 [7, 8]", scheme);
    // Position 6, columns 2 and 3: the sine and cosine of 6 / 10.
    const std::span<const float> values = table.values<float>();
    if (scheme == "sinusoidal") {
      BOOST_TEST(std::abs(values[6 * 8 + 2] - std::sin(0.6)) < 1e-6);
      BOOST_TEST(std::abs(values[6 * 8 + 3] - std::cos(0.6)) < 1e-6);
    }
    if (scheme == "none") BOOST_TEST(std::ranges::count(values, 0) == 7 * 8);
  }
}

// The numbers are those of llama_ftype in llama.h: ALL_F32, MOSTLY_F16 and MOSTLY_Q8_0.
BOOST_AUTO_TEST_CASE(a_file_states_the_type_of_its_tensors) {
  const TempFolder folder;
  Tokenizers tokenizers;
  tokenizers.source = tokenizers.target = tokenizer_of(TokenizerKind::characters, {"low lower"});
  const Config config = parse_config(
      "task: lm\ndata: {train: {text: a}}\nname: little\nmodel: {d_model: 32, heads: 2, d_ff: 64, layers: 1, "
      "positions: learned, activation: gelu_tanh, context: 4}\n",
      "lm.yaml");
  const auto model = make_language_model(*config.model, tokenizers.target->size(), 1);
  for (const auto& [precision, type, of_matrices] : {std::tuple("float32", 0U, GgufType::f32),
                                                     {"float16", 1U, GgufType::f16},
                                                     {"int8", 7U, GgufType::q8_0}}) {
    const ExportedModel exported{{folder / "no run"}, config, tokenizers, model->state(), "", false,
                                 precision,           {}};
    const auto path = folder / std::string(precision);
    gguf_format().write(exported, path);
    const GgufFile file = GgufFile::read(path);
    BOOST_TEST(std::get<std::uint32_t>(*file.find("general.file_type")) == type, precision);
    BOOST_TEST(std::get<std::uint32_t>(*file.find("general.quantization_version")) == 2);
    BOOST_TEST(std::get<std::string>(*file.find("general.name")) == "little");
    const auto matrix = std::ranges::find(file.tensors, "blk.0.ffn_up.weight", &GgufTensor::name);
    BOOST_CHECK(matrix->type == of_matrices);
    const auto bias = std::ranges::find(file.tensors, "blk.0.ffn_up.bias", &GgufTensor::name);
    BOOST_CHECK(bias->type == GgufType::f32);
  }
}

BOOST_AUTO_TEST_CASE(types_of_tensors_follow_the_precision) {
  const auto type = [](const char* name, std::vector<std::int64_t> shape, const char* precision) {
    return gguf_type({name, DType::f32, std::move(shape), {}}, precision);
  };
  BOOST_CHECK(type("a", {4, 64}, "float32") == GgufType::f32);
  BOOST_CHECK(type("a", {4, 64}, "float16") == GgufType::f16);
  BOOST_CHECK(type("a", {4, 64}, "int8") == GgufType::q8_0);
  BOOST_CHECK(type("a", {64, 40}, "int8") == GgufType::f16);
  BOOST_CHECK(type("a", {64}, "int8") == GgufType::f32);
  BOOST_CHECK(type("position_embd.weight", {4, 64}, "int8") == GgufType::f32);
}

BOOST_AUTO_TEST_CASE(what_llama_cpp_lacks_is_refused_by_key) {
  const auto tokenizer = tokenizer_of(TokenizerKind::characters, {"ab"});
  HEED_CHECK_ERROR(Exit::usage, "gpt2: model.activation is gelu (it has gelu_tanh)",
                   model_of(", positions: learned, activation: gelu", *tokenizer));
  HEED_CHECK_ERROR(Exit::usage, "export to huggingface or onnx",
                   model_of(", positions: learned, activation: gelu_tanh, norm: post", *tokenizer));
  HEED_CHECK_ERROR(
      Exit::usage, "gguf: task classify is not a language model",
      gguf_model(parse_config("task: classify\ndata: {train: {source: a, target: b}}\n", "c.yaml"),
                 *tokenizer));
  HEED_CHECK_ERROR(Exit::usage, "the vocabulary contains the space and U+2581",
                   model_of(llama_keys, *tokenizer_of(TokenizerKind::characters, {"a \u2581"})));
}

BOOST_AUTO_TEST_SUITE_END()
