#pragma once
/// The parts of an import (internal to import*.cpp).
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/tokenizers/imported.h"
#include "data/tokenizers/tokenizer.h"
#include "train/exchange/huggingface/model_class.h"
#include "train/exchange/import.h"

HEED_BEGIN

/// A regular file of the folder. Throws Error(bad_input) for a name that is not plain, and for links,
/// pipes and missing files.
std::filesystem::path plain_file(const std::filesystem::path& folder, const std::string& name);
/// A JSON file of the folder, of at most `limit` bytes.
nlohmann::json read_json(const std::filesystem::path& folder, const std::string& name,
                         std::uint64_t limit);

/// Fills the tensors of a model from the safetensors files of the folder.
void import_weights(const std::filesystem::path& folder, const ModelClass& about,
                    const nlohmann::json& foreign, std::span<const MappedTensor> parts,
                    const Parameters& state);
/// The names of the weight files. Throws Error(bad_input) for a folder that has only pickled ones.
std::vector<std::string> weight_files(const std::filesystem::path& folder);

struct ReadTokenizer {
  std::unique_ptr<Tokenizer> tokenizer;
  bool lowercase = false;  ///< data.lowercase
  std::unique_ptr<Tokenizer> target =
      nullptr;  ///< if it differs: the same ids, other pieces of a text
};
/// What a task does with a text, which determines the special pieces around it: a language model
/// continues it, an encoder-decoder model reads it as its source (… </s>), and an encoder labels it
/// (<s> … </s>).
enum class TextRole { continued, source, labelled };
/// The tokenizer of the folder, which has the id of <unk> and, for TextRole::labelled, those of <s>, </s>
/// and <mask>.
ReadTokenizer import_tokenizer(const std::filesystem::path& folder, ImportedIds ids, TextRole role);

// Parts of import_tokenizer: SentencePiece models.

inline constexpr const char* tokenizer_config_name = "tokenizer_config.json";

/// Keys of tokenizer_config.json with the values that heed supports; null: the key may be missing.
using FixedValues = std::vector<std::pair<const char*, std::vector<nlohmann::json>>>;
/// Throws Error(bad_input) for another value.
void require_fixed(const nlohmann::json& config, const FixedValues& fixed,
                   const std::string& where);

/// The value at a JSON pointer; null if there is none.
nlohmann::json value_at(const nlohmann::json& json, const char* pointer);
/// A vocabulary as pieces by id. Throws Error(bad_input) unless the ids are 0 to n − 1.
std::vector<std::string> pieces_by_id(const nlohmann::json& vocabulary, const std::string& where);
/// Reads a tokenizer.json with SentencePiece pieces, as heed exports it.
std::unique_ptr<Tokenizer> pieces_of_json(const nlohmann::json& json, const ImportedIds& ids,
                                          TextRole role, const std::string& where);
/// The SentencePiece model `name` with the specials and further tokens that the library adds to it, which
/// tokenizer_config.json, `config`, and, unless it is null, tokenizer.json list.
std::unique_ptr<Tokenizer> pieces_of_file(const std::filesystem::path& folder, const char* name,
                                          const nlohmann::json& config, const nlohmann::json& json,
                                          const ImportedIds& ids, TextRole role);
/// Marian's source.spm, target.spm and vocab.json.
ReadTokenizer pieces_of_two_files(const std::filesystem::path& folder, const ImportedIds& ids);

HEED_END
