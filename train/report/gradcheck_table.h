#pragma once
/// The results of `heed gradcheck` for a model's parameters, as a table.
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "autograd/gradcheck.h"

HEED_BEGIN

/// A parameter, checked entry by entry and, unless all entries were checked, along random
/// directions.
struct GradcheckRow {
  std::string name, shape;
  std::int64_t entries = 0;     ///< values in the parameter
  std::int64_t checked = 0;     ///< of these, individually
  std::int64_t directions = 0;  ///< random ones, through all entries
  std::int64_t kinks = 0;
  double largest = 0;      ///< largest derivative found
  double worst_error = 0;  ///< infinite for NaN
  GradcheckStatus status = GradcheckStatus::ok;
  std::string cause;  ///< of a failure
};

struct GradcheckTable {
  std::vector<GradcheckRow> rows;  ///< in the order of the parameters
  std::string problem;             ///< a defect of the loss itself, or ""

  /// Adds a result; a second result of a parameter is merged into its row.
  void add(const GradcheckResult& result);
  /// Something was checked, and everything passed.
  bool passed() const;
  std::string text() const;
  nlohmann::json json() const;
};

HEED_END
