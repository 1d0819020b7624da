#include "tests/relcheck/broken_case.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include "autograd/base/sanitizers.h"
#include "tests/patience.h"
#include "tests/processor_time.h"

namespace heed::relcheck {
namespace fs = std::filesystem;
namespace {

constexpr double kMaxYardsticks = 10;
constexpr double kMaxMilliseconds = 500;  // machine-dependent: long form only
constexpr std::int64_t kMaxMebibytes = 512;

/// The result of reading one case. `status`: an exit code of heed, −1 if the file was accepted,
/// −2 for an exception other than Error, −3 if the process was killed, hung or exited without a
/// report.
struct Outcome {
  int status = -3;
  double seconds = 0;  ///< processor time, if the process reported it
  std::int64_t mebibytes = 0;
  std::string message;
};

/// Runs in the child process: reads the file and writes "status seconds message" to the pipe.
[[noreturn]] void attempt(const BrokenCase& broken, const fs::path& folder, int pipe) {
  alarm(test::patience);
  if (!address_sanitizer && !thread_sanitizer) {
    // A decompression bomb must not exhaust the memory of the machine.
    const rlimit bound{rlim_t{2} << 30, rlim_t{2} << 30};
    setrlimit(RLIMIT_AS, &bound);
  }
  int status = -1;
  std::string message;
  const double begin = test::processor_seconds();
  try {
    broken.read(folder);
  } catch (const Error& error) {
    status = static_cast<int>(error.code);
    message = error.what();
  } catch (const std::exception& error) {
    status = -2;
    message = error.what();
  }
  const double end = test::processor_seconds();
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
                                                       WTERMSIG(ended) == SIGALRM ? " (hung)" : "")
                                         : fmt::format("exit {}", WEXITSTATUS(ended));
    return outcome;
  }
  std::size_t first = 0, second = 0;
  outcome.status = std::stoi(report, &first);
  outcome.seconds = std::stod(report.substr(first), &second);
  outcome.message = report.substr(first + second + 1);
  return outcome;
}

/// The processor time of reading the file that `make` writes, in seconds.
double reading_seconds(const BrokenCase& broken,
                       const std::function<void(const fs::path& folder)>& make) {
  const Scratch scratch;
  make(scratch.path);
  return outcome_of(broken, scratch.path).seconds;
}

/// The reading times of all cases of a kind.
class Times {
 public:
  Times(const std::string& kind, bool timed) : kind_(kind), timed_(timed) {}

  void record(const BrokenCase& broken, const Outcome& outcome) {
    if (outcome.status == -3) {  // killed or hung: not repeated
      slowest_ = std::numeric_limits<double>::infinity();
      slowest_name_ = broken.name;
      return;
    }
    double seconds = outcome.seconds;
    for (int i = 0; i < 4 && seconds > max_seconds(); ++i)  // repeat: the machine may be busy
      seconds = std::min(seconds, reading_seconds(broken, broken.make));
    if (seconds > max_seconds())
      Measures::note(fmt::format("{}: {}: {:.0f} ms", kind_, broken.name, 1e3 * seconds));
    if (seconds > slowest_) slowest_ = seconds, slowest_name_ = broken.name;
    if (broken.make_eighth) record_growth(broken);
  }

  void report(Measures& measures) const {
    Measures::note(fmt::format("{}: slowest case: {}, {:.1f} ms; maximum growth: {}", kind_,
                               slowest_name_, 1e3 * slowest_, steepest_name_));
    measures.line(fmt::format("broken {}: maximum time, in yardsticks", kind_),
                  fmt::format("{:.2f}", slowest_ / test::yardstick()),
                  fmt::format("<= {}", kMaxYardsticks),
                  slowest_ <= kMaxYardsticks * test::yardstick());
    measures.line(fmt::format("broken {}: growth of time for 8 times the size", kind_),
                  fmt::format("{:.1f} times, {} cases", steepest_, grown_),
                  fmt::format("<= {} times", test::growth_limit),
                  grown_ > 0 && steepest_ <= test::growth_limit);
    if (timed_) {
      measures.line(fmt::format("broken {}: maximum time", kind_),
                    fmt::format("{:.1f} ms", 1e3 * slowest_), "<= 500 ms",
                    1e3 * slowest_ <= kMaxMilliseconds);
    }
  }

 private:
  double max_seconds() const {
    const double limit = kMaxYardsticks * test::yardstick();
    return timed_ ? std::min(limit, 1e-3 * kMaxMilliseconds) : limit;
  }

  void record_growth(const BrokenCase& broken) {
    ++grown_;
    const double times = test::growth([&] { return reading_seconds(broken, broken.make_eighth); },
                                      [&] { return reading_seconds(broken, broken.make); });
    if (times > test::growth_limit)
      Measures::note(fmt::format("{}: {}: takes {:.0f} times as long at 8 times the size", kind_,
                                 broken.name, times));
    if (times > steepest_) steepest_ = times, steepest_name_ = broken.name;
  }

  std::string kind_;
  bool timed_;
  std::size_t grown_ = 0;
  double slowest_ = 0, steepest_ = 0;
  std::string slowest_name_ = "none", steepest_name_ = "none";
};

/// The first expected part that the message does not contain, or "" if it contains all.
std::string missing_part(const BrokenCase& broken, const fs::path& folder,
                         const std::string& message) {
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
      Measures::note(fmt::format("intact, {}: {}", sound.name, short_form(outcome.message)));
  }
  measures.all_of("intact files: accepted", accepted, cases.size());
}

void measure(Measures& measures, const std::string& kind, Exit code,
             const std::vector<BrokenCase>& cases, std::size_t min_cases, bool timed) {
  std::size_t refused = 0, in_bounds = 0;
  Times times(kind, timed);
  Outcome largest;
  std::string largest_name = "none";
  for (const BrokenCase& broken : cases) {
    const Scratch scratch;
    broken.make(scratch.path);
    const Outcome outcome = outcome_of(broken, scratch.path);
    const std::string missing = missing_part(broken, scratch.path, outcome.message);
    const bool right = outcome.status == static_cast<int>(code) && missing.empty();
    refused += right;
    if (!right) {
      Measures::note(
          fmt::format("{}: {}: {}{}: {}", kind, broken.name,
                      outcome.status == -1 ? "accepted" : fmt::format("status {}", outcome.status),
                      missing.empty() ? "" : ", the message lacks \"" + missing + "\"",
                      short_form(outcome.message)));
    }
    times.record(broken, outcome);
    in_bounds += outcome.mebibytes <= kMaxMebibytes;
    if (outcome.mebibytes > largest.mebibytes) largest = outcome, largest_name = broken.name;
  }
  measures.line(fmt::format("broken {}: cases", kind), fmt::format("{}", cases.size()),
                fmt::format(">= {}", min_cases), cases.size() >= min_cases);
  measures.all_of(fmt::format("broken {}: refused, naming file and position", kind), refused,
                  cases.size());
  times.report(measures);
  Measures::note(fmt::format("{}: case with the highest memory use: {}", kind, largest_name));
  measures.line(fmt::format("broken {}: peak memory", kind),
                fmt::format("{} MiB", largest.mebibytes), "<= 512 MiB", in_bounds == cases.size());
}

}  // namespace heed::relcheck
