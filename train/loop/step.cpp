#include "train/loop/step.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <system_error>
#include <thread>

#include "autograd/base/error.h"
#include "autograd/kernels/fast/gemm/bf16.h"
#include "autograd/kernels/fast/reduce.h"
#include "autograd/tape/finite_check.h"
#include "nn/layer_name.h"
#include "optim/clip.h"
#include "train/config/config.h"
#include "train/decode/model_input.h"
#include "train/distributed/shard_exchange.h"
#include "train/distributed/workers.h"
#include "train/loop/augment.h"

HEED_BEGIN

namespace {
/// Maximum number of values that a thread processes per job of the team.
constexpr std::int64_t run_values = 1 << 18;

/// The sample that the non-finite row belongs to; nullopt unless the tensor has as many rows as
/// exactly one side of the shard.
std::optional<std::int64_t> sample_of(const Batch& shard, const NonFinite& found) {
  const auto rows_are = [&](const Side& side) {
    return !side.offsets.empty() && found.shape.rows() == side.rows();
  };
  const bool source = rows_are(shard.source), target = rows_are(shard.target);
  if (source == target) return std::nullopt;
  const std::vector<std::int32_t>& offsets = (source ? shard.source : shard.target).offsets;
  return shard.samples[std::ranges::upper_bound(offsets, found.row) - offsets.begin() - 1];
}

/// Resizes the table and sets all entries to false. Allocates only if the table grows.
void clear(std::vector<std::vector<bool>>& table, std::size_t rows, std::size_t columns) {
  table.resize(rows);
  for (std::vector<bool>& row : table) row.assign(columns, false);
}

std::string samples_of(const Batch& shard) {
  constexpr std::size_t shown = 20;
  const std::size_t n = shard.samples.size();
  const std::span<const std::int64_t> some(shard.samples.data(), std::min(n, shown));
  return fmt::format("sample{} {}{}", n == 1 ? "" : "s", fmt::join(some, ", "),
                     n > shown ? fmt::format(", … ({} in all)", n) : "");
}

/// Describes the first tensor that contains NaN or infinity: a weight, or a tensor of a shard of
/// the step, with the samples of this shard. If all weights are finite, runs the shards again, one
/// after the other, and checks every tensor, which takes longer than the step.
std::string explain(const Model& model, std::span<const NamedTensor> parameters,
                    std::span<const Batch> shards, std::span<const Lanes> lanes, std::int64_t step,
                    const StepOptions& options) {
  if (const auto found = find_non_finite(parameters, "the weight"))
    return fmt::format("  first non-finite tensor: {}", found->text());
  double tokens = 0;
  for (const Batch& shard : shards) tokens += static_cast<double>(shard.label_count());
  for (std::size_t i = 0; i < shards.size(); ++i) {
    if (shards[i].label_count() == 0) continue;
    const FiniteCheck check(parameters);
    shard_gradients(model, shards[i], static_cast<std::int64_t>(i), step, tokens, options, nullptr,
                    {lanes[i]});
    if (!check.found()) continue;
    std::string text =
        fmt::format("  first non-finite tensor: {}\n  in shard {} of {}, {}", check.found()->text(),
                    i + 1, shards.size(), samples_of(shards[i]));
    const std::optional<Batch> changed =
        augmented(shards[i], static_cast<std::int64_t>(i), step, options);
    if (const auto sample = sample_of(changed ? *changed : shards[i], *check.found()))
      text += fmt::format("; the row belongs to sample {}", *sample);
    return text;
  }
  return "  every tensor of every shard is finite; only the sum over the shards is not";
}

}  // namespace

StepOptions step_options(const Config& config) {
  return {.seed = config.seed,
          .shards = config.train.shards,
          .label_smoothing = config.train.label_smoothing,
          .clip_norm = config.optim.clip_norm,
          .recompute = config.train.recompute,
          .rdrop = config.train.rdrop,
          .cutoff = config.data.cutoff,
          .bf16 = config.train.precision == Precision::bf16};
}

Tensor shard_loss(const Model& model, const Batch& shard, std::int64_t number, std::int64_t step,
                  double divisor, const StepOptions& options, LossCounts* counts,
                  const ShardContext& context) {
  const kernels::Bf16Scope scope(options.bf16);
  Pass pass{true, options.seed, static_cast<std::uint64_t>(step),
            static_cast<std::uint32_t>(number)};
  pass.recompute = options.recompute;
  pass.all_reduce = context.all_reduce;
  LossOptions loss{options.label_smoothing, divisor, counts};
  if (options.rdrop > 0) loss.rdrop = options.rdrop;
  const ModelInput input = model_input(shard, context.lanes);
  if (options.teacher) loss.distillation = options.teacher(input);
  return model.loss(input, loss, pass);
}

