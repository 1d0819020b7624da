#include "train/report/memory_estimate.h"

#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "autograd/base/team.h"
#include "autograd/kernels/gemm/bf16.h"
#include "autograd/kernels/gemm/product_log.h"
#include "autograd/memory/arena.h"
#include "train/loop/step.h"

namespace heed {

namespace {

/// Bytes of this process that are in memory now.
std::int64_t resident() {
  std::ifstream file("/proc/self/statm");
  std::int64_t all = 0, pages = 0;
  file >> all >> pages;
  return pages * ::sysconf(_SC_PAGESIZE);
}

constexpr double probe_flops = 4e10;  // half a second's work

/// The smallest limit of the groups (cgroups) that this process is in, as a container or a batch
/// system sets it; infinite where there is none.
double group_memory() {
  double least = std::numeric_limits<double>::infinity();
  std::ifstream groups("/proc/self/cgroup");  // "0::/a/b" in version 2, "9:memory:/a/b" in 1
  for (std::string line; std::getline(groups, line);) {
    const bool second = line.starts_with("0::"), first = line.find(":memory:") != line.npos;
    const std::size_t path = line.find('/');
    if ((!first && !second) || path == std::string::npos) continue;
    const std::filesystem::path top = second ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    const char* const name = second ? "memory.max" : "memory.limit_in_bytes";
    // Upwards, and last the top itself: within a container the path may be one of outside.
    for (std::filesystem::path at = line.substr(path + 1);; at = at.parent_path()) {
      double bytes = 0;  // "max" is no number
      if (std::ifstream(top / at / name) >> bytes) least = std::min(least, bytes);
      if (at.empty()) break;
    }
  }
  return least;
}

/// `sequences` of equal length, of tokens that do not matter.
Batch probe_batch(const Config& config, std::int64_t sequences, std::int64_t source_length,
                  std::int64_t target_length, const VocabularySizes& vocabulary) {
  Batch batch;
  const auto fill = [sequences](std::vector<std::int32_t>& ids, std::vector<std::int32_t>& offsets,
                                std::int64_t length, std::int64_t known) {
    for (std::int64_t i = 0; i <= sequences; ++i)
      offsets.push_back(static_cast<std::int32_t>(i * length));
    for (std::int64_t i = 0; i < sequences * length; ++i)
      ids.push_back(static_cast<std::int32_t>(i % known));
  };
  if (config.task == Task::seq2seq)
    fill(batch.source, batch.source_offsets, source_length, vocabulary.source);
  fill(batch.target_in, batch.target_offsets, target_length, vocabulary.target);
  batch.target_out = batch.target_in;
  return batch;
}

/// What a shard takes.
struct Probe {
  double flops = 0;        ///< model FLOPs
  double tape = 0;         ///< bytes held between forward and backward
  double peak = 0;         ///< bytes, with the gradients
  double from_system = 0;  ///< bytes that had not been asked for before
};

Probe probe(const Config& config, const Model& model, const Batch& batch) {
  arena_forget_peak();
  const ArenaCounters before = arena_counters();
  Probe m;
  kernels::ProductFlops flops;
  const kernels::ProductLog log(flops);
  const StepOptions options{config.seed, 1, config.train.label_smoothing, 0,
                            config.train.precision == Precision::bf16};
  const kernels::Bf16Scope scope(options.bf16);
  {
    const Tensor loss = shard_loss(model, batch, 0, 1, 1.0, options, nullptr);
    m.tape = static_cast<double>(arena_counters().live_bytes - before.live_bytes);
    backward(loss);
  }
  const ArenaCounters after = arena_counters();
  m.peak = static_cast<double>(after.peak_bytes - before.live_bytes);
  m.from_system = static_cast<double>(after.system_bytes - before.system_bytes);
  m.flops = flops.model;
  return m;
}

}  // namespace

double machine_memory() {
  struct sysinfo all {};
  ::sysinfo(&all);
  const double unit = all.mem_unit, swap = unit * static_cast<double>(all.totalswap);
  return std::min(unit * static_cast<double>(all.totalram), group_memory()) + swap;
}

MemoryEstimate least_memory(const Config& config, const Model& model) {
  double values = 0;
  for (const NamedTensor& p : model.parameters()) values += static_cast<double>(p.tensor.size());
  const bool sgd = config.optim.name == OptimizerKind::sgd;
  MemoryEstimate e;
  e.program = 12e6;
  e.weights = e.gradients = values * sizeof(float);
  e.moments = e.weights * (sgd ? 1 : 2);
  return e;
}

MemoryEstimate probe_training(const Config& config, const Model& model,
                              const VocabularySizes& vocabulary, StepWork& work) {
  MemoryEstimate e = least_memory(config, model);
  const double set = e.weights;
  const auto shards = static_cast<double>(config.train.shards);
  const double threads = std::min(
      shards, static_cast<double>(config.threads > 0 ? config.threads : available_processors()));
  const auto length = [&](double tokens) {
    return std::max<std::int64_t>(std::llround(tokens / std::max(work.sequences, 1.0)), 1);
  };
  const auto run = [&](std::int64_t sequences) {
    return probe(config, model,
                 probe_batch(config, sequences, length(work.source_tokens),
                             length(work.target_tokens), vocabulary));
  };
  const std::int64_t resident_before = resident();
  Probe shard = run(1);
  work.flops = work.sequences * shard.flops;

  // A shard of sequences of average length, as many as half a second allows.
  const double of_shard = std::max(work.sequences / shards, 1.0),
               affordable = std::floor(probe_flops / std::max(shard.flops, 1.0));
  const auto sequences = std::llround(std::clamp(affordable, 1.0, std::ceil(of_shard)));
  if (sequences > 1) {
    const double from_system = shard.from_system;
    shard = run(sequences);
    shard.from_system += from_system;
  }
  const double scale = of_shard / static_cast<double>(sequences);
  // What else has grown is the BLAS's, which packs matrices into a buffer for each thread.
  const double packed =
      std::max(static_cast<double>(resident() - resident_before) - shard.from_system, 0.0);
  // The tape grows with the shard, and so does what backward works with; gradients do not.
  const double of_thread =
      std::max(scale * shard.tape, set) + scale * (shard.peak - std::max(shard.tape, set));

  e.program += threads * packed;
  // Neighbours are summed as soon as both are there (step.h): a sum of each size may wait while all
  // threads are at work.
  e.gradients = set * std::min(shards, threads * (1 + std::floor(std::log2(shards / threads))));
  // Real shards differ in size from one another, and between blocks there are gaps: from runs of
  // several models.
  constexpr double spread = 1.15;
  e.activations = threads * std::max(spread * of_thread - set, 0.0);
  return e;
}

}  // namespace heed
