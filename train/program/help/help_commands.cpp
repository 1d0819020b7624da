#include "train/program/help/help_commands.h"

#include <fmt/format.h>

#include <memory>
#include <string>

#include "train/program/arguments.h"
#include "train/program/help/completion.h"
#include "train/program/help/man_page.h"

namespace heed {

namespace {

using namespace arguments;

void add_completion(CLI::App& app, Job& job) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* const command =
      add_job(app, job, "completion", "a completion script for a shell", [shell] {
        fmt::print("{}", *shell == "bash" ? bash_completion : zsh_completion);
        return 0;
      });
  add_argument(command, "SHELL", *shell, "bash or zsh")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh"}));
  command->footer(
      "Completes commands, options, files, run folders and key=value.\n"
      "Examples:\n"
      "  source <(heed completion bash)\n"
      "  heed completion zsh > ~/.zfunc/_heed      if $fpath contains ~/.zfunc");
}

/// The hidden command of the completion scripts, whose arguments are the words of any command line.
void add_complete(CLI::App& app, Job& job) {
  add_job(app, job, "complete", "",
          [&app] {
            fmt::print("{}", completions(app, app.get_subcommand("complete")->remaining()));
            return 0;
          })
      ->group("")
      ->prefix_command();
}

void add_man(CLI::App& app, Job& job) {
  add_job(app, job, "man", "the man page, with all commands and keys, in roff", [&app] {
    fmt::print("{}", man_page(app));
    return 0;
  })->footer("Example:\n  heed man | man -l -");
}

}  // namespace

void add_help_commands(CLI::App& app, Job& job) {
  add_completion(app, job);
  add_complete(app, job);
  add_man(app, job);
}

}  // namespace heed
