#include "train/metrics/rouge.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "autograd/io/utf8.h"
#include "train/metrics/text_metric.h"

namespace heed {
namespace {

using Words = std::vector<std::string>;

double f1(std::size_t common, std::size_t hypothesis, std::size_t reference) {
  if (common == 0) return 0;
  const auto twice = static_cast<double>(2 * common);
  return 100 * twice / static_cast<double>(hypothesis + reference);  // 2PR / (P + R)
}

std::map<Words, std::size_t> ngrams(const Words& words, std::size_t n) {
  std::map<Words, std::size_t> counts;
  for (std::size_t i = 0; i + n <= words.size(); ++i)
    ++counts[Words(words.begin() + i, words.begin() + i + n)];
  return counts;
}

double rouge_n(const Words& hypothesis, const Words& reference, std::size_t n) {
  if (hypothesis.size() < n || reference.size() < n) return 0;
  const auto reference_counts = ngrams(reference, n);
  std::size_t common = 0;
  for (const auto& [ngram, count] : ngrams(hypothesis, n)) {
    const auto found = reference_counts.find(ngram);
    if (found != reference_counts.end()) common += std::min(count, found->second);
  }
  return f1(common, hypothesis.size() + 1 - n, reference.size() + 1 - n);
}

std::size_t common_subsequence(const Words& a, const Words& b) {
  // lengths[j]: length of the longest common subsequence of a's words so far and b's first j words.
  std::vector<std::size_t> lengths(b.size() + 1);
  for (const std::string& word : a) {
    std::size_t diagonal = 0;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = lengths[j];
      lengths[j] = word == b[j - 1] ? diagonal + 1 : std::max(above, lengths[j - 1]);
      diagonal = above;
    }
  }
  return lengths.back();
}

}  // namespace

std::string RougeScore::text() const {
  return fmt::format("ROUGE-1 = {:.2f}  ROUGE-2 = {:.2f}  ROUGE-L = {:.2f} ({})", rouge_1, rouge_2,
                     rouge_l, signature);
}

std::vector<std::string> rouge_words(std::string_view line) {
  Words words;
  bool inside = false;
  for (const char c : lowercase(std::string(line))) {
    const bool letter =
        (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || static_cast<unsigned char>(c) >= 0x80;
    if (letter && !inside) words.emplace_back();
    if (letter) words.back() += c;
    inside = letter;
  }
  return words;
}

RougeScore mean_rouge(std::span<const std::string> hypotheses,
                      std::span<const std::string> references) {
  require_equal_numbers("ROUGE", hypotheses.size(), references.size());
  RougeScore mean;
  for (std::size_t i = 0; i < hypotheses.size(); ++i) {
    const Words hypothesis = rouge_words(hypotheses[i]), reference = rouge_words(references[i]);
    mean.rouge_1 += rouge_n(hypothesis, reference, 1);
    mean.rouge_2 += rouge_n(hypothesis, reference, 2);
    mean.rouge_l +=
        f1(common_subsequence(hypothesis, reference), hypothesis.size(), reference.size());
  }
  const auto n = static_cast<double>(std::max<std::size_t>(hypotheses.size(), 1));
  mean.rouge_1 /= n;
  mean.rouge_2 /= n;
  mean.rouge_l /= n;
  mean.signature =
      fmt::format("rouge|nrefs:1|case:lower|stem:no|tok:letters|f:1|version:heed-{}", HEED_VERSION);
  return mean;
}

TextScore rouge_metric(const ScoredLines& lines) {
  const RougeScore rouge = mean_rouge(lines.outputs, lines.references);
  return {{{Metric::rouge_1, rouge.rouge_1},
           {Metric::rouge_2, rouge.rouge_2},
           {Metric::rouge_l, rouge.rouge_l}},
          rouge.signature,
          {rouge.text()}};
}

}  // namespace heed
