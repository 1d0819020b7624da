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

/// Appends records to a file. If the process is killed, only the last line can be incomplete.
class JsonlWriter {
 public:
  explicit JsonlWriter(std::filesystem::path path) : file_(std::move(path)) {}
  void append(const nlohmann::json& record);
  void sync() { file_.sync(); }

 private:
  AppendFile file_;
};

/// The records of a file; none if it is missing. An incomplete last line is omitted, because a run
/// may still be writing it. Throws Error(bad_input), naming the line, if a line is not a record.
std::vector<nlohmann::json> read_jsonl(const std::filesystem::path& path);

/// Cuts the file before its first line that is incomplete, is not a JSON object, or is rejected by
/// `keep`. For example, resuming at step 1000 rejects later records, because the run writes them
/// again. Returns the number of the first damaged line, counted from 1, if that line was not a
/// record although further bytes followed; the whole file was then copied to PATH.damaged before it
/// was cut. Otherwise, or if the file is missing, returns 0.
std::int64_t repair_jsonl(const std::filesystem::path& path,
                          const std::function<bool(const nlohmann::json&)>& keep = {});

}  // namespace heed
