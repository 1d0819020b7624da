#include "train/course/student.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "autograd/base/error.h"
#include "autograd/io/files.h"
#include "autograd/io/formats/json_text.h"
#include "autograd/io/message_text.h"

namespace heed::course {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* record_name = "heed-course.json";

constexpr std::string_view readme = R"(# The course

Each folder is a chapter. Its `exercise.h` is yours to complete: search for "To write". In this folder:

    heed course list             the chapters, and what you have passed
    heed course check 1          checks chapter 1; stops at the first mistake and names it
    heed course bugs 1 --student ID
                                 after your exercise has passed: writes faulty solutions into bugs/;
                                 find the line and the cause
    heed course test 1           runs 01-tape/my_test.cpp, your own test, on faulty solutions

To see a value, print it (`std::cout << x << "\n"` also takes an Array and a Tensor): a check that fails
shows the last 20 lines.

## Array and Tensor

A row-major array of doubles, and a value on the tape; namespace heed, `autograd/memory/array.h` and
`autograd/tensor.h`.

    Array x({2, 3});              2 rows, 3 columns, not initialised; also Array::zeros({2, 3}),
                                  Array({{1, 2}, {3, 4}}) from rows, Array::of({1, 2}) from a list
    x.shape()[0], x.rows(), x.cols(), x.size()
    x.at({1, 2})                  an entry, checked; to read and to write
    x.row(1)[2], x.data()[5]      the same entry by pointers, unchecked; x.row(1) has x.cols() entries
    Array y = x;                  shares the values: writing to y changes x; x.clone() is a copy
    Tensor w = Tensor::variable(x);   a variable, whose gradient is computed; Tensor(x) is a constant
    w.value()                     its Array; ops such as heed::matmul(a, b) take and return Tensors
    Gradients g = heed::backward(y, dy);   of ⟨dy, y⟩; backward(y) if y is one number
    g[w]                          the gradient of the variable w, an Array in its shape

`cmake -S . -B build && cmake --build build` compiles all exercises, for editors that read
`build/compile_commands.json`; `ctest --test-dir build` runs all checks.
`heed course start .` adds the chapters of a newer heed and leaves your files as they are.
)";

constexpr std::string_view project = R"(cmake_minimum_required(VERSION 3.25)
project(course LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
find_program(HEED heed HINTS "{heed}" REQUIRED)
# The folders of heed's headers and of the course's files. After an update of heed, delete this file
# and run `heed course start .`.
set(headers {headers})
enable_testing()
file(GLOB exercises CONFIGURE_DEPENDS */exercise.h)
foreach(exercise IN LISTS exercises)
  cmake_path(GET exercise PARENT_PATH folder)
  cmake_path(GET folder FILENAME name)
  file(CONFIGURE OUTPUT ${{name}}.cpp CONTENT "#include \"${{exercise}}\"\n")
  add_library(${{name}} OBJECT ${{CMAKE_CURRENT_BINARY_DIR}}/${{name}}.cpp)
  target_include_directories(${{name}} PRIVATE ${{headers}})
  target_compile_definitions(${{name}} PRIVATE HEED_DOUBLE)
  # A starter does not use its parameters and saved values yet.
  target_compile_options(${{name}} PRIVATE -Wall -Wextra -Wno-unused-parameter -Wno-unused-variable)
  add_test(NAME ${{name}} COMMAND ${{HEED}} course check ${{name}}
           WORKING_DIRECTORY ${{CMAKE_CURRENT_SOURCE_DIR}})
endforeach()
)";

std::string project_text(const CourseFiles& course) {
  std::string headers = fmt::format("\"{}\"", course.folder.string());
  for (const std::string& folder : course.include) headers += fmt::format(" \"{}\"", folder);
  const fs::path program = fs::read_symlink("/proc/self/exe");
  return fmt::format(fmt::runtime(project), fmt::arg("headers", headers),
                     fmt::arg("heed", program.parent_path().string()));
}

