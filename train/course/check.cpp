#include "train/course/check.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "autograd/base/error.h"
#include "autograd/base/sanitizers.h"
#include "autograd/io/files.h"
#include "autograd/io/formats/json_text.h"
#include "autograd/io/message_text.h"
#include "autograd/io/temporary_folder.h"
#include "train/course/limited_process.h"
#include "train/course/rules.h"

namespace heed::course {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t compiler_bytes = std::uint64_t{4} << 30, run_bytes = std::uint64_t{2} << 30;

/// A word that a submission cannot guess.
std::string secret_word() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw Error(Exit::io, "cannot draw random bytes");
  std::string word;
  for (const unsigned char byte : bytes) word += fmt::format("{:02x}", byte);
  return word;
}

void add(CheckResult& result, const char* stage, const std::string& name,
         const std::string& failure) {
  result.cases.push_back(
      {stage, name, failure.empty() ? Outcome::passed : Outcome::failed, failure});
}

/// The first error of the compiler, and what it says about it.
std::string first_error(const std::string& messages) {
  const std::size_t error = messages.find("error: ");
  if (error == std::string::npos) return excerpt(messages, 300);
  const std::size_t begin = messages.rfind('\n', error) + 1;  // npos + 1 is 0
  return messages.substr(begin, messages.find('\n', error) - begin);
}

std::string first_lines(const std::string& text, int count) {
  std::size_t end = 0;
  for (int i = 0; i < count && end != std::string::npos; ++i) end = text.find('\n', end + 1);
  return text.substr(0, end);
}

/// The last lines of a program's output, for a terminal.
std::vector<std::string> last_lines(std::string_view output, std::size_t count) {
  constexpr std::size_t longest = 200;
  if (output.ends_with('\n')) output.remove_suffix(1);
  std::vector<std::string> lines;
  while (!output.empty() && lines.size() < count) {
    const std::size_t begin = output.rfind('\n') + 1;  // npos + 1 is 0
    const std::string_view line = output.substr(begin);
    lines.push_back(for_terminal(line.substr(0, longest)) + (line.size() > longest ? "…" : ""));
    output = output.substr(0, begin == 0 ? 0 : begin - 1);
  }
  std::ranges::reverse(lines);
  return lines;
}

std::string compiler() {
  const char* const chosen = std::getenv("CXX");
  return chosen != nullptr && *chosen != '\0' ? chosen : "c++";
}

/// Compiles `source` into `library`; "" or what is wrong.
std::string compile(const CourseFiles& course, const fs::path& folder, const fs::path& source,
                    const fs::path& library, CheckResult& result) {
  std::vector<std::string> arguments{compiler(),        "-std=c++20",   "-O1",
                                     "-fPIC",           "-shared",      "-w",
                                     "-fno-gnu-unique", "-DHEED_DOUBLE"};
  if (compiler().find("clang") != std::string::npos) std::erase(arguments, "-fno-gnu-unique");
  for (const std::string& include :
       {folder.string(), course.folder.string(), course.include.front(), course.include.back()}) {
    arguments.push_back("-I");
    arguments.push_back(include);
  }
  arguments.insert(arguments.end(), {source.string(), "-o", library.string()});
  const LimitedResult compiled = run_limited(
      arguments, "", {.seconds = 300, .processor_seconds = 60, .bytes = compiler_bytes});
  result.compile_seconds = compiled.seconds;
  if (compiled.out_of_time) return "compiling was stopped after 60 s of processor time";
  if (compiled.signal == 0 && compiled.status == 0) return "";
  result.details = for_terminal(first_lines(compiled.errors, 20));
  return "it does not compile: " + for_terminal(first_error(compiled.errors));
}

/// How the child process ended, for a child that did not report that it is done.
std::string ending(const LimitedResult& run, double seconds) {
  if (run.errors.find("std::bad_alloc") != std::string::npos)
    return fmt::format("the exercise needs more memory than a check may use ({} GB)",
                       run_bytes >> 30);
  if (run.out_of_time && run.processor_seconds < seconds)
    return fmt::format(
        "stopped after {:.0f} s on the clock, of which {:.1f} s of processor time: does the exercise "
        "sleep, or wait for input?",
        run.seconds, run.processor_seconds);
  if (run.out_of_time)
    return fmt::format(
        "stopped after {:.1f} s of processor time (allowed: {:g} s): an endless loop?",
        run.processor_seconds, seconds);
  if (run.signal != 0) {
    const char* cause = "";
    if (run.signal == SIGSEGV) cause = ": a bad index or pointer, or a recursion that is too deep?";
    if (run.signal == SIGFPE) cause = ": a division of integers by zero?";
    if (run.signal == SIGABRT) cause = ": an assertion, or memory that was freed twice?";
    return fmt::format("the program ended by signal {} ({}){}", run.signal, ::strsignal(run.signal),
                       cause);
  }
  return fmt::format(
      "the program ended with exit status {} before the check was done: does the "
      "exercise call exit?",
      run.status);
}

