#pragma once
/// The confusion matrix of a classifier: the count of each pair of a true and a predicted label.
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace heed {

/// If a class has tp true positives, fp false positives and fn false negatives:
///   precision = tp / (tp + fp), recall = tp / (tp + fn), F1 = 2 tp / (2 tp + fp + fn)
/// 0 / 0 is defined as 0, as in scikit-learn (zero_division=0).
class Confusion {
 public:
  void add(std::int32_t right, std::int32_t given, std::int64_t count = 1) {
    counts_[{right, given}] += count;
    total_ += count;
    correct_ += right == given ? count : 0;
  }

  struct Class {
    std::int32_t label = 0;
    std::int64_t occurrences = 0, given = 0, correct = 0;
    double precision() const;
    double recall() const;
    double f1() const;
  };
  /// The counts of every label that occurs or is predicted, in ascending order of the labels.
  std::vector<Class> classes() const;
  double accuracy() const;
  double macro_f1() const;  ///< mean of the classes' F1

  /// Returns the text of a label.
  using Names = std::function<std::string(std::int32_t label)>;
  /// "classes": precision, recall, F1 and occurrences of each class; "confusion": for each true
  /// label, the count of each predicted label.
  nlohmann::json json(const Names& names) const;
  /// A line of headings and a line for each class; then, if there are at most 12 classes, the
  /// matrix with a row for each true label and a column for each predicted label.
  std::vector<std::string> text(const Names& names) const;

 private:
  // The key is the pair (true label, predicted label).
  std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> counts_;
  std::int64_t total_ = 0, correct_ = 0;
};

}  // namespace heed
