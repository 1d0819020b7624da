#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "autograd/base/clock.h"
#include "autograd/kernels/fast/gemm/bf16.h"
#include "autograd/kernels/gemm.h"
#include "autograd/memory/arena.h"
#include "data/batches/batcher.h"
#include "optim/moments.h"
#include "train/commands/command_line.h"
#include "train/loop/step.h"
#include "train/loop/teacher.h"
#include "train/loop/transfer.h"
#include "train/run/blas_choice.h"
#include "train/run/run_record.h"
#include "train/tasks/model.h"
#include "train/tasks/precision.h"
#include "train/tasks/task.h"
#include "train/tasks/token_cost.h"
#include "train/terminal/run_log.h"
#include "train/views/commands/bench.h"
#include "train/views/report/product_replay.h"
#include "train/views/report/step_profile.h"

namespace heed {

namespace {

struct BenchCommand : ConfigArguments {
  /// Number of steps to measure; 0: 5 to 400, as many as fit in about 10 s.
  std::int64_t steps = 0;
  bool precisions = false;  ///< compare float32 and bf16
};

/// Seconds since this process started.
double process_seconds() {
  std::ifstream stat("/proc/self/stat");
  std::string field;
  std::getline(stat, field,
               ')');  // the program's name, which may contain spaces, is in parentheses
  for (int i = 3; i <= 22; ++i) stat >> field;  // the start time is field 22
  const double ticks = field.empty() ? 0 : std::stod(field);
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);  // the start time refers to this clock
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec) -
         ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

/// A batch of random sequences, whose number and lengths are set in the config's section `bench`.
/// If the sources are images or videos, bench.source_length is ignored: each source has the number
/// of rows of an image or video (Task::image_rows).
Batch batch_of_random_tokens(const Task& task, std::uint64_t number) {
  const BenchOptions& bench = task.config().bench;
  Random random({task.config().seed, Stream::data, number, 0});
  const std::int64_t rows = task.image_rows();
  return task.random_batch(
      bench.sequences, rows > 0 ? rows : bench.source_length, bench.target_length,
      {bench.vocabulary, bench.vocabulary, true}, [&](std::int64_t known) {
        return static_cast<std::int32_t>(random.below(static_cast<std::uint32_t>(known)));
      });
}

struct Measured {
  /// The duration of each step and of its matrix products alone, in seconds.
  std::vector<double> steps, replays;
  kernels::ProductFlops flops;   ///< sum over all measured steps
  double tokens = 0;             ///< number of labelled tokens in all measured steps
  std::int64_t peak_bytes = 0;   ///< peak memory of arrays during a step
  double peak_rss_mb = 0;        ///< peak memory of training, without the replay
  double first_step_ms = 0;      ///< from the start of the process to the end of the first step
  std::int64_t allocations = 0;  ///< number of system allocations for arrays in all measured steps
  std::int64_t parameters = 0;
  StepProfile profile;
  StepProfile::Roof roof;
};

/// Bytes per second, read and written, of copies between arrays that are larger than caches. The
/// best of five rounds, on the threads of the team.
double copy_rate(Team& team) {
  constexpr std::int64_t values = 1 << 24, rounds = 5;  // 64 MB
  struct Pair {
    Array from = Array::zeros({values}), to = Array::zeros({values});
  };
  std::vector<Pair> pairs(static_cast<std::size_t>(team.threads()));
  double best = 0;
  for (int i = 0; i < rounds; ++i) {
    const double start = seconds_now();
    team.run(team.threads(), [&](std::int64_t t) {
      Pair& pair = pairs[static_cast<std::size_t>(t)];
      std::copy_n(pair.from.data(), values, pair.to.data());
    });
    const double bytes = 2.0 * sizeof(real) * values * static_cast<double>(pairs.size());
    best = std::max(best, bytes / (seconds_now() - start));
  }
  return best;
}

/// The bytes that a step reads and writes for each parameter outside forward and backward: the
/// gradient of each shard, their sum (written, read for its norm, read by the update), the weight,
/// and the moments.
double update_bytes(const Config& config, double parameters) {
  const double moments = config.optim.name == OptimizerKind::sgd ? 1 : 2;
  return parameters * (4 * static_cast<double>(config.train.shards) + 3 * 4 + 2 * 4 +
                       2 * moments * Moment::bytes_per_value(config.optim.moments));
}

/// Trains a model, one measured step at a time.
class Bench {
 public:
  explicit Bench(const Config& config)
      : config_(config), task_(make_task(config)), team_(config.threads) {
    if (const std::string note =
            bf16_note(config.train.precision == Precision::bf16, "train.precision");
        !note.empty()) {
      print_message("heed: " + note);
    }
    VocabularySizes vocabulary{config.bench.vocabulary, config.bench.vocabulary, true};
    if (config.bench.sequences == 0) {
      data_ = task_->load(nullptr);
      vocabulary = sizes_of(data_.tokenizers);
      stream_ = std::make_unique<BatchStream>(data_.train, batch_options(config));
    }
    model_ = build_to_train(config, vocabulary);
    cost_ = token_cost(*task_, *model_);
    if (!stream_ && !config.train.distill.teacher.empty())
      print_message(
          "heed: note: bench.sequences replaces the data with random tokens, so the step is "
          "measured without the teacher");
    options_ = stream_ ? training_options(config, data_) : step_options(config);
    optimizer_.emplace(config.optim, not_frozen(*model_, config.train.freeze));
    step_.emplace(*model_, *optimizer_, team_, options_);
  }

