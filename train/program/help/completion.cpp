#include "train/program/help/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace heed {

namespace {

std::string replace_all(std::string text, std::string_view what, std::string_view with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
  return text;
}

std::string in_quotes(const std::string& text) {
  return "'" + replace_all(text, "'", R"('\'')") + "'";
}

/// All config keys, and all sections that a single value can set, as in model.layers=3.
std::vector<std::string> keys() {
  std::vector<std::string> all;
  for (const Section& section : sections())
    if (section.shorthand) all.push_back(section.key);
  for (const Field& field : fields()) all.push_back(field.key);
  std::ranges::sort(all);
  return all;
}

std::string help_of_key(const std::string& key) {
  const Field* const field = find_field(key);
  const std::string& help = field ? field->help : find_section(key)->help;
  return help.substr(0, help.find(". "));
}

// ---- bash ---------------------------------------------------------------------------------------

constexpr std::string_view bash_begin =
    R"sh(# bash completion for heed, printed by: heed completion bash
# To use it in this shell: source <(heed completion bash)
)sh";

// COMP_WORDS contains the words of the line, which bash also splits at the characters of
// COMP_WORDBREAKS: key=value is three words.
constexpr std::string_view bash_code = R"sh(
# _heed_fill "KIND WORD..." TEXT: sets COMPREPLY to the words of that kind that begin with TEXT
_heed_fill() {
  local kind=${1%% *} choices=${1#* } text=$2 IFS=$' \n'
  local -a found=()
  case $kind in
    choice) COMPREPLY=($(compgen -W "$choices" -- "$text")); return ;;
    override) _heed_override "$text"; return ;;
  esac
  IFS=$'\n'
  case $kind in
    file) found+=($(compgen -f -- "$text")) ;;
    folder) found+=($(compgen -d -- "$text")) ;;
    config | config_or_run)
      found+=($(compgen -f -X '!*.yaml' -- "$text"; compgen -f -X '!*.yml' -- "$text"; compgen -d -- "$text")) ;;
    weights) found+=($(IFS=' '; compgen -W 'best last average' -- "$text"; compgen -d -- "$text")) ;;
  esac
  COMPREPLY=("${found[@]}")
  ((${#found[@]})) && [[ $kind != weights ]] && compopt -o filenames 2>/dev/null
  [[ $kind == run || ($kind == config_or_run && -z $text) ]] && _heed_runs "$text"
}

# _heed_runs TEXT: adds the folders that begin with TEXT and, if TEXT is empty, those in runs/;
# a folder that is not a run ends in a slash
_heed_runs() {
  local folder name
  for folder in "$1"*/ $([[ -z $1 ]] && printf '%s\n' runs/*/); do
    [[ -d $folder ]] || continue
    printf -v name %q "${folder%/}"
    if [[ -e $folder/config.yaml ]]; then COMPREPLY+=("$name"); else COMPREPLY+=("$name/"); fi
  done
}

_heed_override() {
  local text=$1 key i
  if [[ $text != *=* ]]; then
    COMPREPLY=($(compgen -W "$_heed_keys" -- "$text"))
    return
  fi
  key=${text%%=*}
  _heed_fill "$(_heed_values "$key")" "${text#*=}"
  if [[ $COMP_WORDBREAKS != *=* ]]; then
    for i in "${!COMPREPLY[@]}"; do COMPREPLY[i]="$key=${COMPREPLY[i]}"; done
  fi
}

_heed() {
  local -a words=()
  local i word command last previous kinds='' positionals=0
  COMPREPLY=()
  for ((i = 0; i <= COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if ((i > 0)) && [[ $word == =* || (-n $word && ${words[-1]} == *=) ]]; then
      words[-1]+=$word
    else
      words+=("$word")
    fi
  done
  word=${words[-1]} last=$((${#words[@]} - 1)) command=${words[1]}
  if ((last < 2)); then
    _heed_fill "choice $_heed_commands" "$word"
    return
  fi
  for ((i = 2; i < last; i++)); do
    if [[ ${words[i]} != -* ]]; then
      ((++positionals))
    elif [[ -n $(_heed_takes "$command" "${words[i]}") ]]; then
      ((++i))
    fi
  done
  previous=${words[last - 1]}
  [[ $previous == -* ]] && kinds=$(_heed_takes "$command" "$previous")
  if [[ -n $kinds ]]; then
    _heed_fill "$kinds" "$word"
  elif [[ $word == --*=* ]]; then
    _heed_fill "$(_heed_takes "$command" "${word%%=*}")" "${word#*=}"
  elif [[ $word == -* ]]; then
    _heed_fill "choice $(_heed_options "$command")" "$word"
  else
    kinds=$(_heed_takes "$command" $((positionals + 1)))
    _heed_fill "${kinds:-$(_heed_takes "$command" more)}" "$word"
  fi
  if ((${#COMPREPLY[@]} == 1)) && [[ ${COMPREPLY[0]} == *[=/] ]]; then
    compopt -o nospace 2>/dev/null
  fi
}

complete -F _heed heed
)sh";

/// The argument "KIND WORD..." of _heed_fill.
std::string bash_kind(const Words& words) {
  switch (words.kind) {
    case WordKind::other:
      return "other";
    case WordKind::choice:
      return fmt::format("choice {}", fmt::join(words.choices, " "));
    case WordKind::file:
      return "file";
    case WordKind::folder:
      return "folder";
    case WordKind::config:
      return "config";
    case WordKind::run:
      return "run";
    case WordKind::config_or_run:
      return "config_or_run";
    case WordKind::weights:
      return "weights";
    case WordKind::override_key:
      return "override";
  }
  return "";
}

std::string bash_options(const CommandTree& tree) {
  std::string text =
      "\n# _heed_options COMMAND: the options of this command\n_heed_options() {\n  case $1 in\n";
  for (const CommandEntry& command : tree.commands) {
    std::vector<std::string> names;
    for (const Argument& a : command.options)
      names.insert(names.end(), a.names.begin(), a.names.end());
    text += fmt::format("    {}) echo {} ;;\n", command.name,
                        in_quotes(fmt::format("{}", fmt::join(names, " "))));
  }
  return text + "  esac\n}\n";
}

std::string bash_takes(const CommandTree& tree) {
  std::string text =
      "\n"
      "# _heed_takes COMMAND PLACE: the kind of the word at PLACE, which is the option before the\n"
      "# word, the number of a positional argument, or `more` for all further arguments\n"
      "_heed_takes() {\n"
      "  case \"$1 $2\" in\n";
  const auto add = [&](const std::string& command, const std::string& place, const Words& words) {
    text += fmt::format("    '{} {}') echo {} ;;\n", command, place, in_quotes(bash_kind(words)));
  };
  for (const CommandEntry& command : tree.commands) {
    for (const Argument& a : command.options) {
      if (a.is_flag()) continue;
      for (const std::string& name : a.names) add(command.name, name, a.words);
    }
    for (std::size_t i = 0; i < command.positionals.size(); ++i) {
      const Argument& a = command.positionals[i];
      add(command.name, a.repeats ? "more" : std::to_string(i + 1), a.words);
    }
  }
  return text + "  esac\n}\n";
}

std::string bash_values() {
  std::string text =
      "\n# _heed_values KEY: the kind of the values of this config key\n"
      "_heed_values() {\n  case $1 in\n";
  for (const Field& field : fields()) {
    const Words words = words_of(field);
    if (words.kind != WordKind::other)
      text += fmt::format("    {}) echo {} ;;\n", field.key, in_quotes(bash_kind(words)));
  }
  return text + "  esac\n}\n";
}

// ---- zsh ----------------------------------------------------------------------------------------

constexpr std::string_view zsh_begin = R"sh(#compdef heed
# zsh completion for heed, printed by: heed completion zsh
# To use it in this shell: source <(heed completion zsh)
# To install it, save it as _heed in a folder of $fpath.

_heed_config() { _files -g '*.(yaml|yml)'; }

_heed_run() {
  local -a found=(runs/*/config.yaml(N:h))
  compadd -a found || _files -/
}

_heed_config_or_run() { _alternative 'configs:config:_heed_config' 'runs:run:_heed_run'; }

_heed_weights() {
  _alternative 'names:name:(best last average)' 'folders:folder:_files -/'
}
)sh";

constexpr std::string_view zsh_end = R"sh(
if [[ ${funcstack[1]} == _heed ]]; then _heed "$@"; else compdef _heed heed; fi
)sh";

