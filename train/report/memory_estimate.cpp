#include "train/report/memory_estimate.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "autograd/base/team.h"
#include "autograd/kernels/gemm/bf16.h"
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

/// What a shard takes, in bytes.
struct ProbeMemory {
  double tape = 0;         ///< held between forward and backward
  double peak = 0;         ///< with the gradients
  double from_system = 0;  ///< that had not been asked for before
};

ProbeMemory probe_memory(const Config& config, const Model& model, const Batch& batch) {
  arena_forget_peak();
  const ArenaCounters before = arena_counters();
  ProbeMemory m;
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
  return m;
}

}  // namespace

MemoryEstimate estimate_memory(const Task& task, const Model& model, const StepWork& work,
                               const VocabularySizes& vocabulary) {
  const Config& config = task.config();
  MemoryEstimate e = at_least(config, model);
  const double set = e.weights;
  const auto shards = static_cast<double>(config.train.shards);
  const double threads = std::min(
      shards, static_cast<double>(config.threads > 0 ? config.threads : available_processors()));

  // A shard of sequences of average length, as many as half a second allows.
  const auto length = [&](double tokens) {
    return std::max<std::int64_t>(std::llround(tokens / std::max(work.sequences, 1.0)), 1);
  };
  const double of_shard = std::max(work.sequences / shards, 1.0),
               affordable = std::floor(work.sequences * probe_flops / std::max(work.flops, 1.0));
  const auto sequences = std::llround(std::clamp(affordable, 1.0, std::ceil(of_shard)));
  std::int64_t token = 0;  // which tokens does not matter
  const Batch batch = task.made_up_batch(
      sequences, length(work.source_tokens), length(work.target_tokens), vocabulary,
      [&](std::int64_t known) { return static_cast<std::int32_t>(token++ % known); });
  const double scale = of_shard / static_cast<double>(sequences);
  const std::int64_t resident_before = resident();
  const ProbeMemory probe = probe_memory(config, model, batch);
  // What else has grown is the BLAS's, which packs matrices into a buffer for each thread.
  const double packed =
      std::max(static_cast<double>(resident() - resident_before) - probe.from_system, 0.0);
  // The tape grows with the shard, and so does what backward works with; gradients do not.
  const double of_thread =
      std::max(scale * probe.tape, set) + scale * (probe.peak - std::max(probe.tape, set));

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