  double copy_rate() { return heed::copy_rate(team_); }
  std::int64_t parameters() const {
    std::int64_t values = 0;
    for (const NamedTensor& p : model_->parameters()) values += p.tensor.size();
    return values;
  }

  /// Runs a step on the next batch and adds its figures to `m`.
  void step(Measured& m) {
    const Batch batch = stream_ ? stream_->next() : batch_of_random_tokens(*task_, number_);
    shards_ = shard(batch, config_.train.shards, cost_);
    m.tokens += static_cast<double>(batch.label_count());
    arena_reset_peak();
    const std::int64_t allocations = arena_counters().system_allocations;
    const double start = seconds_now();
    step_->run(shards_, static_cast<std::int64_t>(++number_), 1e-6);
    m.steps.push_back(seconds_now() - start);
    m.allocations += arena_counters().system_allocations - allocations;
    m.peak_bytes = std::max(m.peak_bytes, arena_counters().peak_bytes);
  }

  /// Measures a step, repeats its forward and backward to time the ops and to list the matrix
  /// products, and then measures the products alone. Adds the results to `m`.
  void round(Measured& m) {
    step(m);
    std::vector<ShardProducts> products = m.profile.add(
        m.steps.back(), *model_, shards_, static_cast<std::int64_t>(number_), options_, team_);
    std::vector<ProductReplay> replays;
    for (ShardProducts& shard : products) {
      m.flops.executed += shard.flops.executed;
      m.flops.model += shard.flops.model;
      replays.emplace_back(std::move(shard.list), optimizer_->parameters());
    }
    const double start = seconds_now();
    team_.run(static_cast<std::int64_t>(replays.size()), [&](std::int64_t i) {
      const kernels::Bf16Scope scope(options_.bf16);
      replays[static_cast<std::size_t>(i)].run();
    });
    m.replays.push_back(seconds_now() - start);
  }

