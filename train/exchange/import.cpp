#include "train/exchange/import.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include "autograd/base/error.h"
#include "autograd/io/formats/json_text.h"
#include "autograd/io/message_text.h"
#include "data/tokenizers/word_model.h"
#include "nn/options.h"
#include "train/exchange/import_parts.h"
#include "train/tasks/data.h"
#include "train/tasks/model.h"

HEED_BEGIN

namespace {

namespace fs = std::filesystem;

/// An id; −1 for null or a missing key.
std::int32_t id_at(const nlohmann::json& foreign, const char* key, const std::string& where) {
  const nlohmann::json value = foreign.value(key, nlohmann::json());
  if (value.is_null()) return -1;
  if (!value.is_number_integer() || value < 0 || value > most_pieces)
    throw Error(Exit::bad_input, "{}: \"{}\" is {}; heed expects one id", where, key,
                shown(value.dump(), 60));
  return value.get<std::int32_t>();
}

/// Lines must fit into the positions, with their special pieces; mlm may read two of them.
void limit_lengths(nlohmann::json& own) {
  const nlohmann::json limit = own["model"].value("max_positions", nlohmann::json());
  if (own["task"] == "classify" || !limit.is_number_integer() || limit <= 5) return;
  const auto positions = limit.get<std::int64_t>();
  own["data"]["max_length"] =
      std::min<std::int64_t>(128, own["task"] == "mlm" ? (positions - 3) / 2 : positions - 1);
  if (own["task"] == "seq2seq")
    own["decode"]["max_length"] = std::min<std::int64_t>(128, positions);
}

/// The message of an invalid config without its places, which are those of no file, and with the names
/// that the keys have in config.json.
std::string with_foreign_names(const ModelClass& about, std::string message,
                               const std::string& where) {
  for (std::size_t at = 0; (at = message.find(where + ":", at)) != std::string::npos;) {
    const std::size_t after = message.find_first_not_of("0123456789: ", at + where.size());
    message.erase(at, std::min(after, message.size()) - at);
  }
  std::vector<std::string> names;
  for (const ClassKey& key : about.keys) {
    const std::size_t at = *key.own == '\0' ? std::string::npos : message.find(key.own);
    if (at == std::string::npos) continue;
    const std::size_t after = at + std::string_view(key.own).size();
    if (after == message.size() || std::isalnum(static_cast<unsigned char>(message[after])) == 0)
      names.push_back(fmt::format("{} is \"{}\"", key.own, key.foreign));
  }
  return names.empty() ? message
                       : fmt::format("{}\n(in config.json, {})", message, fmt::join(names, ", "));
}

/// Throws Error(bad_input) with the messages of a config that is out of range.
Config parsed(const ModelClass& about, const nlohmann::json& own, const std::string& where) {
  try {
    return parse_config(own.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), where,
                        {}, false, PluginUse::leave);
  } catch (const Error& e) {
    if (e.code != Exit::usage) throw;
    throw Error(Exit::bad_input, "{}: heed's config of this model is invalid:\n{}", where,
                with_foreign_names(about, e.what(), where));
  }
}

