#include "train/metrics/chrf.h"

#include <fmt/format.h>

#include <string_view>
#include <unordered_map>

#include "autograd/io/utf8.h"
#include "train/metrics/text_metric.h"
#include "train/metrics/words.h"

namespace heed {
namespace {

/// The characters of a line, without white space. An invalid byte counts as a character.
std::u32string characters(std::string_view line) {
  std::u32string out;
  for (std::size_t at = 0; at < line.size();) {
    if (const std::size_t space = space_length(line, at)) {
      at += space;
    } else if (const std::size_t length = utf8_length(line, at)) {
      out += utf8_decode(line, at, length);
      at += length;
    } else {
      out.push_back(char32_t{0x110000} + static_cast<unsigned char>(line[at++]));  // not in Unicode
    }
  }
  return out;
}

ChrfCounts count_order(std::u32string_view hypothesis, std::u32string_view reference,
                       std::size_t n) {
  const auto ngrams = [n](std::u32string_view text) {
    return text.size() < n ? std::size_t{0} : text.size() - n + 1;
  };
  ChrfCounts counts;
  counts.reference = static_cast<std::int64_t>(ngrams(reference));
  if (counts.reference == 0) return counts;
  counts.hypothesis = static_cast<std::int64_t>(ngrams(hypothesis));
  std::unordered_map<std::u32string_view, std::int64_t> unmatched;
  for (std::size_t i = 0; i < ngrams(reference); ++i) ++unmatched[reference.substr(i, n)];
  for (std::size_t i = 0; i < ngrams(hypothesis); ++i) {
    const auto found = unmatched.find(hypothesis.substr(i, n));
    if (found == unmatched.end() || found->second == 0) continue;
    --found->second;
    ++counts.matches;
  }
  return counts;
}

}  // namespace

std::array<ChrfCounts, chrf_order> count_chrf(const std::string& hypothesis,
                                              const std::string& reference) {
  const std::u32string output = characters(hypothesis), target = characters(reference);
  std::array<ChrfCounts, chrf_order> counts;
  for (std::size_t n = 0; n < chrf_order; ++n) counts[n] = count_order(output, target, n + 1);
  return counts;
}

double chrf_score(const std::array<ChrfCounts, chrf_order>& sums) {
  double precision = 0.0, recall = 0.0, orders = 0.0;
  for (const ChrfCounts& order : sums) {
    if (order.hypothesis == 0 || order.reference == 0) continue;
    precision += static_cast<double>(order.matches) / static_cast<double>(order.hypothesis);
    recall += static_cast<double>(order.matches) / static_cast<double>(order.reference);
    orders += 1.0;
  }
  if (precision + recall == 0.0) return 0.0;
  precision /= orders;
  recall /= orders;
  constexpr double weight = 4.0;  // beta² of chrF2
  return 100.0 * (1.0 + weight) * precision * recall / (weight * precision + recall);
}

ChrfScore corpus_chrf(std::span<const std::string> hypotheses,
                      std::span<const std::string> references) {
  require_equal_numbers("chrF", hypotheses.size(), references.size());
  std::array<ChrfCounts, chrf_order> sums{};
  for (std::size_t i = 0; i < hypotheses.size(); ++i) {
    const auto line = count_chrf(hypotheses[i], references[i]);
    for (std::size_t n = 0; n < chrf_order; ++n) {
      sums[n].hypothesis += line[n].hypothesis;
      sums[n].reference += line[n].reference;
      sums[n].matches += line[n].matches;
    }
  }
  return {chrf_score(sums),
          fmt::format("nrefs:1|case:mixed|eff:yes|nc:{}|nw:0|space:no|version:heed-{}", chrf_order,
                      HEED_VERSION)};
}

TextScore chrf_metric(const ScoredLines& lines) {
  const ChrfScore chrf = corpus_chrf(lines.outputs, lines.references);
  return {{{Metric::chrf, chrf.score}}, chrf.signature, {chrf.signature}};
}

}  // namespace heed
