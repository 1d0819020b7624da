#include "train/config/overrides.h"

#include <algorithm>

#include "train/config/fields.h"

namespace heed {
namespace {

bool is_key(std::string_view key) {
  const auto is_part = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  };
  return !key.empty() && std::ranges::all_of(key, is_part) && key.front() != '.' &&
         key.back() != '.' && key.find("..") == std::string_view::npos &&
         std::ranges::count(key, '.') < yaml_max_depth;
}

/// Turns a node into a map if this loses no value: if the node is empty, or is the single value
/// that sets all keys of a section (model.layers: 3).
void make_map(YamlNode& node, const std::string& key) {
  const Section* section = find_section(key);
  if (node.kind == YamlNode::Kind::scalar && section && section->shorthand) {
    YamlNode map;
    map.place = node.place;
    for (const std::string& name : names_in(key)) map.entries.push_back({name, node.place, node});
    map.kind = YamlNode::Kind::map;
    node = std::move(map);
  } else if (node.kind == YamlNode::Kind::null) {
    node.kind = YamlNode::Kind::map;
  }
}

/// Puts `value` at the dotted `key`, creating missing maps. Returns false if the path continues
/// below a field that has a value (train.steps.x).
bool put(YamlNode& root, std::string_view key, YamlNode value) {
  YamlNode* node = &root;
  const Place place = value.place;
  for (std::size_t begin = 0;;) {
    make_map(*node, std::string(key.substr(0, begin == 0 ? 0 : begin - 1)));
    if (node->kind != YamlNode::Kind::map)  // reported when the section is read
      return begin == 0 || find_field(key.substr(0, begin - 1)) == nullptr;
    const std::size_t end = std::min(key.find('.', begin), key.size());
    const std::string name(key.substr(begin, end - begin));
    auto entry = std::ranges::find(node->entries, name, &YamlEntry::key);
    if (entry == node->entries.end()) {
      entry = node->entries.insert(entry, {name, place, YamlNode{}});
      entry->value.place = place;
    }
    if (end == key.size()) {
      entry->place = place;
      entry->value = std::move(value);
      return true;
    }
    node = &entry->value;
    begin = end + 1;
  }
}

}  // namespace

void apply_overrides(YamlNode& root, std::span<const std::string> overrides, Problems& problems) {
  for (std::size_t i = 0; i < overrides.size(); ++i) {
    const std::string_view text = overrides[i];
    const int source = static_cast<int>(i) + 1;
    const std::size_t equals = text.find('=');
    const std::string_view key = text.substr(0, equals);
    if (equals == std::string_view::npos || !is_key(key)) {
      const bool no_key =
          equals == std::string_view::npos && !find_field(text) && !find_section(text);
      problems.add({source}, "",
                   std::string("expected key=value, as in decode.beam=4") +
                       (no_key ? "; files are given by options, as in --input FILE" : ""));
      continue;
    }
    if (auto value = parse_yaml(text.substr(equals + 1), source, problems, key)) {
      value->place = {source};
      if (!put(root, key, std::move(*value)))
        problems.add({source}, std::string(key), "unknown key");
    } else {
      problems.mark_invalid(std::string(key));
    }
  }
}

}  // namespace heed
