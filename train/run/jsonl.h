#pragma once
/// Records, one JSON object per line, appended during a run (metrics.jsonl).
#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "train/run/append_file.h"

namespace heed {

/// Appends records as AppendFile does: a killed process leaves at most its last line incomplete.
class JsonlWriter {
 public:
  explicit JsonlWriter(std::filesystem::path path) : file_(std::move(path)) {}
  void append(const nlohmann::json& record);
  void sync() { file_.sync(); }

 private:
  AppendFile file_;
};

/// The records of a file. Its last line may be incomplete, since a run may be writing it, and is
/// then left out. A missing file has none. Throws Error(bad_input), naming the line, for one that is
/// not a record.
std::vector<nlohmann::json> read_jsonl(const std::filesystem::path& path);

struct JsonlRepair {
  std::int64_t records = 0;  ///< kept
  std::int64_t bytes_removed = 0;
  /// The line (from 1) at which the file was cut because it was not a record and others followed;
  /// the whole file was copied to PATH.damaged first. 0: no more was lost than a crash can cause.
  std::int64_t damaged_line = 0;
};

/// Cuts the file at its first line that is incomplete, not JSON, or rejected by `keep` (resuming at
/// step 1000 rejects later records, because they will be written again). A missing file has no
/// records.
JsonlRepair repair_jsonl(const std::filesystem::path& path,
                         const std::function<bool(const nlohmann::json&)>& keep = {});

}  // namespace heed
