#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "autograd/base/clock.h"
#include "autograd/kernels/gemm/gemm.h"
#include "autograd/memory/arena.h"
#include "data/batches/batcher.h"
#include "train/commands/commands.h"
#include "train/loop/step.h"
#include "train/report/bench_profile.h"
#include "train/report/flops.h"
#include "train/tasks/model.h"
#include "train/tasks/task.h"
#include "train/terminal/talk.h"

namespace heed {

namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

/// Sequences of random tokens, all of the config's bench lengths.
Batch random_batch(const Task& task, std::uint64_t number) {
  const BenchOptions& bench = task.config().bench;
  Random random({task.config().seed, Stream::data, number, 0});
  return task.made_up_batch(
      bench.sequences, bench.source_length, bench.target_length,
      {bench.vocabulary, bench.vocabulary, true}, [&](std::int64_t known) {
        return static_cast<std::int32_t>(random.below(static_cast<std::uint32_t>(known)));
      });
}

/// GFLOP/s of gemm with the team's threads, each on its own product of this model's largest shape:
/// the feed-forward product of one shard's rows, or the output projection's where it is larger.
double gemm_rate(const Config& config, std::int64_t rows, std::int64_t vocabulary, Team& team) {
  const std::int64_t d = config.model.d_model;
  const std::int64_t wide = std::max(config.model.d_ff, std::min<std::int64_t>(vocabulary, 8192));
  const std::int64_t m = std::clamp<std::int64_t>(rows, 1, 2048);
  struct Operands {
    Array a, b, c;
  };
  std::vector<Operands> own(static_cast<std::size_t>(team.threads()));
  for (Operands& o : own)
    o = {Array::full({m, d}, real(0.5)), Array::full({wide, d}, real(0.25)),
         Array::zeros({m, wide})};
  const double flops = 2.0 * static_cast<double>(m * d * wide);
  const auto repeats = static_cast<std::int64_t>(std::max(1.0, 2e9 / flops));
  std::vector<double> rates;
  for (int round = 0; round < 9; ++round) {
    const double begin = seconds_now();
    team.run(team.threads(), [&](std::int64_t i) {
      Operands& o = own[static_cast<std::size_t>(i)];
      for (std::int64_t r = 0; r < repeats; ++r) {
        kernels::gemm(kernels::Trans::no, kernels::Trans::yes, m, wide, d, 1, o.a.data(), d,
                      o.b.data(), d, 0, o.c.data(), wide);
      }
    });
    rates.push_back(flops * static_cast<double>(repeats * team.threads()) /
                    (seconds_now() - begin) / 1e9);
  }
  return median(rates);
}

struct Measured {
  std::vector<double> seconds;   ///< of each step
  double tokens = 0, flops = 0;  ///< of an average step
  double gemm_gflops = 0;
  double peak_rss_mb = 0;  ///< of training; what measuring gemm takes comes later
  double first_step_ms = 0;
  std::int64_t allocations = 0;  ///< of arrays, in the measured steps
  std::int64_t parameters = 0;
};

Measured measure(const Config& config, std::int64_t wanted_steps, OpProfile& profile) {
  const double begin = process_start_seconds();
  const bool bf16 = config.train.precision == Precision::bf16;
  if (const std::string note = precision_note(config.train.precision, "train.precision");
      !note.empty()) {
    tell("heed: " + note);
  }
  const std::unique_ptr<Task> task = make_task(config);
  ExperimentData data;
  std::unique_ptr<BatchStream> stream;
  VocabularySizes vocabulary{config.bench.vocabulary, config.bench.vocabulary, true};
  if (config.bench.sequences == 0) {
    data = task->load(nullptr);
    vocabulary = sizes_of(data.tokenizers);
    stream = std::make_unique<BatchStream>(data.train, batch_options(config));
  }
  const std::unique_ptr<Model> model = build_to_train(config, vocabulary);
  Optimizer optimizer(config.optim, model->parameters());
  Team team(config.threads);
  TrainStep step(*model, optimizer, team,
                 {config.seed, config.train.shards, config.train.label_smoothing,
                  config.optim.clip_norm, bf16});
  const TokenCost cost = token_cost(config, vocabulary.target);
  Measured m;
  for (const NamedTensor& p : model->parameters()) m.parameters += p.tensor.size();
  std::int64_t number = 0, rows = 0;
  const auto one = [&](bool counted) {
    const Batch batch =
        stream ? stream->next() : random_batch(*task, static_cast<std::uint64_t>(number));
    const std::vector<Batch> shards = shard(batch, config.train.shards, cost);
    const std::int64_t allocations = arena_counters().system_allocations;
    const double start = seconds_now();
    step.run(shards, ++number, 1e-6);
    const double took = seconds_now() - start;
    rows = static_cast<std::int64_t>(shards.front().labels.size());
    if (!counted) return took;
    m.allocations += arena_counters().system_allocations - allocations;
    m.seconds.push_back(took);
    m.tokens += static_cast<double>(batch.labels.size());
    m.flops += 3 * forward_flops(config.model, info_of(config.task).architecture, vocabulary.target,
                                 batch.source.offsets, batch.target.offsets);
    return took;
  };
  double warm = one(false);
  m.first_step_ms = 1e3 * (now_since_epoch() - begin);
  for (int i = 0; i < 4; ++i) warm = one(false);
  const auto steps = wanted_steps > 0
                         ? wanted_steps
                         : std::clamp<std::int64_t>(static_cast<std::int64_t>(10 / warm), 5, 400);
  for (std::int64_t i = 0; i < steps; ++i) one(true);
  m.tokens /= static_cast<double>(steps);
  m.flops /= static_cast<double>(steps);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  m.peak_rss_mb = static_cast<double>(usage.ru_maxrss) / 1024;
  m.gemm_gflops = gemm_rate(config, rows, vocabulary.target, team);
  const Batch last = stream ? stream->next() : random_batch(*task, 0);
  profile = OpProfile::of(*model, shard(last, config.train.shards, cost).front(),
                          config.train.label_smoothing, bf16);
  return m;
}

}  // namespace

