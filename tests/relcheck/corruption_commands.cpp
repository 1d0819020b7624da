#include <functional>

#include "tests/relcheck/corruption.h"
#include "train/run/checkpoint_folder.h"

namespace heed::relcheck {
namespace fs = std::filesystem;
namespace {

struct Damage {
  std::string name;
  std::string file;  ///< file of the checkpoint, which the message must name
  std::function<void(const fs::path& file)> make;
};

std::vector<Damage> damages_of(const std::string& file) {
  std::vector<Damage> all = {
      {"a bit near the beginning", file, [](const fs::path& path) { flip_bit(path, 100); }},
      {"the last bit", file,
       [](const fs::path& path) { flip_bit(path, 8 * fs::file_size(path) - 1); }},
      {"the last byte missing", file,
       [](const fs::path& path) { fs::resize_file(path, fs::file_size(path) - 1); }},
      {"an extra byte", file, [](const fs::path& path) { put(path, get(path) + "x"); }}};
  for (const Replacement& replacement : replacements()) {
    all.push_back({replacement.name + " in its place", file, [&replacement](const fs::path& path) {
                     fs::remove(path);
                     replacement.put(path);
                   }});
  }
  return all;
}

/// A copy of a run that the test may damage.
class Copy {
 public:
  explicit Copy(const fs::path& run) {
    const fs::path parent = run.parent_path();
    fs::copy_file(parent / "text.txt", scratch_ / "text.txt");
    fs::copy(run, path(), fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  }
  fs::path path() const { return scratch_ / "run"; }
  Done heed(const std::vector<std::string>& arguments) const {
    return run_heed(scratch_.path, arguments);
  }

 private:
  Scratch scratch_;
};

/// Counts correct results and prints the wrong ones.
class Count {
 public:
  void operator()(bool right, const std::string& how, const Done& done) {
    ++tried_;
    right_ += right;
    if (!right) Measures::note(fmt::format("{}: exit {}: {}", how, done.status, done.output));
  }
  void report(Measures& measures, const std::string& name) const {
    measures.all_of(name, right_, tried_);
  }

 private:
  std::size_t tried_ = 0, right_ = 0;
};

/// Runs a command that reads weights (eval, generate) with damaged weights or checksums: it must
/// exit with 3 and name the file.
void measure_readers(Measures& measures, const fs::path& run, const std::string& command,
                     const std::vector<std::string>& more) {
  Count count;
  for (const char* file : {"model.safetensors", "state.json"}) {
    for (const Damage& damage : damages_of(file)) {
      const Copy copy(run);
      damage.make(checkpoint_of(copy.path(), kNewest) / file);
      std::vector<std::string> arguments{command, copy.path().string(), "--weights", "last"};
      arguments.insert(arguments.end(), more.begin(), more.end());
      const Done done = copy.heed(arguments);
      count(done.status == static_cast<int>(Exit::bad_input) && contains(done.output, file),
            fmt::format("{}, {}: {}", command, file, damage.name), done);
    }
  }
  count.report(measures, fmt::format("damage: heed {}: exit 3", command));
}

/// Without --weights, eval uses the best weights. If they are damaged, it must print a message that
/// names them.
void measure_best(Measures& measures, const fs::path& run) {
  Count count;
  for (const Damage& damage : damages_of("model.safetensors")) {
    const Copy copy(run);
    CheckpointFolder(copy.path()).link("best", kPartner);
    const fs::path file = checkpoint_of(copy.path(), kPartner) / "model.safetensors";
    damage.make(file);
    const Done done = copy.heed({"eval", copy.path().string()});
    count((done.status == 0 || done.status == static_cast<int>(Exit::bad_input)) &&
              (contains(done.output, "best") || contains(done.output, file.string())),
          "eval, best/model.safetensors: " + damage.name, done);
  }
  count.report(measures, "damage: heed eval: damaged best weights named");
}

bool same_weights(const fs::path& a, const fs::path& b) {
  for (const char* name : {"model.safetensors", "training.safetensors"}) {
    if (get(checkpoint_of(a, kNewest) / name) != get(checkpoint_of(b, kNewest) / name))
      return false;
  }
  return true;
}

/// resume must fall back, name the skipped checkpoint and end with the same bits. A link or a pipe in the place of
/// a file is no damage, but the work of somebody: resume refuses the folder.
void measure_resume(Measures& measures, const fs::path& run) {
  Count warned, same, refused;
  for (const std::string& file : kCheckpointFiles) {
    for (const Damage& damage : damages_of(file)) {
      const Copy copy(run);
      // Another checkpoint's state.json is valid, so the message names the folder.
      const bool folder = file == "state.json" && contains(damage.name, "another");
      const fs::path newest = checkpoint_of(copy.path(), kNewest);
      damage.make(newest / file);
      const fs::file_type kind = fs::symlink_status(newest / file).type();
      const Done done = copy.heed({"resume", copy.path().string()});
      const std::string how = fmt::format("resume, {}: {}", file, damage.name);
      if (kind != fs::file_type::regular && kind != fs::file_type::directory &&
          kind != fs::file_type::not_found) {
        refused(done.status == static_cast<int>(Exit::bad_input) &&
                    contains(done.output, (newest / file).string()) &&
                    fs::symlink_status(newest / file).type() == kind,
                how, done);
        continue;
      }
      warned(done.status == 0 && contains(done.output, "skipped a damaged checkpoint: ") &&
                 contains(done.output, (folder ? newest : newest / file).string()) &&
                 contains(done.output, fmt::format("continuing from step {}", kOlder)),
             how, done);
      same(same_weights(run, copy.path()), how + ": different weights", done);
    }
  }
  warned.report(measures, "damage: heed resume: named, fell back to the previous checkpoint");
  same.report(measures, "damage: heed resume: the same final weights");
  refused.report(measures, "damage: heed resume: links and pipes refused, exit 3");
}

/// If all three checkpoints are damaged, resume must name them all and not begin a new run.
void measure_nothing_left(Measures& measures, const fs::path& run) {
  const Copy copy(run);
  Count count;
  bool named = true;
  for (const std::int64_t step : {kPartner, kOlder, kNewest})
    flip_bit(checkpoint_of(copy.path(), step) / "model.safetensors", 5000);
  const std::string metrics = get(copy.path() / "metrics.jsonl");
  const Done done = copy.heed({"resume", copy.path().string()});
  for (const std::int64_t step : {kPartner, kOlder, kNewest})
    named = named && contains(done.output, fmt::format("step-{:08}/model.safetensors", step));
  count(named && done.status == static_cast<int>(Exit::bad_input) &&
            contains(done.output, "every checkpoint is damaged") &&
            get(copy.path() / "metrics.jsonl") == metrics,
        "resume, all checkpoints damaged", done);
  count.report(measures, "damage: heed resume: all damaged, all named, exit 3");
}

}  // namespace

void measure_commands(Measures& measures, const fs::path& run) {
  measure_readers(measures, run, "eval", {});
  measure_readers(measures, run, "generate", {"--prompt", "the"});
  measure_best(measures, run);
  measure_resume(measures, run);
  measure_nothing_left(measures, run);
}

}  // namespace heed::relcheck
