#pragma once
/// What `heed gradcheck` makes of the checks of a model's parameters.
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "autograd/gradcheck.h"

HEED_BEGIN

/// A parameter, as it was checked entry by entry and, where not all entries were, along random
/// directions.
struct GradcheckRow {
  std::string name, shape;
  std::int64_t entries = 0;     ///< values in the parameter
  std::int64_t checked = 0;     ///< of them, one by one
  std::int64_t directions = 0;  ///< through all of them
  std::int64_t kinks = 0;
  double largest = 0;      ///< derivative met
  double worst_error = 0;  ///< infinite for NaN
  GradcheckStatus status = GradcheckStatus::ok;
  std::string cause;  ///< of a failure
};

struct GradcheckTable {
  std::vector<GradcheckRow> rows;  ///< in the order of the parameters
  std::string problem;             ///< what is wrong with the loss as a whole, or ""

  /// Takes in a result; a parameter that has a row already gets both in one.
  void add(const GradcheckResult& result);
  /// Something was checked, and nothing was wrong.
  bool passed() const;
  std::string text() const;
  nlohmann::json json() const;
};

HEED_END
