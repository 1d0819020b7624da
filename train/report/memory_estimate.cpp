#include "train/report/memory_estimate.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "autograd/base/team.h"
#include "autograd/kernels/gemm/bf16.h"
#include "autograd/kernels/gemm/product_log.h"
#include "autograd/memory/arena.h"
#include "train/loop/augment.h"
#include "train/loop/step.h"

namespace heed {

namespace {

/// The resident bytes of this process.
std::int64_t resident() {
  std::ifstream file("/proc/self/statm");
  std::int64_t all = 0, pages = 0;
  file >> all >> pages;
  return pages * ::sysconf(_SC_PAGESIZE);
}

constexpr double probe_flops = 4e10;  // half a second's work

/// The work and memory of a shard.
struct Probe {
  double flops = 0;        ///< model FLOPs
  double tape = 0;         ///< bytes held between forward and backward
  double peak = 0;         ///< bytes, with the gradients
  double from_system = 0;  ///< bytes newly requested from the system
};

Probe probe(const Config& config, const Model& model, const Batch& batch) {
  arena_reset_peak();
  const MemoryCounters before = arena_counters();
  Probe m;
  kernels::ProductFlops flops;
  const kernels::ProductLog log(flops);
  const StepOptions options = step_options(config);
  const kernels::Bf16Scope scope(options.bf16);
  {
    const std::optional<Batch> changed = augmented(batch, 0, 1, options);
    const Tensor loss = shard_loss(model, changed ? *changed : batch, 0, 1, 1.0, options, nullptr);
    m.tape = static_cast<double>(arena_counters().live_bytes - before.live_bytes);
    backward(loss);
  }
  const MemoryCounters after = arena_counters();
  m.peak = static_cast<double>(after.peak_bytes - before.live_bytes);
  m.from_system = static_cast<double>(after.system_bytes - before.system_bytes);
  m.flops = flops.model;
  return m;
}

}  // namespace

MemoryEstimate probe_training(const Task& task, const Model& model,
                              const VocabularySizes& vocabulary, StepWork& work) {
  const Config& config = task.config();
  MemoryEstimate e = at_least(config, model);
  const double set = e.weights;
  const auto shards = static_cast<double>(config.train.shards);
  const double threads = std::min(
      shards, static_cast<double>(config.threads > 0 ? config.threads : available_processors()));
  const auto length = [&](double tokens) {
    return std::max<std::int64_t>(std::llround(tokens / std::max(work.sequences, 1.0)), 1);
  };
  const std::int64_t source_length = length(work.source_tokens),
                     target_length = length(work.target_tokens);

  // A shard of sequences of average length, as many as half a second allows: training takes about 6
  // FLOPs per weight and token (Kaplan et al. 2020, section 2.1).
  const double values = set / sizeof(float), of_shard = std::max(work.sequences / shards, 1.0),
               of_sequence =
                   6 * values * static_cast<double>(std::max(source_length, target_length)),
               affordable = std::floor(probe_flops / std::max(of_sequence, 1.0));
  const auto sequences = std::llround(std::clamp(affordable, 1.0, std::ceil(of_shard)));
  std::int64_t token = 0;  // which tokens does not matter
  const Batch batch = task.random_batch(
      sequences, source_length, target_length, vocabulary,
      [&](std::int64_t known) { return static_cast<std::int32_t>(token++ % known); });
  const double scale = of_shard / static_cast<double>(sequences);
  const std::int64_t resident_before = resident();
  const Probe shard = probe(config, model, batch);
  work.flops = shard.flops * (work.source_tokens + work.target_tokens) /
               static_cast<double>(batch.source.rows() + batch.target.rows());
  // The rest of the growth is the BLAS's, which packs matrices into a buffer per thread.
  const double packed =
      std::max(static_cast<double>(resident() - resident_before) - shard.from_system, 0.0);
  // The tape and backward's working memory grow with the shard; gradients do not.
  const double of_thread =
      std::max(scale * shard.tape, set) + scale * (shard.peak - std::max(shard.tape, set));

  e.program += threads * packed;
  // Neighbours are summed as soon as both exist (step.h): a sum of each size may wait while all
  // threads are working.
  e.gradients = set * std::min(shards, threads * (1 + std::floor(std::log2(shards / threads))));
  // Real shards differ in size, and there are gaps between blocks: measured on runs of several
  // models.
  constexpr double spread = 1.15;
  e.activations = threads * std::max(spread * of_thread - set, 0.0);
  return e;
}

}  // namespace heed
