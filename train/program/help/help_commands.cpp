#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

#include "autograd/base/error.h"
#include "train/program/commands.h"
#include "train/program/help/completion.h"
#include "train/program/help/man_page.h"

namespace heed {

namespace {

void print_help(CLI::App& app, const std::string& name) {
  const std::vector<const CLI::App*> all = commands_of(app);
  const auto about = std::ranges::find(all, name, &CLI::App::get_name);
  if (about == all.end() && !name.empty()) throw Error(Exit::usage, unknown_command(app, name));
  app.clear();  // else CLI11 prints the help of `help`, the parsed subcommand
  fmt::print("{}", name.empty() ? app.help() : (*about)->help(app.get_name()));
}

}  // namespace

void add_help(CommandLine& line) {
  const auto name = std::make_shared<std::string>();
  CLI::App* const command =
      add_job(line, "help", Needs::files, "the help of a command", [&app = line.app, name] {
        print_help(app, *name);
        return 0;
      });
  add_argument(command, "COMMAND", *name, "a command (default: heed itself)");
}

void add_completion(CommandLine& line) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* const command =
      add_job(line, "completion", Needs::files, "a completion script for a shell", [shell] {
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
void add_complete(CommandLine& line) {
  add_job(line, "complete", Needs::files, "",
          [&app = line.app] {
            fmt::print("{}", completions(app, app.get_subcommand("complete")->remaining()));
            return 0;
          })
      ->group("")
      ->prefix_command();
}

void add_man(CommandLine& line) {
  add_job(line, "man", Needs::files, "the man page, with all commands and keys, in roff",
          [&app = line.app] {
            fmt::print("{}", man_page(app));
            return 0;
          })
      ->footer("Example:\n  heed man | man -l -");
}

}  // namespace heed
