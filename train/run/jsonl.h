#pragma once
/// Records, one JSON object a line, appended while a run goes on (metrics.jsonl).
#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "autograd/base/files.h"

namespace heed {

/// Appends records, each with one write, so that a killed process leaves at most its last line
/// broken. A record that cannot be written whole is taken back.
class JsonlWriter {
 public:
  explicit JsonlWriter(std::filesystem::path path);
  void append(const nlohmann::json& record);
  /// Pushes all records to the disk; to be called before a checkpoint counts on them.
  void sync();

 private:
  std::filesystem::path path_;
  FileDescriptor file_;
};

struct JsonlRepair {
  std::int64_t records = 0;  ///< that remain
  std::int64_t bytes_removed = 0;
  /// From 1: the line at which the file was cut, where it was no record and others followed; the whole
  /// file was copied to PATH.damaged first. 0: nothing was lost but what a crash may cost.
  std::int64_t damaged_line = 0;
};

/// Cuts the file at its first line that is incomplete, no JSON, or that `keep` refuses
/// (resuming at step 1000 refuses what was recorded later, because it will come again). A missing
/// file has no records.
JsonlRepair repair_jsonl(const std::filesystem::path& path,
                         const std::function<bool(const nlohmann::json&)>& keep = {});

}  // namespace heed
