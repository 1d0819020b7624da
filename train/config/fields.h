#pragma once
/// The table of all keys of a config. The code that reads, overrides, checks and prints configs
/// uses it, as does `heed resume` to check changes. The reference page and the JSON Schema are
/// printed from it. A key's default is the initialiser of its member in the option struct.
#include <functional>
#include <limits>
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
  bool low_in = true, high_in = true;  ///< true: the bound itself is allowed
};

/// A key has an effect only if another key, the chooser, has one of these values.
struct Condition {
  std::string chooser;              ///< a key, such as tokenizer.kind
  std::vector<std::string> values;  ///< values of the chooser, as printed
  std::string remark = {};          ///< a reason or what to do instead, if that is not obvious
  std::vector<std::string> of =
      {};  ///< values of the key that need the condition; empty: all but the default
  bool or_registered = false;  ///< true: in the JSON Schema, any registered name meets it, too
};

struct Field {
  std::string key;   ///< dotted path, such as train.steps
  std::string help;  ///< meaning of the key, in full sentences
  FieldKind kind;
  Range range = {};                       ///< bounds of a number, or of each number of a list
  std::string type = {};                  ///< type and range in words: "whole number, 1 to 62"
  std::vector<std::string> choices = {};  ///< names of a choice, or words that may replace a number
  bool open = false;                      ///< plugins may register further choices
  std::vector<Condition> conditions = {};  ///< all of them must hold
  bool resettable = true;  ///< reset to the default if the command line makes it ineffective
  std::string resume_refusal = {};  ///< why `heed resume` refuses a change; "": it is allowed
  std::vector<std::string> interchangeable =
      {};                          ///< values that may replace one another despite resume_refusal
  bool reported_on_resume = true;  ///< true: `resume` reports a changed value
  nlohmann::json in_old_runs =
      {};  ///< value for a run's config that lacks the key; null: the default

  /// get converts the member to JSON; set assigns it from JSON.
  std::function<nlohmann::json(const Config&)> get = {};
  std::function<void(Config&, const nlohmann::json&)> set = {};

  /// The node's value. Throws ValueError if it does not have the field's type or is out of range.
  nlohmann::json read(const YamlNode& node) const;
  /// The member as YAML on one line.
  std::string print(const Config& config) const;
  bool is_default(const Config& config) const;
  /// The range in words: "1 to 62", "0 to below 1", "at least 0".
  std::string range_text() const;
  /// The condition in words: "only for kind: sentencepiece".
  std::string sentence(const Condition& condition) const;

  // Setters for the rows of the table.
  Field& only(std::string chooser, std::vector<std::string> values, std::string remark = "");
  Field& keep_on_resume(std::string reason, std::vector<std::string> interchangeable = {});
  Field& in_words(std::string type);
};

/// A key that contains other keys.
struct Section {
  std::string key;
  std::string help;
  bool shorthand = false;  ///< one value may set all its keys (model.layers: 3)
};

/// All fields, in the order of the reference page. After a plugin has registered a name, the next
/// call returns a new table with this choice; the rows of earlier tables remain valid.
const std::vector<Field>& fields();
const std::vector<Section>& sections();
const Field* find_field(std::string_view key);
const Section* find_section(std::string_view key);

/// The keys that accept a value and whose last part is `name`: sections with a shorthand, followed
/// by fields.
std::vector<std::string> keys_named(std::string_view name);

/// The names of the fields and sections directly in `section` ("": the top level).
std::vector<std::string> names_in(std::string_view section);

/// A field's type, default and conditions for the reference page: "number, 0 to below 1; default:
/// 0.1; only for init: normal".
std::string values_text(const Field& field);

/// True if the text is a decimal number: 5, 0.5, 1e-3.
bool is_decimal(std::string_view text);
/// The number as JSON; a whole number from 0 to below 10^15 becomes an integer.
nlohmann::json number_json(double x);

/// Sets the values that follow from others (a language model has no encoder layers), then checks
/// values against one another: first by the conditions of the field table, then by the checks of
/// checks.cpp. Resets a key to its default if the command line makes it ineffective. `config` was
/// read from `tree`, which contains the places for messages; `file` is the config without the
/// command line. An error is not reported if one of its keys already has an error.
void check_config(Config& config, const Config& file, const YamlNode& tree, Problems& problems);

/// "a", "a or b", "a, b or c"
std::string either(const std::vector<std::string>& words);

/// The files and folders that the config names: plugins, data, tokenizers and runs, and words of
/// other keys, which may also be the name of a file. No output may replace them.
std::vector<std::string> named_files(const Config& config);

}  // namespace heed
