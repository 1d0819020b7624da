#include "train/views/report/memory_estimate.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "autograd/base/team.h"
#include "autograd/kernels/fast/gemm/bf16.h"
#include "autograd/kernels/fast/gemm/product_log.h"
#include "autograd/memory/arena.h"
#include "train/loop/augment.h"
#include "train/loop/step.h"

namespace heed {

namespace {

/// The resident memory of this process, in bytes.
std::int64_t resident() {
  std::ifstream file("/proc/self/statm");
  std::int64_t all = 0, pages = 0;
  file >> all >> pages;
  return pages * ::sysconf(_SC_PAGESIZE);
}

constexpr double probe_flops = 4e10;  // about half a second of work on one core

/// The work of a shard and the memory that it uses.
struct Probe {
  double flops = 0;        ///< model FLOPs
  double tape = 0;         ///< memory in use between forward and backward, in bytes
  double peak = 0;         ///< peak memory including the gradients, in bytes
  double from_system = 0;  ///< memory newly requested from the system, in bytes
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

  // At most one shard, with as many sequences of average length as run in about half a second:
  // training executes about 6 FLOPs per weight and token (Kaplan et al. 2020, section 2.1).
  const double values = set / sizeof(float), per_shard = std::max(work.sequences / shards, 1.0),
               per_sequence =
                   6 * values * static_cast<double>(std::max(source_length, target_length)),
               affordable = std::floor(probe_flops / std::max(per_sequence, 1.0));
  const auto sequences = std::llround(std::clamp(affordable, 1.0, std::ceil(per_shard)));
  std::int64_t token = 0;  // the token ids do not affect work or memory
  const Batch batch = task.random_batch(
      sequences, source_length, target_length, vocabulary,
      [&](std::int64_t size) { return static_cast<std::int32_t>(token++ % size); });
  const double scale = per_shard / static_cast<double>(sequences);
  const std::int64_t resident_before = resident();
  const Probe shard = probe(config, model, batch);
  work.flops = shard.flops * (work.source_tokens + work.target_tokens) /
               static_cast<double>(batch.source.rows() + batch.target.rows());
  // The BLAS causes the remaining growth of the process: it packs matrices into one buffer per
  // thread.
  const double packed =
      std::max(static_cast<double>(resident() - resident_before) - shard.from_system, 0.0);
  // The tape and backward's working memory grow with the shard; gradients do not.
  const double per_thread =
      std::max(scale * shard.tape, set) + scale * (shard.peak - std::max(shard.tape, set));

  e.program += threads * packed;
  // Neighbouring sums are added as soon as both exist (step.h). While each thread computes a shard,
  // one sum of each size (1, 2, 4, … shards) per thread may wait for its neighbour.
  e.gradients = set * std::min(shards, threads * (1 + std::floor(std::log2(shards / threads))));
  // An allowance for shards of unequal size and for gaps between blocks, measured on runs of
  // several models.
  constexpr double spread = 1.15;
  e.activations = threads * std::max(spread * per_thread - set, 0.0);
  return e;
}

}  // namespace heed
