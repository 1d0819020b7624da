#include <fmt/format.h>

#include <cstdlib>

#include "autograd/base/clock.h"
#include "autograd/base/error.h"
#include "autograd/gradcheck.h"
#include "data/batches/batcher.h"
#include "train/commands/commands.h"
#include "train/config/plugins.h"
#include "train/decode/model_input.h"
#include "train/tasks/data.h"
#include "train/tasks/model.h"
#include "train/terminal/progress.h"
#include "train/terminal/run_log.h"
#include "train/views/report/gradcheck_table.h"

#ifndef HEED_DOUBLE
#error "gradients are checked in float64: this file belongs to heed_train_f64"
#endif

namespace heed {

namespace {

constexpr double allowed_seconds = 40;
/// The number of forward passes for an entry or direction whose gradient is correct.
constexpr std::int64_t stencil = 4;
constexpr int directions = 2;
constexpr std::int64_t min_entries = 4, max_entries = 256;

/// Among the first 16 batches of three training sequences, the one whose number of tokens is
/// closest to 40. More tokens would only take longer, because the loss is computed thousands of
/// times; fewer would hardly test attention. A window of a text has at most 13 tokens, so that
/// three windows have about 40.
Batch small_batch(const Config& config, const Dataset& data) {
  constexpr std::int64_t candidates = 16, target_tokens = 40;
  BatchOptions options;
  options.batch_sequences = 3;
  options.context = std::min<std::int64_t>(batch_options(config).context, 13);
  options.seed = config.seed;
  BatchStream stream(data, options);
  const auto distance = [](const Batch& b) {
    return std::abs(b.source.rows() + b.target.rows() - target_tokens);
  };
  Batch best = stream.next();
  for (std::int64_t i = 1; i < candidates; ++i) {
    Batch next = stream.next();
    if (distance(next) < distance(best)) best = std::move(next);
  }
  return best;
}

/// Checks some entries of every parameter (all entries of small parameters) and, for parameters
/// whose entries are not all checked, random directions.
class ModelCheck {
 public:
  ModelCheck(std::function<Tensor()> loss, Parameters parameters, std::int64_t entries)
      : loss_(std::move(loss)), parameters_(std::move(parameters)), bar_("gradcheck") {
    entries_ = entries > 0 ? entries : affordable_entries();
    options_.on_parameter = [this](const ParameterCheck&) {
      ProgressState state;
      state.step = ++done_;
      state.total = total_;
      bar_.update(state);
    };
  }

  GradcheckTable run() {
    Parameters large;
    for (const NamedTensor& p : parameters_) {
      if (p.tensor.size() > entries_) large.push_back(p);
    }
    total_ = static_cast<std::int64_t>(parameters_.size() + large.size());
    GradcheckTable table;
    options_.max_entries = entries_;
    table.add(gradcheck_parameters(loss_, parameters_, options_));
    options_.directions = directions;
    options_.allow_unlisted = true;  // the first call has checked the list of parameters
    if (!large.empty() && table.problem.empty())
      table.add(gradcheck_parameters(loss_, large, options_));
    bar_.finish();
    return table;
  }

 private:
  std::int64_t affordable_entries() const {
    const NoGrad no_grad;
    loss_();  // excludes the first pass, which is slower, from the timing
    const double begin = seconds_now();
    loss_();
    const double passes = allowed_seconds / std::max(seconds_now() - begin, 1e-6) / stencil;
    const double each = passes / static_cast<double>(parameters_.size()) - directions;
    return std::clamp(static_cast<std::int64_t>(each), min_entries, max_entries);
  }

  std::function<Tensor()> loss_;
  Parameters parameters_;
  std::int64_t entries_ = 0, done_ = 0, total_ = 0;
  GradcheckOptions options_;
  ProgressBar bar_;
};

}  // namespace

int gradcheck_command(const GradcheckCommand& options) {
  const Config config = read_config(options.config, options.overrides);
  load_float64_plugins();
  check_mixers(config);
  const ExperimentData data = load_data(config);
  const std::unique_ptr<Model> model = build_model(config, sizes_of(data.tokenizers));
  const Batch batch = small_batch(config, data.train);
  // Dropout is on, with the random keys of the first training step.
  const auto loss = [&] {
    Pass pass{true, config.seed, 1, 0};
    return model->loss(model_input(batch), {config.train.label_smoothing}, pass);
  };
  print_message(fmt::format("{}: gradients of the loss in float64; sequences: {}, labels: {}",
                            config.name, batch.sequences(), batch.label_count()));
  const double begin = seconds_now();
  const GradcheckTable table = ModelCheck(loss, model->parameters(), options.entries).run();
  if (options.json) {
    nlohmann::json record = table.json();
    record["seconds"] = seconds_now() - begin;
    record["sequences"] = batch.sequences();
    record["target_tokens"] = batch.label_count();
    fmt::print("{}\n", record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    fmt::print("{}", table.text());
  }
  return table.passed() ? 0 : static_cast<int>(Exit::failed);
}

}  // namespace heed
