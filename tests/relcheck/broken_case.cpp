#include "tests/relcheck/broken_case.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <ctime>

namespace heed::relcheck {
namespace fs = std::filesystem;
namespace {

constexpr double kMostMilliseconds = 100;
constexpr std::int64_t kMostMebibytes = 512;
constexpr unsigned kHang = 5;  // seconds

/// What became of reading one case. `status` is an exit code of heed's, −1 if all was accepted,
/// −2 for another exception than Error, −3 where the process did not come to an end by itself.
struct Outcome {
  int status = -3;
  double milliseconds = 0;  ///< of the processor
  std::int64_t mebibytes = 0;
  std::string message;
};

double processor_milliseconds() {
  std::timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

/// In the child: reads, and writes "status milliseconds message" to the pipe. Time is the
/// processor's: a busy machine is no fault of the reader's.
[[noreturn]] void attempt(const BrokenCase& broken, const fs::path& folder, int pipe) {
  alarm(kHang);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const rlimit bound{rlim_t{2} << 30, rlim_t{2} << 30};  // a bomb must not take the machine along
  setrlimit(RLIMIT_AS, &bound);
#endif
  int status = -1;
  std::string message;
  const double begin = processor_milliseconds();
  try {
    broken.read(folder);
  } catch (const Error& error) {
    status = static_cast<int>(error.code);
    message = error.what();
  } catch (const std::exception& error) {
    status = -2;
    message = error.what();
  }
  const double end = processor_milliseconds();
  const std::string report = fmt::format("{} {} {}", status, end - begin, message);
  write_all(pipe, as_bytes(report), "pipe");
  _exit(0);
}

Outcome outcome_of(const BrokenCase& broken, const fs::path& folder) {
  int ends[2];
  if (pipe(ends) != 0) throw_io("open", "pipe", errno);
  const pid_t child = fork();
  if (child < 0) throw_io("start", "process", errno);
  if (child == 0) attempt(broken, folder, ends[1]);
  close(ends[1]);
  std::string report;
  char piece[4096];
  for (ssize_t got = 0; (got = ::read(ends[0], piece, sizeof piece)) > 0;)
    report.append(piece, static_cast<std::size_t>(got));
  close(ends[0]);
  int ended = 0;
  rusage used{};
  wait4(child, &ended, 0, &used);
  Outcome outcome;
  outcome.mebibytes = used.ru_maxrss / 1024;
  if (report.empty()) {
    outcome.message = WIFSIGNALED(ended) ? fmt::format("ended by signal {}{}", WTERMSIG(ended),
                                                       WTERMSIG(ended) == SIGALRM ? " (hangs)" : "")
                                         : fmt::format("exit {}", WEXITSTATUS(ended));
    return outcome;
  }
  std::size_t first = 0, second = 0;
  outcome.status = std::stoi(report, &first);
  outcome.milliseconds = std::stod(report.substr(first), &second);
  outcome.message = report.substr(first + second + 1);
  return outcome;
}

/// The part that the message lacks; "" if it has all.
std::string unsaid(const BrokenCase& broken, const fs::path& folder, const std::string& message) {
  for (std::string part : broken.says) {
    if (const auto word = part.find("FOLDER"); word != std::string::npos)
      part.replace(word, 6, folder.string());
    const bool digit = part.ends_with('#');
    if (digit) part.pop_back();
    const auto at = message.find(part);
    if (at == std::string::npos) return part;
    if (digit && std::isdigit(static_cast<unsigned char>(message[at + part.size()])) == 0)
      return part + "[0-9]";
  }
  return "";
}

std::string short_form(const std::string& text) {
  return text.size() > 300 ? text.substr(0, 300) + " …" : text;
}

}  // namespace

void measure_sound(Measures& measures, const std::vector<BrokenCase>& cases) {
  std::size_t accepted = 0;
  for (const BrokenCase& sound : cases) {
    const Scratch scratch;
    sound.make(scratch.path);
    const Outcome outcome = outcome_of(sound, scratch.path);
    accepted += outcome.status == -1;
    if (outcome.status != -1)
      Measures::note(fmt::format("unbroken, {}: {}", sound.name, short_form(outcome.message)));
  }
  measures.all_of("unbroken files: accepted", accepted, cases.size());
}

void measure(Measures& measures, const std::string& kind, Exit code,
             const std::vector<BrokenCase>& cases, std::size_t least) {
  std::size_t refused = 0, in_time = 0, in_bounds = 0;
  Outcome slowest, largest;
  std::string slowest_name = "none", largest_name = "none";
  for (const BrokenCase& broken : cases) {
    const Scratch scratch;
    broken.make(scratch.path);
    const Outcome outcome = outcome_of(broken, scratch.path);
    const std::string lacks = unsaid(broken, scratch.path, outcome.message);
    const bool right = outcome.status == static_cast<int>(code) && lacks.empty();
    refused += right;
    if (!right) {
      Measures::note(fmt::format(
          "{}: {}: {}{}: {}", kind, broken.name,
          outcome.status == -1 ? "accepted" : fmt::format("status {}", outcome.status),
          lacks.empty() ? "" : ", does not say \"" + lacks + "\"", short_form(outcome.message)));
    }
    const bool fast = outcome.status != -3 && outcome.milliseconds <= kMostMilliseconds;
    in_time += fast;
    in_bounds += outcome.mebibytes <= kMostMebibytes;
    if (!fast)
      Measures::note(fmt::format("{}: {}: {:.0f} ms", kind, broken.name, outcome.milliseconds));
    if (outcome.milliseconds > slowest.milliseconds) slowest = outcome, slowest_name = broken.name;
    if (outcome.mebibytes > largest.mebibytes) largest = outcome, largest_name = broken.name;
  }
  Measures::note(fmt::format("{}: slowest: {}; largest: {}", kind, slowest_name, largest_name));
  measures.line(fmt::format("broken {}: kinds", kind), fmt::format("{}", cases.size()),
                fmt::format(">= {}", least), cases.size() >= least);
  measures.all_of(fmt::format("broken {}: refused, naming file and place", kind), refused,
                  cases.size());
  measures.line(fmt::format("broken {}: slowest", kind),
                fmt::format("{:.1f} ms", slowest.milliseconds), "<= 100 ms",
                in_time == cases.size());
  measures.line(fmt::format("broken {}: largest", kind), fmt::format("{} MiB", largest.mebibytes),
                "<= 512 MiB", in_bounds == cases.size());
}

}  // namespace heed::relcheck
