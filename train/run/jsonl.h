#pragma once
/// Files of records, one JSON object per line, appended during a run (metrics.jsonl).
#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "train/run/append_file.h"

namespace heed {

/// Appends records to an AppendFile: a killed process leaves at most its last line incomplete.
class JsonlWriter {
 public:
  explicit JsonlWriter(std::filesystem::path path) : file_(std::move(path)) {}
  void append(const nlohmann::json& record);
  void sync() { file_.sync(); }

 private:
  AppendFile file_;
};

/// The records of a file; none if it is missing. An incomplete last line is omitted, because a run
/// may still be writing it. Throws Error(bad_input), naming the line, if a line is no record.
std::vector<nlohmann::json> read_jsonl(const std::filesystem::path& path);

struct JsonlRepair {
  std::int64_t records = 0;  ///< number of records kept
  std::int64_t bytes_removed = 0;
  /// The line (counted from 1) at which the file was cut because it was no record and further lines
  /// followed; the whole file was first copied to PATH.damaged. 0: only what a crash can leave was
  /// cut.
  std::int64_t damaged_line = 0;
};

/// Cuts the file at its first line that is incomplete, invalid JSON, or rejected by `keep`:
/// resuming at step 1000 rejects later records, because the run writes them again. A missing file
/// has no records.
JsonlRepair repair_jsonl(const std::filesystem::path& path,
                         const std::function<bool(const nlohmann::json&)>& keep = {});

}  // namespace heed
