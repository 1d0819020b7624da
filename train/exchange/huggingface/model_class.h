#pragma once
/// Classes of transformers, each a table of the keys of config.json and a list of tensors, which export
/// and import read in opposite directions (internal to train/exchange).
#include <string>
#include <string_view>
#include <vector>

#include "train/exchange/huggingface/model.h"

HEED_BEGIN

using Json = nlohmann::ordered_json;

/// Pairs of heed's name and a name in transformers. Export writes the first name of a value; import reads
/// any of them.
using NamePairs = std::vector<std::pair<std::string_view, std::string_view>>;

/// A key of config.json that has the value of one of heed's keys.
struct ClassKey {
  const char* foreign;
  const char*
      own;  ///< such as model.d_model; "": a key that has no counterpart in heed, with a default for import
  Json otherwise = {};  ///< the value of the class if a file lacks the key
  const NamePairs* names = nullptr;
};

/// A tensor that a file may contain beside the parts.
struct ExtraTensor {
  const char* pattern;  ///< of its name, as in fnmatch
  const char* equal;    ///< the part that it repeats; "": a constant of the class without effect
};

/// A further class with the tensors of another.
struct ClassAlias {
  const char* name;
  nlohmann::json defaults;  ///< the values of keys that a file lacks, where they differ
};

struct ModelClass {
  const char *name = "", *type = "";
  Architecture architecture;
  /// The configs whose function the class computes. An imported model has the first value of each.
  std::vector<Requirement> requirements;
  std::vector<ClassKey> keys;
  Json constants = {};  ///< further keys, with the same value in every file
  PartList (*parts)(const ModelSource&) = nullptr;
  /// Adds the values that no single key of heed has.
  void (*complete)(const ModelSource&, HuggingFaceModel&) = nullptr;
  /// What else prevents export, such as a relation of several keys; empty: nothing.
  std::string (*obstacle)(const ModelSource&) = nullptr;

  // ---- import; a class without `prefix` is only exported ----
  const char* prefix = nullptr;  ///< of the names of tensors, which some files omit
  std::vector<ClassAlias> aliases = {};
  nlohmann::json own = {};  ///< further keys of heed, by their sections
  std::vector<std::pair<const char*, std::vector<Json>>> fixed =
      {};  ///< keys with the values that heed has
  const char* without_effect =
      "";  ///< keys that do not change the function, with spaces between them
  std::vector<ExtraTensor> extra = {};
  /// Normalises values that a file may express in several ways. `where` begins messages.
  void (*adapt)(nlohmann::json& foreign, nlohmann::json& own, const std::string& where) = nullptr;
  /// Whether a tensor that the file lacks is zero.
  bool (*is_zero)(const nlohmann::json& foreign, const std::string& tensor) = nullptr;
  /// Whether the class has no tensor of this name. It is zero in heed; a file that has it is refused.
  bool (*lacks)(const nlohmann::json& foreign, const std::string& tensor) = nullptr;
  /// A table of positions that the file lacks contains sinusoids, as Marian computes them.
  bool sinusoids = false;
  /// A tensor that heed's model shares with another part. Its difference from that part is added to row 0 of
  /// the table of positions.
  const char* at_position_0 = "";
};

/// Each appends the classes of a family.
void add_gpt_classes(std::vector<ModelClass>& classes);   // GPT-2, Llama
void add_bart_classes(std::vector<ModelClass>& classes);  // Marian, Blenderbot
void add_t5_classes(std::vector<ModelClass>& classes);    // T5 v1.1
void add_bert_classes(std::vector<ModelClass>& classes);
void add_image_classes(std::vector<ModelClass>& classes);  // ViT, Swin
const std::vector<ModelClass>& model_classes();

/// The names of activations in transformers.activations.ACT2FN, without gates and of gates.
extern const NamePairs activation_names, gate_names;
/// The obstacle of a class whose output projection has no bias.
std::string output_bias_obstacle(const ModelSource& source);
/// Adds the ids that begin an output to both configs of an encoder-decoder class.
void complete_pairs(const ModelSource& source, HuggingFaceModel& model);
/// Whether the output matrix is the embedding table. Logits are products with the unscaled
/// embeddings, so a scaled table is a second matrix.
bool output_is_table(const ModelSource& source);
void add_table_and_output(PartList& list, const ModelSource& source, const std::string& table,
                          const std::string& output);

/// The model as one of the class, whether or not the class computes it, without parts.
HuggingFaceModel described(const ModelClass& about, const ModelSource& source);

/// The class of a config.json. Throws Error(bad_input) if heed imports no class of this name.
const ModelClass& imported_class(const nlohmann::json& config, const std::string& where);
/// heed's config without tokenizer and data. Completes `foreign` with the values of missing keys.
nlohmann::json own_config(const ModelClass& about, nlohmann::json& foreign,
                          const std::string& where);
/// Throws Error(bad_input), naming the key, unless heed's model, described for export, honours all
/// keys of config.json.
void require_honoured(const ModelClass& about, const nlohmann::json& foreign,
                      const nlohmann::json& described, const std::string& where);

HEED_END
