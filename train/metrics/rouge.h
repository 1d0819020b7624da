#pragma once
/// ROUGE (Lin, "ROUGE: a package for automatic evaluation of summaries", 2004), against one
/// reference.
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// F1 of precision and recall, from 0 to 100, the mean over lines:
///   ROUGE-N: n-grams in common, each counted min(count in the line, count in the reference) times
///   ROUGE-L: the longest common subsequence of words
/// A line without n-grams, on either side, scores 0.
struct RougeScore {
  double rouge_1 = 0, rouge_2 = 0, rouge_l = 0;
  std::string signature;

  /// "ROUGE-1 = 50.00  ROUGE-2 = 31.25  ROUGE-L = 43.75 (signature)"
  std::string text() const;
};

/// Scores lines against reference lines. Throws Error(bad_input) if the numbers of lines differ.
RougeScore mean_rouge(std::span<const std::string> hypotheses,
                      std::span<const std::string> references);

/// The words of a line: lower-case sequences of letters and digits, as in the original script,
/// without stemming. The script supports only ASCII; this function counts every character beyond
/// ASCII as a letter, so that other languages have words.
std::vector<std::string> rouge_words(std::string_view line);

}  // namespace heed
