#pragma once
/// The parts of an import (internal to import*.cpp).
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/tokenizers/imported.h"
#include "data/tokenizers/tokenizer.h"
#include "train/exchange/import.h"
#include "train/exchange/model_map.h"

HEED_BEGIN

using ImportJson = nlohmann::json;

/// A key of config.json that is the value of one of heed's keys.
struct ImportRule {
  const char* foreign;
  const char* own;           ///< such as model.d_model
  nlohmann::json otherwise;  ///< the value of the class if the key is missing or null
};

/// A tensor that a file may contain beside those of the class's parts.
struct ExtraTensor {
  const char* pattern;  ///< of its name, as in fnmatch
  const char* equal;    ///< the part that it repeats; "": a constant of the class without effect
};

/// A class of transformers, as a table of the keys of config.json. A key is in `rules`, or the class's
/// description for export (HuggingFaceModel::config) has it with the same value, or it is in `fixed`
/// with one of the values that heed has, or it is known to have no effect on the function.
struct ImportClass {
  const char* architecture;
  std::vector<const char*> aliases;  ///< further classes with the same tensors
  const char* prefix;                ///< of the names of tensors, which some files omit
  nlohmann::json own;                ///< heed's config, without the values of the rules
  std::vector<ImportRule> rules;
  nlohmann::json defaults;  ///< values of the class for keys that a file may lack
  std::vector<std::pair<const char*, std::vector<nlohmann::json>>> fixed;
  std::vector<const char*> without_effect;
  std::vector<ExtraTensor> extra;
  /// Rewrites values that the class expresses in several ways. `where` begins messages.
  void (*adapt)(nlohmann::json& foreign, nlohmann::json& own, const std::string& where);
  /// Whether a tensor that the file lacks is zero.
  bool (*is_zero)(const nlohmann::json& foreign, const std::string& tensor);
  /// A table of positions that the file lacks contains sinusoids, as Marian computes them.
  bool sinusoids = false;
};

/// The class that config.json names. Throws Error(bad_input) if heed has none.
const ImportClass& import_class(const nlohmann::json& config, const std::string& where);

/// Throws Error(bad_input), naming the key, unless heed's model, described for export, honours all
/// keys of config.json.
void require_honoured(const ImportClass& about, const nlohmann::json& foreign,
                      const nlohmann::json& described, const std::string& where);

/// A regular file of the folder. Throws Error(bad_input) for a name that is not plain, and for links,
/// pipes and missing files.
std::filesystem::path plain_file(const std::filesystem::path& folder, const std::string& name);
/// A JSON file of the folder, of at most `limit` bytes.
nlohmann::json read_json(const std::filesystem::path& folder, const std::string& name,
                         std::uint64_t limit);

/// Fills the tensors of a model from the safetensors files of the folder.
void import_weights(const std::filesystem::path& folder, const ImportClass& about,
                    const nlohmann::json& foreign, std::span<const MappedTensor> parts,
                    const Parameters& state);
/// The names of the weight files. Throws Error(bad_input) for a folder that has only pickled ones.
std::vector<std::string> weight_files(const std::filesystem::path& folder);

struct ReadTokenizer {
  std::unique_ptr<Tokenizer> tokenizer;
  bool lowercase = false;  ///< data.lowercase
};
/// What a task does with a text, which determines the special pieces around it: a language model
/// continues it, an encoder-decoder model reads it as its source (… </s>), and an encoder labels it
/// (<s> … </s>).
enum class TextRole { continued, source, labelled };
/// The tokenizer of the folder, which has the id of <unk> and, for TextRole::labelled, those of <s>, </s>
/// and <mask>.
ReadTokenizer import_tokenizer(const std::filesystem::path& folder, ImportedIds ids, TextRole role);

HEED_END
