#include "train/exchange/gguf/gguf.h"

#include <fmt/format.h>

#include <algorithm>

#include "autograd/base/error.h"
#include "data/tokenizers/piece_model.h"
#include "data/tokenizers/word_model.h"
#include "nn/layers/activations.h"
#include "nn/layers/positions.h"
#include "nn/options.h"
#include "train/config/tasks.h"
#include "train/exchange/export.h"
#include "train/exchange/model_parts.h"
#include "train/run/version.h"

HEED_BEGIN

namespace {

namespace fs = std::filesystem;

constexpr const char* gguf_positions = "position_embd.weight";
constexpr const char* gguf_origin = "heed.version";  // only files of heed have it

// ---- vocabularies ------------------------------------------------------------------------------

[[noreturn]] void refuse_for_gguf(std::string_view what) {
  throw Error(Exit::usage, "gguf: {}; export to onnx or huggingface", what);
}

/// Pieces with scores and types; the numbers of the types are those of SentencePiece.
void add_gguf_pieces(GgufMetadata& to, const char* model, std::vector<std::string> pieces,
                     std::vector<float> scores, std::vector<std::int32_t> types) {
  to.emplace_back("tokenizer.ggml.model", model);
  to.emplace_back("tokenizer.ggml.pre", "qwen2");  // read only for bytes, which have no merges
  to.emplace_back("tokenizer.ggml.tokens", std::move(pieces));
  to.emplace_back("tokenizer.ggml.scores", std::move(scores));
  to.emplace_back("tokenizer.ggml.token_type", std::move(types));
}

void add_gguf_sentencepiece(GgufMetadata& to, const PieceModel& model) {
  std::vector<std::string> pieces;
  std::vector<float> scores;
  std::vector<std::int32_t> types;
  for (const PieceModel::Piece& piece : model.pieces) {
    pieces.push_back(piece.text);
    scores.push_back(piece.score);
    types.push_back(static_cast<std::int32_t>(piece.type));
  }
  const auto contains = [&](PieceModel::Type type) {
    return std::ranges::find(types, static_cast<std::int32_t>(type)) != types.end();
  };
  if (!model.escape_whitespaces || model.whitespace_as_suffix)
    refuse_for_gguf("llama.cpp has no other rules for spaces than SentencePiece's defaults");
  if (model.bpe && (!model.character_map.empty() || model.remove_extra_whitespaces))
    refuse_for_gguf(
        "llama.cpp does not normalise the texts of a BPE vocabulary, as the model of "
        "the tokenizer demands");
  if (model.bpe && model.add_dummy_prefix && contains(PieceModel::Type::user_defined))
    refuse_for_gguf("llama.cpp puts a space after each user-defined piece");
  if (!model.bpe && contains(PieceModel::Type::byte))
    refuse_for_gguf("llama.cpp has no pieces for bytes in a unigram vocabulary");
  add_gguf_pieces(to, model.bpe ? "llama" : "t5", std::move(pieces), std::move(scores),
                  std::move(types));
  to.emplace_back("tokenizer.ggml.add_space_prefix", model.add_dummy_prefix);
  to.emplace_back("tokenizer.ggml.remove_extra_whitespaces", model.remove_extra_whitespaces);
  if (!model.character_map.empty())
    to.emplace_back(
        "tokenizer.ggml.precompiled_charsmap",
        std::vector<std::uint8_t>(model.character_map.begin(), model.character_map.end()));
}

/// Characters are a unigram vocabulary in which all pieces have one score. Bytes are byte-level BPE
/// without merges.
void add_gguf_vocabulary(GgufMetadata& to, const Tokenizer& tokenizer) {
  if (tokenizer.kind() == TokenizerKind::sentencepiece)
    return add_gguf_sentencepiece(to, read_piece_model(tokenizer.content()));
  const bool bytes = tokenizer.kind() == TokenizerKind::bytes;
  const std::int32_t first = tokenizer.first_ordinary();
  std::vector<std::string> pieces;
  std::vector<float> scores;
  std::vector<std::int32_t> types;
  for (std::int32_t id = 0; id < tokenizer.size(); ++id) {
    const std::string piece = tokenizer.piece(id);
    const bool ordinary = id >= first;
    if (ordinary && !bytes && piece == "\u2581" && tokenizer.encode(" ").front() >= first)
      refuse_for_gguf("the vocabulary contains the space and U+2581, which llama.cpp confuses");
    pieces.push_back(!ordinary      ? piece
                     : bytes        ? byte_characters()[static_cast<unsigned char>(piece[0])]
                     : piece == " " ? "\u2581"
                                    : piece);
    scores.push_back(ordinary ? -1 : 0);
    types.push_back(static_cast<std::int32_t>(ordinary               ? PieceModel::Type::normal
                                              : id == Tokenizer::unk ? PieceModel::Type::unknown
                                                                     : PieceModel::Type::control));
  }
  add_gguf_pieces(to, bytes ? "gpt2" : "t5", std::move(pieces), std::move(scores),
                  std::move(types));
  if (bytes) to.emplace_back("tokenizer.ggml.merges", std::vector<std::string>());
  to.emplace_back("tokenizer.ggml.add_space_prefix", false);
  to.emplace_back("tokenizer.ggml.remove_extra_whitespaces", false);
}

// ---- models ------------------------------------------------------------------------------------

/// An architecture of llama.cpp, and what distinguishes it from the others.
struct GgufArchitecture {
  const char* name;
  bool joined;          ///< queries, keys and values are one matrix
  bool adjacent_pairs;  ///< of rotary positions
  std::vector<Requirement> requirements;
};

const std::vector<GgufArchitecture>& gguf_architectures() {
  const auto needs = [](const char* block, std::vector<nlohmann::json> positions,
                        const char* norm_kind, const char* activation) {
    std::vector<Requirement> all =
        with_common({{"model.block", {block}},
                     {"model.positions", std::move(positions)},
                     {"model.tie_embeddings", {true}},
                     {"model.tie_output", {true}},
                     {"model.output_bias", {"auto", "false"}},
                     {"model.norm_kind", {norm_kind}},
                     {"model.activation", {activation}},
                     {"model.norm", {"pre"}},
                     {"model.final_norm", {true}},
                     {"model.memory", {0}},
                     {"tokenizer.kind", {"sentencepiece", "char", "byte"}},
                     {"data.lowercase", {false}}});
    if (block == std::string_view("parallel")) all.push_back({"model.rotary_pairs", {"halves"}});
    return all;
  };
  static const std::vector<GgufArchitecture> table{
      {"gpt2", true, false,
       needs("serial", {"learned", "sinusoidal", "none"}, "layer", "gelu_tanh")},
      {"starcoder2", false, false, needs("serial", {"rotary"}, "layer", "gelu_tanh")},
      {"gptneox", true, false, needs("parallel", {"rotary"}, "layer", "gelu_tanh")},
      {"mpt", true, false, needs("serial", {"alibi"}, "layer", "gelu_tanh")},
      {"llama", false, true, needs("serial", {"rotary"}, "rms", "swiglu")}};
  return table;
}

MappedTensors gguf_parts(const ModelSource& source, const GgufArchitecture& architecture) {
  const ModelOptions& o = source.model;
  PartList list(source, {.zero_biases = true,
                         .reorder_pairs = architecture.adjacent_pairs !=
                                          (o.rotary_pairs == RotaryPairs::adjacent),
                         .adjacent_pairs = architecture.adjacent_pairs});
  list.add({.foreign = "token_embd.weight",
            .own = "embedding.weight",
            .factor = source.embedding_factor()});
  if (architecture.name == std::string_view("gpt2"))
    list.positions(gguf_positions, "positions.weight", o.context);
  BlockNames names{.norm1 = "attn_norm",
                   .self = {.q = "attn_q", .k = "attn_k", .v = "attn_v", .out = "attn_output"},
                   .last_norm = "ffn_norm",
                   .gate = "ffn_gate",
                   .linear1 = "ffn_up",
                   .linear2 = "ffn_down"};
  if (architecture.joined) names.self = {.q = "attn_qkv", .out = "attn_output"};
  list.blocks("blk.{}.", "decoder", o.decoder_layers, names);
  list.norm("output_norm", "decoder.norm");
  list.add({.foreign = "output.weight", .own = "embedding.weight"});
  return std::move(list.parts);
}

GgufMetadata gguf_values(const ModelSource& source, const std::string& architecture,
                         const Tokenizer& tokenizer) {
  const ModelOptions& o = source.model;
  GgufMetadata all{{"general.architecture", architecture},
                   {gguf_origin, version},
                   {"general.name", source.config.name}};
  const auto add = [&](const char* key, GgufValue value) {
    all.emplace_back(architecture + "." + key, std::move(value));
  };
  const auto number = [](std::int64_t n) { return static_cast<std::uint32_t>(n); };
  add("context_length", number(o.context));
  add("embedding_length", number(o.d_model));
  add("block_count", number(o.decoder_layers));
  add("feed_forward_length", number(o.d_ff));
  add("attention.head_count", number(o.heads));
  add("attention.head_count_kv", number(source.kv_heads()));
  add(o.norm_kind == NormKind::rms ? "attention.layer_norm_rms_epsilon"
                                   : "attention.layer_norm_epsilon",
      static_cast<float>(o.norm_eps));
  add("vocab_size", number(tokenizer.size()));
  if (o.positions == PositionKind::rotary) {
    add("rope.dimension_count", number(o.d_model / o.heads));
    add("rope.freq_base", static_cast<float>(o.rotary_base));
  }
  if (o.positions == PositionKind::alibi) add("attention.max_alibi_bias", 8.0F);
  if (o.block == BlockForm::parallel) add("use_parallel_residual", true);
  add_gguf_vocabulary(all, tokenizer);
  const SpecialIds ids = tokenizer.special_ids();
  all.emplace_back("tokenizer.ggml.unknown_token_id", number(ids.unk));
  all.emplace_back("tokenizer.ggml.bos_token_id", number(ids.bos));
  all.emplace_back("tokenizer.ggml.eos_token_id", number(ids.eos));
  all.emplace_back("tokenizer.ggml.padding_token_id", number(ids.eos));
  all.emplace_back("tokenizer.ggml.add_bos_token", tokenizer.text_start().has_value());
  all.emplace_back("tokenizer.ggml.add_eos_token", false);
  return all;
}

}  // namespace

