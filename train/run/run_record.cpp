#include "train/run/run_record.h"

#include <fmt/chrono.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <fstream>
#include <optional>

#include "autograd/base/error.h"
#include "autograd/base/team.h"
#include "autograd/io/files.h"
#include "autograd/io/formats/json_text.h"
#include "autograd/io/utf8.h"
#include "autograd/kernels/fast/gemm/bf16.h"
#include "autograd/kernels/fast/gemm/blas_kernel.h"
#include "autograd/kernels/gemm.h"
#include "train/config/fields.h"
#include "train/config/plugins.h"
#include "train/fetch/subprocess.h"
#include "train/run/blas_choice.h"
#include "train/run/version.h"

namespace heed {

namespace {

std::filesystem::path record_of(const RunFolder& run) { return run.path / "run.json"; }

std::string processor() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) == 0)
      return line.substr(std::min(line.size(), line.find(": ") + 2));
  }
  return "";
}

nlohmann::json describe_plugins(const Config& config) {
  nlohmann::json all = nlohmann::json::array();
  for (const Plugin& plugin : plugins_of(config.plugins))
    all.push_back({{"file", plugin.file}, {"sha256", plugin.sum}});
  return all;
}

/// The record of a run that this program starts now on this machine.
nlohmann::json describe(const Config& config, const SplitSums& sums) {
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
          {"blas_kernel",
           {{"name", kernels::blas_kernel().name}, {"chosen_by", blas_kernel_chooser()}}},
          {"bf16_unit", bf16_unit_of(config)},
          {"plugins", describe_plugins(config)},
          {"teacher", teacher_sum(config)},
          {"data", {{"train", sums.train}, {"valid", sums.valid}, {"test", sums.test}}}};
}

/// The commit of the working directory, with "-dirty" if tracked files have changed since; empty
/// without git or a repository.
std::string git_revision() {
  try {
    ProgramResult git = run_program({"git", "--no-optional-locks", "describe", "--always",
                                     "--dirty", "--abbrev=40", "--exclude=*"},
                                    STDOUT_FILENO);
    while (git.text.ends_with('\n')) git.text.pop_back();
    return git.status == 0 && invalid_utf8(git.text) == std::string::npos ? git.text : "";
  } catch (const Error&) {  // git is missing, or no process can be started
    return "";
  }
}

nlohmann::json read_record(const RunFolder& run) {
  const std::filesystem::path path = record_of(run);
  nlohmann::json record = parse_json(read_bytes(path, 1 << 20), path.string());
  if (!record.is_object() || (record.contains("files") && !record.at("files").is_object()))
    throw Error(Exit::bad_input, path.string() + ": not the record of a run");
  return record;
}

