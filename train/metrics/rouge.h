#pragma once
/// ROUGE (Lin, "ROUGE: a package for automatic evaluation of summaries", 2004), with one reference
/// for each line.
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// Means over lines of F1 (the harmonic mean of precision and recall), from 0 to 100:
///   ROUGE-N: n-grams in common, each counted min(count in the line, count in the reference) times
///   ROUGE-L: the longest common subsequence of words
/// A line scores 0 if it or its reference is too short to contain an n-gram.
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
/// ASCII as a letter, so that text in other languages also has words.
std::vector<std::string> rouge_words(std::string_view line);

}  // namespace heed