/// The action of _arguments for a word of this kind.
std::string zsh_action(const Words& words) {
  switch (words.kind) {
    case WordKind::other:
      return " ";
    case WordKind::choice:
      return fmt::format("({})", fmt::join(words.choices, " "));
    case WordKind::file:
      return "_files";
    case WordKind::folder:
      return "_files -/";
    case WordKind::config:
      return "_heed_config";
    case WordKind::run:
      return "_heed_run";
    case WordKind::config_or_run:
      return "_heed_config_or_run";
    case WordKind::weights:
      return "_heed_weights";
    case WordKind::override_key:
      return "_heed_override";
  }
  return "";
}

/// Escapes the characters that have a special meaning in a specification of _arguments.
std::string zsh_text(std::string text) {
  for (const char* special : {"\\", ":", "[", "]"})
    text = replace_all(std::move(text), special, std::string("\\") + special);
  return text;
}

/// An entry "name:help" for _describe.
std::string zsh_described(const std::string& name, const std::string& help) {
  return in_quotes(replace_all(name, ":", "\\:") + ":" + help);
}

std::string zsh_commands(const CommandTree& tree) {
  std::string text =
      "\n_heed() {\n  local curcontext=$curcontext state line\n  typeset -A opt_args\n"
      "  local -a commands=(\n";
  for (const CommandEntry& command : tree.commands)
    text += "    " + zsh_described(command.name, command.help) + "\n";
  text += "  )\n  _arguments -C";
  for (const Argument& a : tree.options)
    for (const std::string& name : a.names)
      text += " " + in_quotes(name + "[" + zsh_text(a.help) + "]");
  text +=
      " '1: :->command' '*:: :->rest'\n  case $state in\n"
      "    command) _describe -t commands command commands ;;\n"
      "    rest) _heed_arguments ;;\n  esac\n}\n";
  return text;
}

