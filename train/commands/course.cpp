#include <fmt/format.h>

#include <atomic>
#include <charconv>
#include <future>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "autograd/base/error.h"
#include "autograd/io/files.h"
#include "autograd/io/message_text.h"
#include "train/commands/command_line.h"
#include "train/course/check.h"
#include "train/course/student.h"
#include "train/terminal/run_log.h"
#include "train/terminal/table.h"

namespace heed::course {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t bugs_of_a_round = 3;

struct CourseCommand {
  std::string action, argument;
  std::string hidden, exercise, student;
  std::vector<std::string> answers;
  bool json = false, solutions = false, every = false, solved = false;
};

struct Course {
  CourseFiles files = find_course();
  std::vector<Chapter> chapters = chapters_of(files);
};

void print_json(const nlohmann::json& json) {
  print_text(json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

// ---- list, start -----------------------------------------------------------------------------

int list(const CourseCommand& options) {
  const Course course;
  std::optional<StudentFolder> student;
  if (StudentFolder::exists()) student = StudentFolder::find();
  std::vector<std::vector<std::string>> rows{{"", "chapter", student ? "state" : ""}};
  nlohmann::json json = nlohmann::json::array();
  for (const Chapter& chapter : course.chapters) {
    const std::string state = student ? student->state(chapter) : "";
    rows.push_back({std::to_string(chapter.number), chapter.title, state});
    json.push_back({{"number", chapter.number},
                    {"folder", chapter.folder},
                    {"title", chapter.title},
                    {"state", state}});
  }
  if (options.json) {
    print_json({{"chapters", json}});
  } else {
    print_text(aligned(rows));
  }
  return 0;
}

int start(const CourseCommand& options) {
  const Course course;
  const std::vector<std::string> created =
      StudentFolder::start(options.argument, course.files, course.chapters, options.solutions);
  print_message(fmt::format(
      "{}: {} files created{}; begin with `heed course list` in this folder", options.argument,
      created.size(),
      created.size() < 2 * course.chapters.size() + 3 ? ", existing files are unchanged" : ""));
  return 0;
}

// ---- check -----------------------------------------------------------------------------------

/// The results in the form that Gradescope reads (results.json).
nlohmann::json gradescope(const Chapter& chapter, const CheckResult& result) {
  nlohmann::json tests = nlohmann::json::array();
  for (const CheckedCase& c : result.cases) {
    const bool passed = c.outcome == Outcome::passed;
    tests.push_back({{"name", c.stage + ": " + c.name},
                     {"score", passed ? 1 : 0},
                     {"max_score", 1},
                     {"status", passed ? "passed" : "failed"},
                     {"output", c.outcome == Outcome::not_reached
                                    ? "not reached: the check stops at the first failure"
                                    : c.sentence}});
  }
  return {{"score", result.passed()},
          {"execution_time", result.compile_seconds + result.run_seconds},
          {"tests", tests},
          {"extra_data",
           {{"chapter", chapter.folder},
            {"passed", result.all_passed()},
            {"compile_seconds", result.compile_seconds},
            {"run_seconds", result.run_seconds},
            {"processor_seconds", result.processor_seconds}}}};
}

/// What the exercise printed, apart from what the check says.
std::string printed_text(const CheckResult& result) {
  if (result.printed.empty() || result.failure() == nullptr) return "";
  std::string text = "  ---- printed by the exercise (at most its last 20 lines) ----\n";
  for (const std::string& line : result.printed) text += "  | " + line + "\n";
  return text + "  ----\n";
}

void print_result(const Chapter& chapter, const CheckResult& result) {
  std::string text;
  for (const CheckedCase& c : result.cases) {
    if (c.outcome == Outcome::passed) text += fmt::format("  passed  {}: {}\n", c.stage, c.name);
    if (c.outcome == Outcome::failed)
      text += fmt::format("  FAILED  {}: {}\n          {}\n", c.stage, c.name, c.sentence);
  }
  text += printed_text(result);
  text += result.has_run()
              ? fmt::format("{}: {} of {} passed (compiled in {:.1f} s, ran {:.2f} s)\n",
                            chapter.folder, result.passed(), result.cases.size(),
                            result.compile_seconds, result.run_seconds)
              : fmt::format("{}: not run\n", chapter.folder);
  print_text(text);
}

int check(const CourseCommand& options) {
  const Course course;
  const Chapter& chapter = chapter_named(course.chapters, options.argument);
  const bool own = options.exercise.empty();
  const Exercise exercise =
      read_exercise(own ? StudentFolder::find().exercise(chapter) : fs::path(options.exercise));
  const CheckResult result =
      check_exercise(course.files, chapter, exercise,
                     options.hidden.empty() ? 0 : key_of(chapter.folder + "\n" + options.hidden));
  if (own && options.hidden.empty()) StudentFolder::find().record(chapter, exercise, result);
  if (options.json) {
    print_json(gradescope(chapter, result));
  } else {
    print_result(chapter, result);
  }
  if (!options.json && !result.details.empty()) print_message(result.details);
  return result.all_passed() ? 0 : static_cast<int>(Exit::failed);
}

// ---- bugs ------------------------------------------------------------------------------------

/// The causes of all bugs of a chapter, among which a student chooses.
std::string causes_of(const Chapter& chapter) {
  std::vector<std::vector<std::string>> rows;
  for (const Bug& bug : bugs_of(chapter)) rows.push_back({"  " + bug.name, bug.cause});
  return aligned(rows);
}

/// An answer FILE=LINE:CAUSE; FILE is 1 or 1.h.
struct Answer {
  std::size_t file = 0;
  int line = 0;
  std::string cause;
};

Answer parsed_answer(const std::string& text, std::size_t files) {
  Answer answer;
  const char* const end = text.data() + text.size();
  auto read = std::from_chars(text.data(), end, answer.file);
  if (read.ec == std::errc() && std::string_view(read.ptr, end).starts_with(".h")) read.ptr += 2;
  if (read.ec == std::errc() && read.ptr != end && *read.ptr == '=') {
    read = std::from_chars(read.ptr + 1, end, answer.line);
    if (read.ec == std::errc() && read.ptr != end && *read.ptr == ':') answer.cause = read.ptr + 1;
  }
  if (answer.cause.empty() || answer.file < 1 || answer.file > files) {
    throw Error(
        Exit::usage,
        "--answer {}: expected FILE=LINE:CAUSE, such as 2=31:CAUSE for line 31 of 2.h, with "
        "a file from 1 to {} and a cause from the list",
        shown(text), files);
  }
  return answer;
}

int answer_bugs(const Chapter& chapter, const CourseCommand& options,
                const std::vector<Bug>& bugs) {
  int wrong = 0;
  std::string text;
  for (const std::string& given : options.answers) {
    const Answer answer = parsed_answer(given, bugs.size());
    const Bug& bug = bugs[answer.file - 1];
    const bool line = answer.line >= bug.first && answer.line <= bug.last,
               cause = answer.cause == bug.name;
    wrong += line && cause ? 0 : 1;
    text += fmt::format("bugs/{}/{}.h: {} line, {} cause\n", chapter.number, answer.file,
                        line ? "right" : "wrong", cause ? "right" : "wrong");
  }
  print_text(text);
  return wrong == 0 ? 0 : static_cast<int>(Exit::failed);
}

/// Writes all bugs of a chapter under their names, for lecturers and authors.
int write_every_bug(const Chapter& chapter, const CourseCommand& options, const fs::path& folder) {
  nlohmann::json json = nlohmann::json::array();
  for (const Bug& bug : bugs_of(chapter)) {
    const fs::path file = folder / (bug.name + ".h");
    write_file_durably(file, bug.header);
    json.push_back({{"name", bug.name},
                    {"cause", bug.cause},
                    {"message", bug.message},
                    {"file", file.string()},
                    {"first", bug.first},
                    {"last", bug.last}});
  }
  if (options.json) {
    print_json({{"bugs", json}});
  } else {
    print_text(causes_of(chapter));
  }
  return 0;
}

int bugs(const CourseCommand& options) {
  const Course course;
  const Chapter& chapter = chapter_named(course.chapters, options.argument);
  const StudentFolder student = StudentFolder::find();
  const fs::path folder = student.path() / "bugs" / std::to_string(chapter.number);
  if (options.student.empty() && !options.every)
    throw Error(Exit::usage, "heed course bugs: --student ID is missing: the bugs depend on it");
  if (options.every) {
    create_folders(folder);
    return write_every_bug(chapter, options, folder);
  }
  const std::vector<Bug> drawn = bugs_for(chapter, options.student, bugs_of_a_round);
  if (!options.answers.empty()) return answer_bugs(chapter, options, drawn);
  if (!options.solved && !student.has_passed(chapter))
    throw Error(
        Exit::usage,
        "heed course bugs {0}: faulty solutions show almost the whole solution, so `heed course "
        "check {0}` must pass first; --solved writes them before that, for lecturers",
        chapter.number);
  create_folders(folder);
  for (std::size_t i = 0; i < drawn.size(); ++i)
    write_file_durably(folder / fmt::format("{}.h", i + 1), drawn[i].header);
  print_text(fmt::format(
      "bugs/{0}/1.h to {1}.h: the solution with one mistake each. For each, find the line and the "
      "cause:\n{2}Answer: heed course bugs {0} --student {3} --answer FILE=LINE:CAUSE\n",
      chapter.number, drawn.size(), causes_of(chapter), options.student));
  return 0;
}

// ---- test: the student's own test ------------------------------------------------------------

struct Killed {
  std::string name, cause;
  bool killed = false;
};

/// Runs the test on every faulty solution, several at a time.
std::vector<Killed> kill(const Course& course, const Chapter& chapter, const Exercise& test) {
  const std::vector<Bug> all = bugs_of(chapter);
  std::vector<Killed> killed(all.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < all.size(); i = next++) {
      const Bug& bug = all[i];
      const CheckResult result = run_test(course.files, chapter, test, {"exercise.h", bug.header});
      killed[i] = {bug.name, bug.cause, !result.all_passed()};
    }
  };
  std::vector<std::future<void>> workers;
  for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i)
    workers.push_back(std::async(std::launch::async, work));
  for (std::future<void>& worker : workers) worker.get();
  return killed;
}

int test(const CourseCommand& options) {
  const Course course;
  const Chapter& chapter = chapter_named(course.chapters, options.argument);
  const Exercise own = read_exercise(StudentFolder::find().path() / chapter.folder / "my_test.cpp");
  const CheckResult right =
      run_test(course.files, chapter, own, {"exercise.h", solution_of(chapter)});
  const std::string refused =
      right.failure() == nullptr ? "" : "fails on the solution: " + right.failure()->sentence;
  const std::vector<Killed> all =
      right.all_passed() ? kill(course, chapter, own) : std::vector<Killed>();
  std::vector<std::vector<std::string>> rows;
  nlohmann::json tests = nlohmann::json::array();
  tests.push_back({{"name", "passes on the solution"},
                   {"score", 0},
                   {"max_score", 0},
                   {"status", right.all_passed() ? "passed" : "failed"},
                   {"output", refused}});
  std::size_t found = 0;
  for (const Killed& k : all) {
    found += k.killed ? 1 : 0;
    rows.push_back({k.killed ? "  found " : "  MISSED", k.cause});
    tests.push_back({{"name", k.name},
                     {"score", k.killed ? 1 : 0},
                     {"max_score", 1},
                     {"status", k.killed ? "passed" : "failed"},
                     {"output", k.cause}});
  }
  const std::size_t bugs = bugs_of(chapter).size();
  const bool good = right.all_passed() && found == bugs;
  if (options.json) {
    print_json({{"score", found}, {"tests", tests}});
  } else if (right.all_passed()) {
    print_text(aligned(rows) + fmt::format("{}/my_test.cpp: finds {} of {} mistakes\n",
                                           chapter.folder, found, bugs));
  } else {
    print_text(fmt::format("{}/my_test.cpp {}\n{}", chapter.folder, refused, printed_text(right)));
    if (!right.details.empty()) print_message(right.details);
  }
  return good ? 0 : static_cast<int>(Exit::failed);
}

int course_command(const CourseCommand& options) {
  if (options.action == "run") run_cases(options.argument);
  if (options.action != "list" && options.argument.empty())
    throw Error(Exit::usage, "heed course {}: expected {}", options.action,
                options.action == "start" ? "a folder" : "a chapter, such as 3");
  if (options.action == "list") return list(options);
  if (options.action == "start") return start(options);
  if (options.action == "check") return check(options);
  return options.action == "bugs" ? bugs(options) : test(options);
}

}  // namespace

}  // namespace heed::course