std::int64_t vocabulary_of(const nlohmann::json& foreign, const std::string& where) {
  const nlohmann::json size = foreign.value("vocab_size", nlohmann::json());
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
    throw Error(Exit::bad_input, "{}: \"{}\" is not the name of a file in this folder",
                folder.string(), shown(name, 100));
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

nlohmann::json read_json(const fs::path& folder, const std::string& name, std::uint64_t limit) {
  const fs::path path = plain_file(folder, name);
  const nlohmann::json json = parse_json(read_bytes(path, limit), path.string());
  if (!json.is_object()) throw Error(Exit::bad_input, "{}: expected an object", path.string());
  return json;
}

namespace {

/// Reads the tokenizer of a class for text into the model and heed's config.
void import_texts(const fs::path& folder, const nlohmann::json& foreign, nlohmann::json& own,
                  Tokenizers& tokenizers, const std::string& where) {
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
  tokenizers.source = tokenizers.target = std::move(read.tokenizer);
  tokenizers.same_ids = read.target != nullptr;
  if (read.target) tokenizers.target = std::move(read.target);
}

/// Reads id2label; each name becomes one word. Returns the id of the first label, which
/// is 0 in an export of heed, where the special ids are labels too.
std::int64_t import_labels(const nlohmann::json& foreign, Tokenizers& tokenizers,
                           const std::string& where) {
  const nlohmann::json library{{"0", "LABEL_0"}, {"1", "LABEL_1"}};  // if a file names none
  const nlohmann::json names = foreign.value("id2label", library);
  if (!names.is_object() || names.empty() || names.size() > most_pieces)
    throw Error(Exit::bad_input,
                "{}: \"id2label\" is {}; expected the names of the labels by their ids", where,
                shown(names.dump(), 80));
  const auto is_named = [&](const char* id, const char* name) {
    return names.value(id, nlohmann::json()) == name;
  };
  const bool of_heed =
      names.size() > 3 && is_named("0", "<unk>") && is_named("1", "<s>") && is_named("2", "</s>");
  std::vector<std::string> labels;
  std::set<std::string> seen;
  if (!of_heed) seen = {"<unk>", "<s>", "</s>"};
  for (std::size_t id = 0; id < names.size(); ++id) {
    const auto name = names.find(std::to_string(id));
    if (name == names.end() || !name->is_string())
      throw Error(Exit::bad_input, "{}: \"id2label\" has no name for label {}", where, id);
    std::string word = name->get<std::string>();
    std::ranges::replace_if(
        word, [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }, '_');
    if (word.empty() || !seen.insert(word).second) word += fmt::format("_{}", id);
    labels.push_back(word);
  }
  if (of_heed) labels.erase(labels.begin(), labels.begin() + 3);
  tokenizers.source = tokenizers.target = make_vocabulary(TokenizerKind::words, {}, labels, where);
  return of_heed ? 0 : 3;
}

/// The values of pixels, from preprocessor_config.json: one mean and one deviation for all channels.
/// Returns a note for the user; "" if the folder has this file.
std::string import_pixels(const fs::path& folder, nlohmann::json& own) {
  const char* const name = "preprocessor_config.json";
  if (!path_exists(folder / name))
    return fmt::format(
        "{} is missing: pixels are read as (v / 255 - 0.5) / 0.5; train and evaluate with other "
        "values through data.image.mean and data.image.deviation",
        (folder / name).string());
  const nlohmann::json processor = read_json(folder, name, 1 << 16);
  const auto refuse = [&](const char* key) {
    throw Error(
        Exit::bad_input,
        "{}: \"{}\" is {}; heed reads pixels as (v / 255 - mean) / deviation, with one mean and one deviation",
        (folder / name).string(), key, shown(processor.value(key, nlohmann::json()).dump(), 80));
  };
  const bool normalised = processor.value("do_normalize", nlohmann::json(true)) != false;
  for (const bool mean : {true, false}) {
    const char* const key = mean ? "image_mean" : "image_std";
    const nlohmann::json all = processor.value(key, nlohmann::json());
    if (normalised && (!all.is_array() || all.empty() || !all[0].is_number() ||
                       std::ranges::count(all, all[0]) != static_cast<std::ptrdiff_t>(all.size())))
      refuse(key);
    own["data"]["image"][mean ? "mean" : "deviation"] = normalised ? all[0].get<double>()
                                                        : mean     ? 0.0
                                                                   : 1.0;
  }
  if (processor.value("do_rescale", nlohmann::json(true)) != true) refuse("do_rescale");
  const nlohmann::json factor = processor.value("rescale_factor", nlohmann::json(1.0 / 255));
  if (!factor.is_number() || std::abs(factor.get<double>() * 255 - 1) > 1e-6)
    refuse("rescale_factor");
  return "";
}

/// An imported classifier never predicts the special ids, which its class does not have.
void exclude_special_labels(const Parameters& state) {
  const auto fill = [&](const char* name, real value) {
    Tensor rows = std::ranges::find(state, name, &NamedTensor::name)->tensor;
    std::fill_n(rows.mutable_value().data(), 3 * rows.value().size() / rows.shape()[0], value);
  };
  fill("output.weight", 0);
  fill("output.bias", -1e4);
}

}  // namespace

ImportedModel import_huggingface(const fs::path& folder) {
  constexpr std::uint64_t limit = 1 << 20;
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored))
    throw Error(
        Exit::bad_input,
        "{}: no such folder; heed reads models that are on this machine: download one first, as "
        "with `hf download NAME --local-dir FOLDER`",
        folder.string());
  if (path_exists(folder / "config.yaml") && !path_exists(folder / "config.json"))
    throw Error(Exit::bad_input, "{}: a run of heed, which needs no import", folder.string());
  const std::string where = (folder / "config.json").string();
  nlohmann::json foreign = read_json(folder, "config.json", limit);
  const ModelClass& about = imported_class(foreign, where);
  weight_files(folder);  // a folder without weights is refused before its config is read
  nlohmann::json own = own_config(about, foreign, where);
  limit_lengths(own);
  Tokenizers tokenizers;
  std::int64_t first_label = 0;
  std::string note;
  if (own["task"] == "classify") {
    first_label = import_labels(foreign, tokenizers, where);
    note = import_pixels(folder, own);
    own["tokenizer"]["kind"] = name_of(TokenizerKind::words);
  } else {
    import_texts(folder, foreign, own, tokenizers, where);
  }
  own["model"]["init_from"] = fs::absolute(folder).lexically_normal().string();
  own["name"] =
      folder.has_filename() ? folder.filename().string() : folder.parent_path().filename().string();
  ImportedModel imported{parsed(about, own, where), std::move(tokenizers), {}, about.name, note};
  const VocabularySizes sizes = sizes_of(imported.tokenizers);
  const ModelSource source{imported.config, *imported.config.model, sizes,
                           imported.tokenizers.target->special_ids(), first_label};
  if (const std::string why = about.obstacle == nullptr ? "" : about.obstacle(source); !why.empty())
    throw Error(Exit::bad_input, "{}: {}", where, why);
  require_honoured(about, foreign, nlohmann::json(described(about, source).config), where);
  imported.model = uninitialised(imported.config, sizes, folder);
  const Parameters state = imported.model->state();
  import_weights(folder, about, foreign, about.parts(source).parts, state);
  if (first_label > 0) exclude_special_labels(state);
  return imported;
}

HEED_END
