/// Prints the field table as a resolved config, as the reference page, and as a JSON Schema (draft
/// 7, which editors and validators support best).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "autograd/base/error.h"
#include "train/config/config.h"
#include "train/config/fields.h"

namespace heed {
namespace {

constexpr std::size_t page_width = 100;

std::size_t depth_of(std::string_view key) {
  return static_cast<std::size_t>(std::ranges::count(key, '.'));
}

/// The text as a YAML comment, broken into lines and indented for a key at this depth.
std::string comment(std::size_t depth, const std::string& text) {
  const std::string margin = std::string(2 * depth, ' ') + "#";
  std::string out, line = margin;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (line.size() + 1 + word.size() > page_width) {
      out += line + "\n";
      line = margin;
    }
    line += " " + word;
    begin = end + 1;
  }
  return out + line + "\n";
}

/// The path of a key or a section directly in `section` ("": the top level).
std::string path_of(const std::string& section, const std::string& name) {
  return section.empty() ? name : fmt::format("{}.{}", section, name);
}

/// The keys in `section` for which `includes` is true, with their values; `before` returns the
/// comment above a field or a section.
template <class Before, class Includes>
std::string write(const Config& config, const Before& before, const Includes& includes,
                  const std::string& section = "") {
  std::string out;
  for (const std::string& name : names_in(section)) {
    const std::string key = path_of(section, name), margin(2 * depth_of(key), ' ');
    const Field* const field = find_field(key);
    const std::string value = field == nullptr   ? write(config, before, includes, key)
                              : includes(*field) ? " " + field->print(config)
                                                 : "";
    if (value.empty()) continue;
    out += fmt::format("{}{}{}:{}", before(key), margin, name, field ? value + "\n" : "\n" + value);
  }
  return out;
}

std::string without_comment(const std::string&) { return ""; }
bool any(const Field&) { return true; }

/// A key, or the prefix of several keys, without effect while `key` has its default.
struct Switch {
  std::string_view keys, key;
};
constexpr std::array<Switch, 4> switches{{{"train.distill.", "train.distill.teacher"},
                                          {"decode.temperature", "decode.sample"},
                                          {"decode.top_", "decode.sample"},
                                          {"bench.", "bench.sequences"}}};

bool is_registered(const std::string& name) { return name.find('.') != std::string::npos; }

/// Whether the key has an effect in this config: its conditions hold, and it is neither an empty list
/// or text, which stands for none, nor a default that is switched off.
bool is_effective(const Field& field, const Config& config) {
  const std::string value = field.print(config);
  const bool off = std::ranges::any_of(switches, [&](const Switch& s) {
    return field.key.starts_with(s.keys) && find_field(s.key)->is_default(config);
  });
  if (value == "[]" || value == "\"\"" || (off && field.is_default(config))) return false;
  return std::ranges::all_of(field.conditions, [&](const Condition& condition) {
    const std::string chosen = find_field(condition.chooser)->print(config);
    return !condition.of.empty() || (condition.or_registered && is_registered(chosen)) ||
           std::ranges::find(condition.values, chosen) != condition.values.end();
  });
}

/// The settings of the reference page that differ from the defaults: a small task without files.
const std::vector<std::string> reference_settings{"data.synthetic.name=dates",
                                                  "tokenizer.kind=char",
                                                  "model.d_model=128",
                                                  "model.d_ff=512",
                                                  "model.layers=2",
                                                  "train.steps=2000",
                                                  "data.synthetic.train=20000"};

// ---- the schema ------------------------------------------------------------------------------

using Json = nlohmann::ordered_json;

const Json plain_text = {{"type", Json::array({"string", "number", "boolean"})},
                         {"pattern", "^[^\\x00-\\x1f\\x7f]*$"}};  // YAML reads 2016 as a number

/// Converts a value from the text that the table prints to JSON.
Json value_of(const Field& field, const std::string& text) {
  Problems none("", {});
  return field.read(*parse_yaml(text, 0, none));
}

Json default_of(const Field& field) { return field.get(Config{}); }

Json number_in(const char* type, const Range& range) {
  Json schema{{"type", type}};
  schema[range.low_in ? "minimum" : "exclusiveMinimum"] = number_json(range.low);
  if (range.high < 1e300)
    schema[range.high_in && range.high < 0x1p64 ? "maximum" : "exclusiveMaximum"] =
        number_json(range.high);
  return schema;
}

/// Any name that a plugin may register; the actual names are known only after the plugin is loaded.
Json registered_name() {
  return {{"type", "string"}, {"pattern", "^[A-Za-z_][A-Za-z0-9_]*(\\.[A-Za-z_][A-Za-z0-9_]*)+$"}};
}

Json type_schema(const Field& field) {
  switch (field.kind) {
    case FieldKind::integer:
    case FieldKind::number: {
      Json schema = number_in(field.kind == FieldKind::integer ? "integer" : "number", field.range);
      if (field.choices.empty()) return schema;
      return {{"anyOf", Json::array({{{"enum", field.choices}}, schema})}};
    }
    case FieldKind::boolean:
      return {{"type", "boolean"}};
    case FieldKind::text:
      return plain_text;
    case FieldKind::files: {
      Json file = plain_text;
      file["minLength"] = 1;
      return {{"anyOf", Json::array({file, {{"type", "array"}, {"items", file}}})}};
    }
    case FieldKind::choice:
      if (field.open)
        return {{"anyOf", Json::array({{{"enum", field.choices}}, registered_name()})}};
      return {{"enum", field.choices}};
    case FieldKind::pair:
      return {{"type", "array"},
              {"items", number_in("number", field.range)},
              {"minItems", 2},
              {"maxItems", 2}};
    case FieldKind::integers:
      return {{"type", "array"}, {"items", number_in("integer", field.range)}, {"minItems", 1}};
  }
  return {};
}

Json schema_of(const Field& field) {
  Json schema{{"description", fmt::format("{} ({})", field.help, field.type)},
              {"default", default_of(field)}};
  schema.update(type_schema(field));
  return schema;
}

Json section_schema(const std::string& key) {
  Json properties = Json::object(), values = Json::array();
  for (const std::string& name : names_in(key)) {
    const std::string path = path_of(key, name);
    const Field* const field = find_field(path);
    properties[name] = field ? schema_of(*field) : section_schema(path);
    if (field) values.push_back(type_schema(*field));
  }
  if (key.empty()) {
    properties["sweep"] = {
        {"description",
         "Read by heed sweep: keys with lists of values, and seeds, random and halving."},
        {"type", "object"}};
  }
  const Json keys{{"properties", properties}, {"additionalProperties", false}};
  const Section* const section = find_section(key);
  Json schema = Json::object();
  if (section) schema["description"] = section->help;
  schema["type"] = Json::array({"object", "null"});
  if (section && section->shorthand) {
    schema.erase("type");
    Json object = keys;
    object["type"] = Json::array({"object", "null"});
    schema["anyOf"] = Json::array(
        {object,
         {{"not", {{"type", Json::array({"object", "array", "null"})}}}, {"allOf", values}}});
  } else {
    schema.update(keys);
  }
  return schema;
}

/// A schema that requires the key at `path`, with a value that satisfies `schema`.
Json given(std::string_view path, Json schema) {
  for (;;) {
    const std::size_t dot = path.rfind('.');
    const std::string name(path.substr(dot == std::string_view::npos ? 0 : dot + 1));
    Json outer{{"required", {name}}, {"properties", {{name, std::move(schema)}}}};
    if (dot == std::string_view::npos) return outer;
    path = path.substr(0, dot);
    outer["type"] = "object";
    schema = std::move(outer);
  }
}

/// The condition as a schema: the chooser has one of the values, or is absent and its default is
/// one of them.
Json holds(const Condition& condition) {
  const Field& field = *find_field(condition.chooser);
  Json all = Json::array();
  for (const std::string& value : condition.values) all.push_back(value_of(field, value));
  Json fits{{"enum", all}};
  if (condition.or_registered) fits = {{"anyOf", Json::array({fits, registered_name()})}};
  const std::string initial = field.print(Config{});
  if (std::ranges::find(condition.values, initial) == condition.values.end())
    return given(field.key, fits);
  return {{"not", given(field.key, {{"not", fits}})}};
}

/// The condition as an if-then schema.
Json rule_of(const Field& field, const Condition& condition) {
  Json concerned{{"not", {{"enum", Json::array({default_of(field)})}}}};
  if (!condition.of.empty()) {
    concerned = {{"enum", Json::array()}};
    for (const std::string& value : condition.of)
      concerned["enum"].push_back(value_of(field, value));
  }
  Json when = given(field.key, concerned);
  const std::string section = field.key.substr(0, std::min(field.key.rfind('.'), field.key.size()));
  const bool shorthand = std::ranges::any_of(
      sections(), [&](const Section& s) { return s.key == section && s.shorthand; });
  if (!condition.of.empty() && shorthand)  // a single value may set the whole section
    when = {{"anyOf", Json::array({when, given(section, concerned)})}};
  return {{"$comment", field.key + ": " + field.sentence(condition)},
          {"if", when},
          {"then", holds(condition)}};
}

}  // namespace

