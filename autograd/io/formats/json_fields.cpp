#include "autograd/io/formats/json_fields.h"

#include <fmt/format.h>

#include <algorithm>

#include "autograd/base/error.h"
#include "autograd/io/message_text.h"

namespace heed {

JsonFields::JsonFields(const nlohmann::json& value, std::string where)
    : object_(value), where_(std::move(where)) {
  if (!object_.is_object()) refuse("must be an object");
}

const nlohmann::json& JsonFields::at(const char* key) {
  static const nlohmann::json none;
  read_.emplace_back(key);
  const auto found = object_.find(key);
  return found == object_.end() ? none : *found;
}

std::string JsonFields::text(const char* key) {
  const nlohmann::json& value = at(key);
  if (value.is_null()) return "";
  if (!value.is_string()) refuse(fmt::format("\"{}\" must be a string", key));
  return value.get<std::string>();
}

bool JsonFields::flag(const char* key, bool otherwise) {
  const nlohmann::json& value = at(key);
  if (value.is_null()) return otherwise;
  if (!value.is_boolean()) refuse(fmt::format("\"{}\" must be true or false", key));
  return value.get<bool>();
}

void JsonFields::expect(const char* key, std::initializer_list<nlohmann::json> values) {
  const nlohmann::json& value = at(key);
  if (value.is_null() || std::ranges::find(values, value) != values.end()) return;
  refuse(fmt::format("\"{}\" is {}, which heed does not support", key, shown(value.dump(), 60)));
}

void JsonFields::done() const {
  for (const auto& [key, value] : object_.items()) {
    if (std::ranges::find(read_, key) == read_.end())
      refuse(fmt::format("heed does not know the key \"{}\"", shown(key)));
  }
}

void JsonFields::refuse(const std::string& what) const {
  throw Error(Exit::bad_input, "{}: {}", where_, what);
}

}  // namespace heed
