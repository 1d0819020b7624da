#include "train/run_record.h"

#include <fmt/chrono.h>
#include <sys/utsname.h>

#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>

#include "autograd/error.h"
#include "autograd/kernels/gemm.h"
#include "train/files.h"
#include "train/json_text.h"
#include "train/team.h"
#include "train/version.h"

namespace heed {

namespace {

std::filesystem::path record_of(const RunFolder& run) { return run.path / "run.json"; }

std::string processor() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) == 0)
      return line.substr(std::min(line.size(), line.find(':') + 2));
  }
  return "";
}

/// SHA-256 of what training sees of a split: ids, and where sequences end. Nothing of an empty one.
std::string digest(const Dataset& data) {
  if (data.size() == 0 && data.stream.empty()) return "";
  Sha256 sum;
  for (const Sequences* side : {&data.source, &data.target}) {
    sum.update(std::as_bytes(std::span(side->ids)));
    sum.update(std::as_bytes(std::span(side->offsets)));
  }
  sum.update(std::as_bytes(std::span(data.stream)));
  return sum.hex();
}

/// The record of a run on this machine, by this program, now.
nlohmann::json describe(const Config& config, const ExperimentData& data) {
  utsname system{};
  uname(&system);
  return {{"version", version},
          {"started", fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr)))},
          {"seed", config.seed},
          {"shards", config.train.shards},
          {"threads", config.threads > 0 ? config.threads : available_processors()},
          {"cpu", processor()},
          {"processors", available_processors()},
          {"system", fmt::format("{} {} {}", system.sysname, system.release, system.machine)},
          {"compiler", compiler},
          {"flags", flags},
          {"blas", kernels::blas_name()},
          {"data",
           {{"train", digest(data.train)},
            {"valid", digest(data.valid)},
            {"test", digest(data.test)}}}};
}

nlohmann::json read_record(const RunFolder& run) {
  return parse_json(read_bytes(record_of(run), 1 << 20), record_of(run).string());
}

/// The text under keys, one inside the other; empty where there is none.
std::string text_at(nlohmann::json record, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    if (!record.is_object() || !record.contains(key)) return "";
    nlohmann::json inner = record[key];
    record = std::move(inner);
  }
  return record.is_string() ? record.get<std::string>() : "";
}

}  // namespace

void begin_run(const RunFolder& run, const Config& config, const ExperimentData& data,
               const std::vector<std::string>& command) {
  const std::string yaml = write_yaml(config);
  nlohmann::json record = describe(config, data), files{{"config.yaml", sha256_hex(yaml)}};
  for (const std::filesystem::path& file : data.tokenizers.save(run.path))
    files[file.filename().string()] = sha256_file(file);
  record["files"] = files;
  record["command"] = command;
  write_file_durably(record_of(run), record.dump(2) + "\n");
  write_file_durably(run.config(), yaml);  // last: its presence makes this a run
}

void check_tokenizers(const RunFolder& run) {
  nlohmann::json record;
  try {
    record = read_record(run);
  } catch (const Error& e) {
    if (e.code != Exit::bad_input) throw;
    return;
  }
  for (const char* side : {"tokenizer", "source", "target"}) {
    for (const char* kind : {".model", ".vocab"}) {
      const std::string name = std::string(side) + kind;
      const std::string before = text_at(record, {"files", name.c_str()});
      if (before.empty() || sha256_file(run.path / name) == before) continue;
      throw Error(Exit::bad_input,
                  fmt::format("{}: its content was changed (its SHA-256 is not that in run.json)",
                              (run.path / name).string()));
    }
  }
}

std::vector<std::string> changed_surroundings(const RunFolder& run, const Config& config,
                                              const ExperimentData& data) {
  std::vector<std::string> changed;
  try {
    const nlohmann::json then = read_record(run), now = describe(config, data);
    for (const char* key : {"version", "compiler", "flags", "cpu", "blas"}) {
      const std::string before = text_at(then, {key}), here = text_at(now, {key});
      if (before == here) continue;
      changed.push_back(
          fmt::format("{}: {}; it was {}", key, here, before.empty() ? "nothing known" : before));
    }
    const auto differs = [](const std::string& before, const std::string& here) {
      return !before.empty() && before != here;  // earlier versions kept no sums
    };
    for (const char* split : {"train", "valid", "test"}) {
      if (differs(text_at(then, {"data", split}), text_at(now, {"data", split})))
        changed.push_back(fmt::format("data.{}: its text is another", split));
    }
    if (differs(text_at(then, {"files", "config.yaml"}), sha256_file(run.config())))
      changed.emplace_back("config.yaml: it was edited");
  } catch (const Error& e) {
    changed.emplace_back(e.what());  // a record is missing, not what is needed to go on
  }
  return changed;
}

}  // namespace heed