/// Follows the lines that begin with the secret word; others are a submission's own.
void read_report(const LimitedResult& run, const std::string& secret, double seconds,
                 CheckResult& result) {
  std::size_t began = 0;  // number of cases that have begun, and that have ended
  std::size_t ended = 0;
  bool done = false;
  const std::size_t first = result.cases.size();
  for (std::size_t at = 0; at < run.report.size();) {
    const std::size_t end = std::min(run.report.find('\n', at), run.report.size());
    const std::string_view line = std::string_view(run.report).substr(at, end - at);
    at = end + 1;
    if (!line.starts_with(secret)) continue;
    const nlohmann::json json = nlohmann::json::parse(line.substr(secret.size()));
    if (json.contains("case")) {
      result.cases.push_back(
          {json.at("case").at(0), json.at("case").at(1), Outcome::not_reached, ""});
    } else if (json.contains("begin")) {
      began = json.at("begin").get<std::size_t>() + 1;
    } else if (json.contains("end")) {
      ended = json.at("end").get<std::size_t>() + 1;
      CheckedCase& c = result.cases.at(first + ended - 1);
      c.sentence = for_terminal(json.at("failure").get<std::string>());
      c.outcome = c.sentence.empty() ? Outcome::passed : Outcome::failed;
    } else {
      done = json.contains("done");
    }
  }
  if (done && run.signal == 0 && !run.out_of_time) return;
  const std::string how = ending(run, seconds);
  if (began == ended) return add(result, "values", "the check starts and ends", how);
  CheckedCase& broken = result.cases.at(first + ended);
  broken.outcome = Outcome::failed;
  broken.sentence = how;
}

/// Runs the library in a child process.
void run(const fs::path& library, std::uint64_t key, double seconds, CheckResult& result) {
  const std::string secret = secret_word();
  const bool sanitized = address_sanitizer || thread_sanitizer;  // they reserve terabytes
  const double most = 2 * seconds + 1;
  const LimitedResult run = run_limited(
      {"/proc/self/exe", "course", "run", library.string()}, fmt::format("{} {}\n", secret, key),
      {.seconds = 8 * most + 6, .processor_seconds = most, .bytes = sanitized ? 0 : run_bytes});
  result.run_seconds = run.seconds;
  result.processor_seconds = run.processor_seconds;
  result.printed = last_lines(run.errors, 20);
  read_report(run, secret, seconds, result);
}

/// A header in the compiler's folder whose messages name the student's file.
void write_header(const fs::path& file, const Exercise& exercise) {
  write_file_durably(file, fmt::format("#line 1 \"{}\"\n{}", exercise.name, exercise.text));
}

}  // namespace

std::int64_t CheckResult::passed() const {
  return std::ranges::count(cases, Outcome::passed, &CheckedCase::outcome);
}
bool CheckResult::all_passed() const {
  return !cases.empty() && passed() == static_cast<std::int64_t>(cases.size());
}
bool CheckResult::has_run() const {
  const CheckedCase* const failed = failure();
  return failed == nullptr || (failed->stage != "rules" && failed->stage != "compile");
}
const CheckedCase* CheckResult::failure() const {
  const auto failed = std::ranges::find(cases, Outcome::failed, &CheckedCase::outcome);
  return failed == cases.end() ? nullptr : &*failed;
}

Exercise read_exercise(const fs::path& file) {
  constexpr std::uint64_t longest = std::uint64_t{1} << 20;
  return {file.filename().string(), read_bytes(file, longest)};
}

CheckResult check_exercise(const CourseFiles& course, const Chapter& chapter,
                           const Exercise& exercise, std::uint64_t key) {
  CheckResult result;
  const std::string broken = broken_rule(exercise.text, solution_of(chapter), chapter.avoid);
  add(result, "rules", "uses only what the chapter permits",
      broken.empty() ? "" : exercise.name + broken);
  if (!broken.empty()) return result;
  const TemporaryFolder folder;
  const fs::path library = folder.path() / "check.so";
  write_header(folder.path() / "exercise.h", exercise);
  const std::string error =
      compile(course, folder.path(), chapter.path / "check.cpp", library, result);
  add(result, "compile", "compiles", error);
  if (!error.empty()) return result;
  run(library, key, chapter.seconds, result);
  const bool stopped = result.failure() != nullptr;
  add(result, "budgets", fmt::format("takes at most {:g} s of processor time", chapter.seconds),
      result.processor_seconds <= chapter.seconds
          ? ""
          : fmt::format("the run takes {:.2f} s of processor time, allowed are {:g} s",
                        result.processor_seconds, chapter.seconds));
  if (stopped) {
    result.cases.back().outcome = Outcome::not_reached;
    result.cases.back().sentence.clear();
  }
  return result;
}

CheckResult run_test(const CourseFiles& course, const Chapter& chapter, const Exercise& test,
                     const Exercise& exercise) {
  CheckResult result;
  const TemporaryFolder folder;
  const fs::path library = folder.path() / "test.so", source = folder.path() / "test.cpp";
  write_header(folder.path() / "exercise.h", exercise);
  write_header(folder.path() / "my_test.cpp", test);
  write_file_durably(source, "#include \"test_case.h\"\n#include \"my_test.cpp\"\n");
  const std::string error = compile(course, folder.path(), source, library, result);
  add(result, "compile", "compiles", error);
  if (error.empty()) run(library, 0, chapter.seconds, result);
  return result;
}

}  // namespace heed::course
