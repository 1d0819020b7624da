/// The field table written out: as a resolved config, and as the reference page.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "autograd/base/error.h"
#include "train/config/config.h"
#include "train/config/fields.h"

namespace heed {
namespace {

constexpr std::size_t page_width = 100;

std::size_t depth_of(std::string_view key) {
  return static_cast<std::size_t>(std::ranges::count(key, '.'));
}

std::string last_part(const std::string& key) { return key.substr(key.rfind('.') + 1); }

/// A comment at this depth, broken into lines.
std::string comment(std::size_t depth, const std::string& text) {
  const std::string margin = std::string(2 * depth, ' ') + "#";
  std::string out, line = margin;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (line.size() + 1 + word.size() > page_width) {
      out += line + "\n";
      line = margin;
    }
    line += " " + word;
    begin = end + 1;
  }
  return out + line + "\n";
}

/// Every key with its value; `before` gives the comment above a field or a section.
template <class Before>
std::string write(const Config& config, Before before) {
  std::string out, open;  // open: the section of the last line
  for (const Field& field : fields()) {
    for (std::size_t dot = field.key.find('.'); dot != std::string::npos;
         dot = field.key.find('.', dot + 1)) {
      const std::string section = field.key.substr(0, dot);
      if (open == section || open.starts_with(section + ".")) continue;
      out += before(section);
      out += std::string(2 * depth_of(section), ' ') + last_part(section) + ":\n";
    }
    const std::size_t dot = field.key.rfind('.');
    open = dot == std::string::npos ? "" : field.key.substr(0, dot);
    out += before(field.key);
    out += std::string(2 * depth_of(field.key), ' ') + last_part(field.key) + ": " +
           field.print(config) + "\n";
  }
  return out;
}

/// Where the reference page differs from the defaults: a small task, so that it runs.
const std::vector<std::string> reference_settings{"data.synthetic.name=dates",
                                                  "tokenizer.kind=char",
                                                  "model.d_model=128",
                                                  "model.d_ff=512",
                                                  "model.layers=2",
                                                  "train.steps=2000",
                                                  "optim.schedule.warmup=200",
                                                  "data.synthetic.train=20000"};

/// "number, 0 to below 1; default: 0.1; only for init: normal"
std::string values(const Field& field) {
  const std::string initial = field.print(Config{});
  const bool none = initial == "\"\"" || initial == "[]";
  std::string text = field.type + "; default: " + (none ? "none" : initial);
  for (const Condition& condition : field.conditions) {
    text += "; ";
    if (!condition.of.empty()) text += fmt::format("{} ", fmt::join(condition.of, ", "));
    text += field.sentence(condition);
  }
  if (field.on_resume.verdict == ResumeRule::Verdict::refuse) text += "; kept on resume";
  return text;
}

/// The text, or the list of texts, that a field prints.
nlohmann::json text_or_texts(const std::string& yaml) {
  Problems problems("", {});
  const std::optional<YamlNode> node = parse_yaml(yaml, 0, problems);
  if (!node) return yaml;  // a file name need not be UTF-8
  if (node->kind != YamlNode::Kind::list) return node->text;
  nlohmann::json texts = nlohmann::json::array();
  for (const YamlNode& item : node->items) texts.push_back(item.text);
  return texts;
}

}  // namespace

std::string write_yaml(const Config& config) {
  return write(config, [](const std::string&) { return std::string(); });
}

nlohmann::json config_json(const Config& config) {
  nlohmann::json all = nlohmann::json::object();
  for (const Field& field : fields()) {
    const std::string text = field.print(config);
    std::string pointer = "/" + field.key;
    std::ranges::replace(pointer, '.', '/');
    nlohmann::json& value = all[nlohmann::json::json_pointer(pointer)];
    switch (field.kind) {
      case FieldKind::whole:
      case FieldKind::number:
      case FieldKind::truth:
      case FieldKind::pair:
        value = nlohmann::json::parse(text, nullptr, false);
        if (value.is_discarded()) value = text;  // "auto"
        break;
      case FieldKind::choice:
        value = text;
        break;
      case FieldKind::text:
      case FieldKind::files:
        value = text_or_texts(text);
        break;
    }
  }
  return all;
}

std::string reference_yaml() {
  const auto before = [](const std::string& key) {
    const std::size_t depth = depth_of(key);
    const std::string gap = depth == 0 ? "\n" : "";
    if (const Field* field = find_field(key)) {
      return gap + comment(depth, field->help) + comment(depth, values(*field));
    }
    return gap + comment(depth, find_section(key)->help);
  };
  const Config config = parse_config("", "reference.yaml", reference_settings);
  return comment(
             0,
             "Every key of a config with its meaning, its type or choices, and its default. This "
             "page is printed from the table that reads configs (train/config/fields.cpp), and is "
             "a config itself: it learns to read dates. A config of your own needs only the keys "
             "that differ from the defaults. What is kept on resume is fixed for a run.") +
         write(config, before);
}

}  // namespace heed
