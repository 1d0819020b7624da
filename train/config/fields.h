#pragma once
/// Every key of a config in one table. Reading, unknown-key errors, overrides, printing and the
/// reference page all come from it; a default is whatever the option struct's initialiser says.
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "train/config/config.h"
#include "train/config/yaml.h"

namespace heed {

/// What is wrong with a value, and where (in a list: at the item).
struct Complaint {
  Place place;
  std::string message;
};

enum class FieldKind { whole, number, truth, text, files, choice, pair };

struct Field {
  std::string key;   ///< dotted path, such as train.steps
  std::string help;  ///< one sentence or two
  FieldKind kind;
  std::string type;                  ///< in words, with the range: "whole number, at least 1"
  std::vector<std::string> choices;  ///< for a choice
  double low = 0.0, high = 0.0;      ///< bounds of numbers, themselves in or out as `type` says

  /// Sets the member from a node; on a complaint it is left alone.
  std::function<std::optional<Complaint>(Config&, const YamlNode&)> read;
  /// The member as YAML on one line. Equal texts mean equal values.
  std::function<std::string(const Config&)> print;
};

/// A key that holds keys.
struct Section {
  std::string key;
  std::string help;
  bool shorthand = false;  ///< one value may stand for all its keys (model.layers: 3)
};

const std::vector<Field>& fields();  ///< in the order of the reference page
const std::vector<Section>& sections();
const Field* find_field(std::string_view key);
const Section* find_section(std::string_view key);

/// The names that may follow `section` (""; the top): both fields and sections.
std::vector<std::string> names_in(std::string_view section);

}  // namespace heed