int bench_command(const BenchCommand& options) {
  const Config config = read_config(options.config, options.overrides);
  OpProfile profile;
  const Measured m = measure(config, options.steps, profile);
  const double step = median(m.seconds), gflops = m.flops / step / 1e9;
  const nlohmann::json record{{"step_ms", 1e3 * step},
                              {"tokens_per_s", m.tokens / step},
                              {"gflop_per_step", m.flops / 1e9},
                              {"gflops", gflops},
                              {"gemm_gflops", m.gemm_gflops},
                              {"gemm_share", gflops / m.gemm_gflops},
                              {"peak_rss_mb", m.peak_rss_mb},
                              {"allocations_per_step", static_cast<double>(m.allocations) /
                                                           static_cast<double>(m.seconds.size())},
                              {"first_step_ms", m.first_step_ms},
                              {"blas", kernels::blas_name()},
                              {"steps", m.seconds.size()},
                              {"params", m.parameters}};
  if (options.json) {
    fmt::print("{}\n", record.dump());
    return 0;
  }
  fmt::print("{}: {} parameters, {} steps measured\n", config.name, m.parameters, m.seconds.size());
  fmt::print("  step        {:10.2f} ms (median)\n  tokens      {:10.0f} a second\n", 1e3 * step,
             m.tokens / step);
  fmt::print("  work        {:10.2f} GFLOP a step, {:.1f} GFLOP/s\n", m.flops / 1e9, gflops);
  fmt::print("  gemm        {:10.1f} GFLOP/s on these shapes; the step reaches {:.0f} % of it\n",
             m.gemm_gflops, 100 * gflops / m.gemm_gflops);
  // It chooses its code by the processor and by OPENBLAS_CORETYPE, and may choose half the speed.
  fmt::print("  blas         {}\n", kernels::blas_name());
  fmt::print("  memory      {:10.1f} MB at most; {:.2f} allocations a step\n", m.peak_rss_mb,
             record["allocations_per_step"].get<double>());
  fmt::print("  first step  {:10.1f} ms after process start\n\n{}", m.first_step_ms,
             profile.table());
  return 0;
}

}  // namespace heed
