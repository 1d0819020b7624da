#include "autograd/base/json_text.h"

#include <fmt/format.h>

#include <set>
#include <vector>

#include "autograd/base/error.h"
#include "autograd/base/message_text.h"

namespace heed {
namespace {

/// nlohmann::json's messages begin with its own error number and place: "[json.exception…] parse
/// error at line 1, column 5: …". What follows the place is for people; it may quote bytes of the
/// file, which must not reach a terminal unescaped.
std::string plain_reason(const nlohmann::json::parse_error& error) {
  const std::string_view text = error.what();
  std::string reason;
  for (const char c : text.substr(text.find(": ") + 2)) {
    if (c >= 0x20 && c < 0x7F) {
      reason += c;
    } else {
      reason += fmt::format("<{:02X}>", static_cast<unsigned char>(c));
    }
  }
  return reason;
}

}  // namespace

nlohmann::json parse_json(std::string_view text, const std::string& name, int depth) {
  using Event = nlohmann::json::parse_event_t;
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto watch = [&](int level, Event event, nlohmann::json& value) {
    const bool opens = event == Event::object_start || event == Event::array_start;
    if (opens && level >= depth)
      throw Error(Exit::bad_input, fmt::format("{}: nested more than {} levels deep", name, depth));
    if (event == Event::object_start) keys.emplace_back();
    if (event == Event::object_end) keys.pop_back();
    if (event == Event::key && !keys.back().insert(value.get<std::string>()).second)
      throw Error(Exit::bad_input, fmt::format("{}: duplicate key \"{}\"", name,
                                               shown(value.get<std::string>(), 200)));
    return true;
  };
  // The parser takes a NUL for the end and would not look at what follows.
  if (const auto nul = text.find('\0'); nul != std::string_view::npos)
    throw Error(Exit::bad_input,
                fmt::format("{}: byte {}: not valid JSON: a NUL byte", name, nul + 1));
  try {
    return nlohmann::json::parse(text, watch);
  } catch (const nlohmann::json::parse_error& error) {
    throw Error(Exit::bad_input, fmt::format("{}: byte {}: not valid JSON: {}", name, error.byte,
                                             plain_reason(error)));
  } catch (const nlohmann::json::out_of_range&) {
    throw Error(Exit::bad_input, fmt::format("{}: a number is out of range", name));
  }
}

std::int64_t whole_number(const nlohmann::json& value) {
  const bool fits = value.is_number_unsigned() ? value.get<std::uint64_t>() <= INT64_MAX
                                               : value.is_number_integer();
  if (!fits) throw nlohmann::json::type_error::create(302, "type must be a whole number", &value);
  return value.get<std::int64_t>();
}

}  // namespace heed
