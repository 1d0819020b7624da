#include "train/config/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "autograd/base/error.h"
#include "autograd/io/files.h"
#include "autograd/io/message_text.h"
#include "nn/layers/positions.h"
#include "nn/options.h"
#include "train/config/fields.h"
#include "train/config/overrides.h"
#include "train/config/plugins.h"

namespace heed {

template class Boxed<ModelOptions>;
namespace {

/// The file's text. If the file is too large, returns just enough of it for parse_yaml to refuse
/// it.
std::string read_text_file(const std::string& path, FileReader::Kinds kinds) {
  constexpr std::size_t byte_order_mark = 3;
  std::string text(yaml_max_bytes + byte_order_mark + 1, '\0');
  std::size_t size = 0;
  try {
    FileReader file(std::filesystem::absolute(path), kinds);
    while (const std::size_t read = file.read_some(std::span(text).subspan(size))) size += read;
  } catch (const Error& error) {
    throw Error(error.code == Exit::io ? Exit::io : Exit::usage, "cannot read the config: {}",
                error.what());
  }
  text.resize(size);
  return text;
}

void report_unknown(const YamlEntry& entry, const std::string& section, const std::string& key,
                    Problems& problems) {
  if (entry.key.find('.') != std::string::npos) {
    problems.add(entry.place, key, "unknown key (dotted keys are for the command line)");
    return;
  }
  std::string message = "unknown key", hint;
  if (!problems.full()) hint = nearest(entry.key, names_in(section));
  if (!hint.empty()) {
    const std::string full_key = section.empty() ? hint : section + "." + hint;
    problems.mark_invalid(full_key);
    if (entry.place.source > 0) hint = full_key;  // an override names a key by its full path
  } else {                                        // the key may belong to another section
    hint = fmt::format("{}", fmt::join(keys_named(entry.key), " or "));
  }
  if (!hint.empty()) message += " (did you mean " + hint + "?)";
  problems.add(entry.place, entry.key.empty() ? key + "\"\"" : key, message);
}

void read_field(const Field& field, const YamlNode& node, Config& config, Problems& problems) {
  try {
    field.set(config, field.read(node));
  } catch (const ValueError& error) {
    std::string hint;
    if (field.kind == FieldKind::choice &&
        error.message.find("did you mean") == std::string::npos) {
      const std::string section = field.key.substr(0, field.key.rfind('.') + 1);
      // The value may belong to another key of the section, as in `kind: bpe`: bpe is a value of
      // `algorithm`.
      for (const Field& meant : fields()) {
        if (meant.key.starts_with(section) &&
            std::ranges::find(meant.choices, node.text) != meant.choices.end())
          hint =
              fmt::format(" (did you mean {}: {}?)", meant.key.substr(section.size()), node.text);
      }
    }
    problems.add(error.place, field.key, error.message + hint);
  }
}

/// Reads a section with a single value, which sets all its keys (layers: 3).
void read_shorthand(const std::string& section, const YamlNode& node, Config& config,
                    Problems& problems) {
  try {
    for (const std::string& name : names_in(section)) {
      const Field& field = *find_field(fmt::format("{}.{}", section, name));
      field.set(config, field.read(node));
    }
  } catch (const ValueError& error) {
    problems.add(error.place, section, error.message);
  }
}

/// Reads the keys of a map into the config; `section` is the dotted path of the map, "" at the top
/// level.
void read_section(const YamlNode& node, const std::string& section, Config& config,
                  Problems& problems) {
  if (node.kind == YamlNode::Kind::null) return;  // "train:" with nothing below it
  if (node.kind != YamlNode::Kind::map) {
    const std::string first = names_in(section).front();
    const std::string value =
        node.kind == YamlNode::Kind::list ? "a list" : fmt::format("\"{}\"", shown(node.text));
    problems.add(node.place, section,
                 fmt::format("expected keys and values, such as {}: ..., got {}", first, value));
    return;
  }
  for (const YamlEntry& entry : node.entries) {
    const std::string key = section.empty() ? entry.key : section + "." + entry.key;
    if (key == "sweep" && entry.place.source == 0) {
      problems.warn(entry.place, key, "only heed sweep reads this section");
      continue;
    }
    const bool dotted = entry.key.find('.') != std::string::npos;
    if (const Field* field = dotted ? nullptr : find_field(key)) {
      read_field(*field, entry.value, config, problems);
    } else if (const Section* inner = dotted ? nullptr : find_section(key)) {
      if (inner->shorthand && entry.value.kind == YamlNode::Kind::scalar) {
        read_shorthand(key, entry.value, config, problems);
      } else {
        read_section(entry.value, key, config, problems);
      }
    } else {
      report_unknown(entry, section, key, problems);
    }
  }
}

/// Loads the plugins that the tree names, before its keys are read, because a plugin may register
/// the value of a key. If the YAML or an override has an error, throws this error instead, so that
/// no code of a plugin runs.
void load_plugins(const YamlNode& tree, bool only_trusted, const Problems& problems) {
  const YamlEntry* const entry = tree.kind == YamlNode::Kind::map ? tree.find("plugins") : nullptr;
  if (entry == nullptr) return;
  std::vector<std::string> files;
  try {
    files = find_field("plugins")->read(entry->value).get<std::vector<std::string>>();
  } catch (const ValueError&) {  // reported when the key is read
  }
  if (!files.empty()) problems.raise();
  const PluginOrigin origin =
      only_trusted && entry->place.source == 0 ? PluginOrigin::run : PluginOrigin::user;
  for (const std::string& file : files) {
    try {
      load_plugin(file, origin);
    } catch (const Error& error) {
      throw Error(error.code, "{}: {}", problems.show(entry->value.place), error.what());
    }
  }
}

}  // namespace

Config parse_config(std::string_view text, const std::string& file,
                    std::span<const std::string> overrides, bool of_a_run, PluginUse plugins) {
  Problems problems(file, overrides);
  std::optional<YamlNode> tree = parse_yaml(text, 0, problems);
  const bool readable =
      tree && (tree->kind == YamlNode::Kind::map || tree->kind == YamlNode::Kind::null);
  if (!tree) tree.emplace();  // so that errors in the overrides are reported, too
  const YamlNode tree_of_file = overrides.empty() ? YamlNode() : *tree;
  apply_overrides(*tree, overrides, problems);
  if (plugins != PluginUse::leave)
    load_plugins(*tree, of_a_run || plugins == PluginUse::load_trusted, problems);
  Config start;
  for (const Field& field : fields()) {
    if (of_a_run && !field.in_old_runs.is_null() && !tree->place_of(field.key).complete)
      field.set(start, field.in_old_runs);
  }
  Config file_alone = start;  // the config without the command line
  Problems reported_below("", {});
  if (!overrides.empty()) read_section(tree_of_file, "", file_alone, reported_below);
  Config config = start;
  read_section(*tree, "", config, problems);
  if (config.name.empty()) config.name = std::filesystem::path(file).stem().string();
  if (readable) check_config(config, file_alone, *tree, problems);
  problems.raise();
  config.warnings = problems.warnings();
  return config;
}

Config read_config(const std::string& path, std::span<const std::string> overrides, bool of_a_run,
                   PluginUse plugins) {
  const std::filesystem::path file(path);
  const auto beside = [&](const char* name) {
    return file.filename() == "config.yaml" && path_exists(file.parent_path() / name);
  };
  of_a_run |= beside("run.json") || beside(".lock");
  // A run folder may come from elsewhere, and its maker may have left out these files. A message would
  // quote a line of the file behind a link, and a pipe might never end.
  const bool received = of_a_run || beside("checkpoints");
  if (received) require_kind(file, std::filesystem::file_type::regular);
  if (received && plugins == PluginUse::load) plugins = PluginUse::load_trusted;
  const FileReader::Kinds kinds =
      received ? FileReader::Kinds::files : FileReader::Kinds::also_devices;
  return parse_config(read_text_file(path, kinds), path, overrides, of_a_run, plugins);
}

ModelSizes model_sizes(const Config& config) {
  const ModelOptions& model = config.model;
  return {.d_model = model.d_model,
          .heads = model.heads,
          .context = model.context,
          .positions = position_limit(model),
          .rows_per_position = rows_per_position(model)};
}

bool has_class_row(const Config& config) {
  return info_of(config.task).architecture == Architecture::encoder_of_sequences &&
         config.model->pool == Pool::first;
}

std::vector<std::string> differences(const Config& a, const Config& b) {
  std::vector<std::string> keys;
  for (const Field& field : fields()) {
    if (field.get(a) != field.get(b)) keys.push_back(field.key);
  }
  return keys;
}

std::vector<std::string> changes_on_resume(const Config& run, const Config& now) {
  std::vector<std::string> changes;
  for (const std::string& key : differences(run, now)) {
    const Field& field = *find_field(key);
    const std::string before = field.print(run), after = field.print(now);
    const auto is_interchangeable = [&](const std::string& value) {
      return std::ranges::find(field.interchangeable, value) != field.interchangeable.end();
    };
    if (!field.resume_refusal.empty() && !(is_interchangeable(before) && is_interchangeable(after)))
      throw Error(Exit::usage, "{}: {}; to change it, start a new run with heed train", key,
                  field.resume_refusal);
    if (field.reported_on_resume)
      changes.push_back(fmt::format("{} is now {} (it was {})", key, after, before));
  }
  return changes;
}

}  // namespace heed
