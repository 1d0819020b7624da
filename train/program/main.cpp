#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string_view>
#include <system_error>

#include "autograd/base/error.h"
#include "autograd/io/message_text.h"
#include "train/commands/failure.h"
#include "train/distributed/launch.h"
#include "train/program/commands.h"
#include "train/run/blas_choice.h"
#include "train/run/version.h"
#include "train/terminal/run_log.h"

namespace {

using namespace heed;

constexpr std::string_view no_output = "cannot write standard output";

/// Occupies the descriptors of closed standard streams, so that no file opened later receives
/// one of them.
void keep_standard_streams() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(number, F_GETFD) >= 0 || errno != EBADF) continue;
    // The wrong mode makes every use of the stream fail.
    if (open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
      std::_Exit(static_cast<int>(Exit::io));
  }
}

/// Whether standard output is a pipe whose reader has exited, as in `heed … | head`.
bool reader_left() {
  pollfd out{STDOUT_FILENO, 0, 0};
  return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

/// Reports that a write to standard output failed, and returns the exit status. If the reader of
/// the pipe has exited, prints nothing; the status is that of a program killed by SIGPIPE.
int output_failed(std::string_view message) {
  if (reader_left()) return 128 + SIGPIPE;
  print_error(message);
  return static_cast<int>(Exit::io);
}

/// Runs the job and returns the exit status. Reports any failure, including a failed write of the
/// last bytes to standard output.
int run(const std::function<int()>& job) {
  try {
    const int status = job();
    if (std::fflush(stdout) != 0) {
      throw std::system_error(errno, std::generic_category(), std::string(no_output));
    }
    return status;
  } catch (const std::exception& e) {
    const auto* const system = dynamic_cast<const std::system_error*>(&e);
    if (system != nullptr && std::ferror(stdout))
      return output_failed(fmt::format("{}: {}", no_output, system->code().message()));
    const Error error = error_of(e);
    if (std::string_view(error.what()).starts_with(no_output)) return output_failed(error.what());
    // The message is empty if another rank of a distributed run reports the same error.
    if (*error.what() != '\0') print_error(rank_prefix() + error.what());
    return static_cast<int>(error.code);
  }
}

}  // namespace

int main(int argc, char** argv) {
  keep_standard_streams();
  require_memory_of_blas();
  std::signal(SIGPIPE, SIG_IGN);  // training continues if the reader of its messages exits
  std::signal(SIGXFSZ, SIG_IGN);  // exceeding a file size limit becomes an error of write()
  CLI::App app{"heed trains Transformers from a YAML file, on the CPU.", "heed"};
  app.require_subcommand(1);
  app.set_version_flag("--version", fmt::format("heed {}", version));
  app.failure_message([](const CLI::App* used, const CLI::Error& e) {
    const std::vector<CLI::App*> command = used->get_subcommands();
    const std::string hint =
        command.empty()
            ? "heed --help lists the commands, heed COMMAND --help their options"
            : fmt::format("heed {} --help describes the command", command.front()->get_name());
    return for_terminal(fmt::format("heed: {}{}\n({})\n", e.what(), key_hint(e.what()), hint));
  });
  app.footer(
      "See heed COMMAND --help for details. Data goes to standard output, messages to standard "
      "error.\n"
      "Exit status: 0 done, 1 failed, 2 usage or config, 3 bad input file, 4 disk, memory or I/O,\n"
      "5 loss or gradient not finite, 6 run folder locked, 129, 130 or 143 stopped by a signal\n"
      "(a training run has saved a checkpoint), 141 the reader of standard output exited (as in\n"
      "| head).");
  CommandLine line{app, {argv, argv + argc}};
  add_commands(line);
  if (argc == 1) {
    print_message(app.help());
    return static_cast<int>(Exit::usage);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() != 0 && argc > 1 && argv[1][0] != '-' && app.get_subcommands().empty()) {
      print_error(unknown_command(app, argv[1]));
      return static_cast<int>(Exit::usage);
    }
    std::ostringstream help;
    if (app.exit(e, help, std::cerr) != 0) return static_cast<int>(Exit::usage);
    return run([&] {
      fmt::print("{}", help.str());
      return 0;
    });
  }
  const int status = run([&] {
    const Launcher launcher = find_launcher();
    const std::string command = app.get_subcommands().front()->get_name();
    if (line.needs != Needs::files) use_best_blas_kernel(argv, launcher.rank > 0);
    if (launcher.processes > 1 && line.needs != Needs::ranks) {
      if (launcher.rank > 0) throw Error(Exit::usage, "");  // rank 0 prints the message
      throw Error(Exit::usage,
                  "heed {} runs in one process, but {} has started {} processes: only train, "
                  "resume and eval are distributed",
                  command, launcher.name, launcher.processes);
    }
    return line.job();
  });
  leave_world(status);
  return status;
}