GgufModel gguf_model(const Config& config, const Tokenizer& tokenizer) {
  if (info_of(config.task).architecture != Architecture::decoder)
    throw Error(Exit::usage, "gguf: task {} is not a language model; export to onnx or huggingface",
                name_of(config.task));
  std::string why;
  for (const GgufArchitecture& candidate : gguf_architectures()) {
    const std::vector<std::string> found = obstacles(candidate.requirements, config);
    if (found.empty()) {
      const ModelSource source{config, *config.model, {tokenizer.size(), tokenizer.size(), true}};
      return {candidate.name, gguf_values(source, candidate.name, tokenizer),
              gguf_parts(source, candidate)};
    }
    why += fmt::format("\n  {}: {}", candidate.name, fmt::join(found, "; "));
  }
  throw Error(Exit::usage,
              "gguf: no architecture of llama.cpp computes what this model computes (export to "
              "huggingface or onnx, or train with other values):{}",
              why);
}

GgufType gguf_type(const TensorView& tensor, std::string_view precision) {
  if (precision == "float32" || tensor.shape.size() < 2 || tensor.name == gguf_positions)
    return GgufType::f32;
  return precision == "int8" && gguf_size(GgufType::q8_0, tensor.shape) > 0 ? GgufType::q8_0
                                                                            : GgufType::f16;
}

