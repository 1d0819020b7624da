#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>

#include "autograd/base/error.h"
#include "autograd/io/message_text.h"
#include "autograd/io/utf8.h"
#include "train/commands/command_line.h"
#include "train/config/fields.h"
#include "train/config/problems.h"
#include "train/config/yaml.h"
#include "train/run/jsonl.h"
#include "train/run/run_lock.h"
#include "train/run/run_record.h"
#include "train/terminal/run_log.h"

namespace heed {

namespace {

namespace fs = std::filesystem;

struct VerifyCommand {
  std::string run;
  bool json = false;
};

/// Text of a foreign folder for a terminal.
std::string printable(const std::string& text) { return shown(text, 1000); }

/// What `heed verify` finds out about a run folder, which may be hostile: no link is followed, and no
/// library loaded.
class Verification {
 public:
  explicit Verification(RunFolder run) : run_(std::move(run)) {
    const std::vector<fs::directory_entry> entries = check_links();
    if (has_links_) {
      notes_.emplace_back("no file was read, because of the links and special files: remove them");
      return;
    }
    check_names(entries);
    read_config_file();
    attempt([&] {
      for (const std::string& note : check_files(run_)) add(note);
    });
    for (const fs::path& file : {run_.metrics(), run_.outputs(), run_.evaluations()})
      if (path_exists(file)) attempt([&] { read_jsonl(file); });
    check_weights();
  }

  const std::vector<std::string>& findings() const { return findings_; }

  nlohmann::json json() const {
    return {{"run", run_.path.string()},
            {"whole", findings_.empty()},
            {"findings", findings_},
            {"notes", notes_},
            {"origin", origin()},
            {"checkpoints", steps_},
            {"loads", loads_}};
  }

  std::string text() const {
    std::string text = fmt::format("{}: {}\n", printable(run_.path.string()),
                                   findings_.empty() ? "whole" : "not whole");
    const auto row = [&](const std::string& name, const nlohmann::json& value) {
      const std::string shown_value = value.is_string() ? value.get<std::string>() : value.dump();
      text += fmt::format("  {:<22}{}\n", name, printable(shown_value));
    };
    const nlohmann::json facts = origin();
    for (const auto& [key, value] : facts.items()) row(key, value);
    row("checkpoints", fmt::format("{}", fmt::join(steps_, ", ")));
    for (const auto& [key, values] : loads_.items()) {
      for (const nlohmann::json& value : values) {
        if (value.is_string())
          row(key, value);
        else
          row(key,
              fmt::format("{} (SHA-256 {})", value.value("file", ""), value.value("sha256", "")));
      }
    }
    for (const std::string& note : notes_) text += fmt::format("note: {}\n", printable(note));
    for (const std::string& finding : findings_)
      text += fmt::format("finding: {}\n", printable(finding));
    return text;
  }

 private:
  void add(const std::string& finding) { findings_.push_back(one_line(finding)); }

  /// Calls `check`, whose error is a finding.
  template <class Check>
  void attempt(const Check& check) {
    try {
      check();
    } catch (const Error& error) {
      add(error.what());
    }
  }

  /// Links and special files. Returns the other entries.
  std::vector<fs::directory_entry> check_links() {
    std::vector<fs::directory_entry> entries;
    std::error_code error;
    fs::recursive_directory_iterator entry(run_.path, error);
    for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
      const fs::file_status status = entry->symlink_status(error);
      if (fs::is_symlink(status))
        check_link(entry->path());
      else if (fs::is_regular_file(status) || fs::is_directory(status))
        entries.push_back(*entry);
      else
        add_special(entry->path(), "neither a file nor a folder");
    }
    if (error) add(fmt::format("{}: {}", run_.path.string(), error.message()));
    return entries;
  }