/// Paths in the record may contain bytes that are not UTF-8; U+FFFD replaces them.
void write_record(const RunFolder& run, const nlohmann::json& record) {
  write_file_durably(record_of(run),
                     record.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

/// The record of the run; nullopt if it is missing or broken, with the reason in `why`.
std::optional<nlohmann::json> find_record(const RunFolder& run, std::string& why) {
  try {
    return read_record(run);
  } catch (const Error& e) {
    if (e.code != Exit::bad_input) throw;
    why = e.what();
    return std::nullopt;
  }
}

/// The string at a path such as "/data/train"; empty if there is none.
std::string text_at(const nlohmann::json& record, const std::string& path) {
  const nlohmann::json::json_pointer at(path);
  return record.contains(at) && record[at].is_string() ? record[at].get<std::string>() : "";
}

/// The possible names of tokenizer files in a run folder.
std::vector<std::string> tokenizer_names() {
  std::vector<std::string> names;
  for (const char* side : {"tokenizer", "source", "target"})
    for (const char* kind : {".model", ".vocab", ".imported"})
      names.push_back(std::string(side) + kind);
  return names;
}

/// The SHA-256 of a run's config or tokenizer; "" if it is too long to be one, so that a huge file is
/// not read.
std::string short_sum(const std::filesystem::path& file) {
  std::error_code ignored;
  const auto size = std::filesystem::file_size(file, ignored);
  return !ignored && size > largest_tokenizer ? "" : sha256_file(file);
}

/// Whether a key determines how a model uses its weights. The exceptions among the keys that a run
/// keeps state how its weights begin, or how a tokenizer is found or learned, whose file decides.
bool gives_meaning(const Field& field) {
  constexpr std::array exceptions{
      "model.init",      "model.init_std",         "model.init_from",
      "model.freeze",    "tokenizer.algorithm",    "tokenizer.vocab_size",
      "tokenizer.model", "tokenizer.source_model", "tokenizer.target_model"};
  const bool has_section =
      field.key == "task" || field.key.starts_with("model.") || field.key.starts_with("tokenizer.");
  return has_section && !field.resume_refusal.empty() &&
         std::ranges::find(exceptions, field.key) == exceptions.end();
}

}  // namespace

std::string teacher_sum(const Config& config) {
  const std::string& run = config.train.distill.teacher;
  return run.empty() ? "" : sha256_file(find_weights(RunFolder{run}, "") / "model.safetensors");
}

nlohmann::json read_run_json(const RunFolder& run) {
  return path_exists(record_of(run)) ? read_record(run) : nlohmann::json();
}

void begin_run(const RunFolder& run, const Config& config, const Tokenizers& tokenizers,
               const SplitSums& sums, const std::vector<std::string>& command) {
  const std::string yaml = write_yaml(config);
  nlohmann::json record = describe(config, sums), files{{"config.yaml", sha256_hex(yaml)}};
  for (const std::filesystem::path& file : tokenizers.save(run.path))
    files[file.filename().string()] = sha256_file(file);
  record["files"] = files;
  record["command"] = command;
  if (const std::string revision = git_revision(); !revision.empty()) record["revision"] = revision;
  write_record(run, record);
  write_file_durably(run.config(), yaml);  // written last: a folder with a config is a run
}

SplitSums recorded_sums(const RunFolder& run) {
  std::string why;
  const auto record = find_record(run, why);
  if (!record) return {};
  return {text_at(*record, "/data/train"), text_at(*record, "/data/valid"),
          text_at(*record, "/data/test")};
}

void adopt_config(const RunFolder& run, Config config, const SplitSums& sums) {
  config.threads = read_run_config(run, {}, PluginUse::leave).threads;
  const std::string yaml = write_yaml(config);
  std::string why;
  if (auto record = find_record(run, why)) {
    const nlohmann::json now = describe(config, sums);
    for (const char* key : {"seed", "shards", "plugins", "teacher", "data"})
      (*record)[key] = now[key];
    (*record)["files"]["config.yaml"] = sha256_hex(yaml);
    write_record(run, *record);
  }
  write_file_durably(run.config(), yaml);
}

std::vector<std::string> check_files(const RunFolder& run) {
  std::string why;
  const auto record = find_record(run, why);
  if (!record)
    return {why + "; tokenizers and data cannot be compared with those of the original run"};
  for (const std::string& name : tokenizer_names()) {
    const std::string before = text_at(*record, "/files/" + name);
    if (before.empty() || short_sum(run.path / name) == before) continue;
    throw Error(Exit::bad_input,
                "{}: its content has changed (its SHA-256 is not that in run.json)",
                (run.path / name).string());
  }
  const std::string before = text_at(*record, "/files/config.yaml");
  if (before.empty() || short_sum(run.config()) == before) return {};
  return {run.config().string() + ": it was edited after the run began"};
}

nlohmann::json trained_with(const RunFolder& run, const Config& config) {
  nlohmann::json record{{"keys", nlohmann::json::object()},
                        {"tokenizers", nlohmann::json::object()}};
  for (const Field& field : fields())
    if (gives_meaning(field)) record["keys"][field.key] = field.print(config);
  for (const std::string& name : tokenizer_names())
    if (path_exists(run.path / name)) record["tokenizers"][name] = sha256_file(run.path / name);
  return record;
}

std::vector<std::string> changed_keys(const Config& config, const Checkpoint& weights) {
  std::vector<std::string> changed;
  for (const Field& field : fields()) {
    if (!gives_meaning(field)) continue;
    // A key that the record lacks is newer than the weights.
    const std::string before = text_at(weights.state, "/trained_with/keys/" + field.key),
                      now = field.print(config);
    if (!before.empty() && before != now)
      changed.push_back(fmt::format("{} is {}, but the weights in {} were trained with {}",
                                    field.key, now, weights.folder.string(), before));
  }
  return changed;
}

std::vector<std::string> changed_tokenizers(const RunFolder& run, const Checkpoint& weights) {
  std::vector<std::string> changed;
  for (const std::string& name : tokenizer_names()) {
    const std::string before = text_at(weights.state, "/trained_with/tokenizers/" + name);
    const std::filesystem::path file = run.path / name;
    if (!before.empty() && short_sum(file) != before)
      changed.push_back(
          fmt::format("{}: not the tokenizer that the weights in {} were trained with "
                      "(its SHA-256 differs)",
                      file.string(), weights.folder.string()));
  }
  return changed;
}

void require_same_tokenizers(const RunFolder& run, const Checkpoint& weights) {
  if (const std::vector<std::string> changed = changed_tokenizers(run, weights); !changed.empty())
    throw Error(Exit::bad_input, "{}: restore the file", fmt::join(changed, "; "));
}

void require_fit(const RunFolder& run, const Config& config, const Checkpoint& weights) {
  if (const std::vector<std::string> changed = changed_keys(config, weights); !changed.empty())
    throw Error(Exit::bad_input,
                "{}: {}: restore the value; other values need a new run (heed train)",
                run.config().string(), fmt::join(changed, "; "));
  require_same_tokenizers(run, weights);
}

std::vector<std::string> changed_plugins(const RunFolder& run, const Config& config) {
  std::string why;
  const auto record = find_record(run, why);
  if (!record || !record->contains("plugins") || !record->at("plugins").is_array()) return {};
  std::vector<std::string> changed;
  for (const Plugin& plugin : plugins_of(config.plugins)) {
    const bool known = std::ranges::any_of(
        record->at("plugins"),
        [&](const nlohmann::json& before) { return text_at(before, "/sha256") == plugin.sum; });
    if (!known)
      changed.push_back(
          fmt::format("plugin {} differs from the one that the run was started with", plugin.file));
  }
  return changed;
}

std::string bf16_unit_of(const Config& config) {
  if (config.train.precision != Precision::bf16 && config.decode.precision != DecodePrecision::bf16)
    return "";
  const std::string& obstacle = kernels::bf16_obstacle();
  return obstacle.empty() ? std::string(name_of(kernels::bf16_unit())) : obstacle;
}

std::vector<std::string> environment_changes(const RunFolder& run, const Config& config,
                                             const SplitSums& sums) {
  std::string why;
  const auto record = find_record(run, why);
  if (!record) return {};
  const nlohmann::json now = describe(config, sums);
  std::vector<std::string> changed = changed_plugins(run, config);
  for (const char* key : {"version", "compiler", "flags", "cpu", "blas", "bf16_unit"}) {
    const std::string path = fmt::format("/{}", key);
    const std::string before = text_at(*record, path), current = text_at(now, path);
    if (!before.empty() && before != current)
      changed.push_back(fmt::format("{}: {}; previously {}", key, current, before));
  }
  if (text_at(*record, "/teacher") != text_at(now, "/teacher"))
    changed.emplace_back("train.distill.teacher: its weights differ");
  for (const char* split : {"train", "valid", "test"}) {
    const std::string path = fmt::format("/data/{}", split);
    if (record->contains("data") && text_at(*record, path) != text_at(now, path))
      changed.push_back(fmt::format("data.{}: its samples differ", split));
  }
  return changed;
}

}  // namespace heed
