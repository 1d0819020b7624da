#pragma once
/// BLEU (Papineni et al., 2002) as sacreBLEU computes it (Post, 2018, "A Call for Clarity in
/// Reporting BLEU Scores"), so that scores can be compared with published ones.
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "train/config/tasks.h"

namespace heed {

inline constexpr std::size_t bleu_order = 4;  ///< maximum n of the n-grams

struct BleuScore {
  double score = 0.0;                              ///< 0 to 100
  std::array<std::int64_t, bleu_order> matches{};  ///< numbers of n-grams that match the reference
  std::array<std::int64_t, bleu_order> totals{};   ///< numbers of n-grams in the hypotheses
  std::array<double, bleu_order> precisions{};     ///< smoothed, in per cent
  double brevity_penalty = 0.0;
  std::int64_t hypothesis_length = 0;  ///< in tokens
  std::int64_t reference_length = 0;   ///< in tokens
  std::string signature;               ///< method of computation, in sacreBLEU's format

  /// "BLEU = 37.85 70.1/45.2/30.8/21.2 (BP = 0.998 ratio = 0.998 hyp_len = 12941 ref_len = 12968)"
  std::string text() const;
};

/// Scores lines against reference lines. Throws Error(bad_input) if the numbers of lines differ.
BleuScore corpus_bleu(std::span<const std::string> hypotheses,
                      std::span<const std::string> references,
                      BleuTokenizer tokenizer = BleuTokenizer::v13a);

/// Computes precisions, brevity penalty and score from matches, totals and lengths. The k-th
/// precision that is 0 becomes 1 / (2^k total) ("exp" smoothing, as in NIST's script; method 3 of
/// Chen and Cherry, 2014). The score is 0 if no n-gram matches or if no hypothesis has four tokens.
void compute_bleu(BleuScore& counts);

/// The tokens of a line according to mteval-v13a, joined by single spaces.
std::string tokenize_13a(std::string_view line);
/// The tokens of a line according to sacreBLEU's "zh", joined by single spaces: each character in
/// its ranges of Chinese characters and symbols is a token; mteval-v13a's rules for symbols
/// separate the remaining text.
std::string tokenize_zh(std::string_view line);
/// The characters of a line, each followed by a space.
std::string tokenize_characters(std::string_view line);

}  // namespace heed
