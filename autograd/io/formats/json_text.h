#pragma once
/// JSON from files that may be damaged or malicious.
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace heed {

/// Parses one JSON value strictly: no duplicate keys, at most `depth` levels (serialising recurses
/// once per level), valid UTF-8, no NUL and no text after the value. Throws Error(bad_input) with a
/// message that begins with `name`.
nlohmann::json parse_json(std::string_view text, const std::string& name, int depth = 32);

/// Parses one JSON value in one pass, for files of many lines: accepts duplicate keys, and returns a
/// discarded value in place of the other errors, which parse_json explains.
nlohmann::json parse_json_quickly(std::string_view text, int depth = 32);

/// The reason in a message of nlohmann::json, without the error number and, in parse errors, the
/// position. It may quote bytes of a file, so it is escaped for the terminal.
std::string plain_reason(const nlohmann::json::exception& error);

/// The value as an integer. Throws json::type_error for a value that is not a number, and for
/// numbers that are not signed 64-bit integers, which get<std::int64_t>() would cast silently.
std::int64_t whole_number(const nlohmann::json& value);

}  // namespace heed
