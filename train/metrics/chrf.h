#pragma once
/// chrF2 (Popović, 2015), as sacreBLEU computes it: the F-score of character n-grams with β = 2,
/// which weights recall more than precision.
#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace heed {

inline constexpr std::size_t chrf_order = 6;  ///< maximum n of the n-grams; white space is ignored

/// Numbers of n-grams of one order.
struct ChrfCounts {
  std::int64_t hypothesis = 0, reference = 0, matches = 0;
};
/// The counts of one line for each order.
std::array<ChrfCounts, chrf_order> count_chrf(const std::string& hypothesis,
                                              const std::string& reference);
/// Computes the score of a corpus (0 to 100) from the sums of its lines' counts.
double chrf_score(const std::array<ChrfCounts, chrf_order>& sums);

struct ChrfScore {
  double score = 0.0;     ///< 0 to 100
  std::string signature;  ///< method of computation, in sacreBLEU's format
};

/// Scores lines against reference lines. Precision and recall are means over the orders for
/// which both sides have n-grams ("effective order"); if a reference line is too short for an
/// order, the n-grams of its hypothesis are not counted for that order. Throws Error(bad_input) if
/// the numbers of lines differ.
ChrfScore corpus_chrf(std::span<const std::string> hypotheses,
                      std::span<const std::string> references);

}  // namespace heed
