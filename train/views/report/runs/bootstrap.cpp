#include "train/views/report/runs/bootstrap.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "autograd/base/random.h"
#include "train/metrics/bleu.h"
#include "train/metrics/chrf.h"
#include "train/metrics/rouge.h"

namespace heed {

namespace {

constexpr std::size_t sets = 1000;

using Chosen = std::span<const std::uint32_t>;  // indices of samples

SampleStatistics bleu_statistics(std::span<const SampleOutput> outputs, BleuTokenizer tokenizer) {
  std::vector<BleuScore> lines;
  for (const SampleOutput& sample : outputs)
    lines.push_back(corpus_bleu({&sample.output, 1}, {&sample.target, 1}, tokenizer));
  return {outputs.size(), [lines = std::move(lines)](Chosen chosen) {
            BleuScore sum;
            for (const std::uint32_t i : chosen) {
              for (std::size_t n = 0; n < bleu_order; ++n) {
                sum.matches[n] += lines[i].matches[n];
                sum.totals[n] += lines[i].totals[n];
              }
              sum.hypothesis_length += lines[i].hypothesis_length;
              sum.reference_length += lines[i].reference_length;
            }
            compute_bleu(sum);
            return sum.score;
          }};
}

SampleStatistics chrf_statistics(std::span<const SampleOutput> outputs) {
  std::vector<std::array<ChrfCounts, chrf_order>> lines;
  for (const SampleOutput& sample : outputs)
    lines.push_back(count_chrf(sample.output, sample.target));
  return {outputs.size(), [lines = std::move(lines)](Chosen chosen) {
            std::array<ChrfCounts, chrf_order> sums;
            for (const std::uint32_t i : chosen) {
              for (std::size_t n = 0; n < chrf_order; ++n) {
                sums[n].hypothesis += lines[i][n].hypothesis;
                sums[n].reference += lines[i][n].reference;
                sums[n].matches += lines[i][n].matches;
              }
            }
            return chrf_score(sums);
          }};
}

/// A metric that is the mean of one value per sample.
SampleStatistics mean_of(std::span<const SampleOutput> outputs,
                         const std::function<double(const SampleOutput&)>& value) {
  std::vector<double> values;
  for (const SampleOutput& sample : outputs) values.push_back(value(sample));
  return {outputs.size(), [values = std::move(values)](Chosen chosen) {
            double sum = 0;
            for (const std::uint32_t i : chosen) sum += values[i];
            return sum / static_cast<double>(chosen.size());
          }};
}

}  // namespace

std::optional<SampleStatistics> statistics_of(Metric metric, std::span<const SampleOutput> outputs,
                                              BleuTokenizer tokenizer) {
  if (outputs.empty()) return std::nullopt;
  const auto rouge = [](double RougeScore::*score) {
    return [score](const SampleOutput& s) {
      return mean_rouge({&s.output, 1}, {&s.target, 1}).*score;
    };
  };
  switch (metric) {
    case Metric::bleu:
      return bleu_statistics(outputs, tokenizer);
    case Metric::chrf:
      return chrf_statistics(outputs);
    case Metric::accuracy:  // requires labels of lines, which have probabilities
      if (!outputs.front().probability) return std::nullopt;
      [[fallthrough]];
    case Metric::exact_match:
      return mean_of(outputs, [](const SampleOutput& s) { return s.output == s.target ? 1.0 : 0; });
    case Metric::rouge_1:
      return mean_of(outputs, rouge(&RougeScore::rouge_1));
    case Metric::rouge_2:
      return mean_of(outputs, rouge(&RougeScore::rouge_2));
    case Metric::rouge_l:
      return mean_of(outputs, rouge(&RougeScore::rouge_l));
    default:
      return std::nullopt;
  }
}

std::vector<double> resampled(const SampleStatistics& statistics) {
  const auto n = static_cast<std::uint32_t>(statistics.samples);
  std::vector<double> scores;
  std::vector<std::uint32_t> chosen(n);
  for (std::size_t set = 0; set < sets; ++set) {
    Random random{RandomKey{.seed = 1, .stream = Stream::check, .index = set}};
    for (std::uint32_t& sample : chosen) sample = random.below(n);
    scores.push_back(statistics.of(chosen));
  }
  return scores;
}

Interval interval_of(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t cut = values.size() / 40;  // 2.5 % at each end
  return {values[cut], values[values.size() - 1 - cut]};
}

double p_value(std::span<const double> first, std::span<const double> second, double difference) {
  const std::size_t n = std::min(first.size(), second.size());
  double mean = 0;
  for (std::size_t i = 0; i < n; ++i) mean += (second[i] - first[i]) / static_cast<double>(n);
  std::size_t as_large = 0;
  for (std::size_t i = 0; i < n; ++i)
    as_large += std::abs(second[i] - first[i] - mean) >= std::abs(difference) ? 1 : 0;
  return static_cast<double>(1 + as_large) / static_cast<double>(1 + n);
}

}  // namespace heed
