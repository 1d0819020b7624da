#pragma once
/// Reports errors and warnings that concern several keys, each with its place in the file or on the
/// command line.
#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>

#include "train/config/problems.h"
#include "train/config/yaml.h"

namespace heed {

class KeyChecks {
 public:
  KeyChecks(const YamlNode& tree, Problems& problems) : tree_(tree), problems_(problems) {}

 protected:
  using Keys = std::initializer_list<std::string_view>;

  /// Reports `message` about the first key, unless an error about any of the keys has been
  /// reported. The place in the message is that of the key whose path exists in the tree to the
  /// greatest depth; at equal depth, the command line takes precedence over the file.
  void add_error(Keys keys, const std::string& message) {
    if (!any_wrong(keys)) problems_.add(place_of(keys), std::string(*keys.begin()), message);
  }

  void warn(Keys keys, const std::string& message) {
    if (!any_wrong(keys)) problems_.warn(place_of(keys), std::string(*keys.begin()), message);
  }

  bool any_wrong(Keys keys) const {
    return std::ranges::any_of(keys, [&](std::string_view key) { return problems_.about(key); });
  }

  Place place_of(Keys keys) const {
    YamlNode::Found best{};
    for (const std::string_view key : keys) {
      const YamlNode::Found found = tree_.place_of(key);
      if (found.depth > best.depth ||
          (found.depth == best.depth && found.place.source > 0 && best.place.source == 0)) {
        best = found;
      }
    }
    return best.place;
  }

  bool from_command_line(std::string_view key) const {
    const YamlNode::Found found = tree_.place_of(key);
    return found.complete && found.place.source > 0;
  }

  const YamlNode& tree_;
  Problems& problems_;
};

}  // namespace heed
