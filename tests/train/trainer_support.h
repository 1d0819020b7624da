#pragma once
/// Small runs in temporary folders, for the tests of the training loop.
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/train/small_run.h"
#include "tests/train/support.h"
#include "train/loop/trainer.h"

namespace heed::test {

/// A run with its config, folder and data.
struct Run {
  Config config;
  std::filesystem::path folder;
  ExperimentData data;
  RunLog run_log;

  Run(const Config& c, const std::filesystem::path& path)
      : config(c), folder(path), data(load_data(c)) {
    config.optim.lr = training_rate(c.optim.lr);
    create_folders(folder);
  }
  RunFolder paths() const { return {folder}; }
  CheckpointFolder checkpoints() const { return CheckpointFolder(folder); }

  /// Trains to the end; with `restore`, from the newest checkpoint. Returns the signal that stopped
  /// the training, or 0.
  int train(bool restore) {
    Trainer trainer(config, paths(), data, run_log);
    if (restore) trainer.restore();
    return trainer.train();
  }
  std::string file(std::int64_t step, const std::string& name) const {
    return get(checkpoints().folder_of(step) / name);
  }
  /// The records of metrics.jsonl without the fields that depend on the clock.
  std::vector<nlohmann::json> metrics() const {
    std::vector<nlohmann::json> all;
    std::istringstream lines(get(paths().metrics()));
    for (std::string line; std::getline(lines, line);) {
      nlohmann::json record = nlohmann::json::parse(line);
      for (const char* clock : {"seconds", "tokens_per_s", "decode_seconds"}) record.erase(clock);
      all.push_back(std::move(record));
    }
    return all;
  }
  std::int64_t count(const std::string& kind) const {
    std::int64_t n = 0;
    for (const nlohmann::json& r : metrics()) n += r.at("kind") == kind;
    return n;
  }
  nlohmann::json state_with_clocks(std::int64_t step) const {
    return open_checkpoint(checkpoints().folder_of(step)).state;
  }
  nlohmann::json state(std::int64_t step) const {
    nlohmann::json s = state_with_clocks(step);
    s.erase("seconds");
    s.erase("window_seconds");
    return s;
  }
};

/// Checks that the weights, the optimizer's moments and the progress at a step are bitwise equal.
inline void check_same_checkpoint(const Run& a, const Run& b, std::int64_t step) {
  for (const char* name : {"model.safetensors", "training.safetensors", "memory.safetensors"}) {
    if (!std::filesystem::exists(a.checkpoints().folder_of(step) / name)) continue;
    BOOST_TEST((a.file(step, name) == b.file(step, name)), name << " differs at step " << step);
  }
  BOOST_TEST(a.state(step) == b.state(step));
}

inline void check_same_metrics(const Run& a, const Run& b) {
  const std::vector<nlohmann::json> x = a.metrics(), y = b.metrics();
  BOOST_TEST(x.size() == y.size());
  for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) BOOST_TEST(x[i] == y[i]);
}

/// Trains `whole` and `parts`, which has fewer steps, and resumes `parts` until both have the same
/// number of steps. Checks that their last checkpoints and their metrics are equal.
inline void check_resumed_equals_whole(Run& whole, Run& parts) {
  whole.train(false);
  parts.train(false);
  parts.config.train.steps = whole.config.train.steps;
  parts.train(true);
  check_same_checkpoint(whole, parts, whole.checkpoints().linked("last").value());
  check_same_metrics(whole, parts);
}

/// Checks that a run on three threads equals a run on one thread that stops halfway and is
/// resumed.
inline void check_repeats_bits(Config c, const std::filesystem::path& folder) {
  const std::int64_t half = c.train.steps / 2;
  c.train.validate_every = c.train.save_every = half;
  Config threads = c;
  threads.threads = 3;
  c.train.steps = half;
  Run whole(threads, folder.string() + "-whole"), parts(c, folder.string() + "-parts");
  check_resumed_equals_whole(whole, parts);
}

}  // namespace heed::test