Gradients shard_gradients(const Model& model, const Batch& shard, std::int64_t number,
                          std::int64_t step, double divisor, const StepOptions& options,
                          LossCounts* counts, const ShardContext& context) {
  const kernels::Bf16Scope scope(options.bf16);
  const std::optional<Batch> changed = augmented(shard, number, step, options);
  const Batch& augmented_shard = changed ? *changed : shard;
  const Tensor loss =
      shard_loss(model, augmented_shard, number, step, divisor, options, counts, context);
  return backward(loss, {}, false, {}, context.on_gradient);
}

TrainStep::TrainStep(const Model& model, Optimizer& optimizer, Team& team,
                     const StepOptions& options, ParameterExchange* exchange)
    : model_(model),
      memory_(model.segment_memory()),
      statistics_(model.statistics()),
      optimizer_(optimizer),
      team_(team),
      options_(options),
      exchange_(exchange),
      pieces_(pieces_of(optimizer.parameters())) {
  for (const NamedTensor& p : optimizer_.parameters()) {
    index_of_.emplace(p.tensor.node().get(), layers_.size());
    layers_.push_back(layer_of(p.name));
  }
  pieces_of_parameter_.resize(layers_.size());
  for (std::int64_t i = 0; i < std::ssize(pieces_); ++i) {
    Part& part = pieces_of_parameter_[pieces_[static_cast<std::size_t>(i)].parameter];
    part = {part.size() == 0 ? i : part.begin, i + 1};
  }
  squares_.resize(pieces_.size());
}

StepResult TrainStep::run(std::span<const Batch> shards, std::int64_t step, double lr) {
  // 1. The loss is the mean over all labels of the batch, so every shard divides by their number.
  std::int64_t tokens = 0;
  for (const Batch& shard : shards) tokens += shard.label_count();
  if (tokens == 0) throw Error(Exit::failed, "the batch has no labels");
  gradients_.resize(shards.size());
  for (GradientList& list : gradients_) list.resize(optimizer_.parameters().size());
  drop_gradients();  // frees the gradients of an interrupted step
  counts_.assign(shards.size(), LossCounts{});
  clear(complete_, shards.size(), layers_.size());
  clear(half_ready_, layers_.size(), shards.size());
  summed_.assign(layers_.size(), 0);
  local_shards_ = {0, std::ssize(shards)};
  if (exchange_ != nullptr)
    local_shards_ =
        part_of(local_shards_.end, exchange_->world().rank(), exchange_->world().size());

  // 2. Each shard runs forward and backward on one thread.
  const LaneList lanes = lanes_of(shards, memory_);
  const auto run_shard = [&](std::int64_t i, AllReduce* all_reduce) {
    forward_backward(shards[i], {lanes[i], all_reduce}, i, step, static_cast<double>(tokens));
    for (std::size_t p = 0; p < layers_.size(); ++p) {
      if (!complete_[i][p]) merge_into_tree(static_cast<std::size_t>(i), p);
    }
  };
  if (statistics_.empty()) {
    team_.run(local_shards_.size(),
              [&](std::int64_t i) { run_shard(local_shards_.begin + i, nullptr); });
  } else {
    run_concurrently([&](std::int64_t i, AllReduce& all_reduce) {
      run_shard(local_shards_.begin + i, &all_reduce);
    });
  }

  // 3. The gradients are summed in a fixed tree, which merge_into_tree has begun, and their norm is
  // computed.
  StepResult result;
  result.gradient_norm = std::sqrt(sum_shards());
  for (const LossCounts& c : counts_) add_counts(result.counts, c);

  // 4. Gradients that are not finite never reach the weights.
  const double loss = result.counts.loss / static_cast<double>(tokens);
  if (!std::isfinite(loss) || !std::isfinite(result.gradient_norm))
    refuse(shards, lanes, step, loss, result.gradient_norm);

  // 5. Clip and update.
  const bool finite = update(lr, clip_factor(result.gradient_norm, options_.clip_norm));
  drop_gradients();
  if (!finite) {
    throw Error(Exit::non_finite, "step {}: the loss is {}, but a weight is not finite\n{}", step,
                loss, cause(shards, lanes, step));
  }
  if (memory_) {
    memory_->advance();
    if (exchange_ != nullptr) share_memory(*memory_, shards, exchange_->world());
  }
  for (const NamedStatistics& s : statistics_) s.of->update_running();
  return result;
}

