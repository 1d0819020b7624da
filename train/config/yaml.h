#pragma once
/// Parses the YAML of a config into a small tree with the place of every value.
///
/// yaml-cpp parses the text. parse_yaml refuses what yaml-cpp accepts but no config may contain:
/// more than 128 KiB, more than 32 levels, more than 50,000 nodes or 128 KiB of text after
/// expanding aliases, an alias inside its own anchor, duplicate keys, quotes that are never closed,
/// keys without a colon, a second document, tags, invalid UTF-8 and control characters. Numbers
/// and booleans are parsed where a key's type is known (train/config/values.cpp).
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
  bool quoted = false;             ///< scalar in quotes or block style, which is always text
  std::string text;                ///< value of a scalar
  std::vector<YamlNode> items;     ///< items of a list
  std::vector<YamlEntry> entries;  ///< entries of a map, in the order of the file

  const YamlEntry* find(std::string_view key) const;

  struct Found {
    Place place;        ///< place of the deepest key that is given, or of its scalar value
    std::size_t depth;  ///< number of bytes of the path that are given; npos: all
    bool complete;      ///< true: the whole path is given
  };
  /// Finds the key at a dotted path.
  Found place_of(std::string_view path) const;
};

struct YamlEntry {
  std::string key;
  Place place;  ///< place of the key
  YamlNode value;
};

/// The maximum size of a config: more than three times that of the reference page. yaml-cpp needs
/// about 0.4 s for a list of 1 MiB in brackets, because it scans such a list to its end before it
/// emits the first event.
inline constexpr std::size_t yaml_max_bytes = std::size_t{128} << 10;
inline constexpr std::size_t yaml_max_nodes = 50'000;
inline constexpr int yaml_max_depth = 32;

/// The single document in `text`; a null node if there is none. Errors are added to `problems`; the
/// result is nullopt if no tree could be built. For an override, `source` is its number, and `key`
/// the dotted path whose value is `text`.
std::optional<YamlNode> parse_yaml(std::string_view text, int source, Problems& problems,
                                   std::string_view key = "");

/// A YAML scalar with this text as its value: plain if YAML 1.1 and 1.2 certainly read it as text,
/// otherwise in double quotes. The text must not contain control characters.
std::string yaml_text(std::string_view text);

}  // namespace heed
