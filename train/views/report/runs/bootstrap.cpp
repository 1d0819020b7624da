#include "train/views/report/runs/bootstrap.h"

#include <algorithm>
#include <cmath>

#include "autograd/base/random.h"
#include "train/metrics/bleu.h"
#include "train/metrics/chrf.h"
#include "train/metrics/rouge.h"

namespace heed {

namespace {

constexpr std::size_t sets = 1000;

SampleStatistics bleu_statistics(std::span<const SampleOutput> outputs, BleuTokenizer tokenizer) {
  SampleStatistics all{2 * bleu_order + 2, {}, [](std::span<const double> sums, std::size_t) {
                         const auto count = [&](std::size_t i) {
                           return static_cast<std::int64_t>(sums[i]);
                         };
                         BleuScore score;
                         for (std::size_t n = 0; n < bleu_order; ++n) {
                           score.matches[n] = count(n);
                           score.totals[n] = count(bleu_order + n);
                         }
                         score.hypothesis_length = count(2 * bleu_order);
                         score.reference_length = count(2 * bleu_order + 1);
                         compute_bleu(score);
                         return score.score;
                       }};
  for (const SampleOutput& sample : outputs) {
    const BleuScore one = corpus_bleu({&sample.output, 1}, {&sample.target, 1}, tokenizer);
    for (const auto* counts : {&one.matches, &one.totals})
      for (const std::int64_t n : *counts) all.values.push_back(static_cast<double>(n));
    all.values.push_back(static_cast<double>(one.hypothesis_length));
    all.values.push_back(static_cast<double>(one.reference_length));
  }
  return all;
}

SampleStatistics chrf_statistics(std::span<const SampleOutput> outputs) {
  SampleStatistics all{3 * chrf_order, {}, [](std::span<const double> sums, std::size_t) {
                         std::array<ChrfCounts, chrf_order> counts;
                         for (std::size_t n = 0; n < chrf_order; ++n) {
                           const auto count = [&](std::size_t k) {
                             return static_cast<std::int64_t>(sums[3 * n + k]);
                           };
                           counts[n] = {count(0), count(1), count(2)};
                         }
                         return chrf_score(counts);
                       }};
  for (const SampleOutput& sample : outputs) {
    for (const ChrfCounts& counts : count_chrf(sample.output, sample.target)) {
      for (const std::int64_t n : {counts.hypothesis, counts.reference, counts.matches})
        all.values.push_back(static_cast<double>(n));
    }
  }
  return all;
}

/// A metric that is the mean of one value per sample.
SampleStatistics mean_of(std::span<const SampleOutput> outputs,
                         const std::function<double(const SampleOutput&)>& value) {
  SampleStatistics all{1, {}, [](std::span<const double> sums, std::size_t samples) {
                         return sums[0] / static_cast<double>(samples);
                       }};
  for (const SampleOutput& sample : outputs) all.values.push_back(value(sample));
  return all;
}

}  // namespace

double SampleStatistics::of(std::span<const std::uint32_t> chosen) const {
  std::vector<double> sums(width);
  for (const std::uint32_t sample : chosen)
    for (std::size_t i = 0; i < width; ++i) sums[i] += values[sample * width + i];
  return score(sums, chosen.size());
}

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
    case Metric::exact_match:
      return mean_of(outputs, [](const SampleOutput& s) { return s.output == s.target ? 1.0 : 0; });
    case Metric::accuracy:  // requires labels of lines, which have probabilities
      if (!outputs.front().probability) return std::nullopt;
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
  const auto n = static_cast<std::uint32_t>(statistics.samples());
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
