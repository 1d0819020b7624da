#pragma once
/// Reports errors and warnings that concern several keys, each with its place in the file or on the
/// command line.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/base/option_error.h"
#include "train/config/problems.h"
#include "train/config/yaml.h"

namespace heed {

class KeyChecks {
 public:
  KeyChecks(const YamlNode& tree, Problems& problems) : tree_(tree), problems_(problems) {}

 protected:
  using Keys = std::vector<std::string_view>;

  /// Reports `message` about the first key, unless an error about any of the keys has been
  /// reported. The place in the message is that of the key whose path exists in the tree to the
  /// greatest depth; at equal depth, the command line takes precedence over the file.
  void add_error(const Keys& keys, const std::string& message) {
    if (!any_wrong(keys)) problems_.add(place_of(keys), std::string(keys.front()), message);
  }

  void add_errors(const OptionErrors& errors) {
    for (const OptionError& error : errors) add_error(error.keys, error.message);
  }

  void warn(const Keys& keys, const std::string& message) {
    if (!any_wrong(keys)) problems_.warn(place_of(keys), std::string(keys.front()), message);
  }

  bool any_wrong(const Keys& keys) const {
    return std::ranges::any_of(keys, [&](std::string_view key) { return problems_.about(key); });
  }

  Place place_of(const Keys& keys) const {
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
