#include "train/run/jsonl.h"

#include <fcntl.h>
#include <fmt/format.h>

#include "autograd/base/error.h"
#include "autograd/io/formats/json_text.h"

namespace heed {
namespace {

/// The records of some 80 million steps.
constexpr std::uint64_t max_jsonl_bytes = std::uint64_t{16} << 30;

bool usable(std::string_view line, const std::function<bool(const nlohmann::json&)>& keep) {
  try {
    const nlohmann::json record = parse_json(line, "");
    return record.is_object() && (!keep || keep(record));
  } catch (const Error&) {
    return false;
  } catch (const nlohmann::json::exception&) {  // `keep` found a field missing or of the wrong type
    return false;
  }
}

}  // namespace

void JsonlWriter::append(const nlohmann::json& record) {
  const std::string line =
      record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  file_.append(as_bytes(line));
}

std::vector<nlohmann::json> read_jsonl(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return {};
  const std::string text = read_bytes(path, max_jsonl_bytes);
  std::vector<nlohmann::json> records;
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    nlohmann::json record = parse_json_quickly(line);
    if (record.is_discarded())
      record = parse_json(line, fmt::format("{}:{}", path.string(), records.size() + 1));
    if (!record.is_object())
      throw Error(Exit::bad_input, "{}:{}: not a record: expected a JSON object", path.string(),
                  records.size() + 1);
    records.push_back(std::move(record));
  }
  return records;
}

std::int64_t repair_jsonl(const std::filesystem::path& path,
                          const std::function<bool(const nlohmann::json&)>& keep) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return 0;
  const std::string text = read_bytes(path, max_jsonl_bytes);
  std::size_t good = 0, end = 0;
  std::int64_t number = 1, damaged = 0;
  for (; (end = text.find('\n', good)) != std::string::npos; good = end + 1, ++number) {
    const std::string_view line = std::string_view(text).substr(good, end - good);
    if (usable(line, keep)) continue;
    if (!usable(line, {}) && end + 1 < text.size()) damaged = number;
    break;
  }
  if (good == text.size()) return 0;
  if (damaged > 0) write_file_durably(path.string() + ".damaged", text);
  FileDescriptor file = open_regular(path, O_WRONLY);
  set_length(file.get(), good, path);
  sync_file(file.get(), path);
  file.close(path);
  return damaged;
}

}  // namespace heed
