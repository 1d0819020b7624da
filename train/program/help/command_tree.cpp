#include "train/program/help/command_tree.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "train/fetch/fetch.h"
#include "train/program/command_line.h"

namespace heed {

namespace {

/// The names of values in the help and the kinds of words that they denote.
constexpr std::array<std::pair<std::string_view, WordKind>, 7> kinds{{
    {"FILE", WordKind::file},
    {"FOLDER", WordKind::folder},
    {"CONFIG", WordKind::config},
    {"RUN", WordKind::run},
    {"CONFIG|RUN", WordKind::config_or_run},
    {"W", WordKind::weights},
    {"OVERRIDE", WordKind::override_key},
}};

/// The members in the description of a CLI::IsMember: "a" and "b" for "{a,b}".
std::vector<std::string> members(const std::string& type) {
  std::vector<std::string> all;
  const std::size_t open = type.find('{'), close = type.find('}');
  if (open == std::string::npos || close == std::string::npos) return all;
  for (std::size_t begin = open + 1, end = 0; begin <= close; begin = end + 1) {
    end = std::min(type.find(',', begin), close);
    all.push_back(type.substr(begin, end - begin));
  }
  return all;
}

Words words_of(const std::string& value, const std::string& type) {
  if (const std::vector<std::string> all = members(type); !all.empty())
    return {WordKind::choice, all};
  const auto found = std::ranges::find(kinds, std::string_view(value),
                                       &std::pair<std::string_view, WordKind>::first);
  return {found == kinds.end() ? WordKind::other : found->second};
}

Argument argument(const CLI::Option& option) {
  Argument a;
  for (const std::string& name : option.get_snames()) a.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) a.names.push_back("--" + name);
  const std::string type = option.get_type_name();
  if (option.get_positional()) {
    a.value = option.get_name(true);
  } else if (option.get_items_expected_max() > 0) {
    a.value = type.substr(0, type.find(':'));
    if (a.value.empty()) a.value = "VALUE";
  }
  a.words = words_of(a.value, type);
  a.help = option.get_description();
  a.required = option.get_required();
  a.repeats = option.get_expected_max() >= CLI::detail::expected_max_vector_size;
  return a;
}

CommandEntry entry(const CLI::App& app) {
  CommandEntry entry{app.get_name(), app.get_description(), app.get_footer(), {}, {}};
  for (const CLI::Option* const option : app.get_options()) {
    Argument a = argument(*option);
    (a.names.empty() ? entry.positionals : entry.options).push_back(std::move(a));
  }
  return entry;
}

/// Sets the choices of the arguments of `fetch` and `help`, whose values CLI11 does not check.
void add_choices(CommandTree& tree) {
  for (CommandEntry& command : tree.commands) {
    for (Argument& a : command.positionals) {
      std::vector<std::string> choices;
      if (command.name == "fetch")
        for (const FetchSet& set : fetch_sets()) choices.push_back(set.name);
      if (command.name == "help")
        for (const CommandEntry& command : tree.commands) choices.push_back(command.name);
      if (!choices.empty()) a.words = {WordKind::choice, choices};
    }
  }
}

}  // namespace

CommandTree command_tree(const CLI::App& app) {
  CommandTree tree;
  CommandEntry root = entry(app);
  tree.help = std::move(root.help);
  tree.details = std::move(root.details);
  tree.options = std::move(root.options);
  for (const CLI::App* const command : commands_of(app)) tree.commands.push_back(entry(*command));
  add_choices(tree);
  return tree;
}

Words words_of(const Field& field) {
  if (field.kind == FieldKind::boolean) return {WordKind::choice, {"true", "false"}};
  if (!field.choices.empty()) return {WordKind::choice, field.choices};
  if (field.type.find("run folder") != std::string::npos) return {WordKind::run};
  if (field.kind == FieldKind::files || field.type == "a file") return {WordKind::file};
  return {};
}

}  // namespace heed