namespace heed {

void add_course(CommandLine& line) {
  const auto [command, options] = add_command<course::CourseCommand>(
      line, "course", Needs::files, "exercises of the course, and their checks",
      course::course_command);
  add_argument(command, "ACTION", options->action, "list, start, check, bugs or test")
      ->required()
      ->check([](const std::string& given) {
        for (const char* const action : {"list", "start", "check", "bugs", "test", "run"})
          if (given == action) return std::string();
        return shown(given) + ": expected list, start, check, bugs or test";
      });
  add_argument(command, "WHAT", options->argument,
               "the new folder for start; the chapter, such as 3, for check, bugs and test");
  add_choice(command, choices, "--exercise", options->exercise, "FILE",
             "check this header instead of exercise.h of the chapter's folder");
  add_choice(command, choices, "--hidden", options->hidden, "KEY",
             "check with other shapes and values, drawn from the key");
  add_choice(command, choices, "--student", options->student, "ID", "draw the bugs by this ID");
  command
      ->add_option("--answer", options->answers,
                   "FILE=LINE:CAUSE, the line and the cause of the mistake in a file of bugs")
      ->type_name("ANSWER")
      ->group(choices);
  add_flag(command, choices, "--solutions", options->solutions,
           "start with the solutions instead of the exercises");
  add_flag(command, choices, "--every", options->every,
           "write all bugs of the chapter under their names: they give the answers away");
  add_flag(command, choices, "--solved", options->solved,
           "bugs: write them although check has not passed in this folder");
  add_json(command, options->json, "the result (check, test: as Gradescope's results.json)");
  command->footer(
      "start DIR creates a folder with the exercises of all chapters; the other commands run in\n"
      "that folder. list shows the chapters and the state of each. check N compiles exercise.h of\n"
      "chapter N, compares it with heed and stops at the first mistake; the exit status is 0 if all\n"
      "passed. What the exercise prints (std::cout, std::cerr) is shown with its failure. After a chapter\n"
      "has passed, bugs N --student ID writes faulty solutions; with --answer, it checks answers.\n"
      "test N runs my_test.cpp on the solution and on all faulty ones.\n"
      "A check runs the exercise in a child process with limits on time and memory; it does not\n"
      "keep it from reading and writing files: check the work of others in a container.\n"
      "Examples:\n"
      "  heed course start mine\n"
      "  cd mine && heed course check 1\n"
      "  heed course bugs 3 --student 4711 --answer 1=27:no-scale");
}

}  // namespace heed