void TrainStep::run_concurrently(const std::function<void(std::int64_t, AllReduce&)>& job) {
  const std::int64_t shards = local_shards_.size();
  if (shards == 0) return;
  AllReduce all_reduce(shards, local_shards_.begin);
  if (exchange_ != nullptr) {
    all_reduce.across([this](std::span<const double> local) {
      return statistics_of_shards(local, std::ssize(gradients_), exchange_->world());
    });
  }
  std::mutex mutex;
  std::exception_ptr error;  // error of the first shard that failed; its failure aborts all shards
  const auto fail_with = [&](std::exception_ptr cause) {
    const std::lock_guard lock(mutex);
    if (!error) error = std::move(cause);
    all_reduce.abort();
  };
  const auto run = [&](std::int64_t i) {
    try {
      job(i, all_reduce);
    } catch (...) {
      fail_with(std::current_exception());
    }
  };
  std::vector<std::thread> threads;
  try {
    for (std::int64_t i = 1; i < shards; ++i) threads.emplace_back(run, i);
    run(0);
  } catch (const std::system_error&) {
    fail_with(std::make_exception_ptr(
        Error(Exit::io,
              fmt::format("batch norm runs each shard of a step on a separate thread ({} in this "
                          "process), but the system cannot create so many; lower train.shards",
                          shards))));
  }
  for (std::thread& thread : threads) thread.join();
  if (error) std::rethrow_exception(error);
}

void TrainStep::refuse(std::span<const Batch> shards, std::span<const Lanes> lanes,
                       std::int64_t step, double loss, double gradient_norm) {
  all_ranks_finite(false);
  drop_gradients();  // frees memory for the search for the cause
  throw Error(Exit::non_finite,
              "step {}: the loss is {} and the norm of the gradients is {}; the weights are as "
              "before the step\n{}",
              step, unsigned_nan(loss), unsigned_nan(gradient_norm), cause(shards, lanes, step));
}

std::string TrainStep::cause(std::span<const Batch> shards, std::span<const Lanes> lanes,
                             std::int64_t step) const {
  if (exchange_ != nullptr && !exchange_->world().first()) return "  rank 0 reports the cause";
  return explain(model_, optimizer_.parameters(), shards, lanes, step, options_);
}

void TrainStep::drop_gradients() {
  for (GradientList& list : gradients_) std::fill(list.begin(), list.end(), Array());
}

void TrainStep::forward_backward(const Batch& shard, const ShardContext& context,
                                 std::int64_t number, std::int64_t step, double divisor) {
  if (shard.label_count() == 0 && context.all_reduce == nullptr) return;
  const auto i = static_cast<std::size_t>(number);
  const OnGradient on_gradient = [this, i](const Node& variable, Array gradient) {
    const auto p = index_of_.find(&variable);
    if (p == index_of_.end()) return;  // not a parameter that is trained
    gradients_[i][p->second] = std::move(gradient);
    complete_[i][p->second] = true;
    merge_into_tree(i, p->second);
  };
  shard_gradients(model_, shard, number, step, divisor, options_, &counts_[i],
                  {context.lanes, context.all_reduce, on_gradient});
}

void TrainStep::merge_into_tree(std::size_t i, std::size_t parameter) {
  const std::size_t count = gradients_.size();
  // The sum of 2 · width shards is computed from two halves of `width` shards; the right half may
  // have fewer.
  for (std::size_t width = 1; width < count; width *= 2) {
    const bool root = 2 * width >= count;
    const std::size_t left = i / (2 * width) * (2 * width), right = left + width;
    if (!local_shards_.has(static_cast<std::int64_t>(left)) ||
        std::min(right + width, count) > static_cast<std::size_t>(local_shards_.end))
      return;  // other ranks have some of the shards
    i = left;
    if (right >= count) continue;  // no right half: the left half is already the sum
    {
      const std::lock_guard lock(tree_mutex_);
      std::vector<bool>& half_ready = half_ready_[parameter];
      half_ready[right] = !half_ready[right];
      if (half_ready[right]) return;  // the thread that completes the second half continues
    }
    if (!root) add_to(left, right, parameter);
  }
  // sum_shards() computes the totals of larger parameters, divided among all threads.
  constexpr std::int64_t most_values = std::int64_t{1} << 23;
  if (exchange_ == nullptr && optimizer_.parameters()[parameter].tensor.size() <= most_values)
    sum_parameter(parameter);
}

void TrainStep::add_to(std::size_t left, std::size_t right, std::size_t parameter) {
  Array &sum = gradients_[left][parameter], &part = gradients_[right][parameter];
  if (!part.defined()) return;
  if (!sum.defined()) {
    sum = std::move(part);
    return;
  }
  if (!sum.unique()) sum = sum.clone();
  const real* const parts[] = {sum.data(), part.data()};
  kernels::tree_sum(parts, 2, sum.data(), sum.size());
  part = Array();
}

void TrainStep::sum_parameter(std::size_t parameter) {
  total_of(parameter);
  const std::vector<real*, BlockAllocator<real*>> none(gradients_.size());
  const Part pieces = pieces_of_parameter_[parameter];
  for (std::int64_t i = pieces.begin; i < pieces.end; ++i) sum_piece(i, 0, none);
  for (std::size_t shard = 1; shard < gradients_.size(); ++shard)
    gradients_[shard][parameter] = Array();
  summed_[parameter] = 1;
}

