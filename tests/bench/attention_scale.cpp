// Measures the effect of the scale 1/√d_k of attention scores on the first steps of training, for
// heads of several sizes. Prints CSV: size of a head, scale, step, loss, entropy of the attention
// weights (nats), norm of the loss's gradient with respect to the scores. Loss and entropy are
// means, and the norm is a root mean square, over the steps since the previous line.
//   build/release/tests/bench/attention_scale [STEPS [SEED]]
// `tests/bench/mechanisms scale` plots the output.
//
// Each sequence repeats 32 random symbols from an alphabet of 64. One causal layer of width 512
// predicts the second half: each query must attend to the symbol 31 positions before it.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "autograd/ops.h"
#include "nn/embedding.h"
#include "nn/layers/block.h"
#include "nn/layers/positions.h"
#include "nn/options.h"
#include "optim/optimizer.h"

using namespace heed;

namespace {

constexpr std::int64_t width = 512, symbols = 64, half = 32, sequences = 8;

/// A score term that adds nothing, but records the entropy of the attention weights and the squared
/// norm of the scores' gradient.
struct Probe final : ScoreTerm {
  mutable double entropy = 0, squares = 0;
  mutable std::int64_t queries = 0, passes = 0;

  void add(const ScoreBlock& block, real* s) const override {
    for (std::int64_t r = 0; r < block.rows; ++r) {
      const std::int64_t n = block.query + r - block.key + 1;  // keys up to the query itself
      if (block.key != 0 || n > block.keys)
        fail("[probe] expected all keys of a query in one block");
      const real* const row = s + r * block.keys;
      const double m = *std::max_element(row, row + n);
      double sum = 0, weighted = 0;
      for (std::int64_t j = 0; j < n; ++j) {
        const double e = std::exp(row[j] - m);
        sum += e;
        weighted += e * (row[j] - m);
      }
      entropy += std::log(sum) - weighted / sum;
      ++queries;
    }
  }
  void backward(const ScoreBlock& block, const real* ds, real*,
                std::span<const Grad>) const override {
    for (std::int64_t i = 0; i < block.rows * block.keys; ++i) squares += double{ds[i]} * ds[i];
  }
};

struct Batch {
  std::vector<std::int32_t> ids, labels, offsets{0};
};

Batch batch_of(std::uint64_t step, std::uint64_t seed) {
  Batch batch;
  Random random({.seed = seed, .stream = Stream::data, .index = step});
  for (std::int64_t s = 0; s < sequences; ++s) {
    std::vector<std::int32_t> line(static_cast<std::size_t>(half));
    for (std::int32_t& id : line) id = static_cast<std::int32_t>(random.below(symbols));
    for (std::int64_t t = 0; t < 2 * half - 1; ++t) {
      batch.ids.push_back(line[static_cast<std::size_t>(t % half)]);
      batch.labels.push_back(t + 1 < half ? ignored_target
                                          : line[static_cast<std::size_t>((t + 1) % half)]);
    }
    batch.offsets.push_back(static_cast<std::int32_t>(batch.ids.size()));
  }
  return batch;
}

void run(std::int64_t size, bool scaled, std::int64_t steps, std::uint64_t seed) {
  ModelOptions options;
  options.d_model = width;
  options.heads = width / size;
  options.d_ff = width;
  options.dropout = 0.0;
  options.attention.scale = scaled ? 0 : 1;
  Init init(seed);
  const Embedding embedding(symbols, width, true, init);
  const Positions positions(options, true, init);
  const Stack stack(options, 1, BlockKind::causal, init);
  const Linear output(width, symbols, init);
  Optimizer optimizer({.lr = 1e-3, .schedule = {.name = ScheduleKind::noam, .warmup = 50}},
                      parameters_of("embedding", embedding, "stack", stack, "output", output));
  const auto probe = std::make_shared<Probe>();
  const std::vector<ScoreTermPtr> terms{probe};
  double loss_sum = 0;
  std::int64_t since = 0;
  for (std::int64_t step = 1; step <= steps; ++step) {
    const Batch batch = batch_of(static_cast<std::uint64_t>(step), seed);
    Pass pass;
    Context context{batch.offsets, nullptr, pass};
    context.terms = terms;
    const Tensor rows = stack(positions(embedding(batch.ids), batch.offsets), context);
    const Tensor loss = cross_entropy(output(rows), batch.labels);
    loss_sum += loss.item();
    ++since;
    optimizer.step(backward(loss));
    if (step != 1 && step % 10 != 0) continue;
    fmt::print("{},{},{},{:.4f},{:.4f},{:.3e}\n", size, scaled ? "sqrt" : "none", step,
               loss_sum / static_cast<double>(since),
               probe->entropy / static_cast<double>(probe->queries),
               std::sqrt(probe->squares / static_cast<double>(since)));
    std::fflush(stdout);
    loss_sum = probe->entropy = probe->squares = 0;
    since = probe->queries = 0;
  }
}

}  // namespace

int main(int count, char** arguments) {
  const std::int64_t steps = count > 1 ? std::atoll(arguments[1]) : 500;
  const auto seed = static_cast<std::uint64_t>(count > 2 ? std::atoll(arguments[2]) : 1);
  fmt::print("size,scale,step,loss,entropy,score_gradient\n");
  for (const std::int64_t size : {8, 64, 512})
    for (const bool scaled : {true, false}) run(size, scaled, steps, seed);
}
