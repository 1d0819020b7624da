#pragma once
/// Every key of a config in one table. Reading, errors, overrides, printing, the reference page and
/// the JSON Schema come from it, and so does what `resume` may change. A default is whatever the
/// option struct's initialiser says.
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "train/config/config.h"
#include "train/config/yaml.h"

namespace heed {

enum class FieldKind { integer, number, boolean, text, files, choice, pair, integers };

/// Bounds of a number.
struct Range {
  double low = 0.0, high = std::numeric_limits<double>::max();
  bool low_in = true, high_in = true;  ///< the bound itself is allowed
};

/// A key has an effect only if another key has one of these values.
struct Condition {
  std::string chooser;              ///< the other key, such as tokenizer.kind
  std::vector<std::string> values;  ///< of the chooser, as printed
  std::string remark = {};          ///< what to do instead, if that is not obvious
  std::vector<std::string> of =
      {};                      ///< values of this key that need it; empty: all but the default
  bool or_registered = false;  ///< a value of the chooser that a plugin registers may meet it
};

struct Field {
  std::string key;   ///< dotted path, such as train.steps
  std::string help;  ///< one sentence or two
  FieldKind kind;
  Range range = {};                        ///< of numbers
  std::string type = {};                   ///< in words, with the range: "whole number, 1 to 62"
  std::vector<std::string> choices = {};   ///< of a choice; of a number, a word that may replace it
  bool open = false;                       ///< of a choice: plugins may register further values
  std::vector<Condition> conditions = {};  ///< all of them must hold
  bool resettable = true;           ///< may be reset if the command line makes it ineffective
  std::string resume_refusal = {};  ///< why `heed resume` refuses another value; "": it does not
  std::vector<std::string> interchangeable =
      {};                          ///< values that may nevertheless replace one another
  bool reported_on_resume = true;  ///< `resume` reports a changed value
  nlohmann::json in_old_runs =
      {};  ///< its value in a run's config that lacks it; null: the default

  /// The member as a value of JSON, and back.
  std::function<nlohmann::json(const Config&)> get = {};
  std::function<void(Config&, const nlohmann::json&)> set = {};

  /// The value that a node holds; throws ValueError.
  nlohmann::json read(const YamlNode& node) const;
  /// The member as YAML on one line.
  std::string print(const Config& config) const;
  bool is_default(const Config& config) const;
  /// The range in words: "1 to 62", "0 to below 1", "at least 0".
  std::string range_text() const;
  /// The condition's sentence: "only for kind: sentencepiece".
  std::string sentence(const Condition& condition) const;

  // For the table's rows.
  Field& only(std::string chooser, std::vector<std::string> values, std::string remark = "");
  Field& keep_on_resume(std::string reason, std::vector<std::string> interchangeable = {});
  Field& in_words(std::string type);
};

/// A key that holds keys.
struct Section {
  std::string key;
  std::string help;
  bool shorthand = false;  ///< one value may set all its keys (model.layers: 3)
};

/// In the order of the reference page. Names that plugins register are choices from then on, in a
/// new table; a row of an earlier one stays valid.
const std::vector<Field>& fields();
const std::vector<Section>& sections();
const Field* find_field(std::string_view key);
const Section* find_section(std::string_view key);

/// The names that may follow `section` ("": the top level): both fields and sections.
std::vector<std::string> names_in(std::string_view section);

/// A field's values for the reference: "number, 0 to below 1; default: 0.1; only for init: normal".
std::string values_text(const Field& field);

/// Plain decimal, as numbers are written: 5, 0.5, 1e-3.
bool is_decimal(std::string_view text);
/// A whole number where it is one.
nlohmann::json number_json(double x);

/// Checks values against one another, first by the conditions of the field table, and settles those
/// that follow from others (a language model has no encoder layers). `tree` is what `config` was
/// read from, for the places of errors; `file` is the config without the command line. A check is
/// skipped if one of its keys is already known to be wrong.
void check_config(Config& config, const Config& file, const YamlNode& tree, Problems& problems);

/// "a", "a or b", "a, b or c"
std::string either(const std::vector<std::string>& words);

}  // namespace heed
