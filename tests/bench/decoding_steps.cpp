// Measures the time of one decoding step at several positions, with full and with linear attention.
// Prints a Markdown table.
//   build/release/tests/bench/decoding_steps
//
// The model is a language model of width 256 with 4 layers and random weights; it decodes one
// hypothesis. Times are medians of 64 steps.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "nn/layers/patterns.h"
#include "nn/layers/positions.h"
#include "nn/models/model.h"

using namespace heed;

namespace {

constexpr std::int64_t vocabulary = 256, steps = 64, positions[] = {10, 100, 1000, 10000};

double step_us(Decoding& decoding) {
  const std::int32_t token[] = {7};
  const auto begin = std::chrono::steady_clock::now();
  decoding.step(token);
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
      .count();
}

std::vector<double> medians(PatternKind pattern) {
  ModelOptions options;
  options.encoder_layers = 0;
  options.decoder_layers = 4;
  options.positions = PositionKind::none;
  options.context = 16384;
  options.attention.pattern = pattern;
  const NoGrad no_grad;
  const auto model = make_language_model(options, vocabulary, 1);
  const auto decoding = model->decode({}, 1);
  std::vector<double> all;
  std::int64_t at = 0;
  for (const std::int64_t position : positions) {
    for (; at < position; ++at) step_us(*decoding);
    std::vector<double> times;
    for (std::int64_t i = 0; i < steps; ++i, ++at) times.push_back(step_us(*decoding));
    std::ranges::nth_element(times, times.begin() + steps / 2);
    all.push_back(times[steps / 2]);
  }
  return all;
}

}  // namespace

int main() {
  fmt::print("| attention | {} |\n|---|---:|---:|---:|---:|\n", fmt::join(positions, " | "));
  for (const PatternKind pattern : {PatternKind::full, PatternKind::linear})
    fmt::print("| `{}` | {:.0f} |\n", name_of(pattern), fmt::join(medians(pattern), " | "));
}
