#include <fmt/format.h>

#include <cstdlib>

#include "autograd/base/clock.h"
#include "autograd/base/error.h"
#include "autograd/gradcheck/stages.h"
#include "data/batches/batcher.h"
#include "train/commands/command_line.h"
#include "train/config/plugins.h"
#include "train/decode/model_input.h"
#include "train/tasks/data.h"
#include "train/tasks/model.h"
#include "train/terminal/progress.h"
#include "train/terminal/run_log.h"
#include "train/views/commands/gradcheck.h"
#include "train/views/report/gradcheck_table.h"

#ifndef HEED_DOUBLE
#error "gradients are checked in float64: this file belongs to heed_train_f64"
#endif

namespace heed {

namespace {

struct GradcheckCommand : ConfigArguments {
  /// Number of entries to check per parameter; 0: 4 to 256, as many as fit in about 40 s.
  std::int64_t entries = 0;
};

constexpr double allowed_seconds = 40;
/// The number of forward passes for an entry or direction whose gradient is correct.
constexpr std::int64_t stencil = 4;
constexpr int directions = 2;
/// Further directions: at other values, and with a single sequence.
constexpr int further_directions = 2;
constexpr std::int64_t min_entries = 4, max_entries = 256;

/// Among the first 16 batches of this number of training sequences, the one whose number of tokens
/// is closest to 40. More tokens would only take longer, because the loss is computed thousands of
/// times; fewer would hardly test attention. A window of a text has at most 13 tokens, so that
/// three windows have about 40.
Batch small_batch(const Config& config, const Dataset& data, std::int64_t sequences) {
  constexpr std::int64_t candidates = 16, target_tokens = 40;
  BatchOptions options;
  options.batch_sequences = sequences;
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

/// The number of entries of each parameter that can be checked in the allowed time.
std::int64_t affordable_entries(const std::function<Tensor()>& loss, std::size_t parameters) {
  const NoGrad no_grad;
  loss();  // excludes the first pass, which is slower, from the timing
  const double begin = seconds_now();
  loss();
  const double passes = allowed_seconds / std::max(seconds_now() - begin, 1e-6) / stencil;
  const double each = passes / static_cast<double>(parameters) - directions - further_directions;
  return std::clamp(static_cast<std::int64_t>(each), min_entries, max_entries);
}

/// A further check of a model whose other calls have been checked (gradcheck_parameters).
GradcheckResult check_again(const std::function<Tensor()>& loss, const Parameters& parameters,
                            const GradcheckOptions& options) {
  GradcheckResult result = gradcheck_detail::compare_gradients(loss, parameters, options);
  gradcheck_detail::name_wrong_op(result, loss, parameters, options);
  return result;
}

/// A layer may be right for several sequences only, or for their lengths: checks one direction of
/// each parameter with the loss of a single sequence.
void add_single_sequence(GradcheckTable& table, const std::function<Tensor()>& loss,
                         const Parameters& parameters, GradcheckOptions options) {
  options.directions = 1;
  options.allow_unlisted = true;
  const GradcheckResult result = check_again(loss, parameters, options);
  const std::string wrong = gradcheck_detail::first_wrong(result);
  if (wrong.empty()) return;
  table.problem = "with a batch of one sequence, " + wrong;
  table.wrong_op = result.wrong_op;
}

/// Checks `entries` entries of every parameter (all entries of small parameters) and, for
/// parameters whose entries are not all checked, random directions; then a batch of one sequence.
GradcheckTable checked(const std::function<Tensor()>& loss, const std::function<Tensor()>& single,
                       const Parameters& parameters, std::int64_t entries,
                       const std::function<void()>& on_parameter) {
  Parameters large;
  for (const NamedTensor& p : parameters)
    if (p.tensor.size() > entries) large.push_back(p);
  ProgressBar bar("gradcheck");
  ProgressState state;
  state.total = 2 * std::ssize(parameters) + std::ssize(large);
  GradcheckOptions options;
  options.max_entries = entries;
  options.on_parameter = [&](const ParameterCheck&) {
    ++state.step;
    bar.update(state);
    on_parameter();
  };
  GradcheckTable table;
  table.add(gradcheck_parameters(loss, parameters, options));
  options.directions = directions;
  options.allow_unlisted = true;  // the first call has checked the list of parameters
  if (!large.empty() && table.problem.empty()) table.add(check_again(loss, large, options));
  if (table.passed()) add_single_sequence(table, single, parameters, options);
  return table;
}

int gradcheck_command(const GradcheckCommand& options) {
  const GradcheckReport report =
      gradcheck_of(read_config(options.config, options.overrides), options.entries, [] {});
  print_text(options.json
                 ? report.record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
                       "\n"
                 : report.text);
  return report.passed ? 0 : static_cast<int>(Exit::failed);
}

}  // namespace

GradcheckReport gradcheck_of(const Config& config, std::int64_t entries,
                             const std::function<void()>& on_parameter) {
  load_float64_plugins();
  check_mixers(config);
  const ExperimentData data = load_data(config);
  const std::unique_ptr<Model> model = build_model(config, sizes_of(data.tokenizers));
  const Batch batch = small_batch(config, data.train, 3), one = small_batch(config, data.train, 1);
  // Dropout is on, with the random keys of the first training step.
  const auto loss_of = [&](const Batch& any) {
    return [&, b = &any] {
      Pass pass{true, config.seed, 1, 0};
      return model->loss(model_input(*b), {config.train.label_smoothing}, pass);
    };
  };
  const std::function<Tensor()> loss = loss_of(batch), single = loss_of(one);
  print_message(fmt::format("{}: gradients of the loss in float64; sequences: {}, labels: {}",
                            config.name, batch.sequences(), batch.label_count()));
  const double begin = seconds_now();
  const Parameters parameters = model->parameters();
  const GradcheckTable table =
      checked(loss, single, parameters,
              entries > 0 ? entries : affordable_entries(loss, parameters.size()), on_parameter);
  GradcheckReport report{table.passed(), table.text(), table.json()};
  report.record["seconds"] = seconds_now() - begin;
  report.record["sequences"] = batch.sequences();
  report.record["target_tokens"] = batch.label_count();
  return report;
}

void add_gradcheck(CommandLine& line) {
  const auto [command, options] = add_command<GradcheckCommand>(
      line, "gradcheck", Needs::model, "check the gradient of every model parameter in float64",
      gradcheck_command);
  add_config(command, *options, "model.norm=post");
  add_choice(
      command, choices, "--entries", options->entries, "N",
      "number of entries to check per parameter (default: 4 to 256, as many as fit in about 40 s)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  add_json(command, options->json, "the table");
  command->footer(
      "Uses three sequences of the training data, with the config's dropout and label smoothing,\n"
      "and compares the gradient with a five-point finite difference: for some entries of each\n"
      "parameter and, for large parameters, along two random directions; then along one direction\n"
      "with a single sequence. A gradient is correct if its error is at most 1e-6 of its magnitude\n"
      "plus 1e-8. If one is wrong, each op is checked alone, to name the one that is wrong. The exit\n"
      "status is then 1.\n"
      "Example:\n"
      "  heed gradcheck configs/dates.yaml model.norm=post model.activation=gelu");
}

}  // namespace heed
