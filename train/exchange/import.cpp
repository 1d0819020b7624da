#include "train/exchange/import.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>

#include "autograd/base/error.h"
#include "autograd/io/formats/json_text.h"
#include "autograd/io/message_text.h"
#include "data/tokenizers/word_model.h"
#include "nn/options.h"
#include "train/exchange/huggingface.h"
#include "train/exchange/import_parts.h"
#include "train/tasks/data.h"
#include "train/tasks/model.h"

HEED_BEGIN

namespace {

namespace fs = std::filesystem;

/// The element at a dotted key, which is created.
ImportJson& at_key(ImportJson& object, const std::string& key) {
  std::string pointer = "/" + key;
  std::ranges::replace(pointer, '.', '/');
  return object[ImportJson::json_pointer(pointer)];
}

/// An id; −1 for null or a missing key.
std::int32_t id_at(const ImportJson& foreign, const char* key, const std::string& where) {
  const ImportJson value = foreign.value(key, ImportJson());
  if (value.is_null()) return -1;
  if (!value.is_number_integer() || value < 0 || value > most_pieces)
    throw Error(Exit::bad_input, "{}: \"{}\" is {}; heed expects one id", where, key,
                shown(value.dump(), 60));
  return value.get<std::int32_t>();
}

/// heed's config, without its tokenizer. Completes `foreign` with the values of missing keys.
ImportJson own_config(const ImportClass& about, ImportJson& foreign, const std::string& where) {
  for (const auto& [key, value] : about.defaults.items())
    if (!foreign.contains(key)) foreign[key] = value;
  for (const ImportRule& rule : about.rules)
    if (foreign.value(rule.foreign, ImportJson()).is_null()) foreign[rule.foreign] = rule.otherwise;
  ImportJson own = about.own;
  about.adapt(foreign, own, where);
  for (const ImportRule& rule : about.rules) at_key(own, rule.own) = foreign[rule.foreign];
  if (own["task"] == "lm") {
    own["model"]["tie_embeddings"] = foreign["tie_word_embeddings"] != false;
    own["model"]["scale_embeddings"] = false;
    own["model"]["output_bias"] = false;
  }
  // Lines must fit into the positions, with their special pieces; mlm may read two of them.
  const ImportJson limit = own["model"].value("max_positions", ImportJson());
  if (limit.is_number_integer() && limit > 5) {
    const auto positions = limit.get<std::int64_t>();
    own["data"]["max_length"] =
        std::min<std::int64_t>(128, own["task"] == "mlm" ? (positions - 3) / 2 : positions - 1);
    if (own["task"] == "seq2seq")
      own["decode"]["max_length"] = std::min<std::int64_t>(128, positions);
  }
  return own;
}

/// Throws Error(bad_input) with the messages of a config that is out of range.
Config parsed(const ImportJson& own, const std::string& where) {
  try {
    return parse_config(own.dump(-1, ' ', false, ImportJson::error_handler_t::replace), where, {},
                        false, PluginUse::leave);
  } catch (const Error& e) {
    if (e.code != Exit::usage) throw;
    throw Error(Exit::bad_input, "{}: heed's config of this model is invalid:\n{}", where,
                e.what());
  }
}

std::int64_t vocabulary_of(const ImportJson& foreign, const std::string& where) {
  const ImportJson size = foreign.value("vocab_size", ImportJson());
  if (size.is_number_unsigned() && size >= 3 && size <= most_pieces)
    return size.get<std::int64_t>();
  throw Error(Exit::bad_input, "{}: \"vocab_size\" is {}; expected a whole number from 3 to {}",
              where, shown(size.dump(), 60), most_pieces);
}

/// The model without values. Throws Error(bad_input) if it is much larger than its files.
std::unique_ptr<Model> uninitialised(const Config& config, const VocabularySizes& sizes,
                                     const fs::path& folder) {
  try {
    return build_uninitialised(config, sizes);
  } catch (const Error& e) {
    double bytes = 0;
    for (const std::string& name : weight_files(folder))
      bytes += static_cast<double>(fs::file_size(plain_file(folder, name)));
    if (e.code != Exit::io || 2 * bytes > machine_memory()) throw;  // numbers may have two bytes
    throw Error(Exit::bad_input,
                "{}: its weights have {:.3g} bytes, but the model of config.json: {}",
                folder.string(), bytes, e.what());
  }
}

}  // namespace