  /// Files that no run contains.
  void check_names(const std::vector<fs::directory_entry>& entries) {
    attempt([&] { CheckpointFolder(run_.path).check_links(); });  // as in a copy without links
    std::set<fs::path> own{run_.path / "checkpoints", run_.average(), run_.path / "reports"},
        foreign;
    for (const std::int64_t step : CheckpointFolder(run_.path).steps())
      own.insert(CheckpointFolder(run_.path).folder_of(step));
    for (const fs::directory_entry& entry : entries) {
      const fs::path &path = entry.path(), above = path.parent_path();
      const fs::path top = *path.lexically_relative(run_.path).begin();
      const bool free = top == "tensorboard" || top == "reports" || top == "best" || top == "last",
                 of_checkpoint = entry.is_regular_file() && above != run_.path / "checkpoints" &&
                                 own.contains(above);  // its sum is checked later
      const bool of_run = above == run_.path && run_of(path).has_value();
      if (free || of_run || own.contains(path) || of_checkpoint) continue;
      const std::string name = path.filename().string();
      if (name.starts_with('.') && (name.ends_with(".tmp") || name.ends_with(".old"))) {
        notes_.push_back(
            fmt::format("{}: unfinished, of a process that was killed", path.string()));
        foreign.insert(path);
        continue;
      }
      if (foreign.insert(path).second && !foreign.contains(above))
        add(fmt::format("{}: heed does not write this {}", path.string(),
                        entry.is_directory() ? "folder" : "file"));
    }
  }

  void add_special(const fs::path& path, const std::string& what) {
    has_links_ = true;
    add(fmt::format("{}: {}", path.string(), what));
  }

  void check_link(const fs::path& path) {
    const fs::path inside = path.lexically_relative(run_.path);
    std::error_code error;
    const std::string target = fs::read_symlink(path, error).string();
    const auto step = CheckpointFolder(run_.path).linked(inside.string());
    if ((inside != "best" && inside != "last") || !step ||
        target != (fs::path("checkpoints") / fs::path(target).filename()).string())
      return add_special(path, fmt::format("a link to {}; a run has only the links best and last, "
                                           "to checkpoints",
                                           target));
    if (!fs::is_directory(fs::symlink_status(run_.path / target, error)))
      add(fmt::format("{}: a link to {}, which is missing", path.string(), target));
  }

  /// Reads the config without its plugins. Names that only a plugin registers make it unreadable, so
  /// the files that it names are read from its YAML.
  void read_config_file() {
    attempt([&] { record_ = read_run_json(run_); });
    attempt([&] { list_files(); });
    try {
      config_ = read_run_config(run_, {}, PluginUse::leave);
    } catch (const Error& error) {
      if (!loads_.contains("plugins")) return add(error.what());
      notes_.push_back(
          fmt::format("config.yaml is not compared with the weights, because it cannot "
                      "be read without its plugins: {}",
                      one_line(error.what())));
    }
  }

  /// Lists the files and folders that the config names, by key.
  void list_files() {
    Problems problems(run_.config().string(), {});
    const auto tree = parse_yaml(read_bytes(run_.config(), yaml_max_bytes), 0, problems);
    const auto list = [&](const std::string& key) {
      const YamlNode* node = tree ? &*tree : nullptr;
      for (std::size_t begin = 0; node != nullptr && begin <= key.size();) {
        const std::size_t end = std::min(key.find('.', begin), key.size());
        const YamlEntry* const entry = node->kind == YamlNode::Kind::map
                                           ? node->find(key.substr(begin, end - begin))
                                           : nullptr;
        node = entry != nullptr ? &entry->value : nullptr;
        begin = end + 1;
      }
      if (node == nullptr) return;
      try {
        const nlohmann::json value = find_field(key)->read(*node);
        for (const nlohmann::json& file : value.is_array() ? value : nlohmann::json{value})
          if (file != "") loads_[key].push_back(key == "plugins" ? plugin(file) : file);
      } catch (const ValueError& error) {
        add(fmt::format("{}: {}: {}", run_.config().string(), key, error.message));
      }
    };
    list("plugins");
    for (const char* split : {"train", "valid", "test"})
      for (const char* side : {"source", "target", "text"})
        list(fmt::format("data.{}.{}", split, side));
    for (const char* key : {"train.distill.teacher", "model.init_from"}) list(key);
  }

  nlohmann::json recorded_plugins() const {
    nlohmann::json all = nlohmann::json::array();
    if (record_.is_object() && record_.contains("plugins") && record_.at("plugins").is_array())
      for (const nlohmann::json& plugin : record_.at("plugins"))
        if (plugin.is_object() && plugin.contains("file") && plugin.at("file").is_string() &&
            plugin.contains("sha256") && plugin.at("sha256").is_string())
          all.push_back(plugin);
    return all;
  }

