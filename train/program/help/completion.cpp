#include "train/program/help/completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

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

std::string override_lines(const std::string& word);

/// The candidates for a word that consists of `prefix`, such as --weights=, and a part of this
/// kind, which begins with `text`.
std::string lines_of(const Words& words, const std::string& prefix, const std::string& text) {
  const auto files = [&](std::string_view pattern) {
    return fmt::format(":{}\t{}\n", pattern, prefix);
  };
  std::string lines;
  switch (words.kind) {
    case WordKind::other:
      break;
    case WordKind::choice:
      for (const std::string& choice : words.choices) lines += line(prefix + choice);
      break;
    case WordKind::file:
      return files("*");
    case WordKind::folder:
      return files("*/");
    case WordKind::config:
      return files("*.y*ml");
    case WordKind::run:  // the shell knows what ~/ and quotes mean
      lines = run_lines(prefix, text);
      return lines.empty() ? files("*/") : lines;
    case WordKind::config_or_run:
      return files("*.y*ml") + (text.empty() ? run_lines(prefix, "runs/") : "");
    case WordKind::weights:
      return files("*/") + lines_of({WordKind::choice, {"best", "last", "average"}}, prefix, text);
    case WordKind::override_key:
      return override_lines(text);
  }
  return lines;
}

/// The keys of a config or, for a word with =, the values of its key.
std::string override_lines(const std::string& word) {
  std::string lines;
  if (const std::size_t value = word.find('=') + 1; value > 0) {
    const Field* const field = find_field(word.substr(0, value - 1));
    return field ? lines_of(words_of(*field), word.substr(0, value), word.substr(value)) : "";
  }
  const auto add = [&](const std::string& key, const std::string& help) {
    lines += line(key + "=", help.substr(0, help.find(". ")));
  };
  for (const Section& section : sections())
    if (section.shorthand) add(section.key, section.help);  // one value sets the whole section
  for (const Field& field : fields()) add(field.key, field.help);
  return lines;
}

std::string option_lines(const std::vector<Argument>& options) {
  std::string lines;
  for (const Argument& option : options)
    for (const std::string& name : option.names) lines += line(name, option.help);
  return lines;
}

/// The option of this name that takes a value, or null.
const Argument* find_option(const CommandEntry& command, const std::string& name) {
  const auto found = std::ranges::find_if(command.options, [&](const Argument& option) {
    return !option.is_flag() && std::ranges::find(option.names, name) != option.names.end();
  });
  return found == command.options.end() ? nullptr : &*found;
}

std::string argument_lines(const CommandEntry& command, std::span<const std::string> before,
                           const std::string& word) {
  const Argument* argument = nullptr;  // the option whose value is the next word, or null
  std::size_t place = 0;
  for (const std::string& given : before) {
    const bool is_option = !argument && given.starts_with('-');
    if (!argument && !is_option) ++place;
    argument = is_option ? find_option(command, given) : nullptr;
  }
  std::size_t value = 0;
  if (!argument && word.starts_with('-')) {
    value = word.find('=') + 1;
    if (value == 0) return option_lines(command.options);
    argument = find_option(command, word.substr(0, value - 1));
  } else if (!argument && !command.positionals.empty()) {
    const Argument& last = command.positionals.back();
    if (place < command.positionals.size()) argument = &command.positionals[place];
    if (!argument && last.repeats) argument = &last;
  }
  return argument ? lines_of(argument->words, word.substr(0, value), word.substr(value)) : "";
}

}  // namespace

std::string completions(const CommandTree& tree, std::span<const std::string> words) {
  std::string lines;
  if (words.size() == 2) {
    if (words[1].starts_with('-')) return option_lines(tree.options);
    for (const CommandEntry& command : tree.commands) lines += line(command.name, command.help);
  } else if (words.size() > 2) {
    const auto command = std::ranges::find(tree.commands, words[1], &CommandEntry::name);
    if (command != tree.commands.end())
      lines = argument_lines(*command, words.subspan(2, words.size() - 3), words.back());
  }
  return lines;
}

}  // namespace heed