Array& TrainStep::total_of(std::size_t parameter) {
  Array& sum = total()[parameter];
  // −0, because −0 + x is bitwise equal to x for every number x.
  if (!sum.defined())
    sum = Array::full(optimizer_.parameters()[parameter].tensor.shape(), real(-0.0));
  if (!sum.unique()) sum = sum.clone();
  return sum;
}

Part TrainStep::local_pieces() const {
  return exchange_ != nullptr ? exchange_->owned() : Part{0, std::ssize(pieces_)};
}

template <class Job>
void TrainStep::for_pieces(Part pieces, const Job& job) {
  const std::int64_t per_run =
      std::clamp<std::int64_t>(pieces.size() / (4 * team_.threads()), 1, run_values / piece_values);
  team_.run((pieces.size() + per_run - 1) / per_run, [&](std::int64_t run) {
    const std::int64_t begin = pieces.begin + run * per_run;
    for (std::int64_t i = begin; i < std::min(pieces.end, begin + per_run); ++i) job(i);
  });
}

double TrainStep::sum_shards() {
  if (local_shards_.begin == std::ssize(gradients_))
    local_shards_ = {0, 0};  // this rank has pieces, but no shards
  for (std::int64_t i = local_pieces().begin; i < local_pieces().end; ++i)
    total_of(pieces_[static_cast<std::size_t>(i)].parameter);
  if (exchange_ == nullptr) {
    const std::vector<real*, BlockAllocator<real*>> none(gradients_.size());
    sum_pieces(local_pieces(), none);
  } else {
    exchange_->reduce(gradients_, [&](Part pieces, std::span<real* const> received) {
      sum_pieces(pieces, received);
    });
    share_counts();
  }
  double squares = 0;
  for (const double s : squares_) squares += s;
  return squares;
}

void TrainStep::sum_pieces(Part pieces, std::span<real* const> received) {
  const std::int64_t place = pieces_[pieces.begin].place;
  for_pieces(pieces, [&](std::int64_t i) {
    if (!summed_[pieces_[i].parameter]) sum_piece(i, place, received);
  });
}

void TrainStep::sum_piece(std::int64_t i, std::int64_t place, std::span<real* const> received) {
  const Piece& piece = pieces_[i];
  std::vector<const real*, BlockAllocator<const real*>> parts(gradients_.size());
  for (std::size_t s = 0; s < gradients_.size(); ++s) {
    const Array& g = gradients_[s][piece.parameter];
    parts[s] = received[s] != nullptr ? received[s] + (piece.place - place)
               : g.defined()          ? g.data() + piece.begin
                                      : nullptr;
  }
  real* const piece_total = total()[piece.parameter].data() + piece.begin;
  // The result of tree_sum may overwrite the first part, but no other.
  real* const sum = received[0] != nullptr ? received[0] + (piece.place - place) : piece_total;
  kernels::tree_sum(parts.data(), std::ssize(parts), sum, piece.size());
  squares_[i] = kernels::sum_squares(sum, piece.size());
  if (sum != piece_total) std::copy_n(sum, piece.size(), piece_total);
}

void TrainStep::share_counts() {
  World& world = exchange_->world();
  gather_from_shards(std::span(counts_), world);
  std::vector<std::int64_t> byte_bounds;
  for (const std::int64_t bound : exchange_->bounds())
    byte_bounds.push_back(bound * static_cast<std::int64_t>(sizeof(double)));
  world.all_gather(std::as_writable_bytes(std::span(squares_)), byte_bounds);
}

std::map<std::string, double> TrainStep::gradient_norms() const {
  std::map<std::string, double> norms;
  double* squares = nullptr;  // sum of squares of the current layer
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    if (i == 0 || pieces_[i].parameter != pieces_[i - 1].parameter)
      squares = &norms[layers_[pieces_[i].parameter]];
    *squares += squares_[i];
  }
  for (auto& [layer, norm] : norms) norm = std::sqrt(norm);
  return norms;
}

bool TrainStep::update(double lr, double grad_scale) {
  optimizer_.begin_step(lr, grad_scale);
  std::atomic<bool> all_finite{true};
  for_pieces(local_pieces(), [&](std::int64_t i) {
    const Piece& piece = pieces_[i];
    if (!optimizer_.update(piece.parameter, piece.begin, piece.end,
                           total()[piece.parameter].data()))
      all_finite = false;
  });
  if (exchange_ != nullptr) exchange_->gather_weights();
  return all_ranks_finite(all_finite);
}

bool TrainStep::all_ranks_finite(bool finite) {
  return exchange_ == nullptr ? finite : !any_rank(&exchange_->world(), !finite);
}

HEED_END