  /// A library and its SHA-256, compared with those in run.json.
  nlohmann::json plugin(const std::string& file) {
    std::string sum;
    try {
      sum = sha256_file(fs::absolute(file));
    } catch (const Error& error) {
      notes_.push_back(fmt::format("plugin {}", error.what()));
      return {{"file", file}, {"sha256", "unknown"}};
    }
    const nlohmann::json recorded = recorded_plugins();
    if (std::ranges::none_of(recorded,
                             [&](const nlohmann::json& p) { return p.at("sha256") == sum; }))
      add(fmt::format("plugin {}: not the library that the run was started with", file));
    return {{"file", file}, {"sha256", sum}};
  }

  void check_weights() {
    std::vector<Checkpoint> all;
    attempt([&] {
      const CheckpointFolder checkpoints(run_.path);
      for (const std::int64_t step : checkpoints.steps()) {
        const fs::path folder = checkpoints.folder_of(step);
        steps_.push_back(step);
        attempt([&] { all.push_back(checked(folder, open_checkpoint(folder))); });
      }
      if (steps_.empty()) add(fmt::format("{}: no checkpoint", run_.path.string()));
    });
    if (path_exists(run_.average()))
      attempt([&] {
        all.push_back(checked(run_.average(), check_file(run_.average(), "model.safetensors")));
      });
    for (const Checkpoint& weights : all) {
      if (config_)
        for (const std::string& changed : changed_keys(*config_, weights))
          add(fmt::format("{}: {}", run_.config().string(), changed));
      attempt([&] {
        for (const std::string& changed : changed_tokenizers(run_, weights)) add(changed);
      });
    }
  }

  /// Checks that a checkpoint contains no file without a sum. Returns the checkpoint.
  Checkpoint checked(const fs::path& folder, Checkpoint checkpoint) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
      const std::string name = entry.path().filename().string();
      if (name != "state.json") attempt([&] { check_file(folder, name); });
    }
    return checkpoint;
  }

  /// The facts of run.json that do not depend on the machine.
  nlohmann::json origin() const {
    nlohmann::json facts = nlohmann::json::object();
    for (const char* key : {"version", "started", "revision", "seed", "shards", "compiler", "blas"})
      if (record_.is_object() && record_.contains(key)) facts[key] = record_.at(key);
    if (record_.is_object() && record_.contains("command") && record_.at("command").is_array()) {
      std::string command;
      for (const nlohmann::json& word : record_.at("command"))
        if (word.is_string()) command += (command.empty() ? "" : " ") + word.get<std::string>();
      facts["command"] = command;
    }
    if (config_) facts["task"] = find_field("task")->print(*config_);
    return facts;
  }

  RunFolder run_;
  std::optional<Config> config_;
  nlohmann::json record_, loads_ = nlohmann::json::object();
  std::vector<std::int64_t> steps_;
  std::vector<std::string> findings_, notes_;
  bool has_links_ = false;  // whether links, pipes or devices take the place of files
};

int verify_command(const VerifyCommand& options) {
  const RunFolder run{without_last_slash(options.run)};
  if (!path_exists(run.config()))
    throw Error(Exit::usage, "{}: not a run (there is no config.yaml)", options.run);
  RunLock::refuse_if_held(run.path);
  const Verification verification(run);
  if (options.json)
    print_text(verification.json().dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
               "\n");
  else
    print_text(verification.text());
  return verification.findings().empty() ? 0 : static_cast<int>(Exit::bad_input);
}

}  // namespace

void add_verify(CommandLine& line) {
  const auto [command, options] = add_command<VerifyCommand>(
      line, "verify", Needs::files, "whether a run folder is whole, and what it loads",
      verify_command);
  add_argument(command, "RUN", options->run, "run folder, such as runs/dates")->required();
  add_json(command, options->json, "the findings");
  command->footer(
      "For a run folder from somewhere else: checks the checksums of all checkpoints, that weights,\n"
      "config and tokenizers belong together, and that the folder contains no links, devices or\n"
      "foreign files. Lists where the run is from and the libraries and files that other commands\n"
      "would load, without loading any of them. The exit status is 0 if the folder is whole, and 3\n"
      "if there is a finding. The checksums show accidents, not fraud: only load plugins that you\n"
      "trust.\n"
      "Examples:\n"
      "  tar -xf dates.tar && heed verify dates\n"
      "  heed verify runs/dates --json");
}

}  // namespace heed
