#pragma once
/// A student's folder: exercises, and the results of their last checks.
#include <filesystem>
#include <string>
#include <vector>

#include "train/course/check.h"

namespace heed::course {

class StudentFolder {
 public:
  /// Creates the folder, or adds to it: the starters of chapters that it does not contain, a CMake
  /// project and a README. Existing files remain as they are. With `solutions`, the exercises are
  /// the solutions. Returns the names of the files that it created.
  static std::vector<std::string> start(const std::filesystem::path& folder,
                                        const CourseFiles& course,
                                        const std::vector<Chapter>& chapters, bool solutions);
  /// The working folder, or the one above it, if `start` created it. Throws Error(usage) if neither
  /// is.
  static StudentFolder find();
  static bool exists();  ///< whether find() succeeds

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path exercise(const Chapter& chapter) const;
  /// Records the result of a check of the exercise.
  void record(const Chapter& chapter, const Exercise& exercise, const CheckResult& result) const;
  /// Whether some check of the exercise has passed, even if it has been changed since.
  bool has_passed(const Chapter& chapter) const;
  /// "not started", "passed", "4 of 9: values: …", or what else the last check found.
  std::string state(const Chapter& chapter) const;

 private:
  explicit StudentFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace heed::course
