#pragma once
/// YAML as configs use it: text in, a small tree out, with the place of every value.
///
/// yaml-cpp parses the text; what it accepts but a config must not contain is refused here: more than
/// 128 KiB, more than 32 levels, more than 50,000 nodes or 128 KiB of text after expanding aliases,
/// an alias inside its own anchor, duplicate keys, quotes that are never closed, keys without a
/// colon, a second document, tags, invalid UTF-8, control characters. Numbers and truth values are
/// parsed where a key's type is known (train/config/values.cpp).
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "train/config/problems.h"

namespace heed {

struct YamlEntry;

struct YamlNode {
  enum class Kind { null, scalar, list, map };
  Kind kind = Kind::null;
  Place place;
  bool quoted = false;             ///< scalar: written in quotes or as a block, so certainly text
  std::string text;                ///< scalar
  std::vector<YamlNode> items;     ///< list
  std::vector<YamlEntry> entries;  ///< map, in the order of the file

  YamlEntry* find(std::string_view key);
  const YamlEntry* find(std::string_view key) const;

  struct Found {
    Place place;        ///< of the last key on the path that is given, or of its value
    std::size_t depth;  ///< bytes of the path that are given; npos if all are
    bool complete;      ///< all of the path is given
  };
  /// Where the key at a dotted path is given.
  Found place_of(std::string_view path) const;
};

struct YamlEntry {
  std::string key;
  Place place;  ///< of the key
  YamlNode value;
};

/// Ten times the reference page. yaml-cpp takes about 0.4 s for 1 MiB between brackets, which it
/// reads to the end before it reports the beginning.
inline constexpr std::size_t yaml_max_bytes = std::size_t{128} << 10;
inline constexpr std::size_t yaml_max_nodes = 50'000;
inline constexpr int yaml_max_depth = 32;

/// The one document in `text`; a text without any is a null node. What is wrong goes to `problems`;
/// nullopt if no tree could be built at all. `key` is the dotted path whose value the
/// text is.
std::optional<YamlNode> parse_yaml(std::string_view text, int source, Problems& problems,
                                   std::string_view key = "");

/// A scalar that reads back as this text: plain if that is safe, else in double quotes.
std::string yaml_text(std::string_view text);

}  // namespace heed
