#pragma once
/// Completion of a command line in a shell.
#include <CLI/CLI.hpp>
#include <span>
#include <string>
#include <string_view>

namespace heed {

/// Scripts that ask `heed complete` at each TAB, with the program that the user has typed.
extern const std::string_view bash_completion, zsh_completion;

/// The lines that `heed complete` prints: what may replace the last of `words`, the words of a
/// command line from the name of the program on. The shell removes lines that do not fit the word.
///
///   CANDIDATE            or CANDIDATE <tab> HELP; the line may go on if it ends in = or /
///   :PATTERN <tab> TEXT  only as the first line: also the files that match PATTERN, and all
///                        folders, after TEXT, the beginning of the word
std::string completions(const CLI::App& app, std::span<const std::string> words);

}  // namespace heed
