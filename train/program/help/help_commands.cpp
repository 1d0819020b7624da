#include "train/program/help/help_commands.h"

#include <fmt/format.h>

#include <memory>
#include <string>

#include "train/program/help/completion.h"
#include "train/program/help/man_page.h"

namespace heed {

namespace {

void add_completion(CLI::App& app, Job& job) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* const command = app.add_subcommand("completion", "a completion script for a shell");
  command->add_option("SHELL", *shell, "bash or zsh")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh"}))
      ->type_name("");
  command->callback([&job, shell] {
    job = [shell] {
      fmt::print("{}", *shell == "bash" ? bash_completion : zsh_completion);
      return 0;
    };
  });
  command->footer(
      "Completes commands, options, files, run folders and key=value.\n"
      "Examples:\n"
      "  source <(heed completion bash)\n"
      "  heed completion zsh > ~/.zfunc/_heed      if $fpath contains ~/.zfunc");
}

/// The hidden command of the completion scripts, whose arguments are the words of any command line.
void add_complete(CLI::App& app, Job& job) {
  CLI::App* const command = app.add_subcommand("complete")->group("")->prefix_command();
  command->callback([&app, &job, command] {
    job = [&app, command] {
      fmt::print("{}", completions(app, command->remaining()));
      return 0;
    };
  });
}

void add_man(CLI::App& app, Job& job) {
  CLI::App* const command =
      app.add_subcommand("man", "the man page, with all commands and keys, in roff");
  command->callback([&app, &job] {
    job = [&app] {
      fmt::print("{}", man_page(app));
      return 0;
    };
  });
  command->footer("Example:\n  heed man | man -l -");
}

}  // namespace

void add_help_commands(CLI::App& app, Job& job) {
  add_completion(app, job);
  add_complete(app, job);
  add_man(app, job);
}

}  // namespace heed
