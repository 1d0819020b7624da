#pragma once
/// Records the configs of the tests as JSON for test_schema.py: if HEED_SCHEMA_CASES=FILE is set,
/// each config that a test parses is appended to FILE as a line with a JSON object.
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "train/config/fields.h"
#include "train/config/overrides.h"

namespace heed {

/// The tree as JSON, with the types that an editor's YAML parser assigns (YAML 1.2 without octal
/// and hexadecimal numbers).
inline nlohmann::json as_json(const YamlNode& node) {
  using Kind = YamlNode::Kind;
  nlohmann::json json;
  if (node.kind == Kind::scalar) {
    if (node.quoted) return node.text;
    if (node.text == "true" || node.text == "false") return node.text == "true";
    json = node.text;
    if (is_decimal(node.text)) {
      const auto number = nlohmann::json::parse(node.text, nullptr, false);
      if (!number.is_discarded()) json = number;
    }
  } else if (node.kind == Kind::list) {
    json = nlohmann::json::array();
    for (const YamlNode& item : node.items) json.push_back(as_json(item));
  } else if (node.kind == Kind::map) {
    json = nlohmann::json::object();
    for (const YamlEntry& entry : node.entries) json[entry.key] = as_json(entry.value);
  }
  return json;
}

class SchemaCase {
 public:
  explicit SchemaCase(std::string text, std::span<const std::string> overrides = {}) {
    const char* const file = std::getenv("HEED_SCHEMA_CASES");
    if (file == nullptr) return;
    file_ = file;
    Problems problems("", overrides);
    std::optional<YamlNode> tree = parse_yaml(text, 0, problems);
    if (tree) apply_overrides(*tree, overrides, problems);
    case_["tree"] = tree ? as_json(*tree) : nlohmann::json();
    // test_schema.py skips a config that is not valid YAML or whose overrides cannot be applied.
    case_["readable"] = tree && !problems.any() && tree->kind != YamlNode::Kind::null;
    case_["text"] = std::move(text);
    case_["overrides"] = overrides;
  }

  /// `verdict`: "accepted", "shipped: NAME", or the error message.
  void record(const std::string& verdict) const {
    if (file_.empty()) return;
    nlohmann::json line = case_;
    line["verdict"] = verdict;
    std::ofstream(file_, std::ios::app)
        << line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  }

 private:
  std::string file_;
  nlohmann::json case_;
};

}  // namespace heed
