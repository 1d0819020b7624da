/// The field table as a JSON Schema (draft 7, which editors and validators know best).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "train/config/config.h"
#include "train/config/fields.h"

namespace heed {
namespace {

using Json = nlohmann::ordered_json;

const Json plain_text = {{"type", Json::array({"string", "number", "boolean"})},
                         {"pattern", "^[^\\x00-\\x1f\\x7f]*$"}};  // YAML calls 2016 a number

/// A default, or another value as the table prints it, as JSON.
Json value_of(const Field& field, const std::string& text) {
  if (field.kind == FieldKind::choice || field.kind == FieldKind::text)
    return text == "\"\"" ? "" : text;
  return Json::parse(text, nullptr, false).is_discarded() ? Json(text) : Json::parse(text);
}

Json number_in(const char* type, const Bounds& bounds) {
  Json schema{{"type", type}};
  const auto bound = [](double x) {
    return x == std::floor(x) && std::abs(x) < 1e15 ? Json(static_cast<std::int64_t>(x)) : Json(x);
  };
  schema[bounds.low_in ? "minimum" : "exclusiveMinimum"] = bound(bounds.low);
  if (bounds.high < 1e300)
    schema[bounds.high_in ? "maximum" : "exclusiveMaximum"] = bound(bounds.high);
  return schema;
}

Json type_of(const Field& field) {
  switch (field.kind) {
    case FieldKind::whole:
    case FieldKind::number: {
      Json schema = number_in(field.kind == FieldKind::whole ? "integer" : "number", field.bounds);
      if (field.choices.empty()) return schema;
      return {{"anyOf", Json::array({{{"enum", field.choices}}, schema})}};
    }
    case FieldKind::truth:
      return {{"type", "boolean"}};
    case FieldKind::text:
      return plain_text;
    case FieldKind::files: {
      Json file = plain_text;
      file["minLength"] = 1;
      return {{"anyOf", Json::array({file, {{"type", "array"}, {"items", file}}})}};
    }
    case FieldKind::choice:
      return {{"enum", field.choices}};
    case FieldKind::pair:
      return {{"type", "array"},
              {"items", number_in("number", field.bounds)},
              {"minItems", 2},
              {"maxItems", 2}};
  }
  return {};
}

Json schema_of(const Field& field) {
  Json schema{{"description", fmt::format("{} ({})", field.help, field.type)},
              {"default", value_of(field, field.print(Config{}))}};
  schema.update(type_of(field));
  return schema;
}

Json section_schema(const std::string& key) {
  Json properties = Json::object(), values = Json::array();
  for (const std::string& name : names_in(key)) {
    const std::string path = key.empty() ? name : key + "." + name;
    const Field* const field = find_field(path);
    properties[name] = field ? schema_of(*field) : section_schema(path);
    if (field) values.push_back(type_of(*field));
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

/// That the key at `path` is given and fits `schema`.
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

/// That the key has one of the values, by default too.
Json has_one(const std::string& key, const std::vector<std::string>& values) {
  const Field& field = *find_field(key);
  Json all = Json::array();
  for (const std::string& value : values) all.push_back(value_of(field, value));
  const std::string initial = field.print(Config{});
  if (std::ranges::find(values, initial) == values.end()) return given(key, {{"enum", all}});
  return {{"not", given(key, {{"not", {{"enum", all}}}})}};
}

/// The condition as if and then.
Json rule_of(const Field& field, const Condition& condition) {
  Json concerned{{"not", {{"enum", {value_of(field, field.print(Config{}))}}}}};
  if (!condition.of.empty()) {
    concerned = {{"enum", Json::array()}};
    for (const std::string& value : condition.of)
      concerned["enum"].push_back(value_of(field, value));
  }
  if (field.kind == FieldKind::files) concerned = {{"not", {{"enum", {Json::array()}}}}};
  Json when = given(field.key, concerned);
  const std::string section = field.key.substr(0, std::min(field.key.rfind('.'), field.key.size()));
  const Section* const outer = find_section(section);
  if (!condition.of.empty() && outer && outer->shorthand)  // the value may stand for the section
    when = {{"anyOf", Json::array({when, given(section, concerned)})}};
  return {{"$comment", field.key + ": " + field.sentence(condition)},
          {"if", when},
          {"then", has_one(condition.chooser, condition.values)}};
}

}  // namespace

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
