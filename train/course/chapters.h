#pragma once
/// The files of the course: chapters, the starters made from their solutions, planted bugs.
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace heed::course {

/// A chapter's folder contains solution.h, check.cpp, my_test.cpp, chapter.json and bugs/.
struct Chapter {
  int number = 0;
  std::string folder;  ///< name of its folder, such as 03-attention
  std::string title;
  double seconds = 1;              ///< processor time that the check may take
  std::vector<std::string> avoid;  ///< names of heed that the exercise must not use
  std::filesystem::path path;      ///< of the folder, in the course's files
};

/// Where the files of the course are, and how to compile against the program's headers.
struct CourseFiles {
  std::filesystem::path folder;
  std::vector<std::string> include;  ///< folders for -I
};

/// Finds the files relative to the program: those of an installed heed, or of the sources from which
/// the program was built. Throws Error(bad_input) if they are missing.
CourseFiles find_course();

/// All chapters, in order. Throws Error(bad_input) if a chapter.json is wrong.
std::vector<Chapter> chapters_of(const CourseFiles& course);
/// Throws Error(usage) if `name`, a number or a folder's name, is not a chapter.
const Chapter& chapter_named(const std::vector<Chapter>& chapters, const std::string& name);

/// The reference solution without the lines of its marks.
std::string solution_of(const Chapter& chapter);
/// The exercise: the solution, where each marked region is replaced by a throw. A region is
///   // --- begin exercise NAME: what to write
///   …
///   // --- end exercise
/// Throws Error(bad_input) if the marks do not match.
std::string starter_of(const Chapter& chapter);

/// A fault planted in a solution: a file of bugs/ of the form
///   cause: one sentence
///   message: text that the check's sentence contains
///   --- find
///   lines of solution.h, which occur there once
///   --- replace
///   the faulty lines
struct Bug {
  std::string name;  ///< of the file, without .txt: the word with which a student answers
  std::string cause, message;
  std::string header;       ///< the faulty exercise.h
  int first = 0, last = 0;  ///< the faulty lines of `header`, from 1
};

/// The planted bugs in alphabetical order. Throws Error(bad_input) if a file is wrong.
std::vector<Bug> bugs_of(const Chapter& chapter);
/// `count` different bugs, drawn by the student's ID.
std::vector<Bug> bugs_for(const Chapter& chapter, const std::string& student, std::size_t count);

/// A number other than 0 that depends on the text.
std::uint64_t key_of(std::string_view text);

}  // namespace heed::course
