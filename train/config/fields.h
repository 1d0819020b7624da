#pragma once
/// Every key of a config in one table. Reading, errors, overrides, printing, the reference page and
/// the JSON Schema come from it, and so does what `resume` may change. A default is whatever the
/// option struct's initialiser says.
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

struct Bounds {
  double low = 0.0, high = 0.0;
  bool low_in = true, high_in = true;  ///< the bound itself is allowed
};

/// A key has an effect only where another key has one of some values.
struct Condition {
  std::string chooser;              ///< the other key, such as tokenizer.kind
  std::vector<std::string> values;  ///< of the chooser, as printed
  std::string remark = {};          ///< what to do instead, where that is not obvious
  std::vector<std::string> of =
      {};  ///< values of this key that need it; empty: all but the default
};

/// What `heed resume` makes of a value that differs from the run's.
struct ResumeRule {
  enum class Verdict { adopt, refuse, ignore };
  Verdict verdict = Verdict::adopt;
  std::string reason = {};              ///< of a refusal
  std::vector<std::string> alike = {};  ///< values that may replace one another all the same
};

struct Field {
  std::string key;   ///< dotted path, such as train.steps
  std::string help;  ///< one sentence or two
  FieldKind kind;
  std::string type;                        ///< in words, with the range: "whole number, 1 to 62"
  std::vector<std::string> choices = {};   ///< of a choice; of a number, words that may replace it
  Bounds bounds = {};                      ///< of numbers
  std::vector<Condition> conditions = {};  ///< all of them must hold
  bool resettable = true;  ///< reset where the command line takes away the effect that it had
  ResumeRule on_resume = {};

  /// Sets the member from a node; on a complaint it is left alone.
  std::function<std::optional<Complaint>(Config&, const YamlNode&)> read = {};
  /// The member as YAML on one line. Equal texts mean equal values.
  std::function<std::string(const Config&)> print = {};

  bool is_default(const Config& config) const;
  /// The condition's sentence: "only for kind: sentencepiece".
  std::string sentence(const Condition& condition) const;

  // For the table's rows.
  Field& only(std::string chooser, std::vector<std::string> values, std::string remark = "");
  Field& refuse_on_resume(std::string reason, std::vector<std::string> alike = {});
  Field& never_reset();
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

/// "a", "a or b", "a, b or c"
std::string either(const std::vector<std::string>& words);

}  // namespace heed
