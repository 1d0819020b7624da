#include "train/course/chapters.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "autograd/base/error.h"
#include "autograd/base/random.h"
#include "autograd/io/files.h"
#include "autograd/io/formats/json_text.h"
#include "autograd/io/message_text.h"

namespace heed::course {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view begin_mark = "// --- begin exercise ", end_mark = "// --- end exercise";

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::string trimmed(std::string_view line) {
  const std::size_t first = line.find_first_not_of(' ');
  if (first == std::string_view::npos) return "";
  return std::string(line.substr(first, line.find_last_not_of(' ') - first + 1));
}

/// The source folder of the build folder that contains `program`, from CMake's cache.
std::optional<fs::path> source_folder(const fs::path& program) {
  const fs::path cache = program.parent_path().parent_path() / "CMakeCache.txt";
  if (!fs::exists(cache)) return {};
  constexpr std::string_view entry = "CMAKE_HOME_DIRECTORY:INTERNAL=";
  for (const std::string& line : lines_of(read_bytes(cache)))
    if (line.starts_with(entry)) return line.substr(entry.size());
  return {};
}

Chapter read_chapter(const fs::path& folder) {
  const fs::path file = folder / "chapter.json";
  const nlohmann::json json = parse_json(read_bytes(file), shown_path(file));
  Chapter chapter;
  chapter.path = folder;
  chapter.folder = folder.filename();
  chapter.number = std::stoi(chapter.folder);
  try {
    for (const auto& [key, value] : json.items()) {
      if (key == "title") {
        value.get_to(chapter.title);
      } else if (key == "seconds") {
        value.get_to(chapter.seconds);
      } else if (key == "avoid") {
        value.get_to(chapter.avoid);
      } else {
        throw Error(Exit::bad_input, "{}: unknown key {}", shown_path(file), shown(key));
      }
    }
  } catch (const nlohmann::json::exception& error) {
    throw Error(Exit::bad_input, "{}: {}", shown_path(file), plain_reason(error));
  }
  return chapter;
}

std::string join_lines(const std::vector<std::string>& lines) {
  return lines.empty() ? "" : fmt::format("{}\n", fmt::join(lines, "\n"));
}

/// Calls `replace` with the indentation and the text of each region's first mark; it returns the line
/// for the region, or "" to keep the region's lines.
template <class Replace>
std::string with_regions(const Chapter& chapter, Replace replace) {
  const fs::path file = chapter.path / "solution.h";
  std::vector<std::string> kept;
  bool inside = false, skipping = false;
  for (const std::string& line : lines_of(read_bytes(file))) {
    const std::string text = trimmed(line);
    const bool begins = text.starts_with(begin_mark), ends = text == end_mark;
    if (begins == inside && (begins || ends))
      throw Error(Exit::bad_input, "{}: begin and end of an exercise do not alternate",
                  shown_path(file));
    if (begins) {
      const std::string line_for =
          replace(std::string(line.find_first_not_of(' '), ' '), text.substr(begin_mark.size()));
      if (!line_for.empty()) kept.push_back(line_for);
      skipping = !line_for.empty();
    } else if (!ends && !skipping) {
      kept.push_back(line);
    }
    if (begins || ends) inside = begins;
    if (ends) skipping = false;
  }
  if (inside) throw Error(Exit::bad_input, "{}: an exercise has no end", shown_path(file));
  return join_lines(kept);
}

/// The parts of a bug's file.
struct BugText {
  std::string cause, message;
  std::vector<std::string> find, replace;
};

BugText read_bug(const fs::path& file) {
  BugText bug;
  std::vector<std::string>* part = nullptr;
  for (const std::string& line : lines_of(read_bytes(file))) {
    if (line == "--- find") {
      part = &bug.find;
    } else if (line == "--- replace") {
      part = &bug.replace;
    } else if (part != nullptr) {
      part->push_back(line);
    } else if (line.starts_with("cause: ")) {
      bug.cause = line.substr(7);
    } else if (line.starts_with("message: ")) {
      bug.message = line.substr(9);
    } else {
      throw Error(Exit::bad_input, "{}: unexpected line {}", shown_path(file), shown(line));
    }
  }
  if (bug.cause.empty() || bug.message.empty() || bug.find.empty())
    throw Error(Exit::bad_input, "{}: expected cause:, message:, --- find and --- replace",
                shown_path(file));
  return bug;
}

int line_number(const std::string& text, std::size_t at) {
  return 1 + static_cast<int>(
                 std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

/// The solution with the bug, and its faulty lines: those of the replacement that the solution does
/// not contain, or, if the bug only removes lines, the lines on both sides.
Bug planted(const std::string& solution, const fs::path& file) {
  const BugText text = read_bug(file);
  const std::string find = join_lines(text.find);
  const std::size_t at = solution.find(find);
  if (at == std::string::npos || solution.find(find, at + 1) != std::string::npos)
    throw Error(Exit::bad_input, "{}: its lines must occur once in solution.h", shown_path(file));
  Bug bug{file.stem(), text.cause, text.message, solution};
  bug.header.replace(at, find.size(), join_lines(text.replace));
  const int begin = line_number(solution, at);
  const auto& faulty = text.replace;
  const auto [before, faulty_from] =
      std::mismatch(text.find.begin(), text.find.end(), faulty.begin(), faulty.end());
  const auto [after, faulty_to] =
      std::mismatch(text.find.rbegin(), text.find.rend(), faulty.rbegin(), faulty.rend());
  bug.first = begin + static_cast<int>(faulty_from - faulty.begin());
  bug.last = begin + static_cast<int>(faulty.rend() - faulty_to) - 1;
  if (bug.last < bug.first) std::swap(bug.first, bug.last);  // only removed: the lines around
  return bug;
}

}  // namespace

CourseFiles find_course() {
  const fs::path program = fs::read_symlink("/proc/self/exe"),
                 prefix = program.parent_path().parent_path();
  if (const auto source = source_folder(program);
      source && fs::exists(*source / "tests/course/check.h"))
    return {*source / "tests/course", {source->string()}};
  const fs::path folder = prefix / "share/heed/course", headers = prefix / "include";
  if (!fs::exists(folder / "check.h"))
    throw Error(Exit::bad_input, "the files of the course are missing: expected {}",
                shown_path(folder));
  if (!fs::exists(headers / "heed/autograd/tensor.h"))
    throw Error(Exit::bad_input,
                "heed's headers are missing: expected {} (the package libheed-dev installs them)",
                shown_path(headers / "heed"));
  // Installed headers include one another as heed/autograd/…, the files of the course as autograd/….
  return {folder, {headers.string(), (headers / "heed").string()}};
}

std::vector<Chapter> chapters_of(const CourseFiles& course) {
  std::vector<Chapter> chapters;
  for (const fs::directory_entry& entry : fs::directory_iterator(course.folder))
    if (fs::exists(entry.path() / "chapter.json")) chapters.push_back(read_chapter(entry.path()));
  std::ranges::sort(chapters, {}, &Chapter::number);
  return chapters;
}

const Chapter& chapter_named(const std::vector<Chapter>& chapters, const std::string& name) {
  std::vector<std::string> names;
  for (const Chapter& chapter : chapters) {
    const std::string number = std::to_string(chapter.number);
    if (name == number || name == "0" + number || name == chapter.folder) return chapter;
    names.push_back(chapter.folder);
  }
  throw Error(Exit::usage, "{}: not a chapter of the course, which has {}", shown(name),
              fmt::join(names, ", "));
}

std::string solution_of(const Chapter& chapter) {
  return with_regions(chapter, [](const auto&...) { return std::string(); });
}

std::string starter_of(const Chapter& chapter) {
  return with_regions(chapter, [&](const std::string& indent, const std::string& mark) {
    const std::size_t colon = mark.find(": ");
    if (colon == std::string::npos)
      throw Error(Exit::bad_input, "{}: expected \"begin exercise NAME: what to write\"",
                  chapter.folder);
    return fmt::format("{0}// To write: {2}\n{0}heed::fail(\"{1} is not written yet\");", indent,
                       mark.substr(0, colon), mark.substr(colon + 2));
  });
}

std::vector<Bug> bugs_of(const Chapter& chapter) {
  std::vector<fs::path> files;
  if (!fs::exists(chapter.path / "bugs")) return {};
  for (const fs::directory_entry& entry : fs::directory_iterator(chapter.path / "bugs"))
    if (entry.path().extension() == ".txt") files.push_back(entry.path());
  std::ranges::sort(files);
  const std::string solution = solution_of(chapter);
  std::vector<Bug> bugs;
  bugs.reserve(files.size());
  for (const fs::path& file : files) bugs.push_back(planted(solution, file));
  return bugs;
}

std::vector<Bug> bugs_for(const Chapter& chapter, const std::string& student, std::size_t count) {
  std::vector<Bug> bugs = bugs_of(chapter);
  Random random({key_of(chapter.folder + "\n" + student), Stream::shuffle, 0, 0});
  for (std::size_t i = bugs.size(); i > 1; --i)
    std::swap(bugs[i - 1], bugs[random.below(static_cast<std::uint32_t>(i))]);
  if (bugs.size() > count) bugs.resize(count);
  return bugs;
}

std::uint64_t key_of(std::string_view text) {
  return std::max<std::uint64_t>(std::stoull(sha256_hex(text).substr(0, 16), nullptr, 16), 1);
}

}  // namespace heed::course