/// The folder of a student that contains the working folder.
std::optional<fs::path> enclosing() {
  const fs::path here = fs::current_path();
  for (const fs::path& folder : {here, here.parent_path()})
    if (fs::exists(folder / record_name)) return folder;
  return {};
}

Json read_record(const fs::path& folder) {
  const fs::path file = folder / record_name;
  Json record = parse_json(read_bytes(file), shown_path(file));
  if (!record.is_object() || !record.contains("checks") || !record["checks"].is_object())
    throw Error(Exit::bad_input, "{}: expected an object with the key checks", shown_path(file));
  return record;
}

/// Whether a check of the chapter has passed. Records of older programs contain the last check only.
bool passed_in(const Json& record, const Chapter& chapter) {
  const auto entry = record["checks"].find(chapter.folder);
  if (entry == record["checks"].end()) return false;
  return entry->value("has_passed", !entry->contains("failure"));
}

}  // namespace

std::vector<std::string> StudentFolder::start(const fs::path& folder, const CourseFiles& course,
                                              const std::vector<Chapter>& chapters,
                                              bool solutions) {
  std::vector<std::string> created;
  const auto create = [&](const fs::path& name, std::string_view text) {
    if (path_exists(folder / name)) return;
    create_folders((folder / name).parent_path());
    write_file_durably(folder / name, text);
    created.push_back(name.string());
  };
  create("README.md", readme);
  create("CMakeLists.txt", project_text(course));
  create(record_name, Json{{"checks", Json::object()}}.dump(2) + "\n");
  for (const Chapter& chapter : chapters) {
    create(fs::path(chapter.folder) / "exercise.h",
           solutions ? solution_of(chapter) : starter_of(chapter));
    create(fs::path(chapter.folder) / "my_test.cpp", read_bytes(chapter.path / "my_test.cpp"));
  }
  return created;
}

StudentFolder StudentFolder::find() {
  const auto folder = enclosing();
  if (!folder) {
    throw Error(
        Exit::usage,
        "{} is not a folder of the course: run `heed course start DIR`, then this command in "
        "DIR",
        shown_path("."));
  }
  return StudentFolder(*folder);
}

bool StudentFolder::exists() { return enclosing().has_value(); }

fs::path StudentFolder::exercise(const Chapter& chapter) const {
  return path_ / chapter.folder / "exercise.h";
}

void StudentFolder::record(const Chapter& chapter, const Exercise& exercise,
                           const CheckResult& result) const {
  Json record = read_record(path_);
  const bool before = passed_in(record, chapter);
  Json& entry = record["checks"][chapter.folder];
  entry = {{"passed", result.passed()},
           {"cases", result.has_run() ? result.cases.size() : 0},
           {"sha256", sha256_hex(exercise.text)},
           {"has_passed", before || result.all_passed()}};
  if (const CheckedCase* const failure = result.failure())
    entry["failure"] = fmt::format("{}: {}", failure->stage, failure->sentence);
  write_file_durably(path_ / record_name, record.dump(2) + "\n");
}

bool StudentFolder::has_passed(const Chapter& chapter) const {
  return passed_in(read_record(path_), chapter);
}

std::string StudentFolder::state(const Chapter& chapter) const {
  if (!fs::exists(exercise(chapter))) return "missing: heed course start . adds it";
  const std::string text = read_exercise(exercise(chapter)).text;
  const Json checks = read_record(path_)["checks"];
  if (!checks.contains(chapter.folder))
    return text == starter_of(chapter) ? "not started" : "not checked yet";
  const Json& entry = checks[chapter.folder];
  const std::string changed =
      entry.at("sha256") == sha256_hex(text) ? "" : " (before the last change)";
  if (!entry.contains("failure")) return "passed" + changed;
  const int cases = entry.at("cases").get<int>();
  const std::string passed =
      cases == 0 ? "not run" : fmt::format("{} of {} passed", entry.at("passed").get<int>(), cases);
  return fmt::format("{}{}; {}", passed, changed,
                     excerpt(entry.at("failure").get<std::string>(), 60));
}

}  // namespace heed::course