 private:
  const Config& config_;
  StepOptions options_;
  const std::unique_ptr<Task> task_;
  Team team_;
  ExperimentData data_;
  std::unique_ptr<BatchStream> stream_;
  std::unique_ptr<Model> model_;
  TokenCost cost_;
  std::optional<Optimizer> optimizer_;
  std::optional<TrainStep> step_;
  std::vector<Batch> shards_;  ///< batch of the last call of step(), divided into shards
  std::uint64_t number_ = 0;
};

Measured measure(const Config& config, std::int64_t wanted_steps) {
  Bench bench(config);
  Measured m, warm, discarded;
  m.parameters = bench.parameters();
  bench.step(warm);
  m.first_step_ms = 1e3 * process_seconds();
  for (int i = 0; i < 4; ++i) bench.step(warm);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  bench.round(discarded);                    // the first replay allocates memory
  constexpr double seconds = 10, turns = 3;  // a round takes about three times as long as a step
  const auto rounds =
      wanted_steps > 0
          ? wanted_steps
          : std::clamp<std::int64_t>(static_cast<std::int64_t>(seconds / turns / warm.steps.back()),
                                     5, 400);
  for (std::int64_t i = 0; i < rounds; ++i) bench.round(m);
  // The peak of the process now includes the replay's memory, so only the increase of the arrays'
  // peak in later steps is added to the peak before.
  m.peak_rss_mb = static_cast<double>(usage.ru_maxrss) / 1024 +
                  static_cast<double>(std::max<std::int64_t>(m.peak_bytes - warm.peak_bytes, 0)) /
                      static_cast<double>(1 << 20);
  m.profile.count_update(update_bytes(config, static_cast<double>(m.parameters)));
  m.roof = {m.flops.executed / static_cast<double>(m.steps.size()) / median(m.replays),
            bench.copy_rate()};
  return m;
}

/// Measures a config in float32 and in bf16, alternating, in two turns each.
int compare_precisions(const Config& given, const BenchCommand& options) {
  if (const std::string& obstacle = kernels::bf16_obstacle(); !obstacle.empty())
    throw Error(Exit::failed, "--precisions compares float32 and bf16, but {}", obstacle);
  constexpr Precision precisions[] = {Precision::float32, Precision::bf16};
  std::map<Precision, std::vector<double>> steps;
  std::map<Precision, double> gflops;
  print_message("heed: measuring in float32 and bf16, twice each");
  for (int turn = 0; turn < 2; ++turn) {
    for (const Precision precision : precisions) {
      Config config = given;
      config.train.precision = precision;
      const Measured m = measure(config, options.steps > 0 ? options.steps : 5);
      steps[precision].insert(steps[precision].end(), m.steps.begin(), m.steps.end());
      const double executed = m.flops.executed / static_cast<double>(m.steps.size()) / 1e9;
      gflops[precision] = std::max(gflops[precision], executed / median(m.replays));
    }
  }
  const auto ms = [&](Precision p) { return 1e3 * median(steps[p]); };
  const double ratio = ms(Precision::float32) / ms(Precision::bf16);
  if (options.json) {
    nlohmann::json record{{"times_as_fast", ratio}};
    for (const Precision p : precisions)
      record[std::string(name_of(p))] = {{"step_ms", ms(p)}, {"gemm_gflops", gflops[p]}};
    fmt::print("{}\n", record.dump());
    return 0;
  }
  print_text(
      fmt::format("  {:<10} {:>10} {:>28}\n", "precision", "step, ms", "products alone, GFLOP/s"));
  for (const Precision p : precisions)
    fmt::print("  {:<10} {:>10.2f} {:>28.1f}\n", name_of(p), ms(p), gflops[p]);
  fmt::print("\nbf16 is {:.2f} times as fast on this machine: train.precision={}\n", ratio,
             name_of(ratio > 1 ? Precision::bf16 : Precision::float32));
  return 0;
}

int bench_command(const BenchCommand& options) {
  const Config config = read_config(options.config, options.overrides);
  if (options.precisions) return compare_precisions(config, options);
  const Measured m = measure(config, options.steps);
  const auto steps = static_cast<double>(m.steps.size());
  const double step = median(m.steps), products = median(m.replays), share = products / step,
               model_gflop = m.flops.model / steps / 1e9,
               executed_gflop = m.flops.executed / steps / 1e9, tokens = m.tokens / steps;
  const nlohmann::json record{{"step_ms", 1e3 * step},
                              {"tokens_per_s", tokens / step},
                              {"gflop_per_step", model_gflop},
                              {"gflops", model_gflop / step},
                              {"executed_gflop_per_step", executed_gflop},
                              {"products_ms", 1e3 * products},
                              {"gemm_gflops", executed_gflop / products},
                              {"gemm_share", share},
                              {"peak_rss_mb", m.peak_rss_mb},
                              {"allocations_per_step", static_cast<double>(m.allocations) / steps},
                              {"first_step_ms", m.first_step_ms},
                              {"blas", kernels::blas_name()},
                              {"blas_kernel_chosen_by", blas_kernel_chooser()},
                              {"bf16_unit", bf16_unit_of(config)},
                              {"steps", m.steps.size()},
                              {"params", m.parameters},
                              {"copy_gb_per_s", 1e-9 * m.roof.bytes},
                              {"profile", m.profile.json(m.roof)}};
  if (options.json) {
    fmt::print("{}\n", record.dump());
    return 0;
  }
  print_text(fmt::format("{}: {} parameters, number of measured steps: {}\n", config.name,
                         m.parameters, m.steps.size()));
  fmt::print("  step        {:10.2f} ms (median)\n  {:<12}{:10.0f} per second\n", 1e3 * step,
             predictions_of(info_of(config.task).architecture), tokens / step);
  fmt::print("  model       {:10.4g} GFLOP per step, {:.1f} GFLOP/s\n", model_gflop,
             model_gflop / step);
  fmt::print(
      "  products    {:10.2f} ms alone, {:.0f} % of the step: {:.4g} GFLOP executed, {:.1f} "
      "GFLOP/s\n",
      1e3 * products, 100 * share, executed_gflop, executed_gflop / products);
  fmt::print("  blas         {} (kernel chosen by {})\n", kernels::blas_name(),
             blas_kernel_chooser());
  if (const std::string unit = bf16_unit_of(config); !unit.empty())
    fmt::print("  bf16         {}\n", unit);
  fmt::print("  memory      {:10.1f} MB at the peak; {:.2f} allocations per step\n", m.peak_rss_mb,
             record["allocations_per_step"].get<double>());
  fmt::print("  first step  {:10.1f} ms from the start of the process to the end of the step\n\n{}",
             m.first_step_ms, m.profile.table(m.roof));
  return 0;
}

}  // namespace

std::string time_by_op(const Config& config) {
  const Measured m = measure(config, 5);
  return m.profile.table(m.roof);
}

void add_bench(CommandLine& line) {
  const auto [command, options] = add_command<BenchCommand>(
      line, "bench", Needs::model,
      "time of a step, tokens/s, GFLOP/s, share of time in matrix products, time by op",
      bench_command);
  add_config(command, *options, "train.batch_tokens=8192");
  add_choice(command, choices, "--steps", options->steps, "N",
             "number of steps to measure (default: 5 to 400, as many as fit in about 10 s)")
      ->check(CLI::Range(1, 1'000'000));
  add_flag(command, choices, "--precisions", options->precisions,
           "compare float32 and bf16, in 10 steps each unless --steps is given");
  add_json(command, options->json, "the metrics");
  command->footer("Example:\n  heed bench configs/bench/nmt-small.yaml threads=2");
}

}  // namespace heed
