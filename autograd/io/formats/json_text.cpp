#include "autograd/io/formats/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "autograd/base/error.h"
#include "autograd/io/message_text.h"

namespace heed {
namespace {

/// Checks a text before it becomes a value (nlohmann's SAX interface). A parser callback could do
/// this too, but the parser would then visit all members of the enclosing object after each object,
/// which takes time quadratic in their number.
class Strict {
 public:
  Strict(const std::string& name, int depth) : name_(name), depth_(depth) {}

  bool null() { return true; }
  bool boolean(bool) { return true; }
  bool number_integer(std::int64_t) { return true; }
  bool number_unsigned(std::uint64_t) { return true; }
  bool number_float(double, const std::string&) { return true; }
  bool string(std::string&) { return true; }
  bool binary(nlohmann::json::binary_t&) { return true; }
  bool start_array(std::size_t) { return open(); }
  bool end_array() { return --level_, true; }
  bool start_object(std::size_t) { return keys_.emplace_back(), open(); }
  bool end_object() { return keys_.pop_back(), --level_, true; }
  bool key(std::string& key) {
    if (!keys_.back().insert(key).second)
      refuse(fmt::format("duplicate key \"{}\"", shown(key, 200)));
    return true;
  }
  bool parse_error(std::size_t byte, const std::string&, const nlohmann::json::exception& error) {
    if (dynamic_cast<const nlohmann::json::out_of_range*>(&error) != nullptr)
      refuse("a number is out of range");
    refuse(fmt::format("byte {}: not valid JSON: {}", byte, plain_reason(error)));
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(Exit::bad_input, "{}: {}", name_, what);
  }
  bool open() {
    if (++level_ > depth_) refuse(fmt::format("nested more than {} levels deep", depth_));
    return true;
  }

  const std::string& name_;
  int depth_, level_ = 0;
  std::vector<std::set<std::string>> keys_;  // keys of each object that is still open
};

/// The maximum number of arrays and objects that are open at the same time.
int depth_of(std::string_view text) {
  int depth = 0, level = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\') ++i;
    if (c == '"') in_string = !in_string;
    if (in_string) continue;
    if (c == '[' || c == '{') depth = std::max(depth, ++level);
    if (c == ']' || c == '}') --level;
  }
  return depth;
}

}  // namespace

std::string plain_reason(const nlohmann::json::exception& error) {
  std::string_view text = error.what();
  text.remove_prefix(text.find("] ") + 2);
  if (text.starts_with("parse error")) text.remove_prefix(text.find(": ") + 2);
  return shown(text, 500);
}

nlohmann::json parse_json_quickly(std::string_view text, int depth) {
  if (depth_of(text) > depth || text.find('\0') != std::string_view::npos)
    return nlohmann::json::value_t::discarded;
  return nlohmann::json::parse(text, nullptr, false);
}

nlohmann::json parse_json(std::string_view text, const std::string& name, int depth) {
  // The parser treats a NUL as the end of the text and would ignore the rest.
  if (const auto nul = text.find('\0'); nul != std::string_view::npos)
    throw Error(Exit::bad_input, "{}: byte {}: not valid JSON: a NUL byte", name, nul + 1);
  Strict strict(name, depth);
  nlohmann::json::sax_parse(text, &strict);
  return nlohmann::json::parse(text);
}

std::int64_t whole_number(const nlohmann::json& value) {
  const bool fits = value.is_number_unsigned() ? value.get<std::uint64_t>() <= INT64_MAX
                                               : value.is_number_integer();
  if (!fits) throw nlohmann::json::type_error::create(302, "type must be a whole number", &value);
  return value.get<std::int64_t>();
}

}  // namespace heed