namespace {

GgufMetadata gguf_values_of_file(const GgufModel& model, std::string_view precision) {
  GgufMetadata all = model.metadata;
  all.emplace_back("general.file_type",  // llama_ftype in llama.h
                   precision == "float32"   ? 0U
                   : precision == "float16" ? 1U
                                            : 7U);
  all.emplace_back("general.quantization_version", 2U);
  return all;
}

/// The tensor in its type. Throws Error(usage) if a value exceeds the range of binary16.
std::string gguf_bytes(const TensorView& view, GgufType type) {
  const std::span<const float> values = view.values<float>();
  const float limit = type == GgufType::f32 ? 0 : type == GgufType::f16 ? 65504.0F : 65504.0F * 127;
  if (limit > 0 && std::ranges::any_of(values, [&](float v) { return !(std::abs(v) <= limit); }))
    throw Error(Exit::usage, "gguf: {} has values beyond the range of float16: use float32",
                view.name);
  return gguf_encode(values, type);
}

GgufModel gguf_of(const ExportedModel& exported) {
  return gguf_model(exported.config, *exported.tokenizers.target);
}

void write_gguf(const ExportedModel& exported, const fs::path& target) {
  const GgufModel model = gguf_of(exported);
  const ForeignTensors tensors(model.parts, exported.state);
  std::vector<GgufTensor> entries;
  for (const TensorView& view : tensors.views())
    entries.push_back({view.name, gguf_type(view, exported.precision), view.shape, {}});
  write_file_durably(target, [&](FileWriter& file) {
    file.write(gguf_header(gguf_values_of_file(model, exported.precision), entries));
    for (std::size_t i = 0; i < entries.size(); ++i) {
      std::string bytes = gguf_bytes(tensors.views()[i], entries[i].type);
      bytes.resize((bytes.size() + gguf_alignment - 1) / gguf_alignment * gguf_alignment, '\0');
      file.write(bytes);
    }
  });
}

std::vector<std::string> check_gguf(const ExportedModel& exported, const fs::path& target) {
  const GgufModel model = gguf_of(exported);
  const ForeignTensors tensors(model.parts, exported.state);
  const GgufFile file = GgufFile::read(target);
  std::vector<std::string> wrong;
  if (file.metadata != gguf_values_of_file(model, exported.precision))
    wrong.push_back("the list of values");
  if (file.tensors.size() != tensors.views().size()) wrong.push_back("the list of tensors");
  for (std::size_t i = 0; i < std::min(file.tensors.size(), tensors.views().size()); ++i) {
    const TensorView& view = tensors.views()[i];
    const GgufTensor& read = file.tensors[i];
    if (read.name != view.name || read.shape != view.shape ||
        read.type != gguf_type(view, exported.precision) ||
        read.bytes != gguf_bytes(view, read.type))
      wrong.push_back(view.name);
  }
  return wrong;
}

/// Whether a file begins as GGUF of heed.
bool is_gguf_of_heed(const fs::path& target) {
  std::string start(1024, '\0');
  FileReader file(target);
  start.resize(file.read_some(start));
  return start.starts_with("GGUF") && start.find(gguf_origin) != std::string::npos;
}

}  // namespace

ExportFormat gguf_format() {
  return {"gguf",
          "a file for llama.cpp and what is built on it (GPT-2, StarCoder 2, GPT-NeoX, MPT, Llama)",
          ".gguf",
          true,
          {"float32", "float16", "int8"},
          write_gguf,
          check_gguf,
          is_gguf_of_heed,
          "npx --yes node-llama-cpp complete --threads 1 --model {}"};
}

HEED_END
