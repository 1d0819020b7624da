// Measures the speed of each kernel: bytes or FLOPs per second on one thread.
//   build/release/tests/bench/bench_kernels [--benchmark_filter=REGEX]
#include "autograd/kernels/fast/dropout.h"
#include "autograd/kernels/fast/elementwise.h"
#include "autograd/kernels/fast/gemm/bf16.h"
#include "autograd/kernels/fast/gemm/packed.h"
#include "autograd/kernels/fast/update.h"
#include "autograd/kernels/gemm.h"
#include "autograd/kernels/reduce.h"
#include "autograd/kernels/rows.h"
#include "autograd/ops/more/attention/options.h"

#include <benchmark/benchmark.h>

#include <vector>

#include "autograd/base/random.h"

using namespace heed;

namespace {

constexpr std::int64_t rows = 512;  // number of rows in benchmarks of kernels that process rows

std::vector<real> values(std::int64_t n, std::uint64_t seed = 1) {
  Random random({.seed = seed, .stream = Stream::check, .index = 0, .part = 0});
  std::vector<real> x(static_cast<std::size_t>(n));
  for (real& v : x) v = static_cast<real>(random.normal());
  return x;
}

/// Reports the bytes moved: `arrays` arrays of n values are read or written per iteration.
void moves(benchmark::State& state, std::int64_t n, std::int64_t arrays) {
  state.SetBytesProcessed(state.iterations() * n * arrays *
                          static_cast<std::int64_t>(sizeof(real)));
}

/// C = A Bᵀ, as in a layer; in bf16 if `bf16`.
void product(benchmark::State& state, bool bf16) {
  if (bf16 && !kernels::bf16_obstacle().empty()) {
    return state.SkipWithError(kernels::bf16_obstacle().c_str());
  }
  const kernels::Bf16Scope scope(bf16);
  const std::int64_t m = state.range(0), n = state.range(1), k = state.range(2);
  const auto a = values(m * k), b = values(n * k, 2);
  auto c = values(m * n, 3);
  for (auto _ : state) {
    kernels::gemm(kernels::Trans::no, kernels::Trans::yes, m, n, k, 1, a.data(), k, b.data(), k, 0,
                  c.data(), n);
  }
  state.counters["GFLOP/s"] = benchmark::Counter(
      2e-9 * static_cast<double>(m * n * k * state.iterations()), benchmark::Counter::kIsRate);
}
void shapes(benchmark::internal::Benchmark* b) {
  for (const std::int64_t m : {16, 64, 256, 1024}) b->Args({m, 256, 256})->Args({m, 1024, 256});
  b->Args({256, 8000, 256})->Args({1024, 2048, 512})->Args({64, 64, 64})->Args({13, 13, 64});
}
BENCHMARK_CAPTURE(product, float32, false)->Apply(shapes);
BENCHMARK_CAPTURE(product, bf16, true)->Args({1024, 1024, 256})->Args({1024, 2048, 512});

/// The product with B packed once, as in decoding.
void packed_product(benchmark::State& state) {
  const std::int64_t m = state.range(0), n = state.range(1), k = state.range(2);
  const auto a = values(m * k), b = values(n * k, 2);
  std::vector<real> c(static_cast<std::size_t>(m * n)),
      panels(static_cast<std::size_t>(kernels::packed_size(n, k)));
  kernels::pack(b.data(), n, k, panels.data());
  for (auto _ : state) kernels::multiply_packed(a.data(), panels.data(), m, n, k, c.data());
  state.counters["GFLOP/s"] = benchmark::Counter(
      2e-9 * static_cast<double>(m * n * k * state.iterations()), benchmark::Counter::kIsRate);
}
BENCHMARK(packed_product)->Apply(shapes)->Args({1, 8000, 256})->Args({16, 8000, 256});

/// The product with B in int8; its time includes the quantisation of A.
void int8_product(benchmark::State& state) {
  const std::int64_t m = state.range(0), n = state.range(1), k = state.range(2);
  const auto a = values(m * k), b = values(n * k, 2);
  std::vector<real> c(static_cast<std::size_t>(m * n));
  const kernels::Int8Weights weights(b.data(), n, k);
  for (auto _ : state) weights.multiply(a.data(), m, c.data());
  state.counters["GFLOP/s"] = benchmark::Counter(
      2e-9 * static_cast<double>(m * n * k * state.iterations()), benchmark::Counter::kIsRate);
}
BENCHMARK(int8_product)->Apply(shapes)->Args({1, 8000, 256})->Args({16, 8000, 256});

void softmax(benchmark::State& state) {
  const std::int64_t n = state.range(0);
  const auto x = values(rows * n);
  auto y = x;
  for (auto _ : state) {
    for (std::int64_t r = 0; r < rows; ++r)
      kernels::softmax_row(x.data() + r * n, y.data() + r * n, n);
  }
  moves(state, rows * n, 2);
}
BENCHMARK(softmax)->Arg(13)->Arg(64)->Arg(256)->Arg(8000);

void cross_entropy(benchmark::State& state) {
  const std::int64_t n = state.range(0);
  const auto x = values(rows * n);
  auto z = x;
  for (auto _ : state) {
    z = x;
    for (std::int64_t r = 0; r < rows; ++r) {
      kernels::cross_entropy_row(z.data() + r * n, n, 1, real(0.1), real(0.01), true);
    }
  }
  moves(state, rows * n, 4);
}
BENCHMARK(cross_entropy)->Arg(65)->Arg(8000);

void layer_norm(benchmark::State& state) {
  const std::int64_t n = state.range(0);
  const auto x = values(rows * n), gain = values(n), bias = values(n);
  auto y = x, mean = values(rows), rstd = values(rows);
  for (auto _ : state) {
    kernels::layer_norm(x.data(), gain.data(), bias.data(), real(1e-5), y.data(), mean.data(),
                        rstd.data(), rows, n);
  }
  moves(state, rows * n, 2);
}
BENCHMARK(layer_norm)->Arg(128)->Arg(256)->Arg(512);

void dropout(benchmark::State& state) {
  const std::int64_t n = state.range(0);
  const auto x = values(n);
  auto y = x;
  for (auto _ : state)
    kernels::dropout({1, Stream::dropout, 1, 1}, 0, real(0.1), x.data(), y.data(), n);
  moves(state, n, 2);
}
BENCHMARK(dropout)->Arg(1 << 10)->Arg(1 << 18);

void bias_and_unary(benchmark::State& state, kernels::UnaryFunction f) {
  const std::int64_t n = state.range(0);
  const auto bias = values(n);
  const auto x = values(rows * n);
  auto h = x, y = x;
  real* const keep = kernels::unary_needs_x(f) ? h.data() : nullptr;
  for (auto _ : state) kernels::add_bias_unary(f, x.data(), bias.data(), keep, y.data(), rows, n);
  moves(state, rows * n, 2);
}
BENCHMARK_CAPTURE(bias_and_unary, relu, kernels::UnaryFunction::relu)->Arg(1024);
BENCHMARK_CAPTURE(bias_and_unary, gelu, kernels::UnaryFunction::gelu)->Arg(1024);

void adam(benchmark::State& state) {
  const std::int64_t n = state.range(0);
  const auto g = values(n);
  auto w = values(n, 2), m = values(n, 3), v = std::vector<real>(static_cast<std::size_t>(n), 1);
  const kernels::AdamStep step{1e-3, 0.9, 0.98, 1e-9, 0, 0.5, 0.5, 1};
  for (auto _ : state) kernels::adam(step, g.data(), w.data(), m.data(), v.data(), n);
  moves(state, n, 7);
}
BENCHMARK(adam)->Arg(1 << 14)->Arg(1 << 22);

void attend(benchmark::State& state) {
  const std::int64_t positions = state.range(0), d = 256;
  const auto q = values(d), kv = values(positions * 2 * d);
  auto out = values(d);
  AttentionStep step({.heads = 4}, d);
  const auto row = [&](std::int64_t t) { return kv.data() + t * 2 * d; };
  for (auto _ : state) step(q.data(), 0, positions - 1, positions, row, out.data());
  moves(state, positions * d, 2);
}
BENCHMARK(attend)->Arg(4)->Arg(16)->Arg(64);

void to_bf16(benchmark::State& state) {
  const std::int64_t n = state.range(0);
  const auto x = values(n);
  std::vector<std::uint16_t> y(static_cast<std::size_t>(n));
  for (auto _ : state) kernels::to_bf16(x.data(), y.data(), n);
  state.SetBytesProcessed(state.iterations() * n * 6);
}
BENCHMARK(to_bf16)->Arg(1 << 14)->Arg(1 << 21);

}  // namespace

BENCHMARK_MAIN();