bool is_huggingface_folder(const fs::path& folder) {
  return path_exists(folder / "config.json") && !path_exists(folder / "config.yaml");
}

fs::path plain_file(const fs::path& folder, const std::string& name) {
  const fs::path path = folder / name;
  if (name.empty() || name.front() == '.' || name.find('/') != std::string::npos ||
      name.find('\0') != std::string::npos)
    throw Error(Exit::bad_input, "{}: \"{}\" is no name of a file in this folder", folder.string(),
                shown(name, 100));
  std::error_code ignored;
  const fs::file_type type = fs::symlink_status(path, ignored).type();
  if (type == fs::file_type::not_found)
    throw Error(Exit::bad_input, "{}: no such file", path.string());
  if (type == fs::file_type::symlink)
    throw Error(
        Exit::bad_input,
        "{}: a link, which heed does not follow, because the folder may come from elsewhere: "
        "copy the folder with cp -rL",
        path.string());
  open_regular(path, O_RDONLY);  // refuses pipes and devices
  return path;
}

ImportJson read_json(const fs::path& folder, const std::string& name, std::uint64_t limit) {
  const fs::path path = plain_file(folder, name);
  const ImportJson json = parse_json(read_bytes(path, limit), path.string());
  if (!json.is_object()) throw Error(Exit::bad_input, "{}: expected an object", path.string());
  return json;
}

ImportedModel import_huggingface(const fs::path& folder) {
  constexpr std::uint64_t limit = 1 << 20;
  const std::string where = (folder / "config.json").string();
  ImportJson foreign = read_json(folder, "config.json", limit);
  const ImportClass& about = import_class(foreign, where);
  weight_files(folder);  // a folder without weights is refused before its config is read
  ImportJson own = own_config(about, foreign, where);
  const TextRole role = own["task"] == "lm"    ? TextRole::continued
                        : own["task"] == "mlm" ? TextRole::labelled
                                               : TextRole::source;
  const std::int64_t vocabulary = vocabulary_of(foreign, where);
  const ImportedIds ids{
      {-1,
       id_at(foreign, role == TextRole::source ? "decoder_start_token_id" : "bos_token_id", where),
       id_at(foreign, "eos_token_id", where)},
      -1,
      false,
      vocabulary};
  ReadTokenizer read = import_tokenizer(folder, ids, role);
  if (read.tokenizer->size() != vocabulary)
    throw Error(Exit::bad_input, "{}: \"vocab_size\" is {}, but the tokenizer has {} pieces", where,
                vocabulary, read.tokenizer->size());
  const SpecialIds found = read.tokenizer->special_ids();
  if (found.eos < 0 || (found.bos < 0 && role != TextRole::continued))
    throw Error(
        Exit::bad_input,
        "{}: the ids that begin and end sequences (eos_token_id, decoder_start_token_id) are "
        "missing",
        where);
  own["tokenizer"]["kind"] = name_of(read.tokenizer->kind());
  own["data"]["lowercase"] = read.lowercase;
  own["model"]["init_from"] = fs::absolute(folder).lexically_normal().string();
  own["name"] =
      folder.has_filename() ? folder.filename().string() : folder.parent_path().filename().string();
  ImportedModel imported{parsed(own, where), {}, {}, about.architecture};
  imported.tokenizers.source = imported.tokenizers.target = std::move(read.tokenizer);
  const VocabularySizes sizes = sizes_of(imported.tokenizers);
  const HuggingFaceModel described =
      huggingface_model(imported.config, sizes, imported.tokenizers.target->special_ids());
  require_honoured(about, foreign, ImportJson(described.config), where);
  imported.model = uninitialised(imported.config, sizes, folder);
  import_weights(folder, about, foreign, described.parts, imported.model->state());
  return imported;
}

HEED_END