std::string write_yaml(const Config& config) { return write(config, without_comment, any); }

std::string write_effective_yaml(const Config& config) {
  return write(config, without_comment,
               [&](const Field& field) { return is_effective(field, config); });
}

nlohmann::json config_json(const Config& config) {
  nlohmann::json all = nlohmann::json::object();
  for (const Field& field : fields()) {
    std::string pointer = "/" + field.key;
    std::ranges::replace(pointer, '.', '/');
    all[nlohmann::json::json_pointer(pointer)] = field.get(config);
  }
  return all;
}

std::string values_text(const Field& field) {
  const std::string initial = field.print(Config{});
  const bool none = initial == "\"\"" || initial == "[]";
  std::string text = field.type + "; default: " + (none ? "none" : initial);
  for (const Condition& condition : field.conditions) {
    text += "; ";
    if (!condition.of.empty()) text += fmt::format("{} ", fmt::join(condition.of, ", "));
    text += field.sentence(condition);
  }
  if (!field.resume_refusal.empty()) text += "; kept on resume";
  return text;
}

std::string reference_yaml() {
  const auto before = [](const std::string& key) {
    const std::size_t depth = depth_of(key);
    const std::string gap = depth == 0 ? "\n" : "";
    if (const Field* field = find_field(key)) {
      return gap + comment(depth, field->help) + comment(depth, values_text(*field));
    }
    return gap + comment(depth, find_section(key)->help);
  };
  const Config config = parse_config("", "reference.yaml", reference_settings);
  return comment(
             0,
             "Every key of a config with its meaning, its type or choices, and its default. This "
             "page is printed from the table of keys (train/config/fields.cpp) and is itself a "
             "config, for a model that converts dates. Your configs need only the keys that "
             "differ from the defaults. Keys marked \"kept on resume\" cannot change after a run "
             "has begun.") +
         write(config, before, any);
}

std::string json_schema() {
  Json schema{{"$schema", "http://json-schema.org/draft-07/schema#"},
              {"title", "A heed config"},
              {"description", "Printed by heed show --schema."}};
  schema.update(section_schema(""));
  schema["allOf"] = Json::array();
  for (const Field& field : fields()) {
    for (const Condition& condition : field.conditions)
      schema["allOf"].push_back(rule_of(field, condition));
  }
  return schema.dump(1) + "\n";
}

}  // namespace heed
