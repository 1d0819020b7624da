#include "train/program/help/completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "train/config/fields.h"
#include "train/fetch/fetch.h"
#include "train/program/commands.h"
#include "train/program/help/option_parts.h"

namespace heed {

const std::string_view bash_completion =
    R"sh(# bash completion for heed, printed by: heed completion bash
# To use it in this shell: source <(heed completion bash)

_heed() {
  local i word before candidate rest
  local -a words=("${COMP_WORDS[0]}") files
  COMPREPLY=()
  for ((i = 1; i <= COMP_CWORD; i++)); do  # bash has split key=value into three words
    word=${COMP_WORDS[i]}
    if [[ $word == =* || (-n $word && ${words[-1]} == *=) ]]; then
      words[-1]+=$word
    else
      words+=("$word")
    fi
  done
  before=${words[-1]%"${word#=}"} word=${words[-1]}  # bash replaces what follows `before`
  while IFS=$'\t' read -r candidate rest; do
    if [[ $candidate == :* ]]; then
      mapfile -t files < <(compgen -o plusdirs -f -X "!${candidate#:}" -- "${word#"$rest"}")
      COMPREPLY=("${files[@]/#/$rest}")
      compopt -o filenames
    elif [[ $candidate == "$word"* ]]; then
      printf -v candidate %q "$candidate"
      COMPREPLY+=("$candidate")
    fi
  done 2>/dev/null < <("${words[0]/#\~/$HOME}" complete "${words[@]}")
  COMPREPLY=("${COMPREPLY[@]#"$before"}")
  if ((${#COMPREPLY[@]} == 1)) && [[ ${COMPREPLY[0]} == *[=/] ]]; then
    compopt -o nospace 2>/dev/null
  fi
}

complete -F _heed heed
)sh";

const std::string_view zsh_completion =
    R"sh(#compdef heed
# zsh completion for heed, printed by: heed completion zsh
# To use it in this shell: source <(heed completion zsh)
# To install it, save it as _heed in a folder of $fpath.

_heed() {
  local program=${words[1]/#\~/$HOME} files failed=1
  local -a lines open
  lines=(${(f)"$($program complete "${(@Q)words[1,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)"})
  [[ $lines[1] == :* ]] && files=$lines[1] && shift lines
  lines=("${(@)${(@)lines//:/\\:}/$'\t'/:}")
  open=("${(@M)lines:#[^:]#[=/](|:*)}")
  lines=("${(@)lines:|open}")
  _describe -t candidates candidate lines -- open -S '' && failed=0
  if [[ -n $files ]]; then
    compset -p ${#files#*$'\t'}
    case $files in
      ':*/'*) _files -/ ;;
      *) _files -g "${${files%%$'\t'*}#:}" ;;
    esac && failed=0
  fi
  return failed
}

if [[ ${funcstack[1]} == _heed ]]; then _heed "$@"; else compdef _heed heed; fi
)sh";

namespace {

std::string line(const std::string& candidate, const std::string& help = "") {
  return candidate + (help.empty() ? "\n" : "\t" + help + "\n");
}

/// The folders that begin with `text` and, if it is empty, those in runs/. A folder that is not a
/// run ends in a slash.
std::string run_lines(const std::string& prefix, const std::string& text) {
  const std::string folder = text.substr(0, text.rfind('/') + 1);
  std::string lines;
  std::error_code failed;
  for (const auto& entry :
       std::filesystem::directory_iterator(folder.empty() ? "." : folder, failed)) {
    const std::string name = entry.path().filename(), path = folder + name;
    const bool hidden = name.starts_with('.') && text == folder;
    if (!path.starts_with(text) || hidden || !entry.is_directory(failed)) continue;
    const bool run = std::filesystem::exists(entry.path() / "config.yaml", failed);
    lines += line(prefix + path + (run ? "" : "/"));
  }
  return lines + (text.empty() ? run_lines(prefix, "runs/") : "");
}

std::string choice_lines(const std::string& prefix, const std::vector<std::string>& choices) {
  std::string lines;
  for (const std::string& choice : choices) lines += line(prefix + choice);
  return lines;
}

/// The candidates for a word that consists of `prefix`, such as --weights=, and a value, which has
/// the name `value` in the help and begins with `text`.
std::string value_lines(const std::string& value, const std::string& prefix,
                        const std::string& text) {
  static const std::map<std::string, std::string> patterns{
      {"FILE", "*"},        {"FOLDER", "*/"},         {"RUN", "*/"},
      {"CONFIG", "*.y*ml"}, {"CONFIG|RUN", "*.y*ml"}, {"W", "*/"}};
  const auto pattern = patterns.find(value);
  if (pattern == patterns.end()) return "";
  const std::string files = fmt::format(":{}\t{}\n", pattern->second, prefix);
  if (value == "W") return files + choice_lines(prefix, {"best", "last", "average"});
  if (value == "CONFIG|RUN" && text.empty()) return files + run_lines(prefix, "runs/");
  const std::string runs = value == "RUN" ? run_lines(prefix, text) : "";
  return runs.empty() ? files : runs;  // the shell knows what ~/ and quotes mean
}

std::string field_lines(const Field& field, const std::string& prefix, const std::string& text) {
  if (field.kind == FieldKind::boolean) return choice_lines(prefix, {"true", "false"});
  if (!field.choices.empty()) return choice_lines(prefix, field.choices);
  if (field.type.ends_with("run folder")) return value_lines("RUN", prefix, text);
  const bool file = field.kind == FieldKind::files || field.type == "a file";
  return file ? value_lines("FILE", prefix, text) : "";
}

/// The keys of a config or, for a word with =, the values of its key.
std::string override_lines(const std::string& word) {
  std::string lines;
  if (const std::size_t value = word.find('=') + 1; value > 0) {
    const Field* const field = find_field(word.substr(0, value - 1));
    return field ? field_lines(*field, word.substr(0, value), word.substr(value)) : "";
  }
  const auto add = [&](const std::string& key, const std::string& help) {
    lines += line(key + "=", help.substr(0, help.find(". ")));
  };
  for (const Section& section : sections())
    if (section.shorthand) add(section.key, section.help);  // one value sets the whole section
  for (const Field& field : fields()) add(field.key, field.help);
  return lines;
}

std::string command_lines(const CLI::App& app) {
  std::string lines;
  for (const CLI::App* command : commands_of(app))
    lines += line(command->get_name(), command->get_description());
  return lines;
}

std::string option_lines(const CLI::App& command) {
  std::string lines;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : names_of(*option))
      lines += line(name, option->get_description());
  return lines;
}

/// The candidates for a word that is a value of `option`, after `prefix`.
std::string lines_of(const CLI::App& command, const CLI::Option& option, const std::string& prefix,
                     const std::string& text) {
  const std::string value = value_name(option), type = option.get_type_name();
  if (const std::size_t open = type.find('{'); open != std::string::npos) {  // CLI::IsMember
    const std::string members = type.substr(open + 1, type.find('}') - open - 1);
    return choice_lines(prefix, CLI::detail::split(members, ','));
  }
  std::vector<std::string> choices;  // CLI11 does not check the arguments of `help` and `fetch`
  if (value == "COMMAND")
    for (const CLI::App* other : commands_of(*command.get_parent()))
      choices.push_back(other->get_name());
  if (command.get_name() == "fetch" && option.get_positional())
    for (const FetchSet& set : fetch_sets()) choices.push_back(set.name);
  if (!choices.empty()) return choice_lines(prefix, choices);
  return value == "OVERRIDE" ? override_lines(text) : value_lines(value, prefix, text);
}

std::string argument_lines(const CLI::App& command, std::span<const std::string> before,
                           const std::string& word) {
  const auto find_option = [&](const std::string& name) {  // an option that takes a value, or null
    const CLI::Option* const found = command.get_option_no_throw(name);
    return found != nullptr && !value_name(*found).empty() ? found : nullptr;
  };
  const std::vector<const CLI::Option*> positionals =
      command.get_options([](const CLI::Option* option) { return option->get_positional(); });
  const CLI::Option* argument = nullptr;  // the option whose value is the next word, or null
  std::size_t place = 0;
  for (const std::string& given : before) {
    const bool is_option = !argument && given.starts_with('-');
    if (!argument && !is_option) ++place;
    argument = is_option ? find_option(given) : nullptr;
  }
  std::size_t value = 0;
  if (!argument && word.starts_with('-')) {
    value = word.find('=') + 1;
    if (value == 0) return option_lines(command);
    argument = find_option(word.substr(0, value - 1));
  } else if (!argument && place < positionals.size()) {
    argument = positionals[place];
  } else if (!argument && !positionals.empty() && repeats(*positionals.back())) {
    argument = positionals.back();
  }
  if (argument == nullptr) return "";
  return lines_of(command, *argument, word.substr(0, value), word.substr(value));
}

}  // namespace

std::string completions(const CLI::App& app, std::span<const std::string> words) {
  if (words.size() < 2) return "";
  if (words.size() == 2) return words[1].starts_with('-') ? option_lines(app) : command_lines(app);
  const std::vector<const CLI::App*> all = commands_of(app);
  const auto command = std::ranges::find(all, words[1], &CLI::App::get_name);
  if (command == all.end()) return "";
  return argument_lines(**command, words.subspan(2, words.size() - 3), words.back());
}

}  // namespace heed