std::string zsh_arguments(const CommandTree& tree) {
  std::string text = "\n_heed_arguments() {\n  case $words[1] in\n";
  for (const CommandEntry& command : tree.commands) {
    text += fmt::format("    {})\n      _arguments -S", command.name);
    for (const Argument& a : command.options) {
      for (const std::string& name : a.names) {
        std::string spec = (a.repeats ? "*" : "") + name + "[" + zsh_text(a.help) + "]";
        if (!a.is_flag()) spec += ":" + zsh_text(a.value) + ":" + zsh_action(a.words);
        text += " \\\n        " + in_quotes(spec);
      }
    }
    for (std::size_t i = 0; i < command.positionals.size(); ++i) {
      const Argument& a = command.positionals[i];
      text += " \\\n        " +
              in_quotes(fmt::format("{}:{}:{}", a.repeats ? "*" : std::to_string(i + 1),
                                    zsh_text(a.value), zsh_action(a.words)));
    }
    text += " ;;\n";
  }
  return text + "  esac\n}\n";
}

std::string zsh_override() {
  std::string text =
      "\n_heed_override() {\n  if compset -P 1 '*='; then\n    case ${IPREFIX%=} in\n";
  for (const Field& field : fields()) {
    const Words words = words_of(field);
    if (words.kind == WordKind::other) continue;
    const std::string action = words.kind == WordKind::choice
                                   ? fmt::format("compadd -- {}", fmt::join(words.choices, " "))
                                   : zsh_action(words);
    text += fmt::format("      {}) {} ;;\n", field.key, action);
  }
  text += "    esac\n    return\n  fi\n  local -a keys=(\n";
  for (const std::string& key : keys())
    text += "    " + zsh_described(key, help_of_key(key)) + "\n";
  return text + "  )\n  _describe -t keys 'key of the config' keys -S = -q\n}\n";
}

}  // namespace

std::string bash_completion(const CommandTree& tree) {
  std::vector<std::string> commands;
  for (const CommandEntry& command : tree.commands) commands.push_back(command.name);
  for (const Argument& a : tree.options)
    commands.insert(commands.end(), a.names.begin(), a.names.end());
  std::string text(bash_begin);
  text +=
      fmt::format("\n_heed_commands={}\n", in_quotes(fmt::format("{}", fmt::join(commands, " "))));
  text += fmt::format("_heed_keys={}\n", in_quotes(fmt::format("{}=", fmt::join(keys(), "= "))));
  return text + bash_options(tree) + bash_takes(tree) + bash_values() + std::string(bash_code);
}

std::string zsh_completion(const CommandTree& tree) {
  return std::string(zsh_begin) + zsh_override() + zsh_arguments(tree) + zsh_commands(tree) +
         std::string(zsh_end);
}

}  // namespace heed
